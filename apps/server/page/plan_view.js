// A picture of the plan: for each layer a column of its weights, by the devices that hold them, under the device of its attention.
import {bytes_text, el, svg} from "./dom.js";

const COLOURS = 6, STRIP = 8, GAP = 3, HEIGHT = 64;

export const colour_of = (devices, id) => `device-${Math.max(0, devices.findIndex((device) => device.id === id)) % COLOURS}`;

export const swatch = (devices, id) => el("span", {class: `swatch ${colour_of(devices, id)}`, "aria-hidden": "true"});

// "0-3, 5"
function ranges_text(numbers) {
    const parts = [];
    for (let i = 0; i < numbers.length;) {
        let j = i;
        while (j + 1 < numbers.length && numbers[j + 1] === numbers[j] + 1) ++j;
        parts.push(j > i ? `${numbers[i]}\u2013${numbers[j]}` : String(numbers[i]));
        i = j + 1;
    }
    return parts.join(", ");
}

function title_of({layer, attention, experts, weights}) {
    const lines = [`Layer ${layer}`, `attention on ${attention || "no device"}`];
    if (experts) lines.push(`experts on ${experts}`);
    for (const [id, bytes] of Object.entries(weights ?? {})) lines.push(`${bytes_text(bytes)} on ${id}`);
    return lines.join("\n");
}

function picture_of(layers, devices) {
    const sizes = layers.map(({weights}) => Object.values(weights ?? {}).reduce((sum, bytes) => sum + bytes, 0));
    const most = Math.max(1, ...sizes);
    const columns = layers.map((layer, i) => {
        const column = svg("g", {}, svg("title", {}, title_of(layer)));
        const rect = (y, height, id) => column.append(svg("rect", {x: i * 10 + .75, y: y.toFixed(2), width: 8.5, height: height.toFixed(2), class: colour_of(devices, id)}));
        if (layer.attention) rect(0, STRIP, layer.attention);
        let y = HEIGHT;
        for (const {id} of devices) {
            const height = (HEIGHT - STRIP - GAP) * (layer.weights?.[id] ?? 0) / most;
            if (height > 0) rect(y -= height, height, id);
        }
        return column;
    });
    return svg("svg", {class: "plan", viewBox: `0 0 ${layers.length * 10} ${HEIGHT}`, preserveAspectRatio: "none", role: "img",
        "aria-label": "Layers and the devices that hold them; the table below has the same in words"}, ...columns);
}

function table_of(layers) {
    // Layers with the same devices make one row.
    const groups = new Map();
    for (const layer of layers) {
        const key = JSON.stringify([layer.attention ?? "", layer.experts ?? ""]);
        groups.set(key, [...(groups.get(key) ?? []), layer.layer]);
    }
    return el("table", {class: "layers"},
        el("thead", {}, el("tr", {}, ["Layers", "Attention on", "Experts on"].map((name) => el("th", {scope: "col"}, name)))),
        el("tbody", {}, [...groups].map(([key, numbers]) => {
            const [attention, experts] = JSON.parse(key);
            return el("tr", {}, el("td", {}, ranges_text(numbers.sort((a, b) => a - b))), el("td", {}, attention || "\u2013"),
                el("td", {}, experts || "none"));
        })));
}

// `layers` and `devices` as /tessera/machine has them.
export function plan_element(layers, devices) {
    if (layers.length === 0) return null;
    const ordered = [...layers].sort((a, b) => a.layer - b.layer);
    return el("section", {}, el("h3", {}, "Plan"),
        el("p", {class: "hint"}, `The weights of layers ${ranges_text([ordered[0].layer, ordered[ordered.length - 1].layer].filter((n, i, all) => i === 0 || n !== all[0])).replace(", ", " to ")}, and above them the device of their attention.`),
        picture_of(ordered, devices),
        el("ul", {class: "legend"}, devices.map(({id}) => el("li", {}, swatch(devices, id), id))),
        el("details", {}, el("summary", {}, "As a table"), el("div", {class: "table", tabindex: "0", role: "group", "aria-label": "Layers"}, table_of(ordered))));
}
