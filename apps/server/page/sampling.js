// How answers are sampled: what can be set, what of it is stored, and the fields of a request that it makes. What is empty is not sent, so
// that the server's own value holds.

// [label, hint, limits]
export const NUMBERS = {
    temperature: ["Temperature", "0 always takes the likeliest token", {min: 0, max: 10, step: "any"}],
    top_p: ["Top p", "only the likeliest tokens that together have this share", {min: 0, max: 1, step: "any"}],
    top_k: ["Top k", "only so many of the likeliest tokens; 0 is all", {min: 0, step: 1}],
    min_p: ["Min p", "only tokens at least this likely, against the likeliest", {min: 0, max: 1, step: "any"}],
    max_tokens: ["Maximum tokens", "the longest answer; empty is until it ends or the context is full", {min: 1, step: 1}],
    seed: ["Seed", "the same seed gives the same answer; empty is another each time", {min: 0, step: 1}],
    repeat_penalty: ["Repeat penalty", "of tokens among the last ones; 1 is none", {min: 0.01, max: 10, step: "any"}],
    repeat_last_n: ["Repeat window", "so many last tokens count for penalties; -1 is all", {min: -1, step: 1}],
    presence_penalty: ["Presence penalty", "of tokens that have occurred; 0 is none", {min: -10, max: 10, step: "any"}],
    frequency_penalty: ["Frequency penalty", "for each time that a token has occurred; 0 is none", {min: -10, max: 10, step: "any"}],
};
export const FIRST = ["temperature", "top_p", "top_k", "min_p", "max_tokens", "seed"];
export const FURTHER = Object.keys(NUMBERS).filter((name) => !FIRST.includes(name));

const MAX_EXTRA = 65536;  // characters
// What the page itself sends, or cannot show.
const OWN = ["messages", "stream", "stream_options", "return_progress", "continue_final_message", "add_generation_prompt", "n", "n_cmpl"];

// The object that a text of further fields holds. Throws Error that says what is wrong.
export function parse_extra(text) {
    if (text.trim() === "") return {};
    if (text.length > MAX_EXTRA) throw new Error(`Further fields: at most ${MAX_EXTRA} characters.`);
    let value;
    try {
        value = JSON.parse(text);
    } catch (error) {
        throw new Error(`Further fields: this is not JSON (${error.message}).`);
    }
    if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error('Further fields: enter an object, such as {"logit_bias": {"the": -1}}.');
    const own = OWN.find((name) => Object.hasOwn(value, name));
    if (own) throw new Error(`Further fields: ${own} is set by the page.`);
    return value;
}

function valid_extra(text) {
    try {
        parse_extra(text);
        return text;
    } catch {
        return "";
    }
}

const texts = (value) => (Array.isArray(value) ? value.filter((text) => typeof text === "string" && text !== "").slice(0, 128) : []);

// Whatever was stored: only what is known is taken.
export function clean_sampling(given) {
    const sampling = {thinking: ["on", "off"].includes(given?.thinking) ? given.thinking : "", stop: texts(given?.stop), samplers: texts(given?.samplers),
        extra: typeof given?.extra === "string" ? valid_extra(given.extra) : ""};
    for (const name of Object.keys(NUMBERS)) sampling[name] = Number.isFinite(given?.[name]) ? given[name] : null;
    return sampling;
}

export function request_fields(sampling, can_think) {
    const fields = {};
    for (const name of Object.keys(NUMBERS)) {
        if (sampling[name] !== null) fields[name] = sampling[name];
    }
    if (sampling.stop.length > 0) fields.stop = sampling.stop;
    if (sampling.samplers.length > 0) fields.samplers = sampling.samplers;
    if (can_think && sampling.thinking) fields.chat_template_kwargs = {enable_thinking: sampling.thinking === "on"};
    return {...fields, ...parse_extra(sampling.extra)};
}
