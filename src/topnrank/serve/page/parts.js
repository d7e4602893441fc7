// Small pieces that several parts of the page show.
import { html } from "./html.js";
import { DISLIKE, LIKE } from "./taste.js";

const PATHS = {
  like: "M8 13.6 2.9 8.4a3.2 3.2 0 0 1 0-4.6 3.2 3.2 0 0 1 4.5 0l.6.6.6-.6a3.2 3.2 0 0 1 4.5 0 3.2 3.2 0 0 1 0 4.6z",
  dislike: "M3.5 3.5l9 9m0-9l-9 9",
  remove: "M4.5 4.5l7 7m0-7l-7 7",
};

export const Icon = ({ name }) => html`<svg class=${`icon ${name}`} viewBox="0 0 16 16" aria-hidden="true"><path d=${PATHS[name]} /></svg>`;

/** An item as the page holds it, from any answer of the server. */
export const facts = ({ item, title, group, fields, popularity }) => ({ item, title: title ?? String(item), group, year: fields?.year, popularity });

/** Colors of groups are taken in turn; groups are in the order of their names. */
export const GROUP_COLORS = 8;
export const groupClass = (groups, group) => (groups.includes(group) ? `g${groups.indexOf(group) % GROUP_COLORS}` : "g-none");

/** A cover without a picture: initials on the color of the group. */
export function Cover({ item, groups }) {
  const words = String(item.title).replace(/^(the|a|an)\s+/i, "").split(/\s+/);
  const initials = words.slice(0, 2).map((word) => [...word][0] ?? "").join("").toUpperCase();
  return html`<span class=${`cover ${groupClass(groups, item.group)}`} aria-hidden="true">${initials}</span>`;
}

export const about = (item) => [item.year, item.group].filter((part) => part !== undefined && part !== null && part !== "").join(" · ");

export function Verdict({ item, picks, pick }) {
  const now = picks.find((one) => one.item === item.item)?.type;
  return html`
    <span class="verdict">
      <button type="button" class="icon-button" aria-pressed=${now === LIKE} aria-label=${`Like ${item.title}`} title="Like (l)"
        onClick=${() => pick(item, LIKE)}><${Icon} name="like" /></button>
      <button type="button" class="icon-button" aria-pressed=${now === DISLIKE} aria-label=${`Dislike ${item.title}`} title="Dislike (d)"
        onClick=${() => pick(item, DISLIKE)}><${Icon} name="dislike" /></button>
    </span>`;
}

/** Rounds numbers so that the rounded ones add up to the rounded sum; each is off by less than one unit of the last place. */
export function roundedParts(parts, sum, digits) {
  const unit = 10 ** -digits;
  const scaled = parts.map((part) => part / unit);
  const rounded = scaled.map(Math.floor);
  let missing = Math.round(sum / unit) - rounded.reduce((total, one) => total + one, 0);
  const order = scaled.map((value, place) => [value - rounded[place], place]).sort((a, b) => b[0] - a[0]);
  for (const [, place] of order) {
    if (missing <= 0) break;
    rounded[place] += 1;
    missing -= 1;
  }
  return rounded.map((value) => value * unit);
}

/** Digits after the point that show numbers of this size by three figures: 1.78, 0.0523, 520. */
export const digitsFor = (values) => {
  const largest = Math.max(...values.map(Math.abs), 0);
  return largest === 0 ? 0 : Math.min(8, Math.max(0, 2 - Math.floor(Math.log10(largest))));
};

export const number = (value, digits = 3) => (value < 0 ? "−" : "") + Math.abs(value).toFixed(digits);
export const counted = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
