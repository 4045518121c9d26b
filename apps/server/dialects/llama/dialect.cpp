#include "apps/server/dialects/llama/dialect.hpp"

#include "apps/server/chat_fields.hpp"
#include "apps/server/generation_fields.hpp"
#include "apps/server/saved_slot.hpp"

#include <vector>

namespace tessera::server {
namespace {

using enum Standing;

constexpr FieldRow kLlamaPlain[] = {
    {"n_probs", kHonoured, "each token with its log probability and so many of the most likely ones, 100 at most"},
    {"logprobs", kHonoured, "as n_probs"},
    {"post_sampling_probs", kHonoured, "probabilities that the samplers leave, in place of the model's own"},
    {"return_tokens", kHonoured, "the answer's tokens"},
    {"response_fields", kHonoured,
     "fields of the answer, in a stream of its last part, by path; all others are left out; 400 for one that no answer "
     "has"},
    {"image_data", kRefused, kTextAlone},
    {"multimodal_data", kRefused, kTextAlone},
    {"n_indent", kRefused, "no line is required to be indented"},
    {"system_prompt", kRefused, "begin the prompt with it", R"([""])"},
    {"best_of", kRefused, "answers are not ranked", "[1]"},
};

constexpr FieldRow kLlamaInfill[] = {
    {"input_prefix", kHonoured, "the text before the gap"},
    {"input_suffix", kHonoured, "the text behind the gap"},
    {"prompt", kHonoured, "a text that what fills the gap begins with"},
    {"input_extra", kHonoured, "other files: a list of filename and text, which stand before"},
    {"skip_special_tokens", kHonoured, "false: control tokens are shown"},
};

constexpr FieldRow kLlamaInputExtra[] = {
    {"filename", kHonoured, "a text"},
    {"text", kHonoured, "what the file has"},
};

constexpr FieldRow kLlamaEmbedding[] = {
    {"content", kHonoured, "as input"},
    {"embd_normalize", kHonoured,
     "2: to length 1 (the default); 1 and above 2: by that norm; 0: to 32760 at most; -1: as they are"},
};

constexpr FieldRow kLlamaTokenize[] = {
    {"content", kHonoured, "the text"},
    {"add_special", kHonoured, "with BOS and EOS where the vocabulary asks for them"},
    {"parse_special", kHonoured, "false: control tokens in the text are text"},
    {"with_pieces", kHonoured, "each token with its text"},
    {"model", kHarmless, "there is one model"},
};

constexpr FieldRow kLlamaDetokenize[] = {
    {"tokens", kHonoured, "numbers of tokens"},
    {"model", kHarmless, "there is one model"},
};

constexpr FieldRow kLlamaControl[] = {
    {"id", kHonoured, "of the answer that is being generated, as its stream has it"},
    {"action", kHonoured, "reasoning_end: the closing marker of its reasoning is written now, and the answer goes on"},
    {"id_slot", kRefused, "use id", "[-1]"},
};

std::span<const FieldTable* const> llama_tables() {
    static const FieldTable* const all[] = {&plain_completion_table(), &infill_table(),     &input_extra_table(),
                                            &embedding_table(),        &template_table(),   &tokenize_table(),
                                            &detokenize_table(),       &saved_slot_table(), &control_table()};
    return all;
}

}  // namespace

const Dialect kLlama{
    .error_json = json_of,
    .silence = ": waiting\n\n",
    .tables = llama_tables,
};

const FieldTable& plain_completion_table() {
    static const FieldTable table("/completion", {prompt_rows(), kLlamaPlain, generation_rows(), sampling_rows()});
    return table;
}

const FieldTable& infill_table() {
    static const FieldTable table("/infill", {kLlamaInfill, kLlamaPlain, generation_rows(), sampling_rows()});
    return table;
}

const FieldTable& input_extra_table() {
    static const FieldTable table("an element of input_extra", {kLlamaInputExtra});
    return table;
}

const FieldTable& embedding_table() {
    static const FieldTable table("/embedding", {vector_rows(), kLlamaEmbedding});
    return table;
}

// All rows of a chat that the template does not read are checked by the chat's own endpoint.
const FieldTable& template_table() {
    static const std::vector<FieldRow> others = without_effect({generation_rows(), sampling_rows(), chat_rows()});
    static const FieldTable table("/apply-template", {conversation_rows(), others});
    return table;
}

const FieldTable& tokenize_table() {
    static const FieldTable table("/tokenize", {kLlamaTokenize});
    return table;
}

const FieldTable& detokenize_table() {
    static const FieldTable table("/detokenize", {kLlamaDetokenize});
    return table;
}

const FieldTable& control_table() {
    static const FieldTable table("/v1/chat/completions/control", {kLlamaControl});
    return table;
}

}  // namespace tessera::server
