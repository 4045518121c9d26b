// Versions of a message: a message may have `versions`, a list with a place for each, in order; at its own place is null, at the others
// the messages that stood from there to the end. So a version has what followed it, and `messages` is what is shown.

// Takes what stands from `at` on away and returns the versions that a new message there has.
export function set_aside(messages, at) {
    const versions = messages[at].versions ?? [null];
    const tail = messages.splice(at);
    delete tail[0].versions;
    return [...versions.map((other) => other ?? tail), null];
}

export function add_version(messages, at, tail) {
    tail[0].versions = set_aside(messages, at);
    messages.push(...tail);
}

// The version `step` places further; false where there is none.
export function show_version(messages, at, step) {
    const versions = messages[at].versions ?? [null];
    const to = versions.indexOf(null) + step;
    const tail = versions[to];
    if (!tail) return false;
    const others = set_aside(messages, at);
    others.pop();
    others[to] = null;
    tail[0].versions = others;
    messages.push(...tail);
    return true;
}

// A version that came to nothing goes, and the one before it is shown.
export function drop_version(messages, at) {
    const [{versions}] = messages.splice(at);
    if (!versions) return;
    const own = versions.indexOf(null);
    versions.splice(own, 1);
    const tail = versions[Math.max(0, own - 1)];
    versions[versions.indexOf(tail)] = null;
    if (versions.length > 1) tail[0].versions = versions;
    messages.push(...tail);
}

// A copy of messages without their other versions.
export function copy_shown(messages) {
    return messages.map(({versions, ...message}) => structuredClone(message));
}
