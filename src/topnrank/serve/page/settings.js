// Above the list: which model, beside which other one, and what the list should lean to.
import { html } from "./html.js";

const leaning = (value, below, above) => (value === 0 ? "as the model has it" : `${Math.round(Math.abs(value) * 100)} % ${value < 0 ? below : above}`);

const Slider = ({ id, label, min, value, said, change, ends }) => html`
  <div class="slider">
    <label for=${id}>${label}</label><output for=${id}>${said}</output>
    <input id=${id} type="range" min=${min} max="1" step="0.1" value=${value} aria-valuetext=${said}
      onInput=${(event) => change(Number(event.target.value))} />
    <span class="ends" aria-hidden="true"><span>${ends[0]}</span><span>${ends[1]}</span></span>
  </div>`;

/** `folded`: behind a heading that opens it, where there is little room. */
export function Settings({ models, settings, change, folded }) {
  const option = (model) => html`<option key=${model.name} value=${model.name}>${model.name} (${model.kind})</option>`;
  const others = models.filter((model) => model.name !== settings.model);
  const all = html`
      <div class="choices">
        <label>Model <select id="model" value=${settings.model} onChange=${({ target }) => change({ model: target.value, with: settings.with === target.value ? "" : settings.with })}>${models.map(option)}</select></label>
        ${others.length > 0 &&
        html`<label>Compare with <select id="with" value=${settings.with} onChange=${({ target }) => change({ with: target.value })}><option value="">nothing</option>${others.map(option)}</select></label>`}
        <label>Rows <select id="rows" value=${settings.n} onChange=${({ target }) => change({ n: Number(target.value) })}>
          ${[...new Set([5, 10, 20, 50, settings.n])].sort((a, b) => a - b).map((n) => html`<option key=${n} value=${n}>${n}</option>`)}</select></label>
        ${models.find((model) => model.name === settings.model)?.groups &&
        html`<label>Of one group <select id="group" value=${settings.group} onChange=${({ target }) => change({ group: Number(target.value) })}>
          ${[...new Set([0, 1, 2, 3, 5, settings.group])].sort((a, b) => a - b).map((most) => html`<option key=${most} value=${most}>${most === 0 ? "any number" : `at most ${most}`}</option>`)}</select></label>`}
      </div>
      <div class="sliders">
        <${Slider} id="popularity" label="Popularity" min="-1" value=${settings.popularity} ends=${["unknown", "popular"]}
          said=${leaning(settings.popularity, "less known", "better known")} change=${(popularity) => change({ popularity })} />
        <${Slider} id="variety" label="Variety" min="0" value=${settings.variety} ends=${["similar", "varied"]}
          said=${leaning(settings.variety, "", "more varied")} change=${(variety) => change({ variety })} />
      </div>`;
  return folded
    ? html`<details class="panel"><summary><h2>Adjust the list</h2></summary><div class="settings">${all}</div></details>`
    : html`<section class="panel settings" aria-label="Adjust the list">${all}</section>`;
}
