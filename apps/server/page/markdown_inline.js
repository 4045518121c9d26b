// Markdown inside of a line: emphasis, code, links, line breaks, formulas, footnotes' marks and entities.
import {el} from "./dom.js";
import {entity_at} from "./entities.js";
import {math} from "./math.js";
import {code_end, formulas_in} from "./math_spans.js";

const MAX_DEPTH = 8;    // of emphasis and links in each other
const MAX_SPAN = 4096;  // characters between the marks of emphasis
const MAX_LINK = 2048;  // of a link's text, and of its address
const ALONE = {notes: new Set(), pending: false};
const NOTE = /^\[\^([^\]\s]{1,40})\]/;

const ESCAPABLE = /[!-/:-@[-`{-~]/;

// Only these two: javascript:, data: and all others stay text.
function safe_address(text) {
    try {
        const url = new URL(text);
        return url.protocol === "http:" || url.protocol === "https:" ? url.href : null;
    } catch {
        return null;
    }
}

function link(address, children) {
    return el("a", {href: address, target: "_blank", rel: "noopener noreferrer"}, children);
}

// As it was written: what is not understood, or not yet complete.
export function formula_source(text) {
    return el("code", {class: "math-source", dir: "ltr"}, text);
}

// Addresses behind # are conversations here, so that marks and footnotes find each other by script.
function note_button(label) {
    return el("button", {type: "button", class: "note-mark", "data-mark": label, "aria-label": `Footnote ${label}`, onclick: (event) => {
        const note = event.target.closest(".markdown")?.querySelector(`[data-note="${CSS.escape(label)}"]`);
        note?.scrollIntoView({block: "nearest"});
        note?.focus();
    }}, label);
}

const is_word = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);

// The index of the closing run of `mark`, or -1. `seen`: up to where such a search has found none, by mark, so that many
// marks that nothing closes cost no more than one.
function closing(text, from, mark, seen, formulas) {
    const start = Math.max(from, seen[mark] ?? 0);
    for (let i = start; i < text.length && i < from + MAX_SPAN; ++i) {
        if (formulas.has(i)) {
            i = formulas.get(i).end - 1;
        } else if (text[i] === "\\") {
            ++i;
        } else if (text[i] === "`") {
            const run = /^`+/.exec(text.slice(i, i + 32))[0];
            const end = text.indexOf(run, i + run.length);
            i = (end < 0 ? i : end) + run.length - 1;
        } else if (text[i] === mark[0]) {
            // A run after a space opens; one of two between single marks is another's.
            let run = 1;
            while (text[i + run] === mark[0]) ++run;
            const fits = run >= mark.length && !(mark.length === 1 && run === 2);
            const word = mark[0] === "_" && is_word(text[i + run]);
            if (fits && !word && i > from && !/\s/.test(text[i - 1])) return i + run - mark.length;
            i += run - 1;
        }
    }
    seen[mark] = Math.max(start, Math.min(text.length, from + MAX_SPAN));
    return -1;
}

// Of each opening bracket the index of the one that closes it.
function pairs_of(text, open, close) {
    const pairs = new Map(), opened = [];
    for (let i = 0; i < text.length; ++i) {
        if (text[i] === "\\") ++i;
        else if (text[i] === open) opened.push(i);
        else if (text[i] === close && opened.length > 0) pairs.set(opened.pop(), i);
    }
    return pairs;
}

// `context`: {notes: labels of the footnotes that are defined, pending: the text goes on}.
export function inline(text, context = ALONE, depth = 0) {
    const out = [], seen = {}, no_code = new Set();
    const formulas = formulas_in(text, context.pending && depth === 0);
    let plain = "", brackets = null;
    const flush = () => {
        if (plain) out.push(document.createTextNode(plain));
        plain = "";
    };
    const push = (node) => {
        flush();
        out.push(node);
    };
    for (let i = 0; i < text.length; ++i) {
        const c = text[i];
        if (formulas.has(i)) {
            const {end, source, display, pending} = formulas.get(i);
            push(pending ? formula_source(source) : math(source, display) ?? formula_source(text.slice(i, end)));
            i = end - 1;
        } else if (c === "\\" && text[i + 1] === "\n") {
            push(el("br"));
            ++i;
        } else if (c === "\\" && ESCAPABLE.test(text[i + 1] ?? "")) {
            plain += text[++i];
        } else if (c === "\n") {
            if (plain.endsWith("  ")) {
                plain = plain.trimEnd();
                push(el("br"));
            } else {
                plain += "\n";
            }
        } else if (c === "`") {
            let run = 1;
            while (text[i + run] === "`") ++run;
            const end = code_end(text, i + run, run, no_code);
            if (end < 0) {
                plain += "`".repeat(run);
                i += run - 1;
            } else {
                const code = text.slice(i + run, end - run).replace(/\n/g, " ");
                push(el("code", {dir: "ltr"}, /^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code));
                i = end - 1;
            }
        } else if (c === "&" && entity_at(text, i)) {
            const [character, length] = entity_at(text, i);
            plain += character;
            i += length - 1;
        } else if (c === "[" && text[i + 1] === "^" && NOTE.test(text.slice(i, i + 48))) {
            const [whole, label] = NOTE.exec(text.slice(i, i + 48));
            if (context.notes.has(label)) push(el("sup", {}, note_button(label)));
            else if (/^\d{1,3}$/.test(label)) push(el("sup", {}, label));
            else plain += whole;
            i += whole.length - 1;
        } else if ((c === "*" || c === "_" || c === "~") && depth < MAX_DEPTH && !(c === "_" && is_word(text[i - 1]))) {
            let run = 1;
            while (text[i + run] === c) ++run;
            const size = c === "~" ? (run === 2 ? 2 : 0) : Math.min(run, 3);
            const mark = c.repeat(size);
            const open = size > 0 && text[i + run] !== undefined && !/\s/.test(text[i + run]);
            const end = open ? closing(text, i + run, mark, seen, formulas) : -1;
            if (end < 0) {
                plain += c.repeat(run);
                i += run - 1;
            } else {
                plain += c.repeat(run - size);
                const inner = inline(text.slice(i + run, end), context, depth + 1);
                if (c === "~") push(el("del", {}, inner));
                else if (size === 1) push(el("em", {}, inner));
                else if (size === 2) push(el("strong", {}, inner));
                else push(el("strong", {}, el("em", {}, inner)));
                i = end + size - 1;
            }
        } else if (c === "[" && depth < MAX_DEPTH) {
            brackets ??= [pairs_of(text, "[", "]"), pairs_of(text, "(", ")")];
            const end = brackets[0].get(i) ?? Infinity, close = brackets[1].get(end + 1) ?? Infinity;
            const target = end - i > MAX_LINK || close - end > MAX_LINK ? "" : text.slice(end + 2, close).trim().replace(/\s+(".*"|'.*')$/s, "");
            const address = safe_address(target.replace(/^<(.*)>$/, "$1"));
            if (address) {
                push(link(address, inline(text.slice(i + 1, end), context, depth + 1)));
                i = close;
            } else {
                plain += c;
            }
        } else if (c === "h" && !is_word(text[i - 1]) && /^https?:\/\//.test(text.slice(i, i + 8))) {
            let address = /^[^\s<>"'`|\\^{}\u3000-\u303f]+/.exec(text.slice(i, i + 2048))[0];
            address = address.replace(/[.,;:!?*_~]+$/, "");
            if (address.endsWith(")") && !address.includes("(")) address = address.replace(/\)+[.,;:!?*_~]*$/, "");
            if (address.endsWith("]")) address = address.replace(/\]+$/, "");
            const href = safe_address(address);
            if (href) {
                push(link(href, address));
                i += address.length - 1;
            } else {
                plain += c;
            }
        } else if (c === "<" && /^<https?:\/\/[^\s<>]+>/.test(text.slice(i, i + 2048))) {
            const address = text.slice(i + 1, text.indexOf(">", i));
            const href = safe_address(address);
            push(href ? link(href, address) : document.createTextNode(`<${address}>`));
            i += address.length + 1;
        } else {
            plain += c;
        }
    }
    flush();
    return out;
}
