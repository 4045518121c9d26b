// The dialog of settings.
import {el} from "./dom.js";
import {clean_sampling, FIRST, FURTHER, NUMBERS, parse_extra} from "./sampling.js";

// Texts that end an answer, one a line; a line break in one is \n.
const lines_of = (texts) => texts.map((text) => text.replace(/\\/g, "\\\\").replace(/\n/g, "\\n").replace(/\t/g, "\\t")).join("\n");
const texts_of = (lines) => lines.split("\n").filter(Boolean).map((line) => line.replace(/\\([nt\\])/g, (_, c) => ({n: "\n", t: "\t", "\\": "\\"})[c]));

function field(name, label, input, hint) {
    input.id = `set-${name}`;
    if (hint) input.setAttribute("aria-describedby", `hint-${name}`);
    return el("div", {class: "field"}, el("label", {for: `set-${name}`}, label), input, hint ? el("p", {class: "hint", id: `hint-${name}`}, hint) : null);
}

function numbers(names, defaults, inputs) {
    return el("div", {class: "fields"}, names.map((name) => {
        const [label, hint, limits] = NUMBERS[name];
        const shown = Number.isFinite(defaults[name]) ? `server's: ${Number(defaults[name].toPrecision(5))}` : "server's";
        inputs[name] = el("input", {type: "number", inputmode: "decimal", placeholder: shown, ...limits});
        return field(name, label, inputs[name], hint);
    }));
}

// Throws Error that says what is wrong; the input is then marked.
function number_of(name, input) {
    if (input.checkValidity()) return input.value === "" ? null : Number(input.value);
    input.setAttribute("aria-invalid", "true");
    input.closest("details")?.setAttribute("open", "");
    input.focus();
    const [label, , {min, max, step}] = NUMBERS[name];
    throw new Error(`${label}: enter ${step === 1 ? "a whole number" : "a number"}` +
        (max === undefined ? ` of at least ${min}` : ` from ${min} to ${max}`) + ", or leave it empty.");
}

// Opens it. `now`: {all: {system, ...sampling}, own: the same of this conversation or null, system, key, keep}; `props` of the server or
// null; `reason`: why the key is asked for, or empty. on_save({system, sampling, own, key, keep}): `own` is whether they are for this
// conversation alone.
export function open_settings(dialog, now, props, reason, on_save) {
    const defaults = props?.default_generation_settings?.params ?? {};
    const inputs = {};
    const own = el("input", {type: "radio", name: "scope", id: "set-own", checked: now.own !== null});
    const all = el("input", {type: "radio", name: "scope", id: "set-all", checked: now.own === null});
    const system = el("textarea", {rows: "3", value: now.system});
    const key = el("input", {type: "password", autocomplete: "off", spellcheck: "false", value: now.key});
    const keep = el("input", {id: "set-keep", type: "checkbox", checked: now.keep});
    const thinking = el("select", {}, el("option", {value: ""}, "as the server is set"), el("option", {value: "on"}, "on"), el("option", {value: "off"}, "off"));
    const stop = el("textarea", {rows: "2", spellcheck: "false"});
    const samplers = el("input", {type: "text", spellcheck: "false", placeholder: Array.isArray(defaults.samplers) ? defaults.samplers.join(";") : "server's"});
    const extra = el("textarea", {rows: "3", spellcheck: "false", class: "code-field", placeholder: '{"response_format": {"type": "json_object"}}'});
    const fault = el("p", {class: "fault", role: "alert"});
    const first = numbers(FIRST, defaults, inputs), further = numbers(FURTHER, defaults, inputs);
    const more = el("details", {class: "more"}, el("summary", {}, "Penalties, ends, order and further fields"), further,
        field("stop", "Stop texts", stop, "Each ends the answer before it; one a line, with \\n for a line break."),
        field("samplers", "Order of samplers", samplers, "Names between semicolons; one that is not named does not run."),
        field("extra", "Further fields of requests", extra, "A JSON object, as the API has them; these override the ones above."));

    const fill = (sampling) => {
        for (const [name, input] of Object.entries(inputs)) input.value = sampling[name] ?? "";
        thinking.value = sampling.thinking;
        stop.value = lines_of(sampling.stop);
        samplers.value = sampling.samplers.join(";");
        extra.value = sampling.extra;
        more.open ||= FURTHER.some((name) => sampling[name] !== null) || Boolean(stop.value || samplers.value || extra.value);
    };
    fill(now.own ?? now.all);
    // Back to what all have; in the other direction what is there is the beginning.
    all.addEventListener("change", () => {
        fill(now.all);
        system.value = now.all.system;
    });

    const read = () => {
        const sampling = {thinking: thinking.value, stop: texts_of(stop.value), samplers: samplers.value.split(/[;,\s]+/).filter(Boolean), extra: extra.value.trim()};
        for (const [name, input] of Object.entries(inputs)) sampling[name] = number_of(name, input);
        try {
            parse_extra(extra.value);
        } catch (error) {
            extra.setAttribute("aria-invalid", "true");
            more.open = true;
            extra.focus();
            throw error;
        }
        return clean_sampling(sampling);
    };

    const access = [field("key", "Key of the server", key, "Needed only if the server was started with --api-key or --api-key-file."),
        el("div", {class: "check"}, keep, el("label", {for: "set-keep"}, "Keep the key when this tab is closed"))];
    const form = el("form", {novalidate: true, onsubmit: (event) => {
        event.preventDefault();
        for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
        let sampling;
        try {
            sampling = read();
        } catch (error) {
            fault.textContent = error.message;
            return;
        }
        dialog.close();
        on_save({system: system.value, sampling, own: own.checked, key: key.value.trim(), keep: keep.checked});
    }},
        el("h2", {id: "settings-title"}, "Settings"),
        el("div", {class: "dialog-body"},
            reason ? el("p", {class: "notice", role: "alert"}, reason) : null,
            reason ? access : null,
            el("fieldset", {class: "scope"}, el("legend", {}, "These are for"),
                el("div", {class: "check"}, all, el("label", {for: "set-all"}, "all conversations")),
                el("div", {class: "check"}, own, el("label", {for: "set-own"}, "this conversation alone"))),
            field("system", "System message", system, "For all: of this conversation and of new ones; others keep theirs."),
            props?.can_think ? field("thinking", "Thinking before the answer", thinking) : null,
            first, more, reason ? null : access),
        fault,
        el("div", {class: "dialog-foot"},
            el("button", {type: "button", onclick: () => fill(clean_sampling({}))}, "Server's values"),
            el("button", {type: "button", onclick: () => dialog.close()}, "Cancel"),
            el("button", {type: "submit", class: "primary"}, "Save")));
    dialog.replaceChildren(form);
    dialog.showModal();
    (reason ? key : system).focus();
}
