// A block of code: its language, colours, and buttons that wrap and copy it.
import {el} from "./dom.js";
import {highlight} from "./highlight.js";
import {copy_button, icon_button} from "./icons.js";
import {load_wrap, save_wrap} from "./store.js";

let wraps = load_wrap();
document.documentElement.classList.toggle("wrap-code", wraps);

// Of all blocks: who wants lines wrapped wants it everywhere.
function toggle_wrap() {
    wraps = !wraps;
    document.documentElement.classList.toggle("wrap-code", wraps);
    for (const button of document.querySelectorAll(".code .wrap")) button.setAttribute("aria-pressed", String(wraps));
    save_wrap(wraps);
}

export class CodeView {
    constructor(text, language = "") {
        this.language = language;
        this.code = el("code");
        this.element = el("div", {class: "code", dir: "ltr"},
            el("div", {class: "code-head"}, el("span", {}, language),
                icon_button("wrap", "Wrap long lines", toggle_wrap, {class: "icon-button wrap", "aria-pressed": String(wraps)}),
                copy_button(() => this.text, "Copy the code")),
            // Long lines are scrolled by the arrow keys.
            el("pre", {tabindex: "0", "aria-label": language ? `Code, ${language}` : "Code"}, this.code));
        this.set(text);
    }

    set(text) {
        this.text = text;
        const nodes = highlight(text, this.language);
        this.code.replaceChildren();
        for (const node of nodes ?? [text]) this.code.append(node);
    }
}
