// One message as it is shown.
import {attachments_element} from "./attachments.js";
import {CodeView} from "./code_view.js";
import {el, number_text, seconds_text, touch} from "./dom.js";
import {copy_button, icon_button} from "./icons.js";
import {MarkdownView} from "./markdown.js";

const FINISHES = {
    length: "The answer ended at the limit of tokens, or because the context was full.",
    stopped: "Stopped.",
    lost: "The connection was lost; this is what had arrived.",
    failed: "The answer failed; this is what had arrived.",
};

function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
        return text;
    }
}

function stats_text(message) {
    const parts = [];
    const {usage, timings} = message;
    const speed = timings?.predicted_per_second;
    if (usage?.completion_tokens) parts.push(`${number_text(usage.completion_tokens)} tokens`);
    if (speed > 0) parts.push(`${number_text(speed, speed < 10 ? 1 : 0)} tokens/s`);
    if (usage?.prompt_tokens) {
        const cached = usage.cached_tokens ?? 0;
        parts.push(`prompt ${number_text(usage.prompt_tokens)} tokens` +
            (cached > 0 ? `, ${number_text(100 * cached / usage.prompt_tokens)} % of it cached` : ""));
    }
    if (timings?.prompt_per_second > 0) parts.push(`read at ${number_text(timings.prompt_per_second)} tokens/s`);
    return parts.join(" \u00b7 ");
}

export class MessageView {
    // `actions`: functions edit(text, send), regenerate(), go_on(), remove(), show_version(step), each of this message.
    constructor(message, actions) {
        this.message = message;
        this.actions = actions;
        const user = message.role === "user";
        this.body = el("div", {class: "body"});
        this.stats = el("p", {class: "stats"});
        this.notes = el("div");
        this.tools = el("div", {class: "tools"});
        this.versions = el("div", {class: "versions", role: "group", "aria-label": "Versions", hidden: true});
        this.element = el("article", {class: `message ${message.role}`, "aria-label": user ? "You" : "Answer"},
            el("h3", {class: "role"}, user ? "You" : message.model || "Answer"), this.body, this.notes,
            el("div", {class: "foot"}, this.versions, this.stats, this.tools));
        if (user) {
            if (message.attachments) this.body.append(attachments_element(message.attachments));
            if (message.content) this.body.append(el("div", {class: "plain", dir: "auto"}, message.content));
        } else {
            this.summary = el("summary", {}, "Reasoning");
            this.reasoning = el("div", {class: "markdown"});
            this.reasoning_view = new MarkdownView(this.reasoning);
            this.thoughts = el("details", {class: "reasoning", hidden: true}, this.summary, this.reasoning);
            this.thoughts.addEventListener("toggle", () => this.show_reasoning());
            this.content = el("div", {class: "markdown"});
            this.content_view = new MarkdownView(this.content);
            this.calls = el("div");
            this.bar = el("progress", {"aria-label": "Prompt"});
            this.progress_text = el("span", {}, "Waiting for the server");
            this.progress = el("div", {class: "prompt-progress", hidden: true}, this.progress_text, this.bar);
            this.body.append(this.progress, this.thoughts, this.content, this.calls);
        }
        this.update(false);
    }

    // `running`: the answer is being made.
    update(running) {
        const message = this.message;
        this.element.classList.toggle("running", running);
        this.element.setAttribute("aria-busy", String(running));
        if (message.role === "assistant") {
            this.thoughts.hidden = !message.reasoning;
            const time = message.reasoning_seconds ? ` for ${seconds_text(message.reasoning_seconds)}` : "";
            this.summary.textContent = running && !message.content && message.reasoning ? `Reasoning${time} \u2026` : `Reasoned${time}`;
            this.show_reasoning();
            this.content_view.set(message.content, running);
            this.show_calls();
            if (message.content || message.reasoning || message.calls?.length || !running) this.progress.hidden = true;
        }
        if (running) {
            this.tools.replaceChildren();
            this.versions.hidden = true;
            this.notes.replaceChildren();
            return;
        }
        this.stats.textContent = stats_text(message);
        this.notes.replaceChildren(...(FINISHES[message.finish] ? [el("p", {class: "finish"}, FINISHES[message.finish])] : []));
        this.show_versions();
        const {edit, regenerate, go_on, remove} = this.actions;
        this.edit_button = icon_button("edit", "Edit", () => this.begin_edit(edit));
        this.tools.replaceChildren(copy_button(() => message.content, "Copy"), this.edit_button);
        if (message.role === "assistant") this.tools.append(icon_button("again", "Regenerate", regenerate));
        if (go_on && ["length", "stopped", "lost", "failed"].includes(message.finish) && message.content)
            this.tools.append(icon_button("go_on", "Continue", go_on));
        this.tools.append(icon_button("bin", "Delete", remove));
    }

    show_versions() {
        const {versions} = this.message;
        this.versions.hidden = !versions;
        if (!versions) return;
        const place = versions.indexOf(null);
        const button = (name, label, step) => icon_button(name, label, () => this.actions.show_version(step), {"aria-disabled": versions[place + step] ? null : "true"});
        this.versions.replaceChildren(button("left", "Earlier version", -1), el("span", {}, `${place + 1} of ${versions.length}`),
            button("right", "Later version", 1));
    }

    focus_version(step) {
        (step < 0 ? this.versions.firstChild : this.versions.lastChild).focus();
    }

    show_speed(text) {
        this.stats.textContent = text;
    }

    // `total` 0: not known.
    show_progress(text, done, total) {
        this.progress.hidden = false;
        this.progress_text.textContent = text;
        if (total > 0) {
            this.bar.max = total;
            this.bar.value = done;
        } else {
            this.bar.removeAttribute("value");
        }
    }

    // What is folded is not made.
    show_reasoning() {
        if (this.thoughts.open) this.reasoning_view.set(this.message.reasoning ?? "");
    }

    show_calls() {
        const calls = this.message.calls ?? [];
        const shown = JSON.stringify(calls);
        if (shown === this.calls_shown) return;
        this.calls_shown = shown;
        this.calls.replaceChildren(...calls.map((call) => el("section", {class: "call"},
            el("p", {}, "Call of ", el("code", {}, call.name)), new CodeView(pretty(call.arguments), "json").element)));
    }

    // An error below the message, with what can be done: [[label, function], ...].
    show_error(title, advice, detail, buttons) {
        const node = el("div", {class: "notice error", role: "alert"}, el("p", {}, el("strong", {}, title)),
            advice ? el("p", {}, advice) : null, detail ? el("p", {class: "detail"}, detail) : null);
        if (buttons.length > 0) {
            node.append(el("div", {class: "tools"}, ...buttons.map(([label, action]) =>
                el("button", {type: "button", onclick: action}, label))));
        }
        this.notes.replaceChildren(node);
        return node;
    }

    begin_edit(edit) {
        const user = this.message.role === "user";
        const area = el("textarea", {rows: "3", dir: "auto", "aria-label": "Text of the message", value: this.message.content});
        const end = () => {
            form.replaceWith(this.body);
            this.tools.hidden = false;
            this.edit_button.focus();
        };
        const save = (send) => {
            const text = area.value;
            if (user && text.trim() === "" && !this.message.attachments) return area.focus();
            if (edit(text, send) !== false) end();
        };
        const form = el("form", {class: "edit", onsubmit: (event) => {
            event.preventDefault();
            save(user);
        }, onkeydown: (event) => {
            if (event.key === "Escape") {
                event.preventDefault();
                event.stopPropagation();
                end();
            } else if (event.key === "Enter" && (user ? !event.shiftKey && !touch : event.ctrlKey) && !event.isComposing) {
                event.preventDefault();
                form.requestSubmit();
            }
        }}, area, el("div", {class: "tools"},
            el("button", {type: "submit", class: "primary"}, user ? "Save and send" : "Save"),
            user ? el("button", {type: "button", onclick: () => save(false)}, "Save only") : null,
            el("button", {type: "button", onclick: end}, "Cancel")));
        this.body.replaceWith(form);
        this.tools.hidden = true;
        area.style.height = `${Math.min(area.scrollHeight + 4, 480)}px`;
        area.focus();
    }
}
