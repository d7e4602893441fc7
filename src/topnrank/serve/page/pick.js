// The first column: search, what was picked, and where to start.
import { html } from "./html.js";
import { Cover, Icon, Verdict, about, groupClass } from "./parts.js";
import { Search } from "./search.js";
import { LIKE } from "./taste.js";

const STARTERS = 6;

/** Popular items that are far from each other: on the map where there is one, else of different groups. */
export function starters(popular, points, count) {
  const at = new Map(points.map((point) => [point.item, point]));
  const left = popular.filter((item) => at.size === 0 || at.has(item.item)).slice(0, 60);
  const chosen = left.splice(0, 1);
  const apart = (a, b) => {
    const far = at.size ? Math.hypot(at.get(a.item).x - at.get(b.item).x, at.get(a.item).y - at.get(b.item).y) : 0;
    return far + (a.group !== b.group ? 0.5 : 0);
  };
  while (chosen.length < count && left.length) {
    const nearest = left.map((item) => Math.min(...chosen.map((other) => apart(item, other))));
    chosen.push(...left.splice(nearest.indexOf(Math.max(...nearest)), 1));
  }
  return chosen;
}

/** Three items of one corner of the catalog: one at random, and the popular ones nearest to it. */
function surprise(popular, points) {
  const among = points.length ? points : popular;
  const first = among[Math.floor(Math.random() * among.length)];
  if (!points.length) return [first];
  const far = (point) => Math.hypot(point.x - first.x, point.y - first.y);
  return [...points].sort((a, b) => far(a) - far(b)).slice(0, 3);
}

/** The most popular items of a group, as a taste to start from. */
const preset = (popular, group) => popular.filter((item) => item.group === group).slice(0, 3);

const Chip = ({ one, groups, picks, pick }) => html`
  <li class="chip" data-row>
    <span class="name">${one.title}<small><span class=${`dot ${groupClass(groups, one.group)}`} aria-hidden="true" />${about(one)}</small></span>
    <${Verdict} item=${one} picks=${picks} pick=${pick} />
    <button type="button" class="icon-button" aria-label=${`Remove ${one.title}`} title="Remove" onClick=${() => pick(one, one.type)}><${Icon} name="remove" /></button>
  </li>`;

export function Pick({ picks, groups, popular, points, pick, pickAll }) {
  const asLikes = (items) => items.map((item) => ({ ...item, type: LIKE }));
  const presets = groups.filter((group) => preset(popular, group).length === 3).slice(0, 8);
  return html`
    <section class="panel pick" aria-labelledby="pick-title">
      <h2 id="pick-title">Pick what you like</h2>
      <${Search} groups=${groups} picks=${picks} pick=${pick} />
      ${picks.length > 0 &&
      html`
        <ul class="chips" aria-label="Your picks">${picks.map((one) => html`<${Chip} key=${one.item} one=${one} groups=${groups} picks=${picks} pick=${pick} />`)}</ul>
        <p class="row"><button type="button" class="small" onClick=${() => pickAll([])}>Clear all</button></p>`}
      <section aria-labelledby="start-title" class="start">
        <h3 id="start-title">${picks.length ? "Or start anew" : "Or start here"}</h3>
        ${!picks.length &&
        html`<ul class="starters">
          ${starters(popular, points, STARTERS).map(
            (item) => html`
              <li key=${item.item}><button type="button" class="starter" onClick=${() => pick(item, LIKE)}>
                <${Cover} item=${item} groups=${groups} /><span class="name">${item.title}<small>${about(item)}</small></span>
              </button></li>`,
          )}
        </ul>`}
        <p class="row wrap">
          ${presets.map((group) => html`<button key=${group} type="button" class="small" onClick=${() => pickAll(asLikes(preset(popular, group)))}><span class=${`dot ${groupClass(groups, group)}`} aria-hidden="true" />${group}</button>`)}
          <button type="button" class="small" onClick=${() => pickAll(asLikes(surprise(popular, points)))}>Surprise me</button>
        </p>
      </section>
    </section>`;
}
