// The server, as this page asks it. All addresses are relative, so that a prefix before them makes no difference.

export class ApiError extends Error {
    // status 0: nothing was answered.
    constructor(status, message, code = "", retry_after = null, progress = null) {
        super(message);
        this.progress = progress;  // of a model that is being loaded, 0 to 1
        this.status = status;
        this.code = code;
        this.retry_after = retry_after;
    }
}

let key = "";

export function set_key(value) {
    key = value;
}

function headers(more = {}) {
    return key ? {...more, Authorization: `Bearer ${key}`} : more;
}

async function error_of(response) {
    const retry = Number.parseFloat(response.headers.get("Retry-After") ?? "");
    let message = `The server answered ${response.status}.`, code = "", loaded = null;
    try {
        const {error, progress} = await response.json();
        message = String(error.message ?? message);
        code = String(error.code ?? "");
        if (Number.isFinite(progress)) loaded = progress;
    } catch {
        // Something between here and the server answered, with a page of its own.
    }
    return new ApiError(response.status, message, code, Number.isFinite(retry) ? retry : null, loaded);
}

const unreachable = () => new ApiError(0, "The server does not answer.", "unreachable");

async function ask(path, options = {}) {
    let response;
    try {
        response = await fetch(path, {cache: "no-store", credentials: "omit", ...options});
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw unreachable();
    }
    if (!response.ok) throw await error_of(response);
    return response;
}

// These answers never wait for the model; a connection that was lost without a word may wait for ever.
const GET_MS = 20000;

async function get(path, read) {
    try {
        return await read(await ask(path, {headers: headers(), signal: AbortSignal.timeout(GET_MS)}));
    } catch (error) {
        // The end of its time, which WebKit calls AbortError, or of the connection.
        throw error instanceof ApiError ? error : unreachable();
    }
}

export const get_json = (path) => get(path, (response) => response.json());
export const get_text = (path) => get(path, (response) => response.text());

// {state: "ready" | "loading" | "failed" | "unreachable", loaded: 0 to 1 or null, message}
export async function health() {
    try {
        await get("health", (response) => response.text());
        return {state: "ready"};
    } catch (error) {
        if (error.status === 0) return {state: "unreachable", message: error.message};
        if (error.code !== "loading") return {state: "failed", message: error.message};
        return {state: "loading", loaded: error.progress, message: error.message};
    }
}

// The data of server-sent events, in order.
async function* events_of(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let buffer = "", data = [];
    try {
        for (;;) {
            const {value, done} = await reader.read();
            if (done) return;
            buffer += value;
            const lines = buffer.split("\n");
            buffer = lines.pop();
            for (const raw of lines) {
                const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
                if (line === "") {
                    if (data.length > 0) yield data.join("\n");
                    data = [];
                } else if (line.startsWith("data:")) {
                    data.push(line.slice(line.startsWith("data: ") ? 6 : 5));
                }
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
}

// Calls on_event with each part of the answer. Throws ApiError, with the code "lost" if the connection ended before the
// answer did, or AbortError.
export async function stream_chat(request, signal, on_event) {
    const response = await ask("v1/chat/completions", {
        method: "POST",
        headers: headers({"Content-Type": "application/json"}),
        body: JSON.stringify({...request, stream: true, stream_options: {include_usage: true}, return_progress: true}),
        signal,
    });
    const lost = () => new ApiError(0, "The connection was lost before the answer ended.", "lost");
    try {
        for await (const data of events_of(response.body)) {
            if (data === "[DONE]") return;
            const event = JSON.parse(data);
            if (event.error) throw new ApiError(500, String(event.error.message ?? ""), String(event.error.code ?? "step_failed"));
            on_event(event);
        }
    } catch (error) {
        if (error instanceof ApiError || error.name === "AbortError") throw error;
        throw lost();
    }
    throw lost();
}
