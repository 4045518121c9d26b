// llguidance's C interface, loaded from its library at run time. Declarations as in llguidance.h of version 1.9.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::constrain {

struct LlgTokenizer;
struct LlgMatcher;

struct LlgLimits {
    size_t max_items_in_row;
    uint64_t initial_lexer_fuel, step_lexer_fuel;
    size_t step_max_items, max_lexer_states, max_grammar_size;
    bool precompute_large_lexemes, verbose_errors;
};

struct LlgInit {
    const LlgTokenizer* tokenizer;
    uint32_t log_buffer_level, log_stderr_level;
    bool ff_tokens_ok, backtrack_ok;
    LlgLimits limits;
};

struct LlgTokenizerInit {
    size_t struct_size;
    uint32_t vocab_size, tok_eos;
    const uint32_t* token_lens;
    const uint8_t* token_bytes;
    const char* tokenizer_json;
    bool tokenize_assumes_string;
    void* tokenize_fn;
    bool use_approximate_greedy_tokenize_fn;
    const void* tokenize_user_data;
    const char* const* slices;
    const uint32_t* tok_eos_extra;
    uint32_t tok_eos_extra_count;
};

// The functions that are used. Never unloaded.
struct Llguidance {
    const char* (*get_version)();
    LlgTokenizer* (*new_tokenizer)(const LlgTokenizerInit*, char*, size_t);
    void (*set_defaults)(LlgInit*, const LlgTokenizer*);
    LlgMatcher* (*new_matcher)(const LlgInit*, const char*, const char*);
    const char* (*get_error)(LlgMatcher*);
    int32_t (*compute_mask)(LlgMatcher*, uint32_t*, size_t);
    size_t (*mask_bytes)(const LlgMatcher*);
    int32_t (*consume_tokens)(LlgMatcher*, const uint32_t*, size_t);
    int32_t (*rollback)(LlgMatcher*, size_t);

    // Throws Error: TSR_NOT_FOUND where there is no such library, TSR_UNSUPPORTED for one of another version or without
    // these functions.
    explicit Llguidance(const std::string& path);
};

}  // namespace tessera::constrain
