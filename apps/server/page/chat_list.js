// The list of conversations, under headings by date, or those that a search finds.
import {announce, el} from "./dom.js";
import {find_in, words_of} from "./search.js";
import {list_chats, load_chat} from "./store.js";

const SEARCH_MS = 120, DAY = 86400000;

// "Today", "March 2025" and so on; days are the reader's.
function heading_of(time, now = Date.now()) {
    const midnight = new Date(now);
    midnight.setHours(0, 0, 0, 0);
    const days = Math.ceil((midnight.getTime() - time) / DAY);
    if (days <= 0) return "Today";
    if (days === 1) return "Yesterday";
    if (days <= 7) return "Last 7 days";
    if (days <= 30) return "Last 30 days";
    return new Date(time).toLocaleDateString("en", {month: "long", year: "numeric"});
}

export class ChatList {
    // `state()`: {current, running(id)}; `on_open(id)`.
    constructor(element, field, state, on_open) {
        this.element = element;
        this.field = field;
        this.state = state;
        this.on_open = on_open;
        this.read = new Map();  // conversations that a search has read, by id
        this.timer = null;
        field.addEventListener("input", () => {
            clearTimeout(this.timer);
            this.timer = setTimeout(() => this.search(), SEARCH_MS);
        });
        field.addEventListener("keydown", (event) => {
            if (event.key !== "Escape" || field.value === "") return;
            event.preventDefault();
            field.value = "";
            this.search();
        });
    }

    search() {
        const count = this.show();
        if (this.field.value.trim()) announce(count === 1 ? "One conversation was found" : `${count} conversations were found`);
    }

    chat_of(entry) {
        const known = this.read.get(entry.id);
        if (known?.updated === entry.updated) return known.chat;
        const chat = load_chat(entry.id) ?? {title: entry.title, messages: []};
        this.read.set(entry.id, {updated: entry.updated, chat});
        return chat;
    }

    // How many are shown.
    show() {
        const words = words_of(this.field.value);
        if (words.length === 0) this.read.clear();
        const shown = list_chats().map((entry) => ({entry, found: words.length > 0 ? find_in(this.chat_of(entry), words) : {excerpt: null}}))
            .filter(({found}) => found);
        const {current, running} = this.state();
        const drawn = JSON.stringify(shown.map(({entry, found}) =>
            [entry.id, entry.title, heading_of(entry.updated ?? 0), found.excerpt, entry.id === current, running(entry.id)]).concat([words.length > 0]));
        // What is stored each second while an answer comes mostly changes nothing here.
        if (drawn === this.drawn) return shown.length;
        this.drawn = drawn;
        const focused = document.activeElement?.dataset?.chat;
        const nodes = [];
        let list = null, heading = null;
        for (const {entry, found} of shown) {
            const now = heading_of(entry.updated ?? 0);
            if (now !== heading) {
                heading = now;
                list = el("ul", {"aria-label": heading});
                nodes.push(el("h2", {class: "date"}, heading), list);
            }
            list.append(el("li", {}, this.entry_button(entry, found.excerpt)));
        }
        if (shown.length === 0 && words.length > 0) nodes.push(el("p", {class: "hint"}, "No conversation has all of these words."));
        this.element.replaceChildren(...nodes);
        if (focused) this.element.querySelector(`[data-chat="${CSS.escape(focused)}"]`)?.focus();
        return shown.length;
    }

    entry_button({id, title, updated}, excerpt) {
        const {current, running} = this.state();
        return el("button", {type: "button", class: "chat-entry", "data-chat": id, "aria-current": id === current ? "true" : null, onclick: () => this.on_open(id),
            title: updated ? new Date(updated).toLocaleString() : null},
            el("bdi", {}, title), running(id) ? el("span", {class: "hint"}, " answering") : null,
            excerpt ? el("span", {class: "excerpt"}, excerpt[0], el("mark", {}, excerpt[1]), excerpt[2]) : null);
    }
}
