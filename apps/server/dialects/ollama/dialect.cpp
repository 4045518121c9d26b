#include "apps/server/dialects/ollama/dialect.hpp"

#include "apps/server/generation_fields.hpp"
#include "core/text/json_writer.hpp"

namespace tessera::server::ollama {
namespace {

using enum Standing;

constexpr std::string_view kPlan = "the server's plan decides where and how the model runs";

constexpr FieldRow kBoth[] = {
    {"stream", kHonoured, "lines of JSON; true by default"},
    {"options", kHonoured, "sampling and limits"},
    {"format", kHonoured, "json, or a JSON schema that the answer is held to; objects with properties have no others"},
    {"unenforced", kHonoured, kUnenforcedTold},
    {"think", kHonoured, "true, false, low, medium or high: whether the model thinks before it answers"},
    {"model", kHarmless, "the one model answers, whatever it is called"},
    {"keep_alive", kHonoured,
     "the model stays loaded, whatever it says; 0, of a request without a prompt or messages: the answer is "
     "\"unload\" in place of \"load\""},
    {"truncate", kHarmless, "a prompt that is too long is refused, never cut"},
    {"shift", kHarmless, "a full context ends the answer; it is never shifted"},
    {"logprobs", kHonoured, "true: each token with its log probability"},
    {"top_logprobs", kHonoured, "and with so many of the most likely tokens, 20 at most"},
};

constexpr FieldRow kChat[] = {
    {"messages", kHonoured, "the conversation; a last message of the assistant's is continued"},
    {"tools", kHonoured, "functions that the model may call"},
};

constexpr FieldRow kGenerate[] = {
    {"prompt", kHonoured, "what a person says, or with raw a text to continue"},
    {"system", kHonoured, "the message of the system"},
    {"raw", kHonoured, "true: the prompt is continued without a chat template"},
    {"suffix", kHonoured,
     "the text behind a gap, which the answer fills; the prompt is the text before it, without a template"},
    {"images", kRefused, kTextAlone, "[[]]"},
    {"template", kRefused, "the template is the server's (--chat-template, --chat-template-file)", R"([""])"},
    {"context", kRefused, "use /api/chat: what is cached of the conversation is found", "[[]]"},
};

constexpr std::string_view kNoText = "no text is generated";

constexpr FieldRow kOfTexts[] = {
    {"model", kHarmless, "the one model answers, whatever it is called"},
    {"keep_alive", kHarmless, "the model stays loaded"},
    {"truncate", kHarmless, "a text that is too long is refused, never cut"},
    {"options", kHarmless, kNoText},
    {"dimensions", kHonoured, kDimensionsText},
};

constexpr FieldRow kEmbed[] = {
    {"input", kHonoured, "a text, or a list of texts, 2048 at most"},
};

constexpr FieldRow kEmbeddings[] = {
    {"prompt", kHonoured, "a text"},
};

constexpr FieldRow kShow[] = {
    {"model", kHarmless, "there is one model"},
    {"name", kHarmless, "there is one model"},
    {"verbose", kHarmless, "lists of the vocabulary are not told"},
};

constexpr FieldRow kOptions[] = {
    {"num_predict", kHonoured, "tokens of the answer at most; negative: until the context is full"},
    {"seed", kHonoured, "of the random numbers; -1: random, whatever the server's is"},
    {"stop", kHonoured, "a text or a list of texts that end the answer"},
    {"num_ctx", kHarmless, "the context is the server's (-c); prompts are never cut"},
    {"num_keep", kHarmless, "a full context ends the answer; it is never shifted"},
    {"num_batch", kHarmless, kPlan},
    {"num_gpu", kHarmless, kPlan},
    {"main_gpu", kHarmless, kPlan},
    {"num_thread", kHarmless, kPlan},
    {"numa", kHarmless, kPlan},
    {"low_vram", kHarmless, kPlan},
    {"f16_kv", kHarmless, kPlan},
    {"use_mmap", kHarmless, kPlan},
    {"use_mlock", kHarmless, kPlan},
    {"vocab_only", kRefused, "the model is loaded"},
    {"logits_all", kRefused, "use /v1/completions"},
    {"embedding_only", kRefused, "ask /api/embed"},
    {"penalize_newline", kRefused, "penalties count every token alike", "[true]"},
    {"tfs_z", kRefused, "this version has no such sampler", "[1]"},
};

constexpr FieldRow kMessage[] = {
    {"role", kHonoured, "system, user, assistant or tool"},
    {"content", kHonoured, "a text"},
    {"thinking", kHonoured, "the assistant's reasoning, where the template writes it"},
    {"tool_calls", kHonoured, "the assistant's"},
    {"tool_name", kHonoured, "of a result: the function"},
    {"tool_call_id", kHonoured, "of a result: the call that it answers"},
    {"name", kHonoured, "as tool_name"},
    {"images", kRefused, kTextAlone, "[[]]"},
};

constexpr FieldRow kCall[] = {
    {"function", kHonoured, "its name and arguments"},
    {"id", kHonoured, "a text"},
    {"type", kHarmless, "all of them are functions"},
};

constexpr FieldRow kFunction[] = {
    {"name", kHonoured, "a text"},
    {"arguments", kHonoured, "an object"},
    {"index", kHarmless, "calls stand in the order of the list"},
};

std::string error_json(const ApiError& error) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("error", std::string_view(error.what())).end_object();
    return out;
}

std::string line(std::string_view, std::string_view json) {
    return std::string(json) + "\n";
}

std::span<const FieldTable* const> tables() {
    static const FieldTable* const all[] = {&chat_table(),       &generate_table(), &embed_table(),
                                            &embeddings_table(), &show_table(),     &options_table(),
                                            &message_table(),    &call_table(),     &function_table()};
    return all;
}

}  // namespace

const Dialect kOllama{
    .error_json = error_json,
    .stream_type = "application/x-ndjson",
    .part = line,
    .silence = {},  // clients read every line as a part of the answer
    .tables = tables,
};

const FieldTable& chat_table() {
    static const FieldTable table("/api/chat", {kChat, kBoth});
    return table;
}

const FieldTable& generate_table() {
    static const FieldTable table("/api/generate", {kGenerate, kBoth});
    return table;
}

const FieldTable& embed_table() {
    static const FieldTable table("/api/embed", {kEmbed, kOfTexts});
    return table;
}

const FieldTable& embeddings_table() {
    static const FieldTable table("/api/embeddings", {kEmbeddings, kOfTexts});
    return table;
}

const FieldTable& show_table() {
    static const FieldTable table("/api/show", {kShow});
    return table;
}

const FieldTable& options_table() {
    static const FieldTable table("options of /api/chat and /api/generate", {kOptions, sampling_rows()});
    return table;
}

const FieldTable& message_table() {
    static const FieldTable table("a message of /api/chat", {kMessage});
    return table;
}

const FieldTable& call_table() {
    static const FieldTable table("a tool call of /api/chat", {kCall});
    return table;
}

const FieldTable& function_table() {
    static const FieldTable table("a called function of /api/chat", {kFunction});
    return table;
}

}  // namespace tessera::server::ollama
