// A picture of the last minute of a rate. A second in which nothing was measured is a gap, and what is written is the last rate that was.
import {el, number_text, svg} from "./dom.js";

const SAMPLES = 60, WIDTH = 120, HEIGHT = 40;

// 1, 2 or 5 with zeros, not below `value`.
function round_top(value) {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 2, 5, 10].find((step) => step * power >= value * .999);
}

// Runs of samples without gaps: [[[index, value], ...], ...].
function runs_of(samples) {
    const runs = [];
    samples.forEach((value, i) => {
        if (value === null) return;
        if (i === 0 || samples[i - 1] === null) runs.push([]);
        runs[runs.length - 1].push([i, value]);
    });
    return runs;
}

export class Chart {
    // `top`: of the scale, if it is always the same.
    constructor(label, unit, digits = 1, top = null) {
        this.samples = [];
        this.last = null;
        Object.assign(this, {label, unit, digits, top});
        this.value = el("span", {class: "value"}, "\u2013");
        this.line = svg("path", {class: "line", d: ""});
        this.area = svg("path", {class: "area", d: ""});
        this.scale = el("span", {class: "scale"});
        this.note = el("span", {class: "hint"}, "nothing yet");
        this.picture = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${label}: nothing yet`},
            svg("path", {class: "grid", d: `M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - .5}H${WIDTH}`}), this.area, this.line);
        this.element = el("div", {class: "graph"}, el("div", {class: "graph-head"}, el("span", {}, label), this.value),
            el("div", {class: "plot"}, this.picture, this.scale), this.note);
    }

    // null: nothing was measured.
    push(value) {
        this.samples.push(value);
        if (this.samples.length > SAMPLES) this.samples.shift();
        if (value !== null) this.last = value;
        if (this.last !== null) this.draw();
    }

    draw() {
        const known = this.samples.filter((sample) => sample !== null);
        const most = Math.max(0, ...known), top = this.top ?? round_top(most);
        const x = (i) => (WIDTH * (SAMPLES - this.samples.length + i) / (SAMPLES - 1)).toFixed(1);
        const y = (value) => (HEIGHT - 1 - (HEIGHT - 2) * value / top).toFixed(1);
        let line = "", area = "";
        for (const run of runs_of(this.samples)) {
            // A lone sample is a short line.
            const points = run.length > 1 ? run : [[run[0][0] - .4, run[0][1]], [run[0][0] + .4, run[0][1]]];
            const path = points.map(([i, value]) => `${x(i)} ${y(value)}`).join("L");
            line += `M${path}`;
            area += `M${x(points[0][0])} ${HEIGHT}L${path}L${x(points[points.length - 1][0])} ${HEIGHT}Z`;
        }
        this.line.setAttribute("d", line);
        this.area.setAttribute("d", area);
        this.value.textContent = `${number_text(this.last, this.digits)} ${this.unit}`;
        this.scale.textContent = number_text(top, 1);
        const idle = this.samples[this.samples.length - 1] === null;
        this.note.textContent = (idle ? "idle; the last rate" : "now") + (known.length > 0 ? `, at most ${number_text(most, this.digits)}` : "");
        this.picture.setAttribute("aria-label", `${this.label} in the last minute: ${this.value.textContent}, ${this.note.textContent}`);
    }
}
