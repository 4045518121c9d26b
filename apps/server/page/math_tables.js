// TeX's environments of rows and cells as tables of MathML.
import {mml} from "./dom.js";

// With what stands before and behind.
export const FENCED = new Map([["matrix", ["", ""]], ["smallmatrix", ["", ""]], ["pmatrix", ["(", ")"]], ["bmatrix", ["[", "]"]], ["Bmatrix", ["{", "}"]],
    ["vmatrix", ["|", "|"]], ["Vmatrix", ["‖", "‖"]], ["array", ["", ""]], ["cases", ["{", ""]], ["dcases", ["{", ""]],
    ["rcases", ["", "}"]], ["drcases", ["", "}"]]]);
// Those whose cells stand right and left of a sign in turn, or whose lines are centred.
export const ALIGNED = new Set(["align", "aligned", "alignat", "alignedat", "split", "eqnarray", "equation", "gather", "gathered", "multline", "displaymath", "math"]);

const CENTRED = new Set(["equation", "gather", "gathered", "multline", "displaymath", "math"]);

// `lines`: [{cells: [node], line: whether a rule is above}]; `columns`: of an array, as "l|cr".
export function table_element(name, lines, columns = "") {
    const aligned = ALIGNED.has(name);
    const sides = [...columns.replace(/[^lcr|]/g, "")];
    const kinds = [];  // of columns: side and whether a rule is on the left
    for (let i = 0, rule = false; name === "array" && i < sides.length; ++i) {
        if (sides[i] === "|") {
            rule = true;
            if (kinds.length > 0 && i === sides.length - 1) kinds[kinds.length - 1] += " math-rule-right";
            continue;
        }
        kinds.push({l: "math-left", c: "", r: "math-right"}[sides[i]] + (rule ? " math-rule-left" : ""));
        rule = false;
    }
    const kind = (column) => {
        if (name === "array") return kinds[column] ?? "";
        if (name.endsWith("cases")) return "math-left";
        if (!aligned || CENTRED.has(name)) return "";
        return column % 2 === 0 ? "math-right" : "math-left";
    };
    const style = aligned ? "math-aligned" : name === "substack" || name === "smallmatrix" ? "math-close" : "";
    // A rule behind the last line has a line of its own, which is empty.
    const rows = lines.map(({cells, line}) => mml("mtr", line ? {class: "math-rule"} : {},
        ...cells.map((cell, column) => mml("mtd", kind(column) ? {class: kind(column).trim()} : {}, cell))));
    const displaystyle = aligned || name.startsWith("d") ? "true" : undefined;
    return mml("mtable", {class: style || undefined, displaystyle, scriptlevel: name === "smallmatrix" ? "1" : undefined}, ...rows);
}
