// What every page has: the header, and the form for a key where the server wants one.
import { html } from "./html.js";

export const Header = ({ here, children }) => html`
  <header class="top">
    <a class="brand" href="./"><img src="icon.svg" alt="" width="24" height="24" />topnrank</a>
    <nav aria-label="Pages">
      <a href="./" aria-current=${here === "try" ? "page" : undefined}>Try it</a>
      <a href="status" aria-current=${here === "status" ? "page" : undefined}>Status</a>
    </nav>
    ${children}
    ${here === "try" && html`<button type="button" class="small" onClick=${() => document.getElementById("help").showModal()}>Keys</button>`}
  </header>`;

export const KeyForm = ({ send }) => html`
  <form class="panel key" onSubmit=${(event) => (event.preventDefault(), send(new FormData(event.target).get("key")))}>
    <label for="key">This server wants a key. It stays in this tab until you close it.</label>
    <input id="key" name="key" type="password" autocomplete="off" required />
    <button type="submit">Use this key</button>
  </form>`;
