// The page: what is chosen, what the server answered, and how both become what is seen.
import { html, render } from "./html.js";
import { ServerError, get, keepKey, post } from "./api.js";
import { Code } from "./code.js";
import { Header, KeyForm } from "./frame.js";
import { Help, onKey } from "./keys.js";
import { Lists, changes } from "./list.js";
import { ItemMap } from "./map.js";
import { facts } from "./parts.js";
import { Pick } from "./pick.js";
import { Settings } from "./settings.js";
import { Why } from "./why.js";
import { DEFAULTS, FIELDS, fromAddress, history, request, toAddress } from "./taste.js";

const narrow = matchMedia("(max-width: 1023px)");

let state = {
  models: [],
  picks: [], // [{type, item, title, group, year}], the oldest first
  settings: { ...DEFAULTS },
  lists: [], // [{model, source, items, took_ms, changed: Map(item -> what changed)}]
  overlap: null,
  selected: null, // {model, item}: the row that is explained
  why: null,
  points: [],
  groups: [],
  popular: [],
  said: "",
  error: "",
  needsKey: false,
  ready: false,
  busy: false,
};

function set(changed) {
  state = { ...state, ...changed };
  render(html`<${App} ...${state} />`, document.getElementById("app"));
}

/** Runs what asks the server, and shows what went wrong. A newer question of the same name ends an older one. */
const asked = new Map();
async function ask(name, question) {
  asked.get(name)?.abort();
  const control = new AbortController();
  asked.set(name, control);
  try {
    return await question(control.signal);
  } catch (error) {
    if (error.name === "AbortError") return null;
    if (!(error instanceof ServerError)) throw error;
    set({ error: error.message, needsKey: error.needsKey, busy: false });
    return null;
  }
}

async function recommend() {
  const { path, body } = request(state.picks, state.settings);
  set({ busy: true });
  const answer = await ask("lists", (signal) => post(path, body, signal));
  if (answer === null) return;
  const before = new Map(state.lists.map((list) => [list.model, list]));
  const lists = (answer.answers ?? [answer]).map((list) => {
    const items = list.items.map((row) => ({ ...row, ...facts(row) }));
    return { ...list, items, changed: changes(before.get(list.model), list) };
  });
  const rows = lists.flatMap((list) => list.items.map((row) => ({ model: list.model, item: row.item })));
  const kept = rows.find((row) => row.model === state.selected?.model && row.item === state.selected?.item);
  const selected = kept ?? (narrow.matches || lists.length > 1 ? null : (rows[0] ?? null));
  set({ lists, overlap: answer.pairs?.[0].overlap ?? null, selected, said: announcement(lists), error: "", needsKey: false, busy: false });
  await explain();
}

function announcement(lists) {
  const [list] = lists;
  if (!list.items.length) return "The list is empty.";
  const fresh = [...list.changed.values()].filter((one) => one.kind === "new").length;
  const moved = [...list.changed.values()].filter((one) => one.kind === "up" || one.kind === "down").length;
  const what = [fresh && `${fresh} new`, moved && `${moved} moved`].filter(Boolean).join(", ") || "no changes";
  return `List updated: ${what}, first is ${list.items[0].title}.`;
}

async function explain() {
  const { selected, models, picks } = state;
  const model = models.find((one) => one.name === selected?.model);
  if (!model) return;
  const item = `v1/items/${encodeURIComponent(selected.item)}`;
  const question = { model: model.name, history: history(picks), item: selected.item };
  const answers = await ask("why", (signal) =>
    Promise.all([
      get(item, { model: model.name }, signal),
      model.similar && get(`${item}/similar`, { model: model.name, n: 5, fields: FIELDS }, signal),
      model.explains && picks.length > 0 && post("v1/explain", question, signal),
    ]),
  );
  if (answers === null) return;
  const [known, similar, parts] = answers;
  set({ why: { ...selected, popularity: known.popularity, similar: (similar?.items ?? []).map(facts), sum: parts || null } });
}

const actions = {
  /** Likes or dislikes an item; the same verdict again takes it back. */
  pick(item, type) {
    const old = state.picks.find((one) => one.item === item.item);
    const others = state.picks.filter((one) => one.item !== item.item);
    if (old?.type === type) changeTaste({ picks: others });
    else if (old) changeTaste({ picks: state.picks.map((one) => (one === old ? { ...one, type } : one)) });
    else changeTaste({ picks: [...others, { ...facts(item), type }] });
  },
  pickAll: (picks) => changeTaste({ picks: picks.map(({ type, ...item }) => ({ ...facts(item), type })) }),
  change: (settings) => changeTaste({ settings: { ...state.settings, ...settings } }),
  select(model, item) {
    const again = (narrow.matches || state.lists.length > 1) && state.selected?.model === model && state.selected?.item === item;
    set({ selected: again ? null : { model, item }, why: again ? null : state.why });
    return explain();
  },
};

function changeTaste(changed) {
  set(changed);
  window.history.replaceState(null, "", location.pathname + toAddress(state.picks, addressed(state.settings)));
  if ("settings" in changed) loadMap();
  return recommend();
}

/** The default model is not written into the address. */
const addressed = (settings) => ({ ...settings, model: settings.model === state.defaultModel ? "" : settings.model });

let mapped = null;
async function loadMap() {
  const { model } = state.settings;
  if (mapped === model) return;
  mapped = model;
  if (!state.models.find((one) => one.name === model).similar) return set({ points: [] }); // a model that knows no likeness has no map
  const answer = await ask("map", (signal) => get("v1/map", { model, n: 2000 }, signal));
  if (answer === null) mapped = null;
  else set({ points: answer.items.map((point) => ({ ...point, ...facts(point) })) });
}

/** Reads the address: models that are not here and items that nobody knows are left out, and said. */
async function start() {
  const wanted = fromAddress(location.hash);
  const found = await ask("start", (signal) => Promise.all([get("v1/models", {}, signal), get("v1/items", { n: 60, fields: "year" }, signal)]));
  if (found === null) return;
  const [{ models }, popular] = [found[0], found[1].items.map(facts)];
  const first = models[0].name;
  const known = (name) => models.some((model) => model.name === name);
  const settings = { ...wanted.settings, model: known(wanted.settings.model) ? wanted.settings.model : first };
  if (!known(settings.with) || settings.with === settings.model) settings.with = "";
  const picks = await Promise.all(
    wanted.picks.map(({ type, id }) =>
      get(`v1/items/${encodeURIComponent(id)}`, { model: settings.model }).then((item) => ({ ...facts(item), type }), () => null),
    ),
  );
  set({ models, defaultModel: first, settings, popular, picks: picks.filter(Boolean), ready: true, needsKey: false, error: "" });
  await Promise.all([recommend(), loadMap()]);
  const lost = wanted.picks.filter((_, place) => picks[place] === null).map((pick) => pick.id);
  if (lost.length) set({ error: `The address names items that are not in this catalog: ${lost.join(", ")}.` });
}

function App(now) {
  const groups = [...new Set([...now.popular, ...now.points].map((item) => item.group).filter((group) => group != null))].sort();
  const shared = { ...now, reasons: now.why, groups, ...actions };
  const inWhy = narrow.matches || now.lists.length > 1;
  const why = now.selected && html`<${Why} ...${shared} />`;
  const settings = html`<${Settings} ...${shared} folded=${narrow.matches} />`;
  return html`
    <${Header} here="try" />
    <main class="page">
      <h1 class="sr">Try the model</h1>
      ${now.error && html`<p class="error" role="alert">${now.error}</p>`}
      ${now.needsKey && html`<${KeyForm} send=${(key) => (keepKey(key), start())} />`}
      <p role="status" class="sr">${now.said}</p>
      ${now.ready &&
      html`
        <div class=${inWhy ? "columns" : "columns three"}>
          <${Pick} ...${shared} />
          <div class="middle">
            ${settings}
            <${Lists} ...${shared} inWhy=${inWhy} why=${why} />
          </div>
          ${!inWhy && html`<aside class="panel why-panel" aria-label="Why">${why ?? html`<p class="quiet">Choose a row of the list to see why it is there.</p>`}</aside>`}
        </div>
        <${ItemMap} ...${shared} />
        <${Code} ...${shared} />`}
    </main>
    <${Help} />`;
}

narrow.addEventListener("change", () => set({}));
window.addEventListener("hashchange", start);
document.addEventListener("keydown", (event) => onKey(event));
set({});
start();
