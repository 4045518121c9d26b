// Text files that go with a message: chosen, dropped or pasted, shown above the message field until they are sent.
import {CodeView} from "./code_view.js";
import {announce, bytes_text, el} from "./dom.js";
import {icon, icon_button} from "./icons.js";
import {fenced} from "./store.js";

const MAX_FILE = 512 * 1024, MAX_ALL = 1024 * 1024, MAX_COUNT = 20;  // bytes of one, and of those of a message; their number
const MAX_PASTED = 4000, MAX_PASTED_LINES = 60;  // a longer text becomes a file

const size_of = (text) => new Blob([text]).size;

async function text_of(file) {
    if (file.size > MAX_FILE) throw new Error(`${file.name} has ${bytes_text(file.size)}; files of at most ${bytes_text(MAX_FILE)} can be attached.`);
    const bytes = new Uint8Array(await file.arrayBuffer());
    const wide = {"255,254": "utf-16le", "254,255": "utf-16be"}[bytes.slice(0, 2).join()];
    let text = "\0";
    try {
        text = new TextDecoder(wide ?? "utf-8", {fatal: true}).decode(bytes);
    } catch {
        // Not of this encoding; refused below.
    }
    if (text.includes("\0")) throw new Error(`${file.name} is no text file in UTF-8 or UTF-16; others cannot be attached.`);
    return text.replace(/\r\n?/g, "\n");
}

const language_of = (name) => /\.([A-Za-z0-9+#]{1,12})$/.exec(name)?.[1].toLowerCase() ?? "";

// What the model reads: the files, then the text.
export function content_of({content, attachments = []}) {
    const files = attachments.map(({name, text}) => `File ${name}:\n${fenced(text.replace(/\n$/, ""), language_of(name))}`);
    return [...files, content].filter((part) => part !== "").join("\n\n");
}

// Those of a message that was sent; each is made when it is opened.
export function attachments_element(attachments) {
    return el("div", {class: "attached"}, attachments.map(({name, text}) => {
        const details = el("details", {class: "file"}, el("summary", {}, icon("file"), el("span", {class: "file-name"}, name), el("span", {class: "hint"}, bytes_text(size_of(text)))));
        details.addEventListener("toggle", () => {
            if (details.open && details.childElementCount === 1) details.append(new CodeView(text, language_of(name)).element);
        });
        return details;
    }));
}

// The files of the message that is being written. `on_problem`: gets what is to be said of a file that was not taken.
export class Attachments {
    constructor(element, input, on_problem) {
        this.element = element;
        this.input = input;
        this.on_problem = on_problem;
        this.files = [];
        input.addEventListener("paste", (event) => this.paste(event));
    }

    set(files) {
        this.files = [...files];
        this.show();
    }

    take() {
        const taken = this.files;
        this.set([]);
        return taken;
    }

    put(name, text, pasted = false) {
        const all = this.files.reduce((sum, file) => sum + size_of(file.text), size_of(text));
        if (this.files.length >= MAX_COUNT) throw new Error(`${name} was not attached: a message has at most ${MAX_COUNT} files.`);
        if (all > MAX_ALL) throw new Error(`${name} was not attached: the files of a message have at most ${bytes_text(MAX_ALL)} together.`);
        this.files.push({name: name.slice(0, 200), text, pasted});
        this.show();
        announce(`${name} is attached`);
    }

    async add(files) {
        const problems = [];
        for (const file of files) {
            try {
                this.put(file.name || "file", await text_of(file));
            } catch (error) {
                problems.push(error.message);
            }
        }
        if (problems.length > 0) this.on_problem(problems.join(" "));
        this.input.focus();
    }

    paste(event) {
        const files = [...(event.clipboardData?.files ?? [])];
        const text = event.clipboardData?.getData("text/plain") ?? "";
        if (!text && files.length > 0) {
            event.preventDefault();
            this.add(files);
        } else if (text.length > MAX_PASTED || text.split("\n", MAX_PASTED_LINES + 1).length > MAX_PASTED_LINES) {
            event.preventDefault();
            try {
                const count = this.files.filter((file) => file.pasted).length;
                this.put(count > 0 ? `Pasted text ${count + 1}` : "Pasted text", text.replace(/\r\n?/g, "\n"), true);
            } catch (error) {
                this.on_problem(error.message);
            }
        }
    }

    remove(file) {
        this.set(this.files.filter((other) => other !== file));
        this.input.focus();
    }

    // A pasted text as if it had been typed.
    insert(file) {
        this.remove(file);
        this.input.setRangeText(file.text, this.input.selectionStart, this.input.selectionEnd, "end");
        this.input.dispatchEvent(new Event("input"));
    }

    show() {
        this.element.replaceChildren(...this.files.map((file) => el("li", {class: "chip"}, icon("file"), el("span", {class: "file-name"}, file.name),
            el("span", {class: "hint"}, bytes_text(size_of(file.text))),
            file.pasted ? icon_button("down", `Put ${file.name} into the message`, () => this.insert(file)) : null,
            icon_button("cross", `Remove ${file.name}`, () => this.remove(file)))));
        this.element.hidden = this.files.length === 0;
    }
}

// Files that are dropped anywhere on the page.
export function watch_drops(target, on_files) {
    const has_files = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
    const show = (on) => target.classList.toggle("dropping", on);
    document.addEventListener("dragover", (event) => {
        if (!has_files(event) || document.querySelector("dialog[open]")) return;
        event.preventDefault();
        show(true);
    });
    document.addEventListener("dragleave", (event) => {
        if (!event.relatedTarget) show(false);
    });
    document.addEventListener("drop", (event) => {
        if (!has_files(event)) return;
        event.preventDefault();
        show(false);
        on_files([...event.dataTransfer.files]);
    });
}
