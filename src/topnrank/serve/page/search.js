// A combobox over titles, after the pattern "editable combobox with list autocomplete" of the ARIA Authoring Practices.
import { Component, html } from "./html.js";
import { get } from "./api.js";
import { Cover, about, facts } from "./parts.js";
import { LIKE } from "./taste.js";

const WAIT_MS = 80;

export class Search extends Component {
  state = { text: "", found: [], foundFor: "", open: false, active: 0, said: "" };

  type = (event) => {
    const text = event.target.value;
    this.setState({ text });
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.look(text), WAIT_MS);
  };

  async look(text) {
    this.asked?.abort();
    this.asked = new AbortController();
    if (!text.trim()) return this.setState({ found: [], open: false, said: "" });
    try {
      const { items } = await get("v1/items", { q: text.trim(), n: 8, fields: "year" }, this.asked.signal);
      this.setState({ found: items.map(facts), foundFor: text, open: true, active: 0, said: items.length ? `${items.length} found` : "Nothing found" });
    } catch (error) {
      if (error.name !== "AbortError") this.setState({ found: [], open: true, said: error.message });
    }
    return undefined;
  }

  choose(item) {
    this.props.pick(item, LIKE);
    this.setState({ text: "", found: [], open: false, said: `Liked ${item.title}` });
  }

  key = (event) => {
    const { text, found, foundFor, open, active } = this.state;
    const to = { ArrowDown: open ? active + 1 : active, ArrowUp: active - 1 }[event.key];
    if (to !== undefined && found.length) {
      event.preventDefault();
      this.setState({ open: true, active: (to + found.length) % found.length });
    } else if (event.key === "Enter") {
      event.preventDefault();
      if (open && found[active] && foundFor === text) this.choose(found[active]);
      else this.look(text); // what is shown belongs to fewer letters, or nothing is shown
    } else if (event.key === "Escape") {
      event.preventDefault();
      this.setState(open ? { open: false } : { text: "", found: [] });
    }
  };

  render({ groups, picks }, { text, found, open, active, said }) {
    const picked = (item) => picks.find((one) => one.item === item.item);
    const shown = open && found.length > 0;
    return html`
      <div class="search">
        <label for="search">Search by name</label>
        <input id="search" type="text" role="combobox" autocomplete="off" spellcheck="false" placeholder="Type a few letters"
          aria-autocomplete="list" aria-expanded=${shown ? "true" : "false"} aria-controls="found"
          aria-activedescendant=${shown ? `found-${active}` : undefined}
          value=${text} onInput=${this.type} onKeyDown=${this.key} onBlur=${() => this.setState({ open: false })} />
        <ul id="found" role="listbox" aria-label="Found" hidden=${!shown}>
          ${found.map(
            (item, place) => html`
              <li key=${item.item} id=${`found-${place}`} role="option" aria-selected=${place === active ? "true" : "false"}
                onMouseDown=${(event) => (event.preventDefault(), this.choose(item))} onMouseMove=${() => place !== active && this.setState({ active: place })}>
                <${Cover} item=${item} groups=${groups} />
                <span class="name">${item.title}<small>${about(item)}${picked(item) ? ` · ${picked(item).type}d` : ""}</small></span>
              </li>`,
          )}
        </ul>
        ${open && !found.length && said && html`<p class="none">${said}</p>`}
        <p role="status" class="sr">${said}</p>
      </div>`;
  }
}
