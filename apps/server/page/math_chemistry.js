// Chemistry, as \ce{..} and \pu{..} of TeX's package mhchem have it: formulas, reactions and units become TeX's mathematics.

const MAX_DEPTH = 8;  // of groups and texts of arrows in each other

// With a text above or below, and without. The longest first.
const ARROWS = [["<=>>", "xrightleftharpoons", "rightleftharpoons"], ["<<=>", "xrightleftharpoons", "rightleftharpoons"], ["<-->", "xleftrightarrow", "longleftrightarrow"],
    ["<=>", "xrightleftharpoons", "rightleftharpoons"], ["<->", "xleftrightarrow", "longleftrightarrow"], ["->", "xrightarrow", "longrightarrow"],
    ["<-", "xleftarrow", "longleftarrow"], ["\u2192", "xrightarrow", "longrightarrow"], ["\u21cc", "xrightleftharpoons", "rightleftharpoons"]];
const BONDS = {__proto__: null, "-": "-", "1": "-", "=": "=", "2": "=", "#": "\\equiv", "3": "\\equiv", "~": "\\sim", "...": "\\cdots", "....": "\\cdots", "->": "\\to", "<-": "\\gets"};

// The index behind the group that begins at text[at], which is `open`, or -1.
function group_end(text, at, open, close) {
    for (let depth = 0; at < text.length; ++at) {
        if (text[at] === "\\") ++at;
        else if (text[at] === open) ++depth;
        else if (text[at] === close && --depth === 0) return at + 1;
    }
    return -1;
}

// A command with its groups, as it stands.
function command_end(text, at) {
    let end = at + (/^\\[A-Za-z]+/.exec(text.slice(at, at + 40))?.[0].length ?? 2);
    while (text[end] === "{") {
        const behind = group_end(text, end, "{", "}");
        if (behind < 0) break;
        end = behind;
    }
    return end;
}

// What a script at text[at] has, and the index behind it.
function script_at(text, at) {
    if (text[at] === "{") {
        const end = group_end(text, at, "{", "}");
        return end < 0 ? ["", text.length] : [text.slice(at + 1, end - 1), end];
    }
    if (text[at] === "\\") {
        const end = command_end(text, at);
        return [text.slice(at, end), end];
    }
    const found = /^(?:\d+[+-]?|[+-]|[A-Za-z*])/.exec(text.slice(at, at + 20))?.[0] ?? "";
    // A sign of a charge joins nothing.
    return [found.replace(/[+-]$/, "{$&}"), at + found.length];
}

// TeX's mathematics of what stands in \ce{..}; null if it is nested too deeply.
export function chemistry(text, depth = 0) {
    if (depth > MAX_DEPTH) return null;
    let out = "", at = 0, before = "";  // what stood before: "" for a beginning, "term", "space" or "operator"
    const put = (tex, kind) => {
        out += tex;
        before = kind;
    };
    while (at < text.length) {
        const c = text[at], behind = text[at + 1] ?? " ";
        const arrow = ARROWS.find(([mark]) => text.startsWith(mark, at));
        if (/\s/.test(c)) {
            if (before === "term") before = "space";
            ++at;
        } else if (arrow) {
            at += arrow[0].length;
            const words = [];
            while (text[at] === "[" && words.length < 2) {
                const end = group_end(text, at, "[", "]");
                if (end < 0) break;
                words.push(chemistry(text.slice(at + 1, end - 1), depth + 1));
                at = end;
            }
            if (words.includes(null)) return null;
            const [above = "", below = ""] = words;
            put(above || below ? ` \\${arrow[1]}${below ? `[{${below}}]` : ""}{${above}} ` : ` \\${arrow[2]} `, "operator");
        } else if (c === "$") {
            const end = text.indexOf("$", at + 1);
            put(`{${text.slice(at + 1, end < 0 ? undefined : end)}}`, "term");
            at = end < 0 ? text.length : end + 1;
        } else if (text.startsWith("\\bond{", at)) {
            const end = group_end(text, at + 5, "{", "}");
            put(`{${BONDS[text.slice(at + 6, end < 0 ? undefined : end - 1)] ?? "-"}}`, "term");
            at = end < 0 ? text.length : end;
        } else if (c === "\\") {
            const end = command_end(text, at);
            put(text.slice(at, end) + " ", "term");
            at = end;
        } else if (c === "{") {
            const end = group_end(text, at, "{", "}");
            if (end < 0) return null;
            const inner = chemistry(text.slice(at + 1, end - 1), depth + 1);
            if (inner === null) return null;
            put(`{${inner}}`, "term");
            at = end;
        } else if ((c === "^" || c === "v") && before !== "term" && /[\s)]/.test(behind)) {
            // A gas that leaves, and what falls.
            put(c === "^" ? "\\uparrow " : "\\downarrow ", "term");
            ++at;
        } else if (c === "^" || c === "_") {
            const [script, end] = script_at(text, at + 1);
            // Those of an isotope stand before its sign.
            put(`${before === "term" ? "" : "{}"}${c}{${/^[A-Za-z]{2,}$/.test(script) ? `\\mathrm{${script}}` : script}}`, "term");
            at = end;
        } else if (/\d/.test(c)) {
            const [number, whole, divisor] = /^(\d+)(?:\/(\d+)|\.\d+)?/.exec(text.slice(at, at + 40));
            if (before === "term") put(`_{${whole}}`, "term");
            else put(divisor ? `\\tfrac{${whole}}{${divisor}}\\,` : `${number}\\,`, "operator");
            at += before === "term" ? whole.length : number.length;
        } else if (/[A-Za-z]/.test(c)) {
            const [letters] = /^[A-Za-z]+/.exec(text.slice(at));
            put(`${before === "space" ? "\\;" : ""}\\mathrm{${letters}}`, "term");
            at += letters.length;
        } else if ((c === "+" || c === "-") && before === "term" && /[\s)\],+-]/.test(behind)) {
            put(`^{{${c}}}`, "term");
            ++at;
        } else if (c === "-" || c === "=" || c === "#") {
            put(before === "term" ? `{${BONDS[c]}}` : ` ${BONDS[c]} `, before === "term" ? "term" : "operator");
            ++at;
        } else if (c === "+") {
            put(" + ", "operator");
            ++at;
        } else if (c === "*" || (c === "." && before === "term")) {
            put(" \\cdot ", "operator");
            ++at;
        } else if (c === "(" || c === "[") {
            // A state, as (aq), stands a little apart.
            put((before === "space" ? "\\," : "") + c, "");
            ++at;
        } else {
            put("%#&".includes(c) ? `\\${c}` : c, "term");
            ++at;
        }
    }
    return out;
}

// Of a number with its unit in \pu{..}.
export function units(text) {
    const [, number, exponent, rest] = /^\s*([-+]?[\d.,]*)(?:[eE]([-+]?\d+))?(.*)$/s.exec(text);
    const unit = rest.trim().replace(/\\[A-Za-z]+|([A-Za-z]+)\^?([-+]?\d+)?|[\s.*]+|[%#&]/g, (all, letters, power) => {
        if (letters) return `\\mathrm{${letters}}${power ? `^{${power}}` : ""}`;
        if (/^[\s.]/.test(all)) return "\\,";
        return all[0] === "*" ? "\\cdot " : "%#&".includes(all) ? `\\${all}` : `${all} `;
    });
    return `${number}${exponent ? `\\times 10^{${exponent}}` : ""}${number && unit ? "\\," : ""}${unit}`;
}
