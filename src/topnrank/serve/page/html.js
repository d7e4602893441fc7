// Preact and htm, tied together; every module of the page takes them from here.
import { Component, createRef, h, render } from "./vendor/preact.mjs";
import htm from "./vendor/htm.mjs";

export const html = htm.bind(h);
export { Component, createRef, render };
