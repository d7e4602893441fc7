// The call whose answer is on the page, to be copied.
import { Component, html } from "./html.js";
import { hasKey } from "./api.js";
import { request } from "./taste.js";

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

export function curl(base, { path, body }, key = false) {
  const lines = [`curl ${quoted(base + path)}`, `-H 'Content-Type: application/json'`];
  if (key) lines.push(`-H "Authorization: Bearer $TOPNRANK_KEY"`);
  lines.push(`-d ${quoted(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

export function python(base, { path, body }, key = false) {
  // JSON of null, true and false is no Python; a string literal of JSON always is
  const literal = JSON.stringify(JSON.stringify(body));
  const headers = [`"Content-Type": "application/json"`];
  if (key) headers.push(`"Authorization": "Bearer " + os.environ["TOPNRANK_KEY"]`);
  return `import json${key ? ", os" : ""}
from urllib.request import Request, urlopen

body = ${literal}
headers = {${headers.join(", ")}}
with urlopen(Request(${JSON.stringify(base + path)}, body.encode(), headers)) as answer:
    found = json.load(answer)
for place in ${path === "v1/compare" ? `found["answers"]` : "[found]"}:
    for row in place["items"]:
        print(row["rank"], row["item"], row["score"])
`;
}

export class Code extends Component {
  copy(what, text) {
    navigator.clipboard.writeText(text).then(
      () => this.setState({ said: `Copied the ${what} call.` }),
      () => this.setState({ said: "The browser does not allow copying; mark the text instead." }),
    );
  }

  render({ picks, settings }, { said }) {
    const [asked, base] = [request(picks, settings), new URL(".", location.href).href];
    const calls = [
      ["curl", curl(base, asked, hasKey())],
      ["Python", python(base, asked, hasKey())],
    ];
    return html`
      <details class="panel code">
        <summary><h2>This list as code</h2></summary>
        <p class="quiet">The very request whose answer is on this page. The address of the page holds your picks, too: send it to somebody.</p>
        <div class="calls">
          ${calls.map(
            ([name, text]) => html`
              <section key=${name}>
                <header><h3>${name}</h3><button type="button" class="small" onClick=${() => this.copy(name, text)}>Copy<span class="sr"> the ${name} call</span></button></header>
                <pre tabindex="0" aria-label=${`The call in ${name}`}><code id=${`code-${name}`}>${text}</code></pre>
              </section>`,
          )}
        </div>
        <p role="status" class="quiet">${said}</p>
      </details>`;
  }
}
