// What an empty page suggests: a press puts one into the message field, where it can be changed before it is sent.
import {el} from "./dom.js";

const EXAMPLES = [
    ["Explain", "Explain how a hash table works, with a small example."],
    ["Write code", "Write a Python function that finds the longest palindrome in a text, with tests."],
    ["Derive", "Derive the quadratic formula step by step."],
    ["Compare", "Compare TCP and UDP in a table: reliability, order, speed and typical uses."],
];

export function show_examples(list, on_choice) {
    list.replaceChildren(...EXAMPLES.map(([title, text]) => el("li", {}, el("button", {type: "button", class: "example", onclick: () => on_choice(text)},
        el("strong", {}, title), el("span", {}, text)))));
}
