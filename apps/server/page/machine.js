// The view of the machine: rates, requests and pages from /metrics, devices and what lies on each from /tessera/machine.
import {get_json, get_text} from "./api.js";
import {Chart} from "./chart.js";
import {bytes_text, el, number_text} from "./dom.js";
import {colour_of, plan_element, swatch} from "./plan_view.js";

const PARTS = [["weights_bytes", "weights"], ["cache_bytes", "cache"], ["work_bytes", "work"], ["mapped_bytes", "mapped from the file"]];

// {name: value} of Prometheus' text format; names without the prefix "tessera_", samples with labels left out.
function parse_metrics(text) {
    const values = {};
    for (const line of text.split("\n")) {
        const found = /^tessera_(\w+) (\S+)$/.exec(line);
        if (found) values[found[1]] = Number(found[2]);
    }
    return values;
}

function device_element(device, devices) {
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
    return el("section", {class: `device ${colour_of(devices, device.id)}`}, el("h4", {}, swatch(devices, device.id), device.name || device.id),
        el("p", {class: "hint"}, device.memory_bytes > 0
            ? `${device.id}: ${bytes_text(used)} of ${bytes_text(device.memory_bytes)}` : `${device.id}: ${bytes_text(used)}`),
        bar, legend);
}

// Tokens in the time in which the engine worked: a second that is idle in part is no slower, and one without any has no rate.
function rate_of(tokens, worked, passed) {
    return tokens > 0 ? tokens / (worked > 0 ? Math.min(worked, passed) : passed) : null;
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
        this.generated = new Chart("Generated", "tokens/s");
        this.prompts = new Chart("Prompts", "tokens/s", 0);
        this.busy = new Chart("Engine at work", "%", 0, 100);
        this.pages = new Chart("Pages in use", "%", 0, 100);
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
                const without_metrics = [404, 501].includes(error.status);
                this.fault.textContent = without_metrics ? "The server was started without metrics (--no-metrics), so there are no rates."
                    : error.status === 401 ? "The server asks for a key. Enter it in the settings." : error.message;
                wait = without_metrics ? 60000 : 3000;
            }
        }
        if (opened === this.opened) this.timer = setTimeout(() => this.poll(opened), wait);
    }

    show(values, now) {
        const before = this.before;
        this.before = {values, now};
        // A server that was started anew counts from 0.
        const more = (name) => Math.max(0, values[name] - before.values[name]) || 0;
        if (before && now > before.now) {
            const passed = now - before.now, busy = more("busy_seconds_total");
            this.generated.push(rate_of(more("generated_tokens_total"), busy, passed));
            this.prompts.push(rate_of(more("prompt_tokens_total"), more("prompt_seconds_total"), passed));
            this.busy.push(Math.min(100, 100 * busy / passed));
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
            this.devices.replaceChildren(...devices.map((device) => device_element(device, devices)), plan_element(layers, devices) ?? "");
        } catch (error) {
            if (opened !== this.opened) return;
            this.unknown = error.code === "loading";
            this.devices.replaceChildren(el("p", {class: "hint"}, error.status === 404
                ? "This server does not tell what lies on which device." : error.message));
        }
    }
}
