// Keys of one letter, listed in a dialog where they can be switched off.
import { Component, html } from "./html.js";

const OFF = "topnrank keys off";
const KEYS = [
  ["/", "Go to the search box"],
  ["l", "Like the row or item that has the focus"],
  ["d", "Dislike it"],
  ["w", "Why is it in the list?"],
  ["j, k", "Next row, previous row"],
  ["?", "This help"],
];

const rows = () => [...document.querySelectorAll("[data-row] .title")];

function move(step) {
  const all = rows();
  const here = all.indexOf(document.activeElement.closest("[data-row]")?.querySelector(".title"));
  all[Math.min(all.length - 1, Math.max(0, here + step))]?.focus();
}

export function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem(OFF)) return;
  if (event.target.closest("input:not([type=range]):not([type=checkbox]), select, textarea, dialog[open]")) return;
  const row = document.activeElement.closest("[data-row]");
  const press = (selector) => row?.querySelector(selector)?.click();
  const doing = {
    "/": () => document.getElementById("search")?.focus(),
    l: () => press(".verdict button:first-child"),
    d: () => press(".verdict button:last-child"),
    w: () => press(".title"),
    j: () => move(1),
    k: () => move(-1),
    "?": () => document.getElementById("help").showModal(),
  }[event.key];
  if (!doing) return;
  event.preventDefault();
  doing();
}

export class Help extends Component {
  render() {
    const choose = (event) => (event.target.checked ? localStorage.removeItem(OFF) : localStorage.setItem(OFF, "1"));
    return html`
      <dialog id="help" aria-labelledby="help-title">
        <h2 id="help-title">Keys</h2>
        <dl class="keys">${KEYS.map(([key, what]) => html`<div key=${key}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}</dl>
        <p class="quiet">In the search box: arrows choose, Enter likes, Escape closes.</p>
        <label class="check"><input type="checkbox" checked=${!localStorage.getItem(OFF)} onChange=${choose} /> Keys of one letter are on</label>
        <form method="dialog"><button>Close</button></form>
      </dialog>`;
  }
}
