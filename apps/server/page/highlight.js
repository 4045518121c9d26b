// Colours in code: one lexer that knows comments, strings, numbers and words; what these are in a language is a row of
// languages.js. Every expression takes what it begins with, closed or not, so that the time grows with the length alone.
import {el} from "./dom.js";
import {language_of} from "./languages.js";

const MAX_LENGTH = 50000;  // longer code has no colours

const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
const group = (name, parts) => (parts.length > 0 ? [`(?<${name}>${parts.join("|")})`] : []);

function string_of(quote) {
    const q = escaped(quote);
    // Three quotes, and those of templates, go over lines; without an escape a quote is doubled.
    if (quote.length > 1) return `${q}(?:\\\\[^]|(?!${q})[^\\\\])*(?:${q})?`;
    return quote === "`" ? "`(?:\\\\[^]|[^`\\\\])*`?" : `${q}(?:\\\\[^]|[^${q}\\\\\\n])*${q}?`;
}

function pattern_of(language) {
    const {line = [], block = [], strings = ['"', "'"], meta = [], words = "[\\p{L}_$][\\p{L}\\p{N}_$]*"} = language;
    return new RegExp([
        ...group("comment", [...block.map(([from, to]) => `${escaped(from)}(?:(?!${escaped(to)})[^])*(?:${escaped(to)})?`),
            ...line.map((mark) => (mark === "#" ? "(?<![^\\s;(])#[^\\n]*" : `${escaped(mark)}[^\\n]*`))]),
        ...group("meta", meta),
        ...group("string", [...strings].sort((a, b) => b.length - a.length).map(string_of)),
        "(?<number>(?<![\\p{L}\\p{N}_])(?:0[xXbBoO][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d[\\d_]*)?(?:[eE][+-]?\\d+)?)[\\p{L}%]*)",
        `(?<word>${words})`,
    ].join("|"), "gum");
}

const patterns = new Map();

// What stands next behind blanks of the line.
function next_character(text, at) {
    while (text[at] === " " || text[at] === "\t") ++at;
    return text[at];
}

function class_of_word(word, text, end, language) {
    const given = language.any_case ? word.toLowerCase() : word;
    if (language.keywords.has(given)) return "keyword";
    if (language.constants.has(given)) return "number";
    if (language.types?.has(given)) return "type";
    const next = next_character(text, end);
    if (language.keys?.includes(next) && !text.startsWith("://", end)) return "key";
    if (next === "(" && !language.plain) return "function";
    if (language.capitals && /^\p{Lu}\p{L}*\p{Ll}/u.test(word)) return "type";
    return "";
}

// The nodes that show `text`, which is code in the language of that name, or null if it stays as it is.
export function highlight(text, name) {
    const language = language_of(name);
    if (!language || text.length > MAX_LENGTH) return null;
    if (!patterns.has(language)) patterns.set(language, pattern_of(language));
    const nodes = [];
    let at = 0;
    for (const {0: found, index, groups} of text.matchAll(patterns.get(language))) {
        const {comment, meta, string, number} = groups;
        const end = index + found.length;
        const kind = comment !== undefined ? "comment" : meta !== undefined ? (language.kind_of_meta?.(found) ?? "key")
            : string !== undefined ? (language.keys?.includes(":") && next_character(text, end) === ":" ? "key" : "string")
            : number !== undefined ? "number" : class_of_word(found, text, end, language);
        if (!kind) continue;
        if (index > at) nodes.push(document.createTextNode(text.slice(at, index)));
        nodes.push(el("span", {class: `hl-${kind}`}, found));
        at = end;
    }
    if (at < text.length) nodes.push(document.createTextNode(text.slice(at)));
    return nodes;
}
