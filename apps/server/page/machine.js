// The view of the machine: rates, requests and pages from /metrics, devices and what lies on each from /tessera/machine.
import {get_json, get_text} from "./api.js";
import {bytes_text, el, number_text, svg} from "./dom.js";

const SAMPLES = 60;
const PARTS = [["weights_bytes", "weights"], ["cache_bytes", "cache"], ["work_bytes", "work"], ["mapped_bytes", "mapped from the file"]];

// {name: value} of Prometheus' text format; names without the prefix "tessera_", samples with labels left out.
export function parse_metrics(text) {
    const values = {};
    for (const line of text.split("\n")) {
        const found = /^tessera_(\w+) (\S+)$/.exec(line);
        if (found) values[found[1]] = Number(found[2]);
    }
    return values;
}

// "0-3, 5"
export function ranges_text(numbers) {
    const parts = [];
    for (let i = 0; i < numbers.length;) {
        let j = i;
        while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) ++j;
        parts.push(j > i ? `${numbers[i]}\u2013${numbers[j]}` : String(numbers[i]));
        i = j + 1;
    }
    return parts.join(", ");
}

class Graph {
    constructor(label, unit, digits = 1) {
        this.samples = [];
        this.unit = unit;
        this.digits = digits;
        this.value = el("span", {class: "value"}, "\u2013");
        this.line = svg("polyline", {class: "line", points: ""});
        this.area = svg("polygon", {class: "area", points: ""});
        this.top = el("span", {class: "hint"});
        this.element = el("div", {class: "graph"}, el("div", {class: "graph-head"}, el("span", {}, label), this.value),
            svg("svg", {viewBox: "0 0 120 32", preserveAspectRatio: "none", "aria-hidden": "true"}, this.area, this.line), this.top);
    }

    push(value) {
        this.samples.push(value);
        if (this.samples.length > SAMPLES) this.samples.shift();
        const top = Math.max(...this.samples);
        const points = this.samples.map((sample, i) =>
            `${(120 * (SAMPLES - this.samples.length + i) / (SAMPLES - 1)).toFixed(1)},${(31 - 30 * (top > 0 ? sample / top : 0)).toFixed(1)}`);
        this.line.setAttribute("points", points.join(" "));
        const first = points[0].split(",")[0];
        this.area.setAttribute("points", `${first},32 ${points.join(" ")} 120,32`);
        this.value.textContent = `${number_text(value, this.digits)} ${this.unit}`;
        this.top.textContent = `maximum ${number_text(top, this.digits)}`;
    }
}

function device_element(device) {
    const used = PARTS.reduce((sum, [name]) => sum + (device[name] ?? 0), 0);
    const whole = Math.max(device.memory_bytes ?? 0, used, 1);
    const bar = el("div", {class: "bar", "aria-hidden": "true"});
    const legend = el("ul", {class: "legend"});
    PARTS.forEach(([name, label], i) => {
        const bytes = device[name] ?? 0;
        if (bytes <= 0) return;
        const part = el("span", {class: `part part-${i}`});
        part.style.width = `${100 * bytes / whole}%`;
        bar.append(part);
        legend.append(el("li", {}, el("span", {class: `swatch part-${i}`, "aria-hidden": "true"}), `${label} ${bytes_text(bytes)}`));
    });
    return el("section", {class: "device"}, el("h4", {}, device.name || device.id),
        el("p", {class: "hint"}, device.memory_bytes > 0
            ? `${device.id}: ${bytes_text(used)} of ${bytes_text(device.memory_bytes)}` : `${device.id}: ${bytes_text(used)}`),
        bar, legend);
}

function layers_table(layers) {
    // Layers with the same devices make one row.
    const groups = new Map();
    for (const layer of layers) {
        const key = JSON.stringify([layer.attention ?? "", layer.experts ?? ""]);
        groups.set(key, [...(groups.get(key) ?? []), layer.layer]);
    }
    return el("table", {class: "layers"},
        el("thead", {}, el("tr", {}, ...["Layers", "Attention on", "Experts on"].map((name) => el("th", {scope: "col"}, name)))),
        el("tbody", {}, ...[...groups].map(([key, numbers]) => {
            const [attention, experts] = JSON.parse(key);
            return el("tr", {}, el("td", {}, ranges_text(numbers.sort((a, b) => a - b))), el("td", {}, attention || "\u2013"),
                el("td", {}, experts || "none"));
        })));
}

export class MachineView {
    constructor(element) {
        this.element = element;
        this.timer = null;
        this.opened = 0;  // answers to an earlier opening are dropped
    }

    open() {
        this.close();
        this.before = null;
        this.fault = el("p", {class: "notice", hidden: true});
        this.generated = new Graph("Generated", "tokens/s");
        this.prompts = new Graph("Prompts", "tokens/s", 0);
        this.busy = new Graph("Engine at work", "%", 0);
        this.pages = new Graph("Pages in use", "%", 0);
        this.facts = el("dl", {class: "facts"});
        this.devices = el("div", {}, el("p", {class: "hint"}, "Being asked."));
        this.element.replaceChildren(this.fault, el("h3", {}, "Rates of the last minute"),
            el("div", {class: "graphs"}, this.generated.element, this.prompts.element, this.busy.element, this.pages.element),
            el("h3", {}, "Requests and cache"), this.facts, el("h3", {}, "Devices"), this.devices);
        this.show_machine(this.opened);
        this.poll(this.opened);
    }

    close() {
        ++this.opened;
        clearTimeout(this.timer);
    }

    async poll(opened) {
        let wait = 1000;
        // A page that is not seen asks for nothing.
        if (!document.hidden) {
            try {
                const values = parse_metrics(await get_text("metrics"));
                if (opened !== this.opened) return;
                this.fault.hidden = true;
                this.show(values, performance.now() / 1000);
            } catch (error) {
                if (opened !== this.opened) return;
                this.before = null;
                this.fault.hidden = false;
                this.fault.textContent = error.status === 404 ? "The server was started without metrics (--no-metrics), so there are no rates."
                    : error.status === 401 ? "The server asks for a key. Enter it in the settings." : error.message;
                wait = error.status === 404 ? 60000 : 3000;
            }
        }
        if (opened === this.opened) this.timer = setTimeout(() => this.poll(opened), wait);
    }

    show(values, now) {
        const before = this.before;
        this.before = {values, now};
        const rate = (name) => Math.max(0, (values[name] - before.values[name]) / (now - before.now)) || 0;
        if (before && now > before.now) {
            this.generated.push(rate("generated_tokens_total"));
            this.prompts.push(rate("prompt_tokens_total"));
            this.busy.push(Math.min(100, 100 * rate("busy_seconds_total")));
        }
        if (values.cache_usage_ratio !== undefined) this.pages.push(100 * values.cache_usage_ratio);
        const facts = [
            ["Requests running", values.requests_running],
            ["of these in their prompts", values.requests_in_prompt],
            ["Requests waiting", values.requests_waiting],
            ["Tokens waiting", values.waiting_tokens],
            ["Pages", values.cache_pages],
            ["Pages free", values.cache_free_pages],
            ["Pages of prefixes kept", values.cache_prefix_pages],
            ["Tokens found in the cache", values.reused_tokens_total],
            ["Tokens generated", values.generated_tokens_total],
        ];
        this.facts.replaceChildren(...facts.filter(([, value]) => value !== undefined).map(([name, value]) =>
            el("div", {}, el("dt", {}, name), el("dd", {}, number_text(value)))));
        if (values.ready === 0) {
            this.fault.hidden = false;
            this.fault.textContent = `The model is being loaded: ${number_text(100 * (values.loaded_ratio ?? 0))} %.`;
        } else if (this.unknown) {
            this.show_machine(this.opened);
        }
    }

    async show_machine(opened) {
        this.unknown = false;
        try {
            const machine = await get_json("tessera/machine");
            if (opened !== this.opened) return;
            const devices = Array.isArray(machine.devices) ? machine.devices : [];
            const layers = Array.isArray(machine.layers) ? machine.layers : [];
            this.devices.replaceChildren(...devices.map(device_element),
                ...(layers.length > 0 ? [el("div", {class: "table", tabindex: "0", role: "group", "aria-label": "Layers"}, layers_table(layers))] : []));
        } catch (error) {
            if (opened !== this.opened) return;
            this.unknown = error.code === "loading";
            this.devices.replaceChildren(el("p", {class: "hint"}, error.status === 404
                ? "This server does not tell what lies on which device." : error.message));
        }
    }
}
