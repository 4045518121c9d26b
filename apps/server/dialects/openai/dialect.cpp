#include "apps/server/dialects/openai/dialect.hpp"

#include "apps/server/chat_fields.hpp"
#include "apps/server/generation_fields.hpp"

#include <vector>

namespace tessera::server {
namespace {

using enum Standing;

constexpr FieldRow kOpenAiCompletion[] = {
    {"echo", kHonoured, "the text begins with the prompt, and logprobs with those of its tokens"},
    {"logprobs", kHonoured, "each token with its log probability and so many of the most likely ones, 20 at most"},
    {"best_of", kHonoured, "no more than n"},
};

constexpr FieldRow kOpenAiEmbeddings[] = {
    {"truncate_prompt_tokens", kRefused, "prompts are never cut", "[-1]"},
    {"user", kHarmless, kBookkeeping},
    {"input_type", kHarmless, "a model that wants an instruction before a text is given it as a part of the text"},
};

std::span<const FieldTable* const> openai_tables() {
    static const std::vector<const FieldTable*> all = [] {
        std::vector<const FieldTable*> made{&chat_table(), &completion_table(), &embeddings_table()};
        made.insert(made.end(), generation_tables().begin(), generation_tables().end());
        made.insert(made.end(), chat_tables().begin(), chat_tables().end());
        return made;
    }();
    return all;
}

}  // namespace

const Dialect kOpenAi{
    .error_json = json_of,
    .silence = ": waiting\n\n",
    .tables = openai_tables,
};

const FieldTable& chat_table() {
    static const FieldTable table("/v1/chat/completions",
                                  {conversation_rows(), chat_rows(), generation_rows(), sampling_rows()});
    return table;
}

const FieldTable& completion_table() {
    static const FieldTable table("/v1/completions",
                                  {prompt_rows(), kOpenAiCompletion, generation_rows(), sampling_rows()});
    return table;
}

const FieldTable& embeddings_table() {
    static const FieldTable table("/v1/embeddings", {vector_rows(), kOpenAiEmbeddings});
    return table;
}

}  // namespace tessera::server
