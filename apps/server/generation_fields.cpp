#include "apps/server/generation_fields.hpp"

#include "core/session/sampling_parameters.hpp"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <vector>

namespace tessera::server {
namespace {

using enum Standing;

constexpr std::string_view kOneSyntax = "grammars are written in GBNF: use grammar";
constexpr std::string_view kAlways = "a grammar holds from the first token of the answer on";
constexpr std::string_view kNoSampler = "this version has no such sampler";
constexpr std::string_view kNoBeams = "this version searches no beams";
constexpr std::string_view kNoDrafts = "drafts change speed alone, never a text; the server's flags say which are made";
constexpr std::string_view kNoGuidance = "this version has no guidance";
constexpr std::string_view kNeverShifted = "a full context ends the answer; it is never shifted";
constexpr std::string_view kContext = "the context is the server's (-c); prompts are never cut";
constexpr std::string_view kServedAlike = "all requests of a client are served alike";
constexpr std::string_view kWithoutRange = "of no effect without dynatemp, which is refused; use dynatemp_range";
constexpr std::string_view kBias = "use logit_bias to forbid tokens";
constexpr std::string_view kKeysShareNothing = "clients with keys of their own share nothing that is cached";
constexpr std::string_view kNoStates = "answers have no states of the model; /v1/embeddings has pooled ones";
constexpr std::string_view kOneServer = "prompts are computed by the server that answers";

// Of every request that generates text.
constexpr FieldRow kGenerationRows[] = {
    {"stream", kHonoured, "server-sent events"},
    {"stream_options", kHonoured, "include_usage"},
    {"return_progress", kHonoured, "a stream tells how much of the prompt has been computed"},
    {"n", kHonoured, "number of answers to each prompt, each with the next seed; 128 in all at most"},
    {"n_cmpl", kHonoured, "as n"},
    {"timings_per_token", kHonoured, "each part of a stream has timings"},
    {"t_max_predict_ms", kHonoured, "the answer ends at a line when so long has passed since its first token"},
    {"stop", kHonoured, "a text or a list of texts that end the answer; empty ones are none"},
    {"stopping_strings", kHonoured, "as stop"},
    {"max_tokens", kHonoured, "tokens of the answer at most; negative: until the context is full"},
    {"max_completion_tokens", kHonoured, "as max_tokens"},
    {"max_new_tokens", kHonoured, "as max_tokens"},
    {"n_predict", kHonoured, "as max_tokens"},
    {"num_predict", kHonoured, "as max_tokens"},
    {"cache_prompt", kHonoured, "false: nothing that is cached is used"},
    {"ignore_eos", kHonoured, "tokens that end the answer are never drawn"},
    {"ban_eos_token", kHonoured, "as ignore_eos"},
    {"logit_bias", kHonoured,
     "added to the logits of tokens, which are numbers or texts; -100 and below, and false, forbid"},
    {"seed", kHonoured, "of the random numbers; -1 or 4294967295: random, whatever the server's is"},
    {"sampler_seed", kHonoured, "as seed"},
    {"samplers", kHonoured,
     "order of the samplers: a list of names, or a text of names or letters as for the command; one that is not named "
     "does not run, whatever its fields say; tfs, which may not be on, is left out"},
    {"temperature_last", kHonoured,
     "true: must be so in the order of the samplers, as it is by default; false: wherever the order has it"},
    {"dry_sequence_breakers", kHonoured, "texts over which no repetition that dry_multiplier penalises extends"},

    {"response_format", kHonoured, "type text, json_object, or json_schema: the answer is such JSON"},
    {"json_schema", kHonoured, "the answer is JSON that the schema accepts"},
    {"guided_json", kHonoured, "as json_schema"},
    {"regex", kHonoured, "the answer matches the pattern (ECMA-262), all of it"},
    {"guided_regex", kHonoured, "as regex"},
    {"choice", kHonoured, "the answer is one of the texts of the list"},
    {"guided_choice", kHonoured, "as choice"},
    {"grammar", kHonoured, "the answer is what the grammar says, in llama.cpp's GBNF"},
    {"grammar_string", kHonoured, "as grammar"},
    {"structured_outputs", kHonoured, "one of the forms above"},
    {"unenforced", kHonoured, kUnenforcedTold},

    {"model", kHarmless, "the one model answers, whatever it is called"},
    {"user", kHarmless, kBookkeeping},
    {"metadata", kHarmless, kBookkeeping},
    {"safety_identifier", kHarmless, kBookkeeping},
    {"request_id", kHarmless, kBookkeeping},
    {"session_id", kHarmless, kBookkeeping},
    {"api_type", kHarmless, kBookkeeping},
    {"api_server", kHarmless, kBookkeeping},
    {"prompt_cache_key", kHarmless, "whatever is cached for the key of the request is found"},
    {"prompt_cache_retention", kHarmless, "what is cached stays as long as its memory is not needed"},
    {"prompt_cache_options", kHonoured, kCacheOptionsTold},
    {"moderation", kRefused, "nothing is moderated"},
    {"id_slot", kHonoured,
     "the slot by which the text can be saved, 0 (or -1) if none is said; what is cached is found by every slot"},
    {"slot_id", kHarmless, "what is cached is found by every slot"},
    {"n_cache_reuse", kHarmless, "all that is cached up to the first token that differs is used"},
    {"service_tier", kHarmless, kServedAlike},
    {"priority", kHarmless, kServedAlike},
    {"keep_alive", kHarmless, "the model stays loaded"},
    {"n_keep", kHarmless, kNeverShifted},
    {"n_discard", kHarmless, kNeverShifted},
    {"num_ctx", kHarmless, kContext},
    {"truncation_length", kHarmless, kContext},
    {"backend_sampling", kHarmless, "where samplers run changes no token"},
    {"speculative.n_max", kHonoured, "tokens of a draft at most, where the server makes drafts; 0: none are made"},
    {"speculative.n_min", kHonoured, "shorter drafts are not used"},
    {"speculative.p_min", kHarmless, kNoDrafts},
    {"speculative.type", kHarmless, kNoDrafts},
    {"smoothing_curve", kHarmless, "of no effect without smoothing_factor, which is refused"},
    {"negative_prompt", kHarmless, "of no effect without guidance_scale, which is refused"},
    {"dynatemp_low", kHarmless, kWithoutRange},
    {"dynatemp_high", kHarmless, kWithoutRange},
    {"dynatemp_mode", kHarmless, kWithoutRange},
    {"early_stopping", kHarmless, "of no effect without num_beams, which is refused"},

    {"grammar_lazy", kRefused, kAlways},
    {"grammar_triggers", kRefused, kAlways},
    {"preserved_tokens", kRefused, kAlways},
    {"guided_grammar", kRefused, kOneSyntax},
    {"guided_decoding_backend", kHarmless, "llguidance holds answers to their form, whatever is asked for"},
    {"guided_whitespace_pattern", kRefused, "blanks in JSON are few, and not to be chosen"},
    {"ebnf", kRefused, kOneSyntax},
    {"dynatemp", kRefused, kNoSampler},
    {"smoothing_factor", kRefused, kNoSampler},
    {"skew", kRefused, kNoSampler},
    {"top_a", kRefused, kNoSampler},
    {"tfs", kRefused, kNoSampler, "[1]"},
    {"tfs_z", kRefused, kNoSampler, "[1]"},
    {"epsilon_cutoff", kRefused, kNoSampler},
    {"eta_cutoff", kRefused, kNoSampler},
    {"penalty_alpha", kRefused, kNoSampler},
    {"no_repeat_ngram_size", kRefused, kNoSampler},
    {"encoder_repetition_penalty", kRefused, kNoSampler, "[1]"},
    {"repetition_decay", kRefused, kNoSampler},
    {"rep_pen_slope", kRefused, kNoSampler, "[0, 1]"},
    {"spaces_between_special_tokens", kRefused, "tokens are written with the spaces of their own, as both values ask",
     "[true, false]"},
    {"penalize_nl", kRefused, "penalties count every token alike", "[true]"},
    {"do_sample", kRefused, "use a temperature of 0 for the most likely tokens", "[true]"},
    {"sampler_order", kRefused, "use samplers"},
    {"sampler_priority", kRefused, "use samplers"},
    {"num_beams", kRefused, kNoBeams, "[0, 1]"},
    {"use_beam_search", kRefused, kNoBeams},
    {"length_penalty", kRefused, kNoBeams, "[0, 1]"},
    {"guidance_scale", kRefused, kNoGuidance, "[0, 1]"},
    {"cfg_scale", kRefused, kNoGuidance, "[0, 1]"},
    {"custom_token_bans", kRefused, kBias},
    {"banned_tokens", kRefused, kBias},
    {"banned_strings", kRefused, kBias},
    {"bad_words", kRefused, kBias},
    {"allowed_token_ids", kRefused, kBias},
    {"logits_processors", kRefused, kBias},
    {"stop_token_ids", kRefused, "answers end by the texts of stop"},
    {"include_stop_str_in_output", kRefused, "answers end before the texts of stop"},
    {"min_tokens", kRefused, "answers end where the model ends them"},
    {"min_length", kRefused, "answers end where the model ends them"},
    {"max_tokens_second", kRefused, "answers come as fast as they are computed"},
    {"prompt_logprobs", kRefused, "use echo and logprobs of /v1/completions", "[]"},
    {"return_token_ids", kRefused, "use return_tokens of /completion"},
    {"return_tokens_as_token_ids", kRefused, "use return_tokens of /completion"},
    {"truncate_prompt_tokens", kRefused, "prompts are never cut", "[-1]"},
    {"web_search_options", kRefused, "this version searches nothing", "[]"},
    {"lora", kRefused, "this version loads no adapters"},
    {"prediction", kHarmless, "a hint for drafts, which change speed alone and are made of prompt and answer"},
    {"store", kHint, "this version stores no answers", "[false]", "[true]"},
    {"cache_salt", kRefused, kKeysShareNothing},
    {"extra_key", kRefused, kKeysShareNothing},
    {"rid", kHarmless, kBookkeeping},
    {"no_stop_trim", kRefused, "answers end before the texts of stop"},
    {"return_hidden_states", kRefused, kNoStates},
    {"return_routed_experts", kRefused, kNoStates},
    {"return_prompt_token_ids", kRefused, "use return_tokens of /completion"},
    {"return_cached_tokens_details", kRefused, "usage has the number of cached tokens"},
    {"return_meta_info", kRefused, "usage and timings have what is known of an answer"},
    {"stop_regex", kRefused, "answers end by the texts of stop"},
    {"lora_path", kRefused, "this version loads no adapters"},
    {"session_params", kRefused, "send the whole text: what is cached of it is found", "[{}]"},
    {"custom_logit_processor", kRefused, kBias},
    {"custom_params", kRefused, kBias, "[{}]"},
    {"vllm_xargs", kRefused, "this server has no such extensions", "[{}]"},
    {"kv_transfer_params", kRefused, kOneServer, "[{}]"},
    {"bootstrap_host", kRefused, kOneServer},
    {"bootstrap_port", kRefused, kOneServer},
    {"bootstrap_room", kRefused, kOneServer},
    {"data_parallel_rank", kRefused, "the server's plan decides where and how the model runs", "[0, -1]"},
    {"speculative_ngram", kHarmless, kNoDrafts},
};

// Of a text that is to be continued.
constexpr FieldRow kPromptRows[] = {
    {"prompt", kHonoured, "a text, a list of tokens and texts, an object with prompt_string, or a list of prompts"},
    {"skip_special_tokens", kHonoured, "false: control tokens are shown"},
    {"add_bos_token", kRefused, "give tokens to begin without BOS", "[true]"},
    {"add_special_tokens", kRefused, "give tokens to begin without BOS", "[true]"},
    {"include_reasoning", kRefused, "reasoning is a part of the text", "[true]"},
    {"suffix", kRefused, "use /infill"},
};

// Of vectors of texts.
constexpr FieldRow kVectorRows[] = {
    {"input", kHonoured, "a text, a list of tokens, or a list of such, 2048 at most"},
    {"encoding_format", kHonoured, "float, or base64: little-endian 32-bit floats"},
    {"pooling", kHonoured, "mean or last: of the hidden states of all tokens, or that of the last"},
    {"dimensions", kHonoured, kDimensionsText},
    {"model", kHarmless, "the one model answers, whatever it is called"},
};

constexpr FieldRow kPromptObject[] = {
    {"prompt_string", kHonoured, "a text"},
    {"multimodal_data", kRefused, kTextAlone},
};

constexpr FieldRow kCacheOptions[] = {
    {"mode", kHarmless, "everything that can be cached is"},
    {"ttl", kHarmless, "what is cached stays as long as its memory is not needed"},
    {"comparison_response_id", kHarmless, "timings.cache_differs says where a prompt differs from what is cached"},
    {"prewarm", kRefused, "a max_tokens or max_output_tokens of 0 computes the prompt alone"},
};

constexpr FieldRow kStreamOptions[] = {
    {"include_usage", kHonoured, "a last part with the usage"},
    {"include_obfuscation", kHint, "the sizes of parts are not hidden", "[false]", "[true]"},
    {"continuous_usage_stats", kRefused, "the usage is in the last part"},
};

constexpr FieldRow kResponseFormat[] = {
    {"type", kHonoured, "text, json_object or json_schema"},
    {"json_schema", kHonoured, "its schema, with type json_schema"},
    {"schema", kHonoured, "the schema itself, as llama-server takes it"},
};

constexpr FieldRow kJsonSchema[] = {
    {"name", kHonoured, "a text, of no effect"},
    {"description", kHonoured, "a text, of no effect"},
    {"schema", kHonoured, "what the answer is"},
    {"strict", kHonoured,
     "true: objects with properties have no others; the answer keeps to the schema with both values"},
};

constexpr FieldRow kStructuredOutputs[] = {
    {"json", kHonoured, "as json_schema"},
    {"regex", kHonoured, "as regex"},
    {"choice", kHonoured, "as choice"},
    {"grammar", kHonoured, "as grammar"},
    {"json_object", kHonoured, "true: any JSON object"},
    {"structural_tag", kRefused, "use tools"},
    {"whitespace_pattern", kRefused, "blanks in JSON are few, and not to be chosen"},
    {"disable_any_whitespace", kRefused, "blanks in JSON are few, and not to be chosen"},
    {"disable_additional_properties", kRefused, "say so in the schema"},
    {"disable_fallback", kHarmless, "there is none"},
};

}  // namespace

std::span<const FieldRow> generation_rows() {
    return kGenerationRows;
}

std::span<const FieldRow> sampling_rows() {
    static const std::vector<std::string> texts = [] {
        std::vector<std::string> made;
        for (const session::SamplingField& field : session::kSamplingFields)
            made.push_back(fmt::format("as {}", field.name));
        return made;
    }();
    static const std::vector<FieldRow> rows = [] {
        std::vector<FieldRow> made;
        for (size_t i = 0; i < session::kSamplingFields.size(); ++i) {
            const session::SamplingField& field = session::kSamplingFields[i];
            made.push_back({field.name, kHonoured, field.help});
            for (const std::string_view alias : session::aliases_of(field))
                made.push_back({alias, kHonoured, texts[i]});
        }
        return made;
    }();
    return rows;
}

std::span<const FieldRow> prompt_rows() {
    return kPromptRows;
}

std::span<const FieldRow> vector_rows() {
    return kVectorRows;
}

const FieldTable& prompt_object_table() {
    static const FieldTable table("a prompt that is an object", {kPromptObject});
    return table;
}

const FieldTable& stream_options_table() {
    static const FieldTable table("stream_options", {kStreamOptions});
    return table;
}

const FieldTable& cache_options_table() {
    static const FieldTable table("prompt_cache_options", {kCacheOptions});
    return table;
}

const FieldTable& response_format_table() {
    static const FieldTable table("response_format", {kResponseFormat});
    return table;
}

const FieldTable& json_schema_table() {
    static const FieldTable table("json_schema", {kJsonSchema});
    return table;
}

const FieldTable& structured_outputs_table() {
    static const FieldTable table("structured_outputs", {kStructuredOutputs});
    return table;
}

std::vector<FieldRow> without_effect(std::initializer_list<std::span<const FieldRow>> parts) {
    std::vector<FieldRow> rows;
    for (const std::span<const FieldRow> part : parts) {
        for (FieldRow row : part) {
            if (row.standing == kHonoured) row = {row.name, kHarmless, "no text is generated"};
            rows.push_back(row);
        }
    }
    return rows;
}

std::span<const FieldTable* const> generation_tables() {
    static const FieldTable* const tables[] = {&prompt_object_table(), &stream_options_table(),
                                               &cache_options_table(), &response_format_table(),
                                               &json_schema_table(),   &structured_outputs_table()};
    return tables;
}

}  // namespace tessera::server
