// Why an item is in the list: parts that add up to its score.
import { Component, html } from "./html.js";
import { Cover, Verdict, about, counted, digitsFor, number, roundedParts } from "./parts.js";

const NAMES = { bias: "The item itself, whoever asks" };

/** Parts of picks, and of what is no pick, the largest first. */
function partsOf(sum, picks) {
  const mine = sum.parts.map(({ item, part, rank_without }) => {
    const one = picks.find((other) => other.item === item);
    return { one, label: one?.title ?? String(item), part, without: rank_without };
  });
  const rest = Object.entries(sum.rest).map(([what, part]) => ({ label: NAMES[what] ?? what, part }));
  return [...mine, ...rest].sort((a, b) => Math.abs(b.part) - Math.abs(a.part));
}

/** Each bar starts where the one before ended, so that the eye adds them up. Places are shares of the width. */
function waterfall(parts, score) {
  let sum = 0;
  const steps = parts.map(({ part }) => [sum, (sum += part)]);
  const ends = [0, score, ...steps.flat()];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const place = (value) => (high === low ? 0 : (value - low) / (high - low));
  return [...steps, [0, score]].map(([from, to]) => ({ left: place(Math.min(from, to)), width: Math.abs(place(to) - place(from)) }));
}

const Bar = ({ left, width, kind }) => html`
  <span class="fall" aria-hidden="true"><span class=${kind} ref=${(bar) => bar && Object.assign(bar.style, { left: `${100 * left}%`, width: `max(2px, ${100 * width}%)` })} /></span>`;

const without = (rank, now) => {
  if (rank === undefined || rank === null) return "";
  return rank === now ? "without it: the same rank" : `without it: rank ${rank}`;
};

export class Why extends Component {
  render({ reasons: why, selected, lists, picks, groups, models, pick }) {
    const row = lists.find((list) => list.model === selected.model)?.items.find((one) => one.item === selected.item);
    const model = models.find((one) => one.name === selected.model);
    if (!row) return null;
    const fits = why && why.item === selected.item && why.model === selected.model;
    return html`
      <section class="why" aria-labelledby="why-title" data-item=${selected.item}>
        <header>
          <${Cover} item=${row} groups=${groups} />
          <h2 id="why-title">Why ${row.title}?<small>${[about(row), fits && `${counted(why.popularity, "training row")}`].filter(Boolean).join(" · ")}</small></h2>
        </header>
        ${fits && why.sum && html`<${Parts} sum=${why.sum} picks=${picks} pick=${pick} />`}
        ${!picks.length && html`<p class="quiet">You have not picked anything yet: this is what most people took. Pick something, and the reasons stand here.</p>`}
        ${picks.length > 0 && model?.explains === false && html`<p class="quiet">${model.kind} does not build its scores from the items of a history, so there are no parts to show.</p>`}
        ${fits && why.similar.length > 0 && html`<${Similar} items=${why.similar} groups=${groups} picks=${picks} pick=${pick} />`}
      </section>`;
  }
}

function Parts({ sum, picks, pick }) {
  const parts = partsOf(sum, picks);
  const values = parts.map(({ part }) => part);
  const digits = digitsFor([...values, sum.score]) + 1;
  const shown = roundedParts(values, sum.score, digits);
  const bars = waterfall(parts, sum.score);
  return html`
    <table class="parts">
      <caption class="sr">What each of your picks gives to the score</caption>
      <thead class="sr"><tr><th scope="col">Your pick</th><th scope="col">Part of the score</th><th scope="col">Change</th></tr></thead>
      <tbody>
        ${parts.map(
          ({ one, label, part, without: rank }, place) => html`
            <tr key=${one?.item ?? label}>
              <th scope="row">${label}<small>${[one?.type === "dislike" && "disliked", without(rank, sum.rank)].filter(Boolean).join(" · ")}</small>
                <${Bar} ...${bars[place]} kind=${part < 0 ? "minus" : "plus"} /></th>
              <td><data class="part" value=${part}>${part < 0 ? "" : "+"}${number(shown[place], digits)}</data></td>
              <td>${one && html`<button type="button" class="icon-button" aria-label=${`Remove the pick ${label}`} title="Remove this pick" onClick=${() => pick(one, one.type)}>✕</button>`}</td>
            </tr>`,
        )}
      </tbody>
      <tfoot><tr><th scope="row">Score, rank ${sum.rank}<${Bar} ...${bars.at(-1)} kind="sum" /></th><td><data class="sum" value=${sum.score}>${number(sum.score, digits)}</data></td><td /></tr></tfoot>
    </table>
    <p class="quiet">${sum.parts.length ? "The parts are exact: they add up to the score." : "None of your picks speaks for or against it: the score is that of the item itself."}</p>`;
}

const Similar = ({ items, groups, picks, pick }) => html`
  <h3>Most similar</h3>
  <ul class="chips">
    ${items.map(
      (item) => html`<li key=${item.item} class="chip" data-row><${Cover} item=${item} groups=${groups} /><span class="name">${item.title}<small>${about(item)}</small></span><${Verdict} item=${item} picks=${picks} pick=${pick} /></li>`,
    )}
  </ul>`;
