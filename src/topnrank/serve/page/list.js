// The lists: rows that move to their new place, what changed, and two models side by side.
import { Component, createRef, html } from "./html.js";
import { Cover, Verdict, about, counted, digitsFor, number } from "./parts.js";

/** What changed from one list to the next, by item: new, up or down by so many places. */
export function changes(before, now) {
  const changed = new Map();
  if (!before) return changed;
  const was = new Map(before.items.map((row) => [row.item, row.rank]));
  for (const { item, rank } of now.items) {
    if (!was.has(item)) changed.set(item, { kind: "new", text: "new", spoken: "new in the list" });
    else if (was.get(item) !== rank) {
      const up = was.get(item) - rank;
      changed.set(item, { kind: up > 0 ? "up" : "down", text: `${up > 0 ? "▲" : "▼"}${Math.abs(up)}`, spoken: `${up > 0 ? "up" : "down"} ${Math.abs(up)}` });
    }
  }
  return changed;
}

const Change = ({ what }) =>
  what && html`<span class=${`change ${what.kind}`}><span aria-hidden="true">${what.text}</span><span class="sr">${what.spoken}</span></span>`;

/** How long the bar of a score is: from the lowest score (or 0, if all are above it) to the highest. */
const share = (score, rows) => {
  const scores = rows.map((row) => row.score);
  const [low, high] = [Math.min(0, ...scores), Math.max(...scores)];
  return high === low ? 1 : (score - low) / (high - low);
};

function Row({ row, digits, list, other, groups, picks, pick, selected, select, inWhy, why }) {
  const chosen = selected?.model === list.model && selected?.item === row.item;
  const there = other?.items.find((one) => one.item === row.item);
  return html`
    <li class=${`item ${chosen ? "chosen" : selected?.item === row.item ? "same" : ""}`} data-row data-item=${row.item}>
      <div class="line">
        <span class="place"><span class="rank">${row.rank}</span><${Change} what=${list.changed.get(row.item)} /></span>
        <${Cover} item=${row} groups=${groups} />
        <button type="button" class="title" aria-expanded=${inWhy ? String(chosen) : undefined} aria-pressed=${inWhy ? undefined : String(chosen)}
          title="Why? (w)" onClick=${() => select(list.model, row.item)}>
          ${row.title}<small>${about(row)}${other && html`<span class=${there ? "there" : "only"}>${about(row) && " · "}${there ? `${other.model}: ${there.rank}` : "only here"}</span>`}</small>
        </button>
        <span class="score" title=${String(row.score)}><span class="bar" aria-hidden="true"><span ref=${(bar) => bar && (bar.style.width = `${100 * share(row.score, list.items)}%`)} /></span><span class="sr">score </span>${number(row.score, list.source === "popular" ? 0 : digits)}</span>
        <${Verdict} item=${row} picks=${picks} pick=${pick} />
      </div>
      ${chosen && inWhy && html`<div class="inline-why">${why}</div>`}
    </li>`;
}

/** Rows are keyed by item, so that the focus stays with an item while it moves. */
class List extends Component {
  list = createRef();
  tops = new Map();

  rows() {
    return [...(this.list.current?.children ?? [])];
  }

  getSnapshotBeforeUpdate() {
    this.tops = new Map(this.rows().map((row) => [row.dataset.item, row.offsetTop]));
    return null;
  }

  componentDidUpdate(before) {
    if (before.list === this.props.list || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    for (const row of this.rows()) {
      const was = this.tops.get(row.dataset.item);
      if (was === undefined) row.animate([{ opacity: 0 }, { opacity: 1 }], { duration: 350, easing: "ease-out" });
      else if (was !== row.offsetTop) row.animate([{ transform: `translateY(${was - row.offsetTop}px)` }, { transform: "none" }], { duration: 350, easing: "ease-out" });
    }
  }

  render({ list, other, title, ...shared }) {
    const says = list.source === "popular" ? "what is popular" : `computed in ${number(list.took_ms, 1)} ms`;
    const digits = digitsFor(list.items.map((row) => row.score));
    return html`
      <section class="list" aria-label=${title}>
        <header><h2>${title}</h2><span class="quiet">${says}</span></header>
        <ol ref=${this.list}>
          ${list.items.map((row) => html`<${Row} key=${row.item} row=${row} digits=${digits} list=${list} other=${other} ...${shared} />`)}
        </ol>
        ${!list.items.length && html`<p class="quiet">Nothing is left to recommend with these settings.</p>`}
      </section>`;
  }
}

/** `inWhy`: the reasons stand in the row that they are about, and not beside the list. */
export function Lists({ lists, overlap, busy, ...shared }) {
  const [first, second] = lists;
  if (!first) return html`<div class="panel lists" aria-busy="true"><p class="quiet">Asking the model…</p></div>`;
  const both = second && first.items.filter((row) => second.items.some((one) => one.item === row.item)).length;
  return html`
    <div class=${`panel lists ${second ? "two" : ""}`} aria-busy=${busy ? "true" : "false"}>
      ${second && html`<p class="overlap"><strong>${counted(both, "item")}</strong> of ${first.items.length} in both lists${overlap === null ? "" : `, overlap ${Math.round(overlap * 100)} %`}</p>`}
      <div class="side">
        ${lists.map((list, place) => html`<${List} key=${list.model} list=${list} other=${lists[1 - place]} title=${second ? list.model : "Your list"} ...${shared} />`)}
      </div>
    </div>`;
}
