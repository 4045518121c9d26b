// Markdown as models write it: headings, paragraphs, lists, quotes, tables, rules, fenced code; in a line emphasis, code,
// links and line breaks. Everything else, HTML above all, stays the text that it is.
import {copy_button, el} from "./dom.js";

const MAX_DEPTH = 8;     // of lists and quotes in each other
const MAX_SPAN = 4096;  // characters between the marks of emphasis
const MAX_LINK = 2048;  // of a link's text, and of its address
// Expressions without two ways to read the same characters: a hostile line takes no more time than any other.
const FENCE = /^( {0,3})(`{3,}|~{3,})([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*)|)$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?$/;

const blank = (line) => line.trim() === "";

function closes(line, fence) {
    const trimmed = line.trim();
    return trimmed.length >= fence.length && /^ {0,3}\S/.test(line) &&
        [...trimmed].every((c) => c === fence[0]);
}

function starts_block(line) {
    return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) ||
        (ITEM.test(line) && !blank(line.replace(/^ *([-*+]|\d+[.)])/, "")));
}

// Top-level blocks as ranges of lines: [{kind, lines}].
export function blocks_of(lines) {
    const blocks = [];
    let at = 0;
    while (at < lines.length) {
        const line = lines[at];
        if (blank(line)) {
            ++at;
            continue;
        }
        const from = at;
        const fence = FENCE.exec(line);
        if (fence) {
            ++at;
            while (at < lines.length && !closes(lines[at], fence[2])) ++at;
            if (at < lines.length) ++at;
            blocks.push({kind: "code", lines: lines.slice(from, at)});
        } else if (HEADING.test(line)) {
            blocks.push({kind: "heading", lines: [line]});
            ++at;
        } else if (RULE.test(line)) {
            blocks.push({kind: "rule", lines: [line]});
            ++at;
        } else if (QUOTE.test(line)) {
            while (at < lines.length && (QUOTE.test(lines[at]) || (!blank(lines[at]) && !starts_block(lines[at])))) ++at;
            blocks.push({kind: "quote", lines: lines.slice(from, at)});
        } else if (ITEM.test(line)) {
            at = end_of_list(lines, at);
            blocks.push({kind: "list", lines: lines.slice(from, at)});
        } else if (line.includes("|") && at + 1 < lines.length && TABLE_RULE.test(lines[at + 1].trim()) &&
                   cells_of(line).length === cells_of(lines[at + 1]).length) {
            at += 2;
            while (at < lines.length && !blank(lines[at]) && lines[at].includes("|")) ++at;
            blocks.push({kind: "table", lines: lines.slice(from, at)});
        } else {
            ++at;
            while (at < lines.length && !blank(lines[at]) && !starts_block(lines[at])) ++at;
            blocks.push({kind: "paragraph", lines: lines.slice(from, at)});
        }
    }
    return blocks;
}

const indent_of = (line) => line.length - line.trimStart().length;

function end_of_list(lines, at) {
    const [, indent, marker] = ITEM.exec(lines[at]);
    const ordered = /\d/.test(marker);
    let fence = null;
    for (++at; at < lines.length; ++at) {
        const line = lines[at];
        if (fence) {
            if (closes(line.trim(), fence)) fence = null;
            continue;
        }
        if (blank(line)) {
            let ahead = at;
            while (ahead < lines.length && blank(lines[ahead])) ++ahead;
            if (ahead === lines.length) return at;
            const next = lines[ahead];
            const item = ITEM.exec(next);
            const goes_on = indent_of(next) > indent.length ||
                (item && item[1].length === indent.length && /\d/.test(item[2]) === ordered);
            if (!goes_on) return at;
            at = ahead - 1;
            continue;
        }
        const inside = indent_of(line) > indent.length;
        const item = ITEM.exec(line);
        if (!inside && item && !RULE.test(line) && /\d/.test(item[2]) !== ordered) return at;
        if (!inside && (RULE.test(line) || (!item && starts_block(line)))) return at;
        const opened = FENCE.exec(line.trim());
        if (opened) fence = opened[2];
    }
    return at;
}

function cells_of(line) {
    const cells = [];
    let cell = "", code = false;
    const text = line.trim().replace(/^\|/, "");
    for (let i = 0; i < text.length; ++i) {
        if (text[i] === "\\" && text[i + 1] === "|") {
            cell += "|";
            ++i;
        } else if (text[i] === "|" && !code) {
            cells.push(cell.trim());
            cell = "";
        } else {
            if (text[i] === "`") code = !code;
            cell += text[i];
        }
    }
    if (!blank(cell)) cells.push(cell.trim());
    return cells;
}

// ---- inside of a line

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
    return el("a", {href: address, target: "_blank", rel: "noopener noreferrer"}, ...children);
}

const is_word = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);

// The index of the closing run of `mark`, or -1. `seen`: up to where such a search has found none, by mark, so that many
// marks that nothing closes cost no more than one.
function closing(text, from, mark, seen) {
    const start = Math.max(from, seen[mark] ?? 0);
    for (let i = start; i < text.length && i < from + MAX_SPAN; ++i) {
        if (text[i] === "\\") {
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

function bracket_end(text, from, open, close) {
    let depth = 1;
    for (let i = from; i < text.length && i < from + MAX_LINK; ++i) {
        if (text[i] === "\\") ++i;
        else if (text[i] === open) ++depth;
        else if (text[i] === close && --depth === 0) return i;
    }
    return -1;
}

export function inline(text, depth = 0) {
    const out = [], seen = {};
    let plain = "";
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
        if (c === "\\" && text[i + 1] === "\n") {
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
            const mark = "`".repeat(run);
            let end = text.indexOf(mark, i + run);
            while (end >= 0 && text[end + run] === "`") {
                while (text[end] === "`") ++end;
                end = text.indexOf(mark, end);
            }
            if (end < 0) {
                plain += mark;
                i += run - 1;
            } else {
                const code = text.slice(i + run, end).replace(/\n/g, " ");
                push(el("code", {}, /^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code));
                i = end + run - 1;
            }
        } else if ((c === "*" || c === "_" || c === "~") && depth < MAX_DEPTH && !(c === "_" && is_word(text[i - 1]))) {
            let run = 1;
            while (text[i + run] === c) ++run;
            const size = c === "~" ? (run === 2 ? 2 : 0) : Math.min(run, 3);
            const mark = c.repeat(size);
            const open = size > 0 && text[i + run] !== undefined && !/\s/.test(text[i + run]);
            const end = open ? closing(text, i + run, mark, seen) : -1;
            if (end < 0) {
                plain += c.repeat(run);
                i += run - 1;
            } else {
                plain += c.repeat(run - size);
                const inner = inline(text.slice(i + run, end), depth + 1);
                if (c === "~") push(el("del", {}, ...inner));
                else if (size === 1) push(el("em", {}, ...inner));
                else if (size === 2) push(el("strong", {}, ...inner));
                else push(el("strong", {}, el("em", {}, ...inner)));
                i = end + size - 1;
            }
        } else if (c === "[" && depth < MAX_DEPTH) {
            const end = bracket_end(text, i + 1, "[", "]");
            const close = end > 0 && text[end + 1] === "(" ? bracket_end(text, end + 2, "(", ")") : -1;
            const target = close < 0 ? "" : text.slice(end + 2, close).trim().replace(/\s+(".*"|'.*')$/s, "");
            const address = safe_address(target.replace(/^<(.*)>$/, "$1"));
            if (address) {
                push(link(address, inline(text.slice(i + 1, end), depth + 1)));
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
                push(link(href, [address]));
                i += address.length - 1;
            } else {
                plain += c;
            }
        } else if (c === "<" && /^<https?:\/\/[^\s<>]+>/.test(text.slice(i, i + 2048))) {
            const address = text.slice(i + 1, text.indexOf(">", i));
            const href = safe_address(address);
            push(href ? link(href, [address]) : document.createTextNode(`<${address}>`));
            i += address.length + 1;
        } else {
            plain += c;
        }
    }
    flush();
    return out;
}

// ---- blocks

export function code_block(text, language = "") {
    const code = el("code", {}, text);
    return el("div", {class: "code"},
        el("div", {class: "code-head"}, el("span", {}, language), copy_button(() => text)),
        // Long lines are scrolled by the arrow keys.
        el("pre", {tabindex: "0", "aria-label": language ? `Code, ${language}` : "Code"}, code));
}

function code_of(lines) {
    const [, indent, fence, info] = FENCE.exec(lines[0]);
    const ended = lines.length > 1 && closes(lines[lines.length - 1], fence);
    const inner = lines.slice(1, ended ? -1 : undefined);
    const cut = new RegExp(`^ {0,${indent.length}}`);
    return code_block(inner.map((line) => line.replace(cut, "")).join("\n"), info.trim().split(/\s/)[0].slice(0, 40));
}

function table_of(lines) {
    const aligns = cells_of(lines[1]).map((cell) =>
        cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "");
    const row = (line, name) => {
        const cells = cells_of(line);
        return el("tr", {}, ...aligns.map((align, i) => el(name, {class: align}, ...inline(cells[i] ?? ""))));
    };
    return el("div", {class: "table", tabindex: "0", role: "group", "aria-label": "Table"}, el("table", {},
        el("thead", {}, row(lines[0], "th")), el("tbody", {}, ...lines.slice(2).map((line) => row(line, "td")))));
}

function list_of(lines, depth) {
    const [, first_indent, first_marker] = ITEM.exec(lines[0]);
    const ordered = /\d/.test(first_marker);
    const items = [];
    for (const line of lines) {
        const item = ITEM.exec(line);
        const last = items[items.length - 1];
        if (item && item[1].length <= first_indent.length && !last?.fence) {
            items.push({lines: [item[3] ?? ""], width: item[1].length + item[2].length + 1, fence: null});
            continue;
        }
        const cut = Math.min(indent_of(line), last.width);
        const inner = line.slice(cut);
        const opened = FENCE.exec(inner);
        if (last.fence) {
            if (closes(inner, last.fence)) last.fence = null;
        } else if (opened) {
            last.fence = opened[2];
        }
        last.lines.push(inner);
    }
    const start = ordered ? Number.parseInt(first_marker, 10) : 1;
    const loose = lines.some((line, i) => blank(line) && i < lines.length - 1);
    return el(ordered ? "ol" : "ul", ordered && start !== 1 ? {start: String(start)} : {},
        ...items.map((item) => {
            const children = render(item.lines, depth + 1);
            const only = children[0];
            // The text of a tight item stands without the space of a paragraph.
            const nodes = !loose && only?.tagName === "P" ? [...only.childNodes, ...children.slice(1)] : children;
            return el("li", {}, ...nodes);
        }));
}

function block_element({kind, lines}, depth) {
    switch (kind) {
        case "code":
            return code_of(lines);
        case "heading": {
            const [, marks, text] = HEADING.exec(lines[0]);
            // The page has its own headings above these.
            return el(`h${Math.min(marks.length + 2, 6)}`, {}, ...inline((text ?? "").trim().replace(/ #+$/, "")));
        }
        case "rule":
            return el("hr");
        case "quote":
            return el("blockquote", {}, ...render(lines.map((line) => QUOTE.exec(line)?.[1] ?? line), depth + 1));
        case "list":
            return list_of(lines, depth);
        case "table":
            return table_of(lines);
        default:
            return el("p", {}, ...inline(lines.map((line) => line.replace(/^ +/, "")).join("\n")));
    }
}

// Tabs indent by four, but inside code they stay.
function lines_of(text) {
    let fence = null;
    return text.replace(/\r\n?/g, "\n").split("\n").map((line) => {
        if (fence) {
            if (closes(line.trim(), fence)) fence = null;
            return line;
        }
        const spaced = line.replace(/^[ \t]+/, (space) => space.replace(/\t/g, "    "));
        fence = FENCE.exec(spaced.trim())?.[2] ?? null;
        return spaced;
    });
}

function render(lines, depth) {
    if (depth > MAX_DEPTH) return [el("p", {}, lines.join("\n"))];
    return blocks_of(lines).map((block) => block_element(block, depth));
}

// Shows a text that may grow: only blocks that changed are made again, so that a stream costs no more than its end, and
// what the reader has selected or scrolled stays.
export class MarkdownView {
    constructor(element) {
        this.element = element;
        this.shown = [];
    }

    set(text) {
        const blocks = blocks_of(lines_of(text));
        const sources = blocks.map((block) => block.kind + "\n" + block.lines.join("\n"));
        let same = 0;
        while (same < sources.length && sources[same] === this.shown[same]) ++same;
        while (this.element.childNodes.length > same) this.element.lastChild.remove();
        this.element.append(...blocks.slice(same).map((block) => block_element(block, 0)));
        this.shown = sources;
    }
}
