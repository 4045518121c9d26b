// Where formulas stand in a text: $..$, $$..$$, \(..\), \[..\]. Amounts of dollars are none.

const MAX_INLINE = 2000;   // characters of a formula in a line
const MAX_DISPLAY = 10000;
const MAX_PENDING = 300;   // of one that a stream has not ended

const is_word = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);
const is_space = (c) => c === undefined || /\s/.test(c);

// "5 to 10", and words in a row.
function is_prose(source) {
    return !source.includes("\\") && (/^\d[\d.,]*[kKmMbB]?\s+[A-Za-z]{2,}/.test(source) || /[A-Za-z]{3,},? [A-Za-z]{2,},? [A-Za-z]{2,}/.test(source));
}

// The index behind the run of `run` backticks that closes one, or -1. `seen`: lengths of runs that none follows.
export function code_end(text, from, run, seen) {
    if (seen.has(run)) return -1;
    const mark = "`".repeat(run);
    let end = text.indexOf(mark, from);
    while (end >= 0 && text[end + run] === "`") {
        while (text[end] === "`") ++end;
        end = text.indexOf(mark, end);
    }
    if (end < 0) seen.add(run);
    return end < 0 ? -1 : end + run;
}

// Map from where each begins to {end, source, display, pending}; code is left out. `pending`: the text goes on, and a formula
// that is open at its end is one, too, so that it is not shown as something else until it closes.
export function formulas_in(text, pending = false) {
    const found = new Map();
    if (!/\$|\\[([]/.test(text)) return found;
    const stands = new Map(), seen = new Set();
    // Where `mark` stands next: each is searched for once.
    const next = (mark, from) => {
        let at = stands.get(mark) ?? -1;
        if (at < from) {
            at = text.indexOf(mark, from);
            if (at < 0) at = Infinity;
            stands.set(mark, at);
        }
        return at;
    };
    const open = (from, size) => {
        if (!pending || text.length - from > MAX_PENDING || from + size >= text.length) return false;
        found.set(from, {end: text.length, source: text.slice(from), display: false, pending: true});
        return true;
    };
    for (let i = 0; i < text.length; ++i) {
        const c = text[i];
        if (c === "`") {
            let run = 1;
            while (text[i + run] === "`") ++run;
            const end = code_end(text, i + run, run, seen);
            i = (end < 0 ? i + run : end) - 1;
        } else if (c === "\\") {
            const bracket = text[i + 1];
            if (bracket === "(" || bracket === "[") {
                const end = next(bracket === "(" ? "\\)" : "\\]", i + 2);
                const source = end - i > MAX_DISPLAY ? "" : text.slice(i + 2, end);
                // Brackets may be escaped for other reasons.
                if (source.trim() && (bracket === "(" || /[\\^_=+<>{]/.test(source))) {
                    found.set(i, {end: end + 2, source, display: bracket === "["});
                    i = end + 1;
                    continue;
                }
                if (end === Infinity && open(i, 2)) return found;
            }
            ++i;
        } else if (c === "$") {
            let run = 1;
            while (text[i + run] === "$") ++run;
            if (run === 2) {
                const end = next("$$", i + 2);
                const source = end - i > MAX_DISPLAY ? "" : text.slice(i + 2, end);
                if (source.trim()) {
                    found.set(i, {end: end + 2, source, display: true});
                    i = end + 1;
                    continue;
                }
                if (end === Infinity && open(i, 2)) return found;
            } else if (run === 1 && !is_word(text[i - 1]) && !is_space(text[i + 1]) && text[i + 1] !== ")") {
                let end = i + 1;
                while (end < text.length && end - i < MAX_INLINE && text[end] !== "$") end += text[end] === "\\" ? 2 : 1;
                const source = text.slice(i + 1, end);
                if (text[end] === "$" && !is_space(text[end - 1]) && !/\d/.test(text[end + 1] ?? "") && !is_prose(source)) {
                    // As GitLab has it, $`x`$.
                    found.set(i, {end: end + 1, source: source.replace(/^`(.*)`$/s, "$1"), display: false});
                    i = end;
                    continue;
                }
                if (end >= text.length && !/\d/.test(text[i + 1]) && open(i, 1)) return found;
            }
            i += run - 1;
        }
    }
    return found;
}
