// The page: conversations, and what its buttons and keys do. Answers are made by answers.js.
import {AnswerRun} from "./answers.js";
import * as api from "./api.js";
import {Attachments, content_of, watch_drops} from "./attachments.js";
import {ChatList} from "./chat_list.js";
import {announce, by_id, download, el, number_text, touch} from "./dom.js";
import {show_examples} from "./examples.js";
import {draw_icons} from "./icons.js";
import {MachineView} from "./machine.js";
import {MessageView} from "./messages.js";
import {request_fields} from "./sampling.js";
import {open_settings} from "./settings.js";
import * as store from "./store.js";
import {add_version, copy_shown, set_aside, show_version} from "./versions.js";

const UNDO_MS = 20000;

let settings = store.load_settings();
let chat = null;       // that is shown
let views = [];        // of its messages
let props = null;      // of the server
let model_name = "";
const runs = new Map();  // AnswerRun by id of the conversation

const input = by_id("input"), scroll = by_id("scroll"), list = by_id("messages");
const machine = new MachineView(by_id("machine-body"));

// ---- what is kept

function save(which) {
    which.updated = Date.now();
    try {
        store.save_chat(which);
    } catch (error) {
        if (!(error instanceof store.StorageFull)) throw error;
        show_notice("The browser's storage is full or forbidden, so this conversation lasts only until the page is closed. " +
            "Export it, or delete others.");
    }
    show_list();
}

// ---- notices above the message field

let notice_timer = null;

function show_notice(text, label = "", action = null) {
    clearTimeout(notice_timer);
    const hide = () => {
        by_id("notice").replaceChildren();
        keep_focus();
    };
    by_id("notice").replaceChildren(el("div", {class: "notice", role: "status"}, el("span", {}, text), el("span", {class: "tools"},
        action ? el("button", {type: "button", onclick: () => {
            hide();
            action();
        }}, label) : null,
        el("button", {type: "button", onclick: hide}, "Close"))));
    if (action) notice_timer = setTimeout(hide, UNDO_MS);
}

// What changes messages can be taken back.
function change_messages(text, change) {
    const which = chat, before = JSON.stringify(chat.messages);
    change();
    save(which);
    show_chat();
    show_notice(text, "Undo", () => {
        // A run that ends now no longer finds its message among the others.
        runs.get(which.id)?.stop();
        which.messages = JSON.parse(before);
        save(which);
        if (chat.id === which.id) show_chat();
        announce("Undone");
    });
    if (!touch) input.focus();
}

// ---- conversations

const chat_list = new ChatList(by_id("chat-list"), by_id("search"), () => ({current: chat?.id, running: (id) => runs.has(id)}), open_chat);

function show_list() {
    chat_list.show();
    by_id("export-all").disabled = store.list_chats().length === 0;
}

function open_chat(id) {
    const found = runs.get(id)?.chat ?? (id && store.load_chat(id));
    chat = found || store.new_chat(settings.system);
    history.replaceState(null, "", found ? `#${id}` : location.pathname + location.search);
    by_id("notice").replaceChildren();
    show_chats(false);
    show_chat();
    if (!touch) input.focus();
}

function show_chat() {
    const run = runs.get(chat.id);
    views = chat.messages.map(view_of);
    list.replaceChildren(...views.map((view) => view.element));
    // A run that "Undo" is stopping has no message here.
    if (run && chat.messages.at(-1) === run.message) {
        run.view = views[views.length - 1];
        run.view.update(true);
    } else {
        show_unanswered();
    }
    show_state();
    show_list();
    to_end(true);
}

// All but the messages and the list.
function show_state() {
    by_id("title").textContent = chat.title;
    document.title = chat.messages.length > 0 ? `${chat.title} \u2013 Tessera` : "Tessera";
    by_id("empty").hidden = chat.messages.length > 0;
    for (const id of ["rename", "export-markdown", "export-json", "delete"]) by_id(id).disabled = chat.messages.length === 0;
    show_context();
    show_own();
    show_buttons();
}

// After a reload while the server was silent, for example.
function show_unanswered() {
    if (chat.messages[chat.messages.length - 1]?.role !== "user") return;
    list.append(el("div", {class: "unanswered"}, el("span", {}, "No answer yet."),
        el("button", {type: "button", onclick: () => answer()}, "Get an answer")));
}

function view_of(message) {
    const which = chat;
    const index = () => which.messages.indexOf(message);
    const idle = (action) => (...given) => {
        if (runs.has(which.id)) {
            show_notice("An answer is being made. Stop it first, or wait for its end.");
            return false;
        }
        if (index() >= 0) action(...given);
        return true;
    };
    return new MessageView(message, {
        edit: idle((text, send) => {
            if (!send && text === message.content) return;
            const changed = {...message, content: text, time: Date.now()}, at = index();
            if (!send && message.role === "user") {
                change_messages("The message was changed.", () => which.messages.splice(at, 1, changed));
                return;
            }
            delete changed.versions;
            change_messages("The message was changed; the earlier version is kept.", () =>
                add_version(which.messages, at, [changed, ...(send ? [] : copy_shown(which.messages.slice(at + 1)))]));
            if (send) answer();
        }),
        regenerate: idle(() => answer(null, set_aside(which.messages, index()))),
        show_version: idle((step) => {
            const at = index();
            if (!show_version(which.messages, at, step)) return;
            save(which);
            show_chat();
            views[at].element.scrollIntoView({block: "nearest"});
            views[at].focus_version(step);
            announce(`Version ${views[at].versions.textContent}`);
        }),
        go_on: idle(() => {
            if (index() === which.messages.length - 1) answer(message);
            else announce("Only the last answer can be continued");
        }),
        remove: idle(() => change_messages(message.versions ? "The message and its other versions were deleted." : "The message was deleted.",
            () => which.messages.splice(index(), 1))),
    });
}

const ELSEWHERE_MS = 5000;  // in which a tab that makes an answer stores more of it
let elsewhere = null;

// The conversation as another tab has stored it, each second while it makes an answer: only what differs is drawn, and what is read
// stays where it is.
function take_over(other) {
    const messages = chat.messages, given = other.messages;
    let same = 0;
    while (same < messages.length && same < given.length && JSON.stringify(messages[same]) === JSON.stringify(given[same])) ++same;
    const last = messages[same], more = given[same];
    clearTimeout(elsewhere);
    list.querySelector(".unanswered")?.remove();
    if (same === messages.length - 1 && same === given.length - 1 && last.role === "assistant" && more.role === "assistant") {
        for (const key of Object.keys(last)) delete last[key];
        Object.assign(last, more);
        Object.assign(chat, other, {messages});
    } else {
        Object.assign(chat, other, {messages});
        messages.splice(same, Infinity, ...given.slice(same));
        for (const view of views.splice(same)) view.element.remove();
        views.push(...messages.slice(same).map(view_of));
        list.append(...views.slice(same).map((view) => view.element));
    }
    const view = views.at(-1), running = chat.messages.at(-1)?.finish === "lost";
    if (same < given.length) view.update(running);
    if (running) elsewhere = setTimeout(() => view.update(false), ELSEWHERE_MS);
    show_unanswered();
    show_state();
    to_end(false);
}

function title_of(text) {
    const line = text.trim().split("\n")[0];
    return line.length > 60 ? line.slice(0, 59).trimEnd() + "\u2026" : line;
}

// ---- sending

function send(text, files) {
    if (!chat.named && !chat.messages.some((message) => message.role === "user")) chat.title = title_of(text || files[0].name);
    const message = {role: "user", content: text, time: Date.now()};
    if (files.length > 0) message.attachments = files.map(({name, text: content}) => ({name, text: content}));
    chat.messages.push(message);
    by_id("notice").replaceChildren();
    save(chat);
    history.replaceState(null, "", `#${chat.id}`);
    answer();
}

function request_of(which, continued) {
    const messages = which.system ? [{role: "system", content: which.system}] : [];
    for (const message of which.messages) messages.push({role: message.role, content: content_of(message)});
    const request = {messages};
    if (continued) {
        if (continued.reasoning) messages[messages.length - 1].reasoning_content = continued.reasoning;
        request.continue_final_message = true;
        request.add_generation_prompt = false;
    }
    return request;
}

// A new answer, beside others if there are `versions`; or more of `continued`, which is the last message.
async function answer(continued = null, versions = null) {
    const which = chat;
    const run = new AnswerRun(which, request_of(which, continued), model_name, continued, versions, {
        save: () => save(which),
        changed: () => to_end(false),
        ready: () => connect(),
        // At each try: what the model can do is not known while it is loaded.
        fields: () => request_fields(which.sampling ?? settings, props?.can_think),
    });
    runs.set(which.id, run);
    // What was set aside is kept, whatever comes of the new one.
    if (versions) save(which);
    show_chat();
    keep_focus();
    const error = await run.finished();
    if (runs.get(which.id) === run) runs.delete(which.id);
    if (run.forgotten) return;
    save(which);
    if (chat !== which) return;
    // The other messages stay as they are: one of them may be being edited.
    if (!views.includes(run.view) || run.view.message !== run.message || (versions && !which.messages.includes(run.message))) {
        show_chat();
    } else if (which.messages.includes(run.message)) {
        run.view.update(false);
    } else {
        views.pop().element.remove();
        show_unanswered();
    }
    show_context();
    show_buttons();
    to_end(false);
    if (error) show_error(error);
    else announce(run.message.finish === "stopped" ? "Stopped" : `The answer has ended: ${run.message.usage?.completion_tokens ?? 0} tokens`);
}

function ask_for_key(then = null) {
    show_settings(store.load_key() ? "The server does not accept this key." : "The server asks for a key.", then);
}

// Below the last message, in words that say what to do.
function show_error(error) {
    let view = views[views.length - 1];
    if (view?.message.role !== "assistant") {
        list.querySelector(".unanswered")?.remove();
        view = new MessageView({role: "assistant", content: "", finish: ""}, {});
        view.tools.replaceChildren();
        list.append(view.element);
    }
    const partial = view.message.content !== "";
    const again = [partial ? "Regenerate" : "Try again", () => {
        if (partial) view.actions.regenerate();
        else answer();
    }];
    // An answer that had ended stands here if the one that failed was to be another version of it.
    const ended = ["stop", "tool_calls"].includes(view.message.finish);
    const buttons = partial && !ended ? [["Continue", view.actions.go_on], again] : [again];
    const other = [["New conversation", () => open_chat(null)]];
    const words = {
        401: ["The server asks for a key.", "Enter it in the settings; whoever runs the server has it.", [["Enter the key", () => ask_for_key(again[1])]]],
        413: ["The conversation is too large for the server.", "Delete long messages from it, or begin a new one.", other],
        429: ["The server has more requests than it can queue.", "Try again in a while.", buttons],
    }[error.status] ?? {
        unreachable: ["The server does not answer.", "It may have been stopped, or the network is down. Your message is kept; try again when the server runs.", buttons],
        lost: ["The connection was lost.", partial ? "What had arrived is kept. Continue from there, or make the answer again." : "Your message is kept; try again.", buttons],
        context_length_exceeded: ["The conversation is longer than the model's context.",
            "Delete earlier messages or shorten the last one, begin a new conversation, or start the server with a larger --ctx-size.", other],
        stopping: ["The server is being stopped.", "It accepts no new requests. Try again when it has been started.", buttons],
        device_lost: ["A device of the server has failed.", "The server has to be restarted.", buttons],
        load_failed: ["The server could not load its model.", "Its messages say why.", buttons],
    }[error.code] ?? [error.status >= 500 ? "The server failed at this request." : "The server refused this request.", "", buttons];
    const [title, advice, actions] = words;
    view.show_error(title, advice, error.message === title ? "" : error.message, actions);
    to_end(true);
    if (error.status === 401) ask_for_key(again[1]);
}

// ---- the state of things

function show_context() {
    const whole = props?.default_generation_settings?.n_ctx;
    const last = [...chat.messages].reverse().find((message) => message.usage?.total_tokens);
    const shown = Boolean(whole && last);
    by_id("context").hidden = !shown;
    if (!shown) return;
    const used = last.usage.total_tokens;
    const percent = Math.round(Math.min(100, 100 * used / whole));
    by_id("context-meter").setAttribute("aria-valuenow", percent);
    by_id("context-meter").firstChild.style.width = `${percent}%`;
    by_id("context-text").textContent = `${number_text(used)} of ${number_text(whole)} tokens`;
    by_id("context").title = "The context in use after the last answer";
}

function show_buttons() {
    const running = runs.has(chat.id);
    by_id("send").hidden = running;
    by_id("stop").hidden = !running;
}

function near_end() {
    return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 80;
}

let follows = true;

function to_end(always) {
    if (always) follows = true;
    if (follows) scroll.scrollTop = scroll.scrollHeight;
    show_to_end();
}

function show_to_end() {
    by_id("to-end").hidden = near_end();
}

scroll.addEventListener("scroll", () => {
    follows = near_end();
    show_to_end();
});
new ResizeObserver(show_to_end).observe(scroll);
by_id("to-end").addEventListener("click", () => {
    to_end(true);
    input.focus({preventScroll: true});
});

function banner(...children) {
    by_id("banner").replaceChildren(...(children.length > 0 ? [el("div", {class: "notice banner", role: "status"}, ...children)] : []));
}

let connecting = false;

// Waits for the model, with its progress shown, then asks what the server is.
async function connect() {
    if (connecting) return;
    connecting = true;
    const bar = el("progress", {max: "1", "aria-label": "Loading"});
    const text = el("p");
    try {
        for (;;) {
            const state = await api.health();
            if (state.state === "ready") break;
            if (state.state === "loading") {
                text.textContent = state.loaded === null ? "The model is being loaded."
                    : `The model is being loaded: ${Math.round(100 * state.loaded)} %. You can write meanwhile.`;
                if (state.loaded !== null) bar.value = state.loaded;
                if (!bar.isConnected) banner(text, bar);
            } else if (state.state === "unreachable") {
                banner(el("p", {}, "The server does not answer. It is asked again every few seconds."));
            } else {
                banner(el("p", {}, `The server cannot answer: ${state.message}`));
            }
            await new Promise((resolve) => setTimeout(resolve, state.state === "loading" ? 500 : 3000));
        }
        banner();
        const [models, given] = await Promise.all([api.get_json("v1/models"), api.get_json("props")]);
        model_name = String(models.data?.[0]?.id ?? "");
        props = given;
        by_id("model").textContent = model_name;
        show_context();
    } catch (error) {
        if (error.status === 401)
            banner(el("p", {}, "The server asks for a key."), el("button", {type: "button", onclick: () => ask_for_key()}, "Enter the key"));
        else banner(el("p", {}, error.message), el("button", {type: "button", onclick: () => connect()}, "Try again"));
    } finally {
        connecting = false;
    }
}

// ---- panels and dialogs

function show_chats(open) {
    document.body.classList.toggle("show-chats", open);
    by_id("open-chats").setAttribute("aria-expanded", String(open));
    if (open) by_id("close-chats").focus();
}

function show_machine(open) {
    by_id("machine").hidden = !open;
    document.body.classList.toggle("show-machine", open);
    by_id("open-machine").setAttribute("aria-expanded", String(open));
    if (open) {
        machine.open();
        by_id("close-machine").focus();
    } else {
        machine.close();
    }
}

function show_settings(reason = "", then = null) {
    const now = {all: settings, own: chat.sampling, system: chat.system || (chat.sampling ? "" : settings.system), key: store.load_key(), keep: store.key_is_kept()};
    open_settings(by_id("settings"), now, props, reason, (given) => {
        if (given.system !== now.system || chat.messages.length === 0) chat.system = given.system;
        chat.sampling = given.own ? given.sampling : null;
        // A conversation of before has a system message of its own, which was shown: it becomes that of all only if it was changed.
        const system = given.system === now.system ? settings.system : given.system;
        if (!given.own) settings = {system, ...given.sampling};
        api.set_key(given.key);
        try {
            store.save_settings(settings);
            store.save_key(given.key, given.keep);
            if (chat.messages.length > 0) store.save_chat(chat);
        } catch (error) {
            if (!(error instanceof store.StorageFull)) throw error;
            show_notice("The browser's storage is full or forbidden; the settings last until the page is closed.");
        }
        show_own();
        announce("Saved");
        connect();
        if (then && !runs.has(chat.id)) then();
    });
}

// Where what had the focus is no longer there, keys would go nowhere.
function keep_focus(place = touch ? by_id("stop") : input) {
    // Of a dialog that has closed Chromium says so only when it draws next.
    if (document.activeElement === document.body || document.activeElement?.closest("dialog:not([open])")) place.focus({preventScroll: true});
}

function show_own() {
    by_id("own").hidden = chat.sampling === null;
}

const THEMES = ["", "light", "dark"];

function show_theme(theme) {
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    by_id("theme").textContent = `Theme: ${theme || "system"}`;
}

// ---- events

function submit() {
    const text = input.value.trim() === "" ? "" : input.value;
    if ((text === "" && attachments.files.length === 0) || runs.has(chat.id)) return;
    input.value = "";
    grow();
    send(text, attachments.take());
}

function grow() {
    input.style.height = "auto";
    input.style.height = `${Math.min(input.scrollHeight, 240)}px`;
}

const attachments = new Attachments(by_id("attachments"), input, (text) => show_notice(text));
watch_drops(document.body, (files) => attachments.add(files));
by_id("attach").addEventListener("click", () => by_id("attach-files").click());
by_id("attach-files").addEventListener("change", (event) => {
    attachments.add([...event.target.files]);
    event.target.value = "";
});

by_id("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
});
input.addEventListener("input", grow);
input.addEventListener("keydown", (event) => {
    // On a phone Enter is the only way to a new line, and the button sends.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || touch) return;
    event.preventDefault();
    submit();
});
if (touch) input.setAttribute("enterkeyhint", "enter");

by_id("stop").addEventListener("click", () => {
    runs.get(chat.id)?.stop();
    input.focus();
});

document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.shiftKey && event.key.toLowerCase() === "o" && !document.querySelector("dialog[open]")) {
        event.preventDefault();
        open_chat(null);
    }
});
document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.defaultPrevented || document.querySelector("dialog[open]")) return;
    if (by_id("menu").open) {
        by_id("menu").open = false;
        by_id("menu").querySelector("summary").focus();
    } else if (document.body.classList.contains("show-chats")) {
        show_chats(false);
        by_id("open-chats").focus();
    } else if (runs.has(chat.id)) {
        runs.get(chat.id).stop();
    } else if (!by_id("machine").hidden) {
        show_machine(false);
        input.focus();
    }
});
document.addEventListener("click", (event) => {
    const menu = by_id("menu");
    if (menu.open && (!menu.contains(event.target) || event.target.closest(".menu-items button:not(#theme)"))) menu.open = false;
});

by_id("skip").addEventListener("click", (event) => {
    event.preventDefault();
    input.focus();
});
by_id("new-chat").addEventListener("click", () => open_chat(null));
by_id("open-chats").addEventListener("click", () => show_chats(true));
by_id("close-chats").addEventListener("click", () => {
    show_chats(false);
    by_id("open-chats").focus();
});
by_id("open-machine").addEventListener("click", () => show_machine(by_id("machine").hidden));
by_id("close-machine").addEventListener("click", () => {
    show_machine(false);
    input.focus();
});
by_id("open-settings").addEventListener("click", () => show_settings());
by_id("theme").addEventListener("click", () => {
    const theme = THEMES[(THEMES.indexOf(document.documentElement.dataset.theme ?? "") + 1) % THEMES.length];
    store.save_theme(theme);
    show_theme(theme);
});

by_id("rename").addEventListener("click", () => {
    by_id("rename-input").value = chat.title;
    by_id("rename-dialog").showModal();
    by_id("rename-input").select();
});
// The button that opened them is hidden by then.
for (const id of ["rename-dialog", "settings"]) by_id(id).addEventListener("close", () => keep_focus(by_id("menu").querySelector("summary")));
by_id("rename-cancel").addEventListener("click", () => by_id("rename-dialog").close());
by_id("rename-form").addEventListener("submit", () => {
    const title = by_id("rename-input").value.trim();
    if (!title) return;
    chat.title = title;
    chat.named = true;
    save(chat);
    by_id("title").textContent = title;
    document.title = `${title} \u2013 Tessera`;
});
by_id("delete").addEventListener("click", () => {
    const gone = chat;
    runs.get(gone.id)?.stop();
    runs.get(gone.id)?.forget();
    runs.delete(gone.id);
    store.delete_chat(gone.id);
    open_chat(null);
    show_notice(`\u201c${gone.title}\u201d was deleted.`, "Undo", () => {
        save(gone);
        open_chat(gone.id);
    });
});

function file_name(title) {
    return title.replace(/[^\p{L}\p{N} _-]+/gu, "").trim().replace(/ +/g, "-").slice(0, 60) || "conversation";
}

by_id("export-json").addEventListener("click", () =>
    download(`${file_name(chat.title)}.json`, "application/json", store.chats_json([chat])));
by_id("export-markdown").addEventListener("click", () =>
    download(`${file_name(chat.title)}.md`, "text/markdown", store.chat_markdown(chat)));
by_id("export-all").addEventListener("click", () => {
    const chats = store.list_chats().map((entry) => store.load_chat(entry.id)).filter(Boolean);
    download("tessera-conversations.json", "application/json", store.chats_json(chats));
});
by_id("import").addEventListener("click", () => by_id("import-file").click());
by_id("import-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    try {
        const {saved, left} = store.import_chats(await file.text());
        if (saved.length > 0) open_chat(saved[0].id);
        const imported = saved.length === 0 ? "No conversation was imported" : saved.length === 1 ? "One conversation was imported" : `${saved.length} conversations were imported`;
        show_notice(left === 0 ? `${imported}.` : `${imported}; the browser's storage has no room for ${left} more of this file. Delete others, and import it again.`);
    } catch (error) {
        show_notice(error.message);
    }
});

// Another tab has changed something.
window.addEventListener("storage", (event) => {
    if (store.is_index(event.key)) show_list();
    if (store.chat_of_key(event.key) === chat.id && !runs.has(chat.id)) {
        const other = store.load_chat(chat.id);
        if (other) take_over(other);
    }
});
window.addEventListener("hashchange", () => {
    const id = location.hash.slice(1);
    if (id !== chat.id) open_chat(id);
});
// What has arrived outlives a reload.
window.addEventListener("pagehide", () => {
    for (const run of runs.values()) run.keep();
});

draw_icons(document);
show_examples(by_id("examples"), (text) => {
    input.value = text;
    grow();
    input.focus();
});
api.set_key(store.load_key());
show_theme(document.documentElement.dataset.theme ?? "");
open_chat(location.hash.slice(1) || null);
connect();
