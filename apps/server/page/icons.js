// Pictures on buttons, drawn by strokes in a square of 16.
import {announce, copy_text, el, svg} from "./dom.js";

const SHAPES = {
    copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
    check: "M3 8.5l3.5 3.5L13 4.5",
    cross: "M4 4l8 8M12 4l-8 8",
    edit: "M3 13l.7-3L10.8 3l2.2 2.2L6 12.3z",
    again: "M12.8 6.3A5.2 5.2 0 1 0 13.2 9M13.2 3v3.5H9.7",
    go_on: "M4.5 3.5l7.5 4.5-7.5 4.5z",
    bin: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9M6.8 7v4.2M9.2 7v4.2",
    more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
    list: "M2.5 4h11M2.5 8h11M2.5 12h7",
    send: "M8 13.5v-11M3.5 7L8 2.5 12.5 7",
    stop: "M4 4h8v8H4z",
    down: "M8 2.5v11M3.5 9L8 13.5 12.5 9",
    wrap: "M2.5 3.5h11M2.5 8h8.7a2.3 2.3 0 0 1 0 4.6H8M9.8 10.7L8 12.6l1.8 1.9M2.5 12.6h2.5",
    plus: "M8 3v10M3 8h10",
    clip: "M12.7 7.4l-5 5a3 3 0 0 1-4.3-4.3l5.4-5.4a2 2 0 0 1 2.9 2.9l-5.3 5.3a1 1 0 0 1-1.5-1.5l4.7-4.7",
    left: "M10 3.5L5.5 8l4.5 4.5",
    right: "M6 3.5L10.5 8 6 12.5",
    file: "M4 2h5.5L12.5 5v9H4zM9.5 2v3h3",
};

export function icon(name) {
    return svg("svg", {class: "icon", viewBox: "0 0 16 16", "aria-hidden": "true"}, svg("path", {d: SHAPES[name]}));
}

// A button with a picture, whose words are read, and shown when the pointer rests on it.
export function icon_button(name, label, onclick, more = {}) {
    return el("button", {type: "button", class: "icon-button", "aria-label": label, title: label, onclick, ...more}, icon(name));
}

// Buttons of index.html say their picture by data-icon.
export function draw_icons(root) {
    for (const button of root.querySelectorAll("[data-icon]")) button.prepend(icon(button.dataset.icon));
}

export function copy_button(text_of, label) {
    const button = icon_button("copy", label, async () => {
        const focused = document.activeElement;
        const done = await copy_text(text_of());
        focused?.focus();
        button.replaceChildren(icon(done ? "check" : "cross"));
        announce(done ? "Copied" : "The browser did not allow copying");
        setTimeout(() => button.replaceChildren(icon("copy")), 1500);
    });
    return button;
}
