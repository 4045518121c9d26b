// What the browser keeps. Conversations lie in localStorage, each under a key of its own beside an index of all; the key to
// the server lies in sessionStorage, which ends with the tab, unless the user wants it kept.
import {clean_sampling} from "./sampling.js";

const INDEX = "tessera.index", CHAT = "tessera.chat.", SETTINGS = "tessera.settings", KEY = "tessera.key", WRAP = "tessera.wrap";

export class StorageFull extends Error {}

function read(key, storage = "localStorage") {
    try {
        return JSON.parse(window[storage].getItem(key));
    } catch {
        return null;
    }
}

function write(key, value, storage = "localStorage") {
    try {
        window[storage].setItem(key, JSON.stringify(value));
    } catch (error) {
        throw new StorageFull(String(error));
    }
}

function remove(key, storage = "localStorage") {
    try {
        window[storage].removeItem(key);
    } catch {
        // Storage that is forbidden holds nothing.
    }
}

// Not crypto.randomUUID, which is missing without TLS away from this machine.
function new_id() {
    return Array.from(crypto.getRandomValues(new Uint8Array(12)), (b) => b.toString(16).padStart(2, "0")).join("");
}

// ---- conversations: {id, title, named, created, updated, system, sampling: its own or null, messages}

// The newest first: [{id, title, updated}].
export function list_chats() {
    const index = read(INDEX);
    return (Array.isArray(index) ? index : [])
        .filter((entry) => entry && typeof entry.id === "string" && typeof entry.title === "string")
        .sort((a, b) => (b.updated ?? 0) - (a.updated ?? 0));
}

export function load_chat(id) {
    return clean_chat(read(CHAT + id), id);
}

export function new_chat(system = "") {
    return {id: new_id(), title: "New conversation", named: false, created: Date.now(), updated: Date.now(), system, sampling: null, messages: []};
}

// The index is read again each time, as other tabs write it too.
export function save_chat(chat) {
    write(CHAT + chat.id, chat);
    const before = list_chats(), index = before.filter((entry) => entry.id !== chat.id);
    index.unshift({id: chat.id, title: chat.title, updated: chat.updated});
    try {
        write(INDEX, index);
    } catch (error) {
        // What no list shows nobody could delete.
        if (index.length > before.length) remove(CHAT + chat.id);
        throw error;
    }
}

export function delete_chat(id) {
    remove(CHAT + id);
    try {
        write(INDEX, list_chats().filter((entry) => entry.id !== id));
    } catch (error) {
        if (!(error instanceof StorageFull)) throw error;  // where storage is forbidden there is no list
    }
}

export const is_index = (key) => key === INDEX || key === null;
export const chat_of_key = (key) => (key?.startsWith(CHAT) ? key.slice(CHAT.length) : null);

const text_or = (value, other = "") => (typeof value === "string" ? value : other);
const number_or = (value, other) => (Number.isFinite(value) ? value : other);

function numbers_of(value) {
    if (!value || typeof value !== "object") return undefined;
    const numbers = Object.entries(value).filter(([, number]) => Number.isFinite(number)).slice(0, 32);
    return Object.fromEntries(numbers);
}

const MAX_NESTED = 100;  // versions in versions

const clean_messages = (values, depth) => values.map((value) => clean_message(value, depth)).filter(Boolean);

// Exactly one place is that of the message itself.
function clean_versions(values, depth) {
    if (!Array.isArray(values) || depth >= MAX_NESTED) return null;
    const versions = values.map((tail) => (Array.isArray(tail) ? clean_messages(tail, depth + 1) : null)).filter((tail) => tail === null || tail.length > 0);
    return versions.length > 1 && versions.filter((tail) => tail === null).length === 1 ? versions : null;
}

function clean_message(value, depth) {
    if (!value || !["user", "assistant"].includes(value.role)) return null;
    const message = {role: value.role, content: text_or(value.content), time: number_or(value.time, Date.now())};
    const versions = clean_versions(value.versions, depth);
    if (versions) message.versions = versions;
    if (value.role === "user") {
        const files = (Array.isArray(value.attachments) ? value.attachments : []).filter((file) => file && typeof file.text === "string");
        if (files.length > 0) message.attachments = files.slice(0, 100).map(({name, text}) => ({name: text_or(name, "file").slice(0, 200), text}));
        return message;
    }
    if (value.reasoning) message.reasoning = text_or(value.reasoning);
    if (value.reasoning_seconds) message.reasoning_seconds = number_or(value.reasoning_seconds, 0);
    if (Array.isArray(value.calls)) {
        message.calls = value.calls.slice(0, 1000).filter((call) => call && typeof call === "object").map((call) =>
            ({id: text_or(call.id), name: text_or(call.name), arguments: text_or(call.arguments)}));
    }
    message.finish = text_or(value.finish);
    if (value.model) message.model = text_or(value.model);
    message.usage = numbers_of(value.usage);
    message.timings = numbers_of(value.timings);
    return message;
}

// Whatever a file or another version of this page has written: only what is known is taken.
export function clean_chat(value, id) {
    if (!value || typeof value !== "object" || !Array.isArray(value.messages)) return null;
    return {
        id,
        title: text_or(value.title, "Conversation").slice(0, 200),
        named: value.named === true,
        created: number_or(value.created, Date.now()),
        updated: number_or(value.updated, Date.now()),
        system: text_or(value.system),
        sampling: value.sampling && typeof value.sampling === "object" ? clean_sampling(value.sampling) : null,
        messages: clean_messages(value.messages, 0),
    };
}

// ---- export and import

export function chats_json(chats) {
    return JSON.stringify({format: "tessera-conversations", version: 1, exported: new Date().toISOString(), conversations: chats}, null, 1);
}

function quoted(text) {
    return text.split("\n").map((line) => "> " + line).join("\n");
}

// A fence that the text itself does not close.
export function fenced(text, language) {
    const longest = (text.match(/`+/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
    const fence = "`".repeat(longest + 1);
    return `${fence}${language}\n${text}\n${fence}`;
}

export function chat_markdown(chat) {
    const parts = [`# ${chat.title}`];
    if (chat.system) parts.push("## System", chat.system);
    for (const message of chat.messages) {
        parts.push(message.role === "user" ? "## User" : "## Assistant");
        if (message.reasoning) parts.push(quoted(message.reasoning));
        for (const {name, text} of message.attachments ?? []) parts.push(`File \`${name}\`:`, fenced(text, ""));
        if (message.content) parts.push(message.content);
        for (const call of message.calls ?? []) parts.push(`Call of \`${call.name}\`:`, fenced(call.arguments, "json"));
    }
    return parts.join("\n\n") + "\n";
}

// Saves conversations of an exported file under new ids, as many as the browser has room for; returns {saved: [...], left: how many it
// had none for}. Throws Error that says what was wrong.
export function import_chats(text) {
    let file;
    try {
        file = JSON.parse(text);
    } catch {
        throw new Error("This file is not JSON. Choose one that this page exported as JSON.");
    }
    const given = Array.isArray(file?.conversations) ? file.conversations : [];
    if (file?.format !== "tessera-conversations" || given.length === 0)
        throw new Error("This file holds no conversations of this page. Choose one that it exported as JSON.");
    const chats = given.map((value) => clean_chat(value, new_id())).filter(Boolean);
    if (chats.length === 0) throw new Error("None of this file's conversations could be read.");
    const saved = [];
    for (const chat of chats) {
        try {
            save_chat(chat);
            saved.push(chat);
        } catch (error) {
            // The next may be shorter.
            if (!(error instanceof StorageFull)) throw error;
        }
    }
    return {saved, left: chats.length - saved.length};
}

// ---- settings and the key

// {system, ...sampling}: of all conversations that have no settings of their own.
export function load_settings() {
    const given = read(SETTINGS) ?? {};
    return {system: text_or(given.system), ...clean_sampling(given)};
}

export function save_settings(settings) {
    write(SETTINGS, settings);
}

export function load_key() {
    return text_or(read(KEY, "sessionStorage")) || text_or(read(KEY));
}

export const key_is_kept = () => text_or(read(KEY)) !== "";

export function save_key(key, keep) {
    remove(KEY);
    remove(KEY, "sessionStorage");
    if (key) write(KEY, key, keep ? "localStorage" : "sessionStorage");
}

export function save_theme(theme) {
    try {
        if (theme) localStorage.setItem("tessera.theme", theme);
        else localStorage.removeItem("tessera.theme");
    } catch {
        // It then lasts until the page is loaded again.
    }
}

// Whether long lines of code are wrapped.
export const load_wrap = () => read(WRAP) === true;

export function save_wrap(wrap) {
    try {
        write(WRAP, wrap);
    } catch {
        // It then lasts until the page is loaded again.
    }
}
