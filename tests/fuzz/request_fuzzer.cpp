#include "tests/fuzz/json_mutator.hpp"
#include "tests/fuzz/request_target.hpp"

#include <cstddef>
#include <cstdint>

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    tessera::fuzz::run_request({reinterpret_cast<const char*>(data), size});
    return 0;
}

// Half of the changes keep the body JSON.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
    static constexpr std::string_view kNames[] = {"messages",
                                                  "role",
                                                  "content",
                                                  "type",
                                                  "text",
                                                  "reasoning_content",
                                                  "tool_calls",
                                                  "tool_call_id",
                                                  "id",
                                                  "function",
                                                  "name",
                                                  "arguments",
                                                  "tools",
                                                  "description",
                                                  "parameters",
                                                  "tool_choice",
                                                  "chat_template_kwargs",
                                                  "thinking",
                                                  "enable_thinking",
                                                  "continue_final_message",
                                                  "add_generation_prompt",
                                                  "prompt",
                                                  "tokens",
                                                  "stream",
                                                  "stream_options",
                                                  "include_usage",
                                                  "n",
                                                  "stop",
                                                  "max_tokens",
                                                  "max_completion_tokens",
                                                  "n_predict",
                                                  "seed",
                                                  "logprobs",
                                                  "top_logprobs",
                                                  "n_probs",
                                                  "logit_bias",
                                                  "temperature",
                                                  "top_p",
                                                  "top_k",
                                                  "min_p",
                                                  "typical_p",
                                                  "repeat_penalty",
                                                  "repeat_last_n",
                                                  "presence_penalty",
                                                  "frequency_penalty",
                                                  "samplers",
                                                  "ignore_eos",
                                                  "echo",
                                                  "best_of",
                                                  "response_format",
                                                  "modalities",
                                                  "return_progress",
                                                  "cache_prompt",
                                                  "add_special",
                                                  "parse_special",
                                                  "with_pieces",
                                                  "properties",
                                                  "stopping_strings",
                                                  "t_max_predict_ms",
                                                  "timings_per_token",
                                                  "skip_special_tokens",
                                                  "response_fields",
                                                  "post_sampling_probs",
                                                  "return_tokens",
                                                  "dry_multiplier",
                                                  "dry_sequence_breakers",
                                                  "xtc_probability",
                                                  "top_n_sigma",
                                                  "adaptive_target",
                                                  "mirostat",
                                                  "dynatemp_range",
                                                  "reasoning",
                                                  "model",
                                                  "5",
                                                  "1023"};
    static constexpr std::string_view kTexts[] = {"",
                                                  "a",
                                                  "user",
                                                  "assistant",
                                                  "system",
                                                  "tool",
                                                  "developer",
                                                  "text",
                                                  "function",
                                                  "auto",
                                                  "none",
                                                  "hi ",
                                                  "\n",
                                                  "{\"a\": 1}",
                                                  "<|im_start|>",
                                                  "<|im_end|>",
                                                  "</s>",
                                                  "<think>",
                                                  "</think>",
                                                  "<tool_call>",
                                                  "</tool_call>",
                                                  "<\uff5cUser\uff5c>",
                                                  "<\uff5cAssistant\uff5c>",
                                                  "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
                                                  "<\uff5cend\u2581of\u2581sentence\uff5c>",
                                                  "<\uff5ctool\u2581calls\u2581begin\uff5c>",
                                                  "<|python_tag|>",
                                                  "\u00e4",
                                                  "\U0001f642",
                                                  "top_k",
                                                  "penalties",
                                                  "min_p",
                                                  "temperature"};
    constexpr size_t kChoices = 2;
    if (seed % 2 && size > kChoices && max_size > kChoices) {
        char* const body = reinterpret_cast<char*>(data) + kChoices;
        const size_t changed =
            tessera::fuzz::mutate_json({body, max_size - kChoices}, size - kChoices, seed, kNames, kTexts);
        if (changed > 0) return changed + kChoices;
    }
    return LLVMFuzzerMutate(data, size, max_size);
}
