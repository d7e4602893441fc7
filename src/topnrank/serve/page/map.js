// The map: items that the model holds alike lie close together. A way in, with a table for those who cannot see it.
import { Component, createRef, html } from "./html.js";
import { Cover, GROUP_COLORS, Verdict, about, groupClass } from "./parts.js";

const MARGIN = 16;
const REACH = 14; // how near to a point the pointer must be, in pixels
const ROWS = 100;

export class ItemMap extends Component {
  canvas = createRef();
  state = { at: null, kept: null, all: false };

  componentDidMount() {
    this.sized = new ResizeObserver(() => this.draw());
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.addEventListener("change", this.draw);
    this.watch();
  }

  componentDidUpdate() {
    this.watch();
    this.draw();
  }

  componentWillUnmount() {
    this.sized.disconnect();
    this.dark.removeEventListener("change", this.draw);
  }

  watch() {
    if (this.canvas.current && this.watched !== this.canvas.current) this.sized.observe((this.watched = this.canvas.current));
  }

  /** Where a point is on the canvas, in pixels of the page; the outermost points lie at its edges. */
  place({ x, y }) {
    const { clientWidth: width, clientHeight: height } = this.canvas.current;
    const { left, right, bottom, top } = this.edges();
    const share = (value, low, high) => (high > low ? (value - low) / (high - low) : 0.5);
    return [MARGIN + share(x, left, right) * (width - 2 * MARGIN), MARGIN + share(-y, -top, -bottom) * (height - 2 * MARGIN)];
  }

  edges() {
    const { points } = this.props;
    if (this.edgesOf !== points) {
      const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)];
      this.edgesOf = points;
      this.kept = { left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys) };
    }
    return this.kept;
  }

  draw = () => {
    const canvas = this.canvas.current;
    if (!canvas?.clientWidth) return;
    const { points, groups, picks, lists } = this.props;
    const scale = devicePixelRatio || 1;
    [canvas.width, canvas.height] = [canvas.clientWidth * scale, canvas.clientHeight * scale];
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const style = getComputedStyle(canvas);
    // colors are resolved by the style of elements: a canvas does not know light-dark()
    const colors = [...Array(GROUP_COLORS).keys()].map((place) => getComputedStyle(canvas.parentElement.querySelector(`.legend .g${place}`) ?? canvas).backgroundColor);
    const plain = style.borderTopColor;
    const ranks = new Map((lists[0]?.items ?? []).map((row) => [row.item, row.rank]));
    const verdicts = new Map(picks.map((one) => [one.item, one.type]));
    for (const [order, point] of points.entries()) {
      const [x, y] = this.place(point);
      pen.globalAlpha = ranks.has(point.item) || verdicts.has(point.item) ? 1 : 0.55;
      pen.fillStyle = colors[groups.indexOf(point.group) % GROUP_COLORS] ?? plain;
      pen.beginPath();
      pen.arc(x, y, 2 + 3 * (1 - Math.sqrt(order / points.length)), 0, 7); // the server sends the best known first
      pen.fill();
    }
    pen.globalAlpha = 1;
    pen.font = `600 12px ${style.fontFamily}`;
    [pen.textAlign, pen.textBaseline, pen.lineWidth] = ["center", "middle", 1.5];
    for (const point of points) {
      const sign = { like: "♥", dislike: "✕" }[verdicts.get(point.item)] ?? ranks.get(point.item);
      if (sign === undefined) continue;
      const [x, y] = this.place(point);
      pen.beginPath();
      pen.arc(x, y, 10, 0, 7);
      pen.fillStyle = style.backgroundColor;
      pen.fill();
      pen.strokeStyle = style.color;
      pen.stroke();
      pen.fillStyle = style.color;
      pen.fillText(String(sign), x, y + 1);
    }
    const shown = this.state.at ?? this.state.kept;
    if (shown) {
      const [x, y] = this.place(shown);
      pen.beginPath();
      pen.arc(x, y, 14, 0, 7);
      pen.strokeStyle = style.outlineColor;
      pen.lineWidth = 2;
      pen.stroke();
    }
  };

  nearest(event) {
    const box = this.canvas.current.getBoundingClientRect();
    let [best, reach] = [null, REACH];
    for (const point of this.props.points) {
      const [x, y] = this.place(point);
      const far = Math.hypot(x - (event.clientX - box.left), y - (event.clientY - box.top));
      if (far < reach) [best, reach] = [point, far];
    }
    return best;
  }

  render({ points, groups, picks, pick }, { at, kept, all }) {
    if (!points.length) return null;
    const shown = at ?? kept;
    return html`
      <section class="panel map" aria-labelledby="map-title">
        <header><h2 id="map-title">The map of items</h2><p class="quiet">What the model holds alike lies close together. Numbers are ranks in your list.</p></header>
        <canvas ref=${this.canvas} aria-hidden="true"
          onPointerMove=${(event) => this.setState({ at: this.nearest(event) })} onPointerLeave=${() => this.setState({ at: null })}
          onClick=${(event) => this.setState({ kept: this.nearest(event) })} />
        <div class="under">
          ${shown
            ? html`<p class="chip"><${Cover} item=${shown} groups=${groups} /><span class="name">${shown.title}<small>${about(shown)}</small></span>${kept === shown ? html`<${Verdict} item=${shown} picks=${picks} pick=${pick} />` : html`<small class="quiet">click to keep</small>`}</p>`
            : html`<p class="quiet">Point at an item to see its name; click to like or dislike it.</p>`}
          <ul class="legend" aria-label="Groups">${groups.map((group) => html`<li key=${group}><span class=${`dot ${groupClass(groups, group)}`} aria-hidden="true" />${group}</li>`)}</ul>
        </div>
        <details onToggle=${(event) => this.setState({ table: event.target.open })}>
          <summary>The map as a table</summary>
          ${this.state.table && html`<${Table} points=${all ? points : points.slice(0, ROWS)} picks=${picks} pick=${pick} />`}
          ${this.state.table && !all && points.length > ROWS && html`<button type="button" class="small" onClick=${() => this.setState({ all: true })}>All ${points.length} items</button>`}
        </details>
      </section>`;
  }
}

const Table = ({ points, picks, pick }) => html`
  <div class="scroll" tabindex="0" role="region" aria-label="The map as a table">
    <table>
      <thead><tr><th scope="col">Item</th><th scope="col">Group</th><th scope="col">Across</th><th scope="col">Up</th><th scope="col">Verdict</th></tr></thead>
      <tbody>
        ${points.map(
          (point) => html`<tr key=${point.item} data-row><th scope="row">${point.title}</th><td>${point.group}</td><td>${point.x.toFixed(2)}</td><td>${point.y.toFixed(2)}</td><td><${Verdict} item=${point} picks=${picks} pick=${pick} /></td></tr>`,
        )}
      </tbody>
    </table>
  </div>`;
