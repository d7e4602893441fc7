// What the visitor has chosen (a taste), as the part of the address behind "#" and as the body of a request.
//
//     #like=12&dislike=7&like=31&model=films&with=ridge&popularity=-0.5&variety=0.3&group=2&n=20
//
// The order of likes and dislikes is the order in which they were picked: to models of order it matters.

export const LIKE = "like";
export const DISLIKE = "dislike";
export const FIELDS = ["title", "group", "year"];
export const DEFAULTS = { model: "", with: "", popularity: 0, variety: 0, group: 0, n: 10 };

/** Picks as [{type, id}], ids still text; and the settings. */
export function fromAddress(hash) {
  const entries = [...new URLSearchParams(hash.replace(/^#/, ""))];
  const picks = entries.filter(([name]) => name === LIKE || name === DISLIKE).map(([type, id]) => ({ type, id }));
  const settings = { ...DEFAULTS };
  for (const [name, text] of entries) {
    if (!(name in DEFAULTS)) continue;
    const value = typeof DEFAULTS[name] === "number" ? Number(text) : text;
    if (!Number.isNaN(value)) settings[name] = value;
  }
  settings.popularity = Math.min(1, Math.max(-1, settings.popularity));
  settings.variety = Math.min(1, Math.max(0, settings.variety));
  settings.n = Math.min(50, Math.max(1, Math.round(settings.n)));
  settings.group = Math.min(50, Math.max(0, Math.round(settings.group)));
  return { picks, settings };
}

export function toAddress(picks, settings) {
  const entries = picks.map((pick) => [pick.type, String(pick.item)]);
  for (const [name, value] of Object.entries(DEFAULTS)) {
    if (settings[name] !== value) entries.push([name, String(settings[name])]);
  }
  return entries.length ? `#${new URLSearchParams(entries)}` : "";
}

export const history = (picks) => picks.map(({ item, type }) => ({ item, type }));

/** Path and body of the request whose answer is on the page. */
export function request(picks, settings) {
  const body = { history: history(picks), n: settings.n, fields: FIELDS };
  if (settings.popularity !== 0) body.popularity = settings.popularity;
  if (settings.variety !== 0) body.diversity = settings.variety;
  if (settings.group > 0) body.groups = { max: settings.group };
  if (settings.with) return { path: "v1/compare", body: { models: [settings.model, settings.with], ...body } };
  return { path: "v1/recommend", body: { model: settings.model, ...body } };
}
