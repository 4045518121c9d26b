// Finds conversations by words of their titles, messages and attached files' names, whatever their case.

const AROUND = 30;  // characters that are shown before what was found, and four times as many behind

export const words_of = (query) => query.toLowerCase().split(/\s+/).filter(Boolean);

function texts_of(chat) {
    return [chat.title, ...chat.messages.flatMap(({content, attachments = []}) => [content, ...attachments.map(({name}) => name)])];
}

// What is shown of a text: [before, found, behind]; null if its small letters are not as many as its letters.
function excerpt(text, word) {
    const small = text.toLowerCase(), at = small.indexOf(word);
    if (small.length !== text.length) return null;
    const from = Math.max(0, at - AROUND), end = at + word.length;
    const plain = (part) => part.replace(/\s+/g, " ");
    return [(from > 0 ? "\u2026" : "") + plain(text.slice(from, at)), text.slice(at, end), plain(text.slice(end, end + 4 * AROUND))];
}

// {excerpt} if each of the words occurs, the excerpt being null where the title has them all; otherwise null.
export function find_in(chat, words) {
    const texts = texts_of(chat), small = texts.map((text) => text.toLowerCase());
    if (!words.every((word) => small.some((text) => text.includes(word)))) return null;
    const word = words.find((one) => !small[0].includes(one));
    if (word === undefined) return {excerpt: null};
    const at = small.findIndex((text, i) => i > 0 && text.includes(word));
    return {excerpt: excerpt(texts[at], word)};
}
