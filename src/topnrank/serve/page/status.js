// The operator's page: model, age, events, latency, refresh log; the numbers of /v1/status, asked for again and again.
import { Component, html, render } from "./html.js";
import { get, keepKey } from "./api.js";
import { Header, KeyForm } from "./frame.js";
import { counted } from "./parts.js";

const EVERY_MS = 5000;
const UNITS = [["day", 86400], ["hour", 3600], ["minute", 60]];

/** 205000 -> "2 days"; one unit is enough to see whether something is old. */
export function duration(seconds) {
  const [name, size] = UNITS.find(([, size]) => seconds >= size) ?? ["second", 1];
  return counted(Math.floor(Math.max(0, seconds) / size), name);
}

/** A time in seconds since 1970. */
function Time({ of }) {
  if (of === null || of === undefined) return "never";
  const exact = new Date(1000 * of).toISOString();
  return html`<time datetime=${exact} title=${exact}>${duration(Date.now() / 1000 - of)} ago</time>`;
}
const whole = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en"));
const ms = (value) => (value === null || value === undefined ? "–" : `${value < 10 ? value.toFixed(2) : value.toFixed(0)} ms`);
const Fact = ({ name, children }) => html`<tr><th scope="row">${name}</th><td>${children}</td></tr>`;
const Badge = ({ good, children }) => html`<span class=${`badge ${good ? "good" : "bad"}`}>${children}</span>`;

const Model = ({ model }) => html`
  <section class="panel" aria-label=${`Model ${model.name}`}>
    <div class="heading"><h2>${model.name}</h2><${Badge} good=${!model.refused}>${model.refused ? "new file refused" : "serving"}<//></div>
    ${model.refused && html`<p class="error">${model.refused}</p>`}
    <table class="facts"><tbody>
      <${Fact} name="Model">${model.kind}, task ${model.task}<//>
      <${Fact} name="Version"><code>${model.version.slice(0, 12)}</code><//>
      <${Fact} name="Age of the file"><${Time} of=${model.modified} /><//>
      <${Fact} name="Loaded"><${Time} of=${model.loaded} /><//>
      <${Fact} name="Knows">${counted(model.users, "user")}, ${counted(model.items, "item")}, ${counted(model.training_rows, "row")}<//>
      <${Fact} name="Trained to event">${whole(model.events_through)}<//>
    </tbody></table>
  </section>`;

const Events = ({ now }) => html`
  <section class="panel" aria-label="Events">
    <h2>Events</h2>
    ${now.store
      ? html`
          <dl class="numbers">
            <div><dt>kept</dt><dd>${whole(now.events)}</dd></div>
            <div><dt>the last one</dt><dd><${Time} of=${now.last_event} /></dd></div>
          </dl>
          <p class="quiet">Store: ${now.store}</p>`
      : html`<p class="quiet">No events are kept: the server was started without <code>--events</code>.</p>`}
  </section>`;

const Latency = ({ latency }) => html`
  <section class="panel" aria-label="Latency">
    <h2>Latency</h2>
    ${latency.length
      ? html`
          <div class="scroll" tabindex="0" role="region" aria-label="Latency by route"><table>
            <thead><tr><th scope="col">Route</th><th scope="col">Calls</th><th scope="col">Errors</th><th scope="col">p50</th><th scope="col">p99</th></tr></thead>
            <tbody>${latency.map(
              (one) => html`<tr key=${one.route}><th scope="row">${one.route}</th><td>${whole(one.requests)}</td><td>${one.errors ? html`<${Badge} good=${false}>${whole(one.errors)}<//>` : "0"}</td><td>${ms(one.p50_ms)}</td><td>${ms(one.p99_ms)}</td></tr>`,
            )}</tbody>
          </table></div>`
      : html`<p class="quiet">No calls yet.</p>`}
  </section>`;

const Log = ({ refreshes }) => html`
  <section class="panel log" aria-label="Refresh log">
    <h2>Refresh log</h2>
    ${refreshes.length
      ? html`
          <div class="scroll" tabindex="0" role="region" aria-label="Refresh log, newest first"><table>
            <thead><tr><th scope="col">When</th><th scope="col">Model</th><th scope="col">Result</th><th scope="col">Events</th><th scope="col">Through event</th><th scope="col">Took</th></tr></thead>
            <tbody>${refreshes.map(
              (one) => html`<tr key=${`${one.time} ${one.model}`}><th scope="row"><${Time} of=${one.time} /></th><td>${one.model}</td><td>${one.result}</td><td>${whole(one.events)}</td><td>${whole(one.through)}</td><td>${one.seconds.toFixed(1)} s</td></tr>`,
            )}</tbody>
          </table></div>`
      : html`<p class="quiet">No model was refreshed with new events yet.</p>`}
  </section>`;

class Status extends Component {
  state = { now: null, error: "", needsKey: false, live: true };

  componentDidMount() {
    this.look();
    this.timer = setInterval(() => this.state.live && !document.hidden && this.look(), EVERY_MS);
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  look = async () => {
    try {
      this.setState({ now: await get("v1/status"), error: "", needsKey: false });
    } catch (error) {
      this.setState({ error: error.message, needsKey: error.needsKey });
    }
  };

  render(_, { now, error, needsKey, live }) {
    return html`
      <${Header} here="status" />
      <main class="page">
        <div class="heading">
          <h1>Status</h1>
          <label class="check"><input type="checkbox" checked=${live} onChange=${(event) => this.setState({ live: event.target.checked })} /> Every ${EVERY_MS / 1000} seconds anew</label>
        </div>
        ${error && html`<p class="error" role="alert">${error}</p>`}
        ${needsKey && html`<${KeyForm} send=${(key) => (keepKey(key), this.look())} />`}
        ${now &&
        html`
          <p class="quiet">topnrank ${now.version}, ${counted(now.workers, "worker")}, up for ${duration(now.uptime_s)}</p>
          <div class="cards">${now.models.map((model) => html`<${Model} key=${model.name} model=${model} />`)}<${Events} now=${now} /></div>
          <${Latency} latency=${now.latency} />
          <${Log} refreshes=${now.refreshes} />`}
      </main>`;
  }
}

render(html`<${Status} />`, document.getElementById("app"));
