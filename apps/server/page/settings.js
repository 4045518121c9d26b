// The dialog of settings. What is left empty is not sent, so that the server's own value holds.
import {el} from "./dom.js";
import {FIELDS} from "./store.js";

const LABELS = {
    temperature: ["Temperature", "0 always takes the likeliest token", {min: 0, max: 10, step: "any"}],
    top_p: ["Top p", "only the likeliest tokens that together have this share", {min: 0, max: 1, step: "any"}],
    top_k: ["Top k", "only so many of the likeliest tokens; 0 is all", {min: 0, step: 1}],
    min_p: ["Min p", "only tokens at least this likely, against the likeliest", {min: 0, max: 1, step: "any"}],
    max_tokens: ["Maximum tokens", "the longest answer; empty is until it ends or the context is full", {min: 1, step: 1}],
    seed: ["Seed", "the same seed gives the same answer; empty is another each time", {min: 0, step: 1}],
};

// Opens it. `now`: {settings, system, key, keep}; `props` of the server or null; `reason`: why the key is asked for, or
// empty; on_save gets the same object with what was entered.
export function open_settings(dialog, now, props, reason, on_save) {
    const defaults = props?.default_generation_settings?.params ?? {};
    const inputs = {};
    const rows = FIELDS.map((name) => {
        const [label, hint, limits] = LABELS[name];
        const shown = Number.isFinite(defaults[name]) ? `server's: ${Number(defaults[name].toPrecision(5))}` : "server's";
        inputs[name] = el("input", {id: `set-${name}`, type: "number", inputmode: "decimal", placeholder: shown,
            "aria-describedby": `hint-${name}`, value: now.settings[name] ?? "", ...limits});
        return el("div", {class: "field"}, el("label", {for: `set-${name}`}, label), inputs[name],
            el("p", {class: "hint", id: `hint-${name}`}, hint));
    });
    const system = el("textarea", {id: "set-system", rows: "3", value: now.system});
    const key = el("input", {id: "set-key", type: "password", autocomplete: "off", spellcheck: "false", value: now.key,
        "aria-describedby": "hint-key"});
    const keep = el("input", {id: "set-keep", type: "checkbox", checked: now.keep});
    const thinking = el("select", {id: "set-thinking"},
        el("option", {value: ""}, "as the server is set"), el("option", {value: "on"}, "on"), el("option", {value: "off"}, "off"));
    thinking.value = now.settings.thinking;
    const close = () => dialog.close();
    const form = el("form", {novalidate: true, onsubmit: (event) => {
        event.preventDefault();
        const settings = {...now.settings, system: system.value, thinking: props?.can_think ? thinking.value : now.settings.thinking};
        for (const name of FIELDS) {
            const input = inputs[name];
            if (!input.checkValidity()) {
                input.setAttribute("aria-invalid", "true");
                const [label, , limits] = LABELS[name];
                fault.textContent = `${label}: enter ${limits.step === 1 ? "a whole number" : "a number"}` +
                    (limits.max === undefined ? ` of at least ${limits.min}` : ` from ${limits.min} to ${limits.max}`) +
                    ", or leave it empty.";
                input.focus();
                return;
            }
            settings[name] = input.value === "" ? null : Number(input.value);
        }
        dialog.close();
        on_save({settings, system: system.value, key: key.value.trim(), keep: keep.checked});
    }},
        el("h2", {id: "settings-title"}, "Settings"),
        el("div", {class: "dialog-body"},
            reason ? el("p", {class: "notice", role: "alert"}, reason) : null,
            el("div", {class: "field"}, el("label", {for: "set-key"}, "Key of the server"), key,
                el("p", {class: "hint", id: "hint-key"}, "Needed only if the server was started with --api-key or --api-key-file.")),
            el("div", {class: "check"}, keep, el("label", {for: "set-keep"}, "Keep the key when this tab is closed")),
            el("div", {class: "field"}, el("label", {for: "set-system"}, "System message"), system,
                el("p", {class: "hint"}, "Of this conversation and of new ones.")),
            props?.can_think ? el("div", {class: "field"}, el("label", {for: "set-thinking"}, "Thinking before the answer"), thinking) : null,
            el("div", {class: "fields"}, ...rows)));
    const fault = el("p", {class: "fault", role: "alert"});
    form.append(fault, el("div", {class: "dialog-foot"},
        el("button", {type: "button", onclick: () => {
            for (const name of FIELDS) inputs[name].value = "";
            thinking.value = "";
        }}, "Server's values"),
        el("button", {type: "button", onclick: close}, "Cancel"),
        el("button", {type: "submit", class: "primary"}, "Save")));
    dialog.replaceChildren(form);
    dialog.showModal();
    (reason ? key : system).focus();
}
