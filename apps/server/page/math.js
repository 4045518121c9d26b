// TeX's mathematics, as models write it, to MathML. A command that is not known stands as its name; what cannot be read as a
// whole, as braces that do not match, gives null, and is shown as its source.
import {mml} from "./dom.js";
import {chemistry, units} from "./math_chemistry.js";
import * as symbols from "./math_symbols.js";
import {ALIGNED, FENCED, table_element} from "./math_tables.js";

const MAX_LENGTH = 10000;  // of a formula
const MAX_DEPTH = 32;      // of groups in each other

// No Error, which would note the stack: a text may have many.
class Unreadable {}

// [{text, from, to}]: a character, or a command with its backslash. Blanks are none.
function tokens_of(source) {
    const tokens = [];
    for (const {0: text, index} of source.matchAll(/\\[A-Za-z]+|\\[^]|[^\s]/gu)) tokens.push({text, from: index, to: index + text.length});
    return tokens;
}

const em = (width) => `${Number(width.toFixed(4))}em`;
const space = (width) => ({kind: "space", node: mml("mspace", {width: em(width)})});
const ordinary = (node) => ({kind: "ord", node});
const group = (items) => (items.length === 1 ? items[0].node : mml("mrow", {}, ...items.map((item) => item.node)));
const fence = (c, form) => mml("mo", {fence: "true", form, stretchy: "true"}, c);
const small = (c, form) => mml("mo", {form, stretchy: "false"}, c);
// A word in place of an operator: the row that it stands in sets its spaces.
const worded = (text, limits) => ({kind: "fn", limits, node: mml("mo", {movablelimits: limits ? "true" : undefined, form: "prefix", lspace: "0", rspace: "0"}, text)});

const is_letter = (c) => /^\p{L}$/u.test(c);
const ASCII = new Map([["-", "\u2212"], ["*", "\u2217"], ["`", "\u2018"]]);
// What is stretched sideways Chromium cuts at the borders of the tiles that it draws, unless it has a layer of its own. Of layers
// a page has only so many: those that it shows, and those that were made since it last ran other code.
const MAX_WIDE = 200;
const shown_wide = document.getElementsByClassName("math-wide");
let made_wide = 0;

function wide() {
    if (shown_wide.length + made_wide >= MAX_WIDE) return {};
    if (made_wide++ === 0) queueMicrotask(() => { made_wide = 0; });
    return {class: "math-wide"};
}

const SIZES = {big: 1.2, Big: 1.8, bigg: 2.4, Bigg: 3};
const STYLES = {displaystyle: ["true", "0"], textstyle: ["false", "0"], scriptstyle: ["false", "1"], scriptscriptstyle: ["false", "2"]};
const INFIX = {over: [], atop: ["", "", "0"], choose: ["(", ")", "0"], brace: ["{", "}", "0"], brack: ["[", "]", "0"]};
const PAIRS = {bra: "⟨|", ket: "|⟩", braket: "⟨⟩", abs: "||", norm: "‖‖", floor: "⌊⌋", ceil: "⌈⌉"};
const BOXES = {overline: "math-over", underline: "math-under", boxed: "math-boxed", fbox: "math-boxed", cancel: "math-struck",
    bcancel: "math-struck", xcancel: "math-struck", sout: "math-struck"};
const TEXTS = {text: "", mbox: "", hbox: "", textrm: "", textnormal: "", textup: "", textbf: "math-bold", textit: "math-italic", emph: "math-italic",
    textsf: "", texttt: "math-mono"};
const AS_THEY_ARE = new Set("mathord mathbin mathrel mathopen mathclose mathpunct mathinner smash ensuremath".split(" "));
const NOTHING = new Set("nonumber notag mathstrut strut relax allowbreak nobreak displaylimits protect".split(" "));

class Parser {
    constructor(source, depth = 0) {
        this.source = source;
        this.tokens = tokens_of(source);
        this.at = 0;
        this.depth = depth;
        this.font = "";
    }

    get next() {
        return this.tokens[this.at]?.text;
    }

    take() {
        if (this.at >= this.tokens.length) throw new Unreadable();
        return this.tokens[this.at++].text;
    }

    expect(text) {
        if (this.take() !== text) throw new Unreadable();
    }

    inner(parse) {
        if (++this.depth > MAX_DEPTH) throw new Unreadable();
        const result = parse();
        --this.depth;
        return result;
    }

    with_font(font, parse) {
        const before = this.font;
        this.font = font;
        const result = parse();
        this.font = before;
        return result;
    }

    // Up to one of `ends`, which stays.
    row(ends) {
        return this.inner(() => {
            const items = [];
            while (this.next !== undefined && !ends.includes(this.next)) {
                const name = this.next[0] === "\\" ? this.next.slice(1) : "";
                if (Object.hasOwn(INFIX, name)) {
                    this.take();
                    const [open, close, line] = INFIX[name];
                    return [this.fraction(this.spaced(items), this.row(ends), open, close, line)];
                } else if (symbols.SWITCHES.has(name)) {
                    this.take();
                    items.push(...this.with_font(symbols.SWITCHES.get(name), () => this.row(ends)));
                } else if (Object.hasOwn(STYLES, name)) {
                    this.take();
                    const [displaystyle, scriptlevel] = STYLES[name];
                    items.push(ordinary(mml("mstyle", {displaystyle, scriptlevel}, group(this.row(ends)))));
                } else {
                    const item = this.scripted();
                    if (item) items.push(item);
                }
            }
            return this.spaced(items);
        });
    }

    // What depends on the neighbours: the spaces of words, and whether a sign is one or joins two terms.
    spaced(items) {
        const seen = items.filter((item) => item.kind !== "space");
        seen.forEach((item, i) => {
            const before = seen[i - 1]?.kind, after = seen[i + 1]?.kind;
            if (item.kind === "fn") {
                const mark = item.operator ?? item.node;
                mark.setAttribute("lspace", before === "ord" || before === "close" || before === "fn" ? em(1 / 6) : "0");
                mark.setAttribute("rspace", after === "ord" || after === "fn" ? em(1 / 6) : "0");
            } else if (item.sign) {
                item.sign.setAttribute("form", before === undefined || before === "op" || before === "open" ? "prefix" : "infix");
            }
        });
        return items;
    }

    scripted() {
        const base = "^_'".includes(this.next) ? ordinary(mml("mrow")) : this.atom();
        if (!base) return null;
        let {limits} = base, sub = null, sup = null, primes = 0;
        for (;;) {
            if (this.next === "\\limits" || this.next === "\\nolimits") {
                limits = this.take() === "\\limits" ? "always" : undefined;
            } else if (this.next === "'" && !sup) {
                this.take();
                ++primes;
            } else if (this.next === "^" && !sup) {
                this.take();
                sup = this.argument();
            } else if (this.next === "_" && !sub) {
                this.take();
                sub = this.argument();
            } else {
                break;
            }
        }
        if (this.next === "^" || this.next === "_") throw new Unreadable();
        // Fonts have primes at their height, so that they are no superscripts.
        const marks = ["", "\u2032", "\u2033", "\u2034", "\u2057"][primes] ?? "\u2032".repeat(primes);
        const node = marks ? mml("mrow", {}, base.node, mml("mo", {lspace: "0", rspace: "0"}, marks)) : base.node;
        if (!sub && !sup) return {...base, operator: base.operator ?? base.node, node};
        if (limits === "always" && base.node.localName === "mo") base.node.setAttribute("movablelimits", "false");
        const name = limits ? (sub && sup ? "munderover" : sub ? "munder" : "mover") : sub && sup ? "msubsup" : sub ? "msub" : "msup";
        return {kind: base.kind, operator: base.operator ?? base.node, sign: base.sign, node: mml(name, {}, node, ...[sub, sup].filter(Boolean))};
    }

    // One group, command or character, as TeX takes arguments: of a number the first digit alone.
    argument() {
        if (this.next === undefined || "}&".includes(this.next)) throw new Unreadable();
        const item = /^\d$/.test(this.next) ? ordinary(mml("mn", {}, symbols.styled(this.take(), this.font))) : this.atom();
        return item ? item.node : mml("mrow");
    }

    // The text of a group in braces as it is written.
    raw() {
        this.expect("{");
        const from = this.tokens[this.at - 1].to;
        for (let open = 1; ;) {
            const text = this.take();
            if (text === "{") ++open;
            if (text === "}" && --open === 0) return this.source.slice(from, this.tokens[this.at - 1].from);
        }
    }

    optional() {
        if (this.next !== "[") return null;
        this.take();
        const items = this.row(["]"]);
        this.expect("]");
        return group(items);
    }

    delimiter() {
        const text = this.take();
        if (text === ".") return "";
        const found = symbols.DELIMITERS.get(text.length > 1 ? text.slice(1) : text);
        if (found === undefined) throw new Unreadable();
        return text === "|" ? "|" : found;
    }

    atom() {
        return this.inner(() => (this.next[0] === "\\" ? this.command(this.take().slice(1)) : this.character(this.take())));
    }

    character(c) {
        if (c === "{") {
            const items = this.row(["}"]);
            this.expect("}");
            // An operator in braces has no spaces.
            if (items.length === 1 && items[0].node.localName === "mo") {
                items[0].node.setAttribute("lspace", "0");
                items[0].node.setAttribute("rspace", "0");
            }
            return {kind: "ord", limits: items.length === 1 ? items[0].limits : undefined, node: group(items)};
        }
        if ("}&^_".includes(c)) throw new Unreadable();
        if (/\d/.test(c)) return this.number(c);
        if (c === "~") return space(1 / 4);
        if (/^[A-Za-zͰ-Ͽ]$/.test(c)) return this.letter(c);
        if (is_letter(c)) {
            while (this.next && is_letter(this.next)) c += this.take();
            return ordinary(mml("mtext", {}, c));
        }
        if (c === "(" || c === "[") return {kind: "open", node: small(c, "prefix")};
        if (c === ")" || c === "]") return {kind: "close", node: small(c, "postfix")};
        if (c === "|" || c === "/" || c === "." || c === "\u2016") return ordinary(mml("mo", {stretchy: "false", lspace: "0", rspace: "0"}, c));
        if (c === "!" || c === "?" || c === "%" || c === "@" || c === '"') return ordinary(mml("mi", {mathvariant: "normal"}, c));
        return this.operator(ASCII.get(c) ?? c);
    }

    operator(c) {
        const node = mml("mo", {stretchy: "false"}, c);
        return {kind: "op", node, sign: /[+\u2212±∓]/.test(c) ? node : undefined};
    }

    letter(c) {
        if (this.font === "roman") {
            while (/^[A-Za-z]$/.test(this.next ?? "")) c += this.take();
            return ordinary(mml("mi", {mathvariant: c.length === 1 ? "normal" : undefined}, c));
        }
        const upright = !this.font && /[\u0391-\u03a9∇]/.test(c);
        return ordinary(mml("mi", {mathvariant: upright ? "normal" : undefined}, c.length === 1 ? symbols.styled(c, this.font) : c));
    }

    number(c) {
        for (;;) {
            const {to} = this.tokens[this.at - 1];
            // A comma belongs to it before three digits, as in 1,000.
            const more = /^\d|^\.\d|^,\d{3}(?!\d)/.exec(this.source.slice(to, to + 5));
            if (!more) break;
            for (let i = 0; i < more[0].length; ++i) c += this.take();
        }
        return ordinary(mml("mn", {}, [...c].map((digit) => symbols.styled(digit, this.font)).join("")));
    }

    fraction(top, bottom, open, close, linethickness, displaystyle) {
        const node = mml("mfrac", {linethickness, displaystyle, scriptlevel: displaystyle ? "0" : undefined}, group(top), group(bottom));
        return ordinary(open ? mml("mrow", {}, fence(open, "prefix"), node, fence(close, "postfix")) : node);
    }

    command(name) {
        const {LETTERS, OPERATORS, LARGE, INTEGRALS, FUNCTIONS, LIMITS, WORDED, ACCENTS, BELOW, ARROWS, SPACES, FONTS, DELIMITERS} = symbols;
        if (LETTERS.has(name)) return this.letter(LETTERS.get(name));
        if (OPERATORS.has(name)) return this.operator(OPERATORS.get(name));
        if (LARGE.has(name)) return {kind: "fn", limits: "movable", node: mml("mo", {largeop: "true", movablelimits: "true"}, LARGE.get(name))};
        if (INTEGRALS.has(name)) return {kind: "fn", node: mml("mo", {largeop: "true"}, INTEGRALS.get(name))};
        if (FUNCTIONS.has(name)) return worded(name);
        if (LIMITS.has(name)) return worded(WORDED.get(name) ?? name, "movable");
        if (SPACES.has(name)) return space(SPACES.get(name));
        if (ACCENTS.has(name)) {
            const [mark, stretches] = ACCENTS.get(name);
            const over = mml("mover", {accent: "true", ...(stretches ? wide() : {})}, this.argument(), mml("mo", {stretchy: stretches ? "true" : "false"}, mark));
            return {kind: "ord", limits: name.startsWith("overb") ? "always" : undefined, node: over};
        }
        if (BELOW.has(name)) {
            const under = mml("munder", {accentunder: "true", ...wide()}, this.argument(), mml("mo", {stretchy: "true"}, BELOW.get(name)));
            return {kind: "ord", limits: "always", node: under};
        }
        if (ARROWS.has(name)) {
            const below = this.optional(), above = this.argument();
            const arrow = mml("mo", {stretchy: "true", lspace: "0", rspace: "0"}, ARROWS.get(name));
            const padded = (node) => mml("mrow", {}, space(.3).node, node, space(.3).node);
            const node = below ? mml("munderover", wide(), arrow, padded(below), padded(above)) : mml("mover", wide(), arrow, padded(above));
            return {kind: "op", node: mml("mrow", {}, space(2 / 9).node, node, space(2 / 9).node)};
        }
        if (FONTS.has(name)) return ordinary(this.with_font(FONTS.get(name), () => this.argument()));
        if (DELIMITERS.has(name)) {
            const c = DELIMITERS.get(name), form = "[{⟨⌊⌈⟦⟮".includes(c) || /^l[vV]/.test(name) ? "prefix" : "postfix";
            return "|‖\\".includes(c) && !/^[lr]/.test(name) ? ordinary(mml("mo", {stretchy: "false", lspace: "0", rspace: "0"}, c))
                : {kind: form === "prefix" ? "open" : "close", node: small(c, form)};
        }
        const sized = /^(bigg|Bigg|big|Big)([lrm]?)$/.exec(name);
        if (sized) return this.sized(SIZES[sized[1]], sized[2]);
        return this.structure(name);
    }

    sized(size, side) {
        const c = this.delimiter();
        const open = side === "l" || (side === "" && "([{⟨⌊⌈".includes(c) && c);
        const node = mml("mo", {form: open ? "prefix" : side === "m" ? "infix" : "postfix", stretchy: "true", symmetric: "true", minsize: em(size), maxsize: em(size)}, c);
        return {kind: open ? "open" : side === "m" ? "op" : "close", node};
    }

    structure(name) {
        switch (name) {
            case "frac": case "dfrac": case "tfrac": case "cfrac": {
                const top = this.argument(), bottom = this.argument();
                const style = {d: "true", c: "true", t: "false"}[name[0]];
                return this.fraction([{node: top}], [{node: bottom}], "", "", undefined, style);
            }
            case "binom": case "dbinom": case "tbinom": {
                const top = this.argument(), bottom = this.argument();
                return this.fraction([{node: top}], [{node: bottom}], "(", ")", "0", {d: "true", t: "false"}[name[0]]);
            }
            case "sqrt": {
                const degree = this.optional(), base = this.argument();
                return ordinary(degree ? mml("mroot", {}, base, degree) : mml("msqrt", {}, base));
            }
            case "left":
                return this.fenced();
            case "begin":
                return this.environment(this.raw().trim());
            case "operatorname": {
                const star = this.next === "*";
                if (star) this.take();
                return worded(this.raw().replace(/\\[,;:! ]|~/g, " ").replace(/\\(?:text|mathrm)|[{}]/g, "").trim(), star ? "movable" : undefined);
            }
            case "overset": case "stackrel": {
                const above = this.argument(), base = this.argument();
                return {kind: name === "stackrel" ? "op" : "ord", node: mml("mover", {}, base, above)};
            }
            case "underset": {
                const below = this.argument(), base = this.argument();
                return ordinary(mml("munder", {}, base, below));
            }
            case "substack": {
                this.expect("{");
                const lines = this.lines(["}"]);
                this.expect("}");
                return ordinary(table_element("substack", lines));
            }
            case "pmod": case "pod": {
                const word = name === "pmod" ? [mml("mo", {lspace: "0", rspace: em(1 / 3)}, "mod")] : [];
                return ordinary(mml("mrow", {}, space(.5).node, small("(", "prefix"), ...word, this.argument(), small(")", "postfix")));
            }
            case "bmod": case "mod":
                return {kind: "op", node: mml("mo", {form: "infix", lspace: em(2 / 9), rspace: em(2 / 9)}, "mod")};
            case "mathop":
                return {kind: "ord", limits: "always", node: this.argument()};
            case "phantom": case "hphantom": case "vphantom":
                return ordinary(mml("mphantom", {}, this.argument()));
            case "ce": case "pu": {
                const tex = (name === "ce" ? chemistry : units)(this.raw());
                if (tex === null) throw new Unreadable();
                return ordinary(group(new Parser(tex, this.depth + 1).all()));
            }
            case "not":
                return this.negated();
            case "textcolor": case "colorbox":
                this.raw();
                return ordinary(this.argument());
            case "color":
                this.raw();
                return null;
            case "hspace": case "mspace": case "hskip": case "kern": case "mkern": case "mskip":
                return this.given_space();
            case "tag":
                if (this.next === "*") this.take();
                return ordinary(mml("mrow", {}, space(2).node, mml("mtext", {}, `(${this.raw()})`)));
            case "label":
                this.raw();
                return null;
        }
        if (Object.hasOwn(TEXTS, name)) return this.text(TEXTS[name]);
        if (Object.hasOwn(BOXES, name)) return ordinary(mml("mrow", {class: BOXES[name]}, this.argument()));
        if (Object.hasOwn(PAIRS, name) && this.next === "{") {
            const [open, close] = PAIRS[name];
            return ordinary(mml("mrow", {}, fence(open, "prefix"), this.argument(), fence(close, "postfix")));
        }
        if (AS_THEY_ARE.has(name)) return ordinary(this.argument());
        if (NOTHING.has(name)) return null;
        // Signs that end something here end nothing.
        if (["right", "middle", "end", "\\", ")", "]", "(", "["].includes(name)) throw new Unreadable();
        return ordinary(mml("mtext", {class: "math-unknown"}, `\\${name}`));
    }

    negated() {
        const item = this.next === undefined ? null : this.atom();
        if (!item || item.node.childElementCount > 0) throw new Unreadable();
        item.node.textContent = `${item.node.textContent}\u0338`.normalize("NFC");
        return item;
    }

    given_space() {
        const {to} = this.tokens[this.at - 1];
        if (this.next === "*") this.take();
        const text = this.next === "{" ? this.raw() : /^\s*-?[\d.]+\s*[a-z]{2}/.exec(this.source.slice(to, to + 24))?.[0] ?? "";
        while (this.tokens[this.at]?.from < to + text.length) ++this.at;
        const [, number, unit] = /^\s*(-?[\d.]+)\s*([a-z]{2})\s*$/.exec(text) ?? [];
        const width = Number(number) * ({em: 1, ex: .43, mu: 1 / 18, pt: .1, px: .07, cm: 2.8, mm: .28, in: 7.2}[unit] ?? 0);
        return Number.isFinite(width) ? space(Math.min(Math.max(width, -2), 10)) : null;
    }

    fenced() {
        const parts = [fence(this.delimiter(), "prefix")];
        for (;;) {
            parts.push(group(this.row(["\\right", "\\middle"])));
            const middle = this.take() === "\\middle";
            parts.push(middle ? mml("mo", {fence: "true", stretchy: "true", lspace: em(1 / 6), rspace: em(1 / 6)}, this.delimiter()) : fence(this.delimiter(), "postfix"));
            if (!middle) return ordinary(mml("mrow", {}, ...parts.filter((part) => part.localName !== "mo" || part.textContent)));
        }
    }

    // A text, in which formulas may stand between dollars.
    text(style) {
        if (this.next !== "{") throw new Unreadable();
        const parts = this.raw().split(/(?<!\\)\$/);
        if (parts.length % 2 === 0) throw new Unreadable();
        const nodes = parts.map((part, i) => {
            if (i % 2 === 1) return group(new Parser(part, this.depth + 1).all());
            const text = part.replace(/\\([%&_$#{} ])/g, "$1").replace(/~|\s+/g, "\u00a0");
            return text ? mml("mtext", style ? {class: style} : {}, text) : null;
        }).filter(Boolean);
        return ordinary(nodes.length === 1 ? nodes[0] : mml("mrow", {}, ...nodes));
    }

    // Rows of cells: [{cells: [node], line}], up to one of `ends`.
    lines(ends) {
        const lines = [];
        let cells = [], line = false;
        for (;;) {
            while (this.next === "\\hline" || this.next === "\\midrule" || this.next === "\\toprule" || this.next === "\\bottomrule") {
                this.take();
                line = true;
            }
            cells.push(group(this.row(["&", "\\\\", "\\cr", "\\newline", ...ends])));
            if (this.next === "&") {
                this.take();
                continue;
            }
            lines.push({cells, line});
            cells = [];
            line = false;
            if (this.next === undefined || ends.includes(this.next)) break;
            const {to} = this.tokens[this.at++];
            const gap = /^\s*\[\s*-?[\d.]+\s*[a-z]{2}\s*\]/.exec(this.source.slice(to, to + 24));
            while (gap && this.tokens[this.at]?.from < to + gap[0].length) ++this.at;
        }
        const last = lines[lines.length - 1];
        if (lines.length > 1 && last.cells.length === 1 && !last.cells[0].hasChildNodes() && last.cells[0].localName === "mrow") lines.pop();
        return lines;
    }

    environment(name) {
        const plain = name.replace(/\*$/, "");
        const known = FENCED.has(plain) || ALIGNED.has(plain);
        if (!known) throw new Unreadable();
        const columns = plain === "array" || plain === "alignat" || plain === "alignedat" ? this.raw() : "";
        if (this.next === "[") this.optional();
        const lines = this.lines(["\\end"]);
        this.expect("\\end");
        if (this.raw().trim() !== name) throw new Unreadable();
        const [open, close] = FENCED.get(plain) ?? ["", ""];
        const node = table_element(plain, lines, columns);
        if (!open && !close) return ordinary(node);
        return ordinary(mml("mrow", {}, ...(open ? [fence(open, "prefix")] : []), node, ...(close ? [fence(close, "postfix")] : [])));
    }

    // All of the source; lines are aligned as if in an environment.
    all() {
        const lines = this.lines([]);
        if (this.at < this.tokens.length) throw new Unreadable();
        if (lines.length === 1 && lines[0].cells.length === 1) return [{node: lines[0].cells[0]}];
        return [{node: table_element("aligned", lines)}];
    }
}

// The element <math>, or null. `display`: on a line of its own.
export function math(source, display) {
    if (source.length > MAX_LENGTH || source.trim() === "") return null;
    try {
        const body = group(new Parser(source).all());
        return mml("math", {display: display ? "block" : "inline", alttext: source.trim()}, body);
    } catch (error) {
        if (error instanceof Unreadable) return null;
        throw error;
    }
}
