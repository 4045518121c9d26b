// Markdown as models write it: headings, paragraphs, lists, quotes, tables, rules, fenced code, formulas, footnotes. Everything
// else, HTML above all, stays the text that it is.
import {CodeView} from "./code_view.js";
import {el} from "./dom.js";
import {math} from "./math.js";
import {ALIGNED} from "./math_tables.js";
import {code_end, formulas_in} from "./math_spans.js";
import {formula_source, inline} from "./markdown_inline.js";

const MAX_DEPTH = 8;     // of lists and quotes in each other
const MAX_FORMULA = 200;  // lines of a formula
// Expressions without two ways to read the same characters: a hostile line takes no more time than any other.
const FENCE = /^( {0,3})(`{3,}|~{3,})([^`\n]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:[ \t]+(.*)|)$/;
const RULE = /^ {0,3}([-*_])[ \t]*(?:\1[ \t]*){2,}$/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const TABLE_RULE = /^\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?$/;
const FORMULA = /^ {0,3}(\$\$|\\\[|\\begin\{([a-z]+\*?)\})/;
const TASK = /^\[([ xX])\][ \t]+(.*)$/;
const NOTE = /^ {0,3}\[\^([^\]\s]{1,40})\]:[ \t]*(.*)$/;

const DIRECTED = new Set(["heading", "quote", "note", "list", "table", "paragraph"]);

const blank = (line) => line.trim() === "";

function closes(line, fence) {
    const trimmed = line.trim();
    return trimmed.length >= fence.length && /^ {0,3}\S/.test(line) &&
        [...trimmed].every((c) => c === fence[0]);
}

function starts_block(line) {
    return FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || mark_of_formula(line) !== null || NOTE.test(line) ||
        (ITEM.test(line) && !blank(line.replace(/^ *([-*+]|\d+[.)])/, "")));
}

// What closes the formula that begins this line, or null.
function mark_of_formula(line) {
    const [, mark, environment] = FORMULA.exec(line) ?? [];
    if (!mark) return null;
    if (mark === "$$") return /^\$\$(?!\$)/.test(line.trim()) ? "$$" : null;
    if (mark === "\\[") return "\\]";
    return ALIGNED.has(environment.replace("*", "")) ? `\\end{${environment}}` : null;
}

// The index of the line at whose end `mark` closes the formula that opens in line `at` before `rest`, or -1. `seen`: up to where none was
// found, by mark, so that many that nothing closes cost no more than one.
function formula_end(lines, at, rest, mark, seen) {
    for (let i = Math.max(at, seen[mark] ?? 0); i < lines.length && i <= at + MAX_FORMULA && !FENCE.test(lines[i]); ++i) {
        const line = i === at ? rest : lines[i];
        const where = line.indexOf(mark);
        if (where >= 0) return /^[ \t.,;]*$/.test(line.slice(where + mark.length)) ? i : -1;
        seen[mark] = i + 1;
    }
    return -1;
}

// Whether what a stream has brought of a formula may still become one.
function is_open(text, mark) {
    return !text.slice(mark.length).includes(mark) && !/\n[ \t]*\n/.test(text);
}

// Top-level blocks as ranges of lines: [{kind, lines}]. `pending`: the text goes on.
function blocks_of(lines, pending = false) {
    const blocks = [], seen = {};
    let at = 0;
    while (at < lines.length) {
        const line = lines[at];
        if (blank(line)) {
            ++at;
            continue;
        }
        const from = at;
        const fence = FENCE.exec(line), mark = mark_of_formula(line);
        const formula = mark === null ? -1 : formula_end(lines, at, line.trim().slice(mark.length), mark, seen);
        if (formula >= 0) {
            at = formula + 1;
            blocks.push({kind: "formula", lines: lines.slice(from, at)});
        } else if (mark !== null && pending && lines.length - at < MAX_FORMULA && is_open(lines.slice(at).join("\n").trim(), mark)) {
            at = lines.length;
            blocks.push({kind: "source", lines: lines.slice(from)});
        } else if (fence) {
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
        } else if (NOTE.test(line)) {
            ++at;
            while (at < lines.length && (blank(lines[at]) ? /^ {2,}\S/.test(lines[at + 1] ?? "") : /^ {2,}\S/.test(lines[at]) || !starts_block(lines[at]))) ++at;
            blocks.push({kind: "note", lines: lines.slice(from, at)});
        } else if (ITEM.test(line)) {
            at = end_of_list(lines, at);
            blocks.push({kind: "list", lines: lines.slice(from, at)});
        } else if (begins_table(lines, at)) {
            at += 2;
            while (at < lines.length && !blank(lines[at]) && lines[at].includes("|")) ++at;
            blocks.push({kind: "table", lines: lines.slice(from, at)});
        } else {
            while (at === from || (at < lines.length && !blank(lines[at]) && !starts_block(lines[at]) && !begins_table(lines, at))) {
                // A formula that opens at the end of a line may have what begins other blocks.
                const opened = /(\$\$|\\\[)[ \t]*$/.exec(lines[at])?.[1];
                const end = opened ? formula_end(lines, at, "", opened === "$$" ? "$$" : "\\]", seen) : -1;
                at = Math.max(at, end) + 1;
            }
            blocks.push({kind: "paragraph", lines: lines.slice(from, at)});
        }
    }
    return blocks;
}

function begins_table(lines, at) {
    return lines[at].includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && TABLE_RULE.test(lines[at + 1].trim()) &&
        cells_of(lines[at]).length === cells_of(lines[at + 1]).length;
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
    const cells = [], no_code = new Set();
    let cell = "";
    const text = line.trim().replace(/^\|/, "");
    const formulas = formulas_in(text);
    for (let i = 0; i < text.length; ++i) {
        const formula = formulas.get(i);
        if (formula && formula.source.split("|").length % 2 === 1) {
            // |x| is no cell.
            cell += text.slice(i, formula.end);
            i = formula.end - 1;
        } else if (text[i] === "\\" && text[i + 1] === "|") {
            cell += "|";
            ++i;
        } else if (text[i] === "|") {
            cells.push(cell.trim());
            cell = "";
        } else if (text[i] === "`") {
            let run = 1;
            while (text[i + run] === "`") ++run;
            const end = code_end(text, i + run, run, no_code), code = text.slice(i, end < 0 ? i + run : end);
            cell += code.replaceAll("\\|", "|");
            i += code.length - 1;
        } else {
            cell += text[i];
        }
    }
    if (!blank(cell)) cells.push(cell.trim());
    return cells;
}

// ---- blocks

function code_of(lines) {
    const [, indent, fence, info] = FENCE.exec(lines[0]);
    const ended = lines.length > 1 && closes(lines[lines.length - 1], fence);
    const inner = lines.slice(1, ended ? -1 : undefined);
    const cut = new RegExp(`^ {0,${indent.length}}`);
    return {text: inner.map((line) => line.replace(cut, "")).join("\n"), language: info.trim().split(/\s/)[0].slice(0, 40)};
}

// Models break lines in cells by the one tag that stands for it, which in code is text.
function cell_nodes(text, context) {
    const nodes = [], no_code = new Set(), marks = /`+|<br ?\/?>/gi;
    let from = 0;
    for (let mark; (mark = marks.exec(text)) !== null;) {
        if (mark[0][0] === "`") {
            const end = code_end(text, marks.lastIndex, mark[0].length, no_code);
            if (end >= 0) marks.lastIndex = end;
            continue;
        }
        nodes.push(...inline(text.slice(from, mark.index), context), el("br"));
        from = marks.lastIndex;
    }
    nodes.push(...inline(text.slice(from), context));
    return nodes;
}

function table_of(lines, context) {
    const aligns = cells_of(lines[1]).map((cell) =>
        cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "");
    const row = (line, name) => {
        const cells = cells_of(line);
        return el("tr", {}, aligns.map((align, i) => el(name, {class: align}, cell_nodes(cells[i] ?? "", context))));
    };
    return el("div", {class: "table", tabindex: "0", role: "group", "aria-label": "Table"}, el("table", {},
        el("thead", {}, row(lines[0], "th")), el("tbody", {}, lines.slice(2).map((line) => row(line, "td")))));
}

function list_of(lines, depth, context) {
    const [, first_indent, first_marker] = ITEM.exec(lines[0]);
    const ordered = /\d/.test(first_marker);
    const items = [];
    for (const line of lines) {
        const item = ITEM.exec(line);
        const last = items[items.length - 1];
        if (item && item[1].length <= first_indent.length && !last?.fence) {
            const task = TASK.exec(item[3] ?? "");
            items.push({lines: [task ? task[2] : item[3] ?? ""], task: task?.[1], width: item[1].length + item[2].length + 1, fence: null});
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
        items.map((item, i) => {
            const children = render(item.lines, depth + 1, i === items.length - 1 ? context : {...context, pending: false});
            const only = children[0];
            // The text of a tight item stands without the space of a paragraph.
            const nodes = !loose && only?.tagName === "P" ? [...only.childNodes, ...children.slice(1)] : children;
            if (item.task === undefined) return el("li", {}, nodes);
            const done = item.task !== " ";
            return el("li", {class: "task"},
                el("input", {type: "checkbox", disabled: true, checked: done, "aria-label": done ? "Done" : "To do"}), nodes);
        }));
}

// Its mark leads here, and the button back to it.
function note_of(lines, depth, context) {
    const [, label, text] = NOTE.exec(lines[0]);
    const back = el("button", {type: "button", class: "note-back", "aria-label": `Back to the text of footnote ${label}`, onclick: (event) => {
        const mark = event.target.closest(".markdown")?.querySelector(`[data-mark="${CSS.escape(label)}"]`);
        mark?.scrollIntoView({block: "nearest"});
        mark?.focus();
    }}, "\u21a9");
    return el("div", {class: "note", "data-note": label, tabindex: "-1"}, el("sup", {}, label),
        el("div", {}, render([text, ...lines.slice(1).map((line) => line.replace(/^ {1,4}/, ""))], depth + 1, context)), back);
}

function formula_of(lines) {
    const [, text, behind] = /^(.*?)([ .,;]*)$/s.exec(lines.join("\n").trim());
    const inner = text.startsWith("\\begin") ? text : text.slice(2, -2);
    return el("div", {class: "formula"}, math(inner + behind, true) ?? formula_source(text + behind));
}

function block_element({kind, lines}, depth, context) {
    switch (kind) {
        case "code": {
            const {text, language} = code_of(lines);
            return new CodeView(text, language).element;
        }
        case "formula":
            return formula_of(lines);
        case "source":
            return el("div", {class: "formula"}, formula_source(lines.join("\n").trim()));
        case "note":
            return note_of(lines, depth, context);
        case "heading": {
            const [, marks, text] = HEADING.exec(lines[0]);
            // The page has its own headings above these.
            return el(`h${Math.min(marks.length + 2, 6)}`, {}, inline((text ?? "").trim().replace(/ #+$/, ""), context));
        }
        case "rule":
            return el("hr");
        case "quote":
            return el("blockquote", {}, render(lines.map((line) => QUOTE.exec(line)?.[1] ?? line), depth + 1, context));
        case "list":
            return list_of(lines, depth, context);
        case "table":
            return table_of(lines, context);
        default:
            return el("p", {}, inline(lines.map((line) => line.replace(/^ +/, "")).join("\n"), context));
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

function render(lines, depth, context) {
    if (depth > MAX_DEPTH) return [el("p", {}, lines.join("\n"))];
    const blocks = blocks_of(lines, context.pending);
    return blocks.map((block, i) => block_element(block, depth, i === blocks.length - 1 ? context : {...context, pending: false}));
}

// Shows a text that may grow: only blocks that changed are made again, so that a stream costs no more than its end, and
// what the reader has selected or scrolled stays.
export class MarkdownView {
    constructor(element) {
        this.element = element;
        this.shown = [];
        this.growing = null;  // {at, view} of code at the end, which stays the same element while it grows
    }

    // `pending`: more of the text is to come.
    set(text, pending = false) {
        const blocks = blocks_of(lines_of(text), pending);
        const notes = new Set(blocks.filter(({kind}) => kind === "note").map(({lines}) => NOTE.exec(lines[0])[1]));
        const labels = [...notes].join(" ");
        const last = blocks.length - 1;
        const sources = blocks.map(({kind, lines}, i) => {
            const source = lines.join("\n");
            return `${kind} ${pending && i === last} ${source.includes("[^") ? labels : ""}\n${source}`;
        });
        let same = 0;
        while (same < sources.length && sources[same] === this.shown[same]) ++same;
        if (this.grow(blocks[same], same)) ++same;
        while (this.element.childNodes.length > same) this.element.lastChild.remove();
        for (let i = same; i <= last; ++i) this.element.append(this.element_of(blocks[i], i, last, {notes, pending: pending && i === last}));
        this.shown = sources;
    }

    element_of(block, at, last, context) {
        if (block.kind !== "code" || at !== last) {
            const element = block_element(block, 0, context);
            // Each goes from right to left if its first word does, with all that is in it.
            if (DIRECTED.has(block.kind)) element.dir = "auto";
            return element;
        }
        const {text, language} = code_of(block.lines);
        this.growing = {at, view: new CodeView(text, language)};
        return this.growing.view.element;
    }

    grow(block, at) {
        if (block?.kind !== "code" || this.growing?.at !== at || this.growing.view.element !== this.element.childNodes[at]) return false;
        const {text, language} = code_of(block.lines);
        if (this.growing.view.language !== language) return false;
        if (this.growing.view.text !== text) this.growing.view.set(text);
        return true;
    }
}
