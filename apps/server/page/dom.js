// Elements are made here alone, always by createElement and textContent: no text ever becomes markup.

// On a phone Enter is the only way to a new line, and a field that has the focus opens the keyboard.
export const touch = globalThis.matchMedia?.("(pointer: coarse)").matches ?? false;

// el("button", {class: "plain", onclick: f, "aria-label": "Copy"}, "text", child, [child, ...], ...)
export function el(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (value === undefined || value === null || value === false) continue;
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (key === "class") element.className = value;
        else if (key === "value" || key === "checked" || key === "open") element[key] = value;
        else element.setAttribute(key, value === true ? "" : value);
    }
    // One by one, as a call has only so many arguments.
    for (const child of children.flat()) {
        if (child !== null && child !== undefined && child !== false) element.append(child);
    }
    return element;
}

function foreign(namespace, name, attributes, children) {
    const element = document.createElementNS(namespace, name);
    for (const [key, value] of Object.entries(attributes)) {
        if (value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
}

export const svg = (name, attributes = {}, ...children) => foreign("http://www.w3.org/2000/svg", name, attributes, children);
export const mml = (name, attributes = {}, ...children) => foreign("http://www.w3.org/1998/Math/MathML", name, attributes, children);

export const by_id = (id) => document.getElementById(id);

// Spoken by screen readers, not seen.
export function announce(text) {
    by_id("status").textContent = text;
}

export function download(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], {type}));
    const link = el("a", {href: url, download: name});
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export async function copy_text(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        // Without TLS and away from this machine browsers have no clipboard object.
        const area = el("textarea", {class: "hidden-visually", "aria-hidden": "true", value: text});
        document.body.append(area);
        area.select();
        const done = document.execCommand("copy");
        area.remove();
        return done;
    }
}

export function number_text(value, digits = 0) {
    return Number(value).toLocaleString("en", {maximumFractionDigits: digits, minimumFractionDigits: 0});
}

export function bytes_text(bytes) {
    for (const [unit, name] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
        if (bytes >= unit) return `${number_text(bytes / unit, bytes >= 10 * unit ? 0 : 1)} ${name}`;
    }
    return bytes === 1 ? "1 byte" : `${bytes} bytes`;
}

export function seconds_text(seconds) {
    if (seconds < 10) return `${seconds.toFixed(1)} s`;
    if (seconds < 60) return `${Math.round(seconds)} s`;
    return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}
