// One answer being made: asks, waits where the server has no room or no model yet, and takes the stream apart.
import * as api from "./api.js";
import {el, number_text} from "./dom.js";
import {drop_version} from "./versions.js";

const DRAW_MS = 60, KEEP_MS = 1000;
const MAX_TRIES = 5;  // of a server that is busy
const WAIT_SECONDS = 5;

export class AnswerRun {
    // Adds an empty message to the conversation, and asks for it with `request`; or for more of the last message, if that
    // is `continued`. `versions`: of the new message, if there are others. `events`: save(), changed(), ready(); fields() are
    // those of the request that are asked for at each try.
    constructor(chat, request, model, continued, versions, events) {
        this.chat = chat;
        this.request = request;
        this.events = events;
        this.abort = new AbortController();
        this.view = null;  // set by whoever shows the conversation
        // What a reload finds if it comes before the end.
        this.message = continued ?? {role: "assistant", content: "", time: Date.now(), model};
        this.message.finish = "lost";
        if (versions) this.message.versions = versions;
        if (!continued) chat.messages.push(this.message);
        this.tokens_before = continued?.usage?.completion_tokens ?? 0;
        this.seconds_before = continued?.reasoning_seconds ?? 0;
        this.received = false;  // anything of the answer
        this.kept = 0;
        this.tokens = 0;
        this.timer = null;
        this.forgotten = false;
    }

    stop() {
        this.abort.abort();
    }

    // The conversation has been deleted.
    forget() {
        this.forgotten = true;
    }

    keep() {
        if (!this.forgotten && !this.is_empty()) this.events.save();
    }

    is_empty() {
        const {content, reasoning, calls} = this.message;
        return !content && !reasoning && !calls?.length;
    }

    // Runs to the end. Null, or the error that ended it; a message without anything is removed.
    async finished() {
        const {message} = this;
        let error = null;
        for (let tries = 1; ; ++tries) {
            try {
                await api.stream_chat({...this.request, ...this.events.fields()}, this.abort.signal, (event) => this.take(event));
                if (message.finish === "lost") message.finish = "stop";
            } catch (caught) {
                try {
                    if (!this.abort.signal.aborted && !this.received && caught.code === "loading") {
                        await this.wait_for_model();
                        --tries;
                        continue;
                    }
                    if (!this.abort.signal.aborted && !this.received && caught.status === 429 && tries < MAX_TRIES) {
                        await this.wait_for_place(caught.retry_after ?? WAIT_SECONDS);
                        continue;
                    }
                } catch (other) {
                    caught = other;
                }
                if (this.abort.signal.aborted) {
                    message.finish = "stopped";
                } else {
                    error = caught instanceof api.ApiError ? caught : new api.ApiError(0, String(caught), "page");
                    message.finish = error.code === "lost" ? "lost" : "failed";
                }
            }
            break;
        }
        clearTimeout(this.timer);
        this.end_reasoning();
        if (this.is_empty() && (error || message.finish === "stopped")) {
            const at = this.chat.messages.indexOf(message);
            if (at >= 0) drop_version(this.chat.messages, at);
        }
        return this.forgotten ? null : error;
    }

    sleep(milliseconds) {
        return new Promise((resolve, reject) => {
            const {signal} = this.abort;
            const stop = () => reject(new DOMException("stopped", "AbortError"));
            if (signal.aborted) return stop();
            signal.addEventListener("abort", stop, {once: true});
            const end = () => {
                clearTimeout(timer);
                signal.removeEventListener("abort", stop);
                resolve();
            };
            const timer = setTimeout(end, milliseconds);
            this.wake = end;
        });
    }

    async wait_for_model() {
        for (;;) {
            const health = await api.health();
            if (health.state === "ready") return this.events.ready();
            if (health.state === "failed") throw new api.ApiError(503, health.message, "load_failed");
            if (health.state === "unreachable") throw new api.ApiError(0, health.message, "unreachable");
            this.view?.show_progress(health.loaded === null ? "The model is being loaded. The answer follows."
                : `The model is being loaded: ${Math.round(100 * health.loaded)} %. The answer follows.`, health.loaded ?? 0, health.loaded === null ? 0 : 1);
            await this.sleep(500);
        }
    }

    async wait_for_place(seconds) {
        const end = performance.now() + 1000 * Math.min(Math.max(seconds, 1), 600);
        let now = false;
        const button = el("button", {type: "button", onclick: () => {
            now = true;
            this.wake();
        }}, "Try now");
        while (!now) {
            const left = Math.ceil((end - performance.now()) / 1000);
            if (left <= 0) break;
            this.view?.show_progress(`The server has no room for another request; trying again in ${left} s.`, 0, 0);
            if (this.view && !button.isConnected) this.view.notes.replaceChildren(button);
            await this.sleep(1000);
        }
        button.remove();
        this.view?.show_progress("Waiting for the server", 0, 0);
    }

    take(event) {
        const {message} = this;
        if (event.prompt_progress) {
            const {processed, total} = event.prompt_progress;
            this.view?.show_progress(`Reading the prompt: ${number_text(processed)} of ${number_text(total)} tokens`, processed, total);
            this.events.changed();
        }
        if (event.usage) {
            const {prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details} = event.usage;
            message.usage = {prompt_tokens, completion_tokens: this.tokens_before + completion_tokens, total_tokens, cached_tokens: prompt_tokens_details?.cached_tokens ?? 0};
        }
        if (event.timings) message.timings = event.timings;
        const choice = event.choices?.[0];
        if (!choice) return;
        const {reasoning_content, content, tool_calls} = choice.delta ?? {};
        if (!reasoning_content && !content && !tool_calls && !choice.finish_reason) {
            // The first event says that the request was accepted.
            this.view?.show_progress("Accepted; waiting for its place", 0, 0);
            return;
        }
        this.received = true;
        if (reasoning_content) {
            this.reasoning_from ??= performance.now();
            message.reasoning = (message.reasoning ?? "") + reasoning_content;
        }
        if (content || tool_calls) this.end_reasoning();
        if (content) message.content += content;
        for (const part of tool_calls ?? []) this.take_call(part);
        if (choice.finish_reason) message.finish = choice.finish_reason;
        if (reasoning_content || content || tool_calls) {
            ++this.tokens;
            this.first ??= performance.now();
        }
        this.draw();
    }

    take_call(part) {
        const calls = (this.message.calls ??= []);
        const call = (calls[part.index] ??= {id: "", name: "", arguments: ""});
        if (part.id) call.id = part.id;
        call.name += part.function?.name ?? "";
        call.arguments += part.function?.arguments ?? "";
    }

    end_reasoning() {
        if (this.reasoning_from === undefined || this.reasoning_ended) return;
        this.reasoning_ended = true;
        this.message.reasoning_seconds = this.seconds_before + (performance.now() - this.reasoning_from) / 1000;
    }

    // Not for each token, and also in a tab that is not seen.
    draw() {
        this.timer ??= setTimeout(() => {
            this.timer = null;
            const now = performance.now();
            if (this.reasoning_from !== undefined && !this.reasoning_ended)
                this.message.reasoning_seconds = this.seconds_before + (now - this.reasoning_from) / 1000;
            this.view?.update(true);
            if (this.tokens > 1 && now > this.first + 250) {
                const speed = (this.tokens - 1) / ((now - this.first) / 1000);
                this.view?.show_speed(`${number_text(this.tokens)} tokens \u00b7 about ${number_text(speed, speed < 10 ? 1 : 0)} tokens/s`);
            }
            this.events.changed();
            if (now - this.kept > KEEP_MS) {
                this.kept = now;
                this.keep();
            }
        }, DRAW_MS);
    }
}
