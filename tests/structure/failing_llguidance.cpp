// Stands for llguidance's library, which it loads from $TSR_TEST_LLGUIDANCE, and fails in the middle of an answer:
// after three tokens of a grammar that has one of the words below.
#include "apps/constrain/llguidance.hpp"

#include <dlfcn.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

using namespace tessera::constrain;

namespace {

constexpr std::string_view kWords[] = {"spinning", "growing", "refusing", "dying"};
constexpr int kTokens = 3;

std::string_view g_failure;  // one of the words; one grammar a process
int g_accepted = 0;
const char* g_error = nullptr;

template <typename Function>
Function real(const char* name, Function /*type*/) {
    static void* const library = [] {
        const char* const path = std::getenv("TSR_TEST_LLGUIDANCE");
        void* const loaded = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : nullptr;
        if (!loaded) std::abort();
        return loaded;
    }();
    return reinterpret_cast<Function>(dlsym(library, name));
}

void fail_now() {
    if (g_failure == "refusing") g_error = "Parser Error: this row has too many items";
    if (g_failure == "dying") raise(SIGKILL);
    while (g_failure == "spinning") {
        static volatile int work = 0;
        work = work + 1;
    }
    while (g_failure == "growing") {
        void* volatile memory = std::malloc(16 << 20);
        if (!memory) std::abort();  // as Rust does
    }
}

}  // namespace

extern "C" {

const char* llg_get_version() {
    return real("llg_get_version", &llg_get_version)();
}

LlgTokenizer* llg_new_tokenizer_v2(const LlgTokenizerInit* init, char* error, size_t size) {
    return real("llg_new_tokenizer_v2", &llg_new_tokenizer_v2)(init, error, size);
}

void llg_constraint_init_set_defaults(LlgInit* init, const LlgTokenizer* tokenizer) {
    real("llg_constraint_init_set_defaults", &llg_constraint_init_set_defaults)(init, tokenizer);
}

LlgMatcher* llg_new_matcher(const LlgInit* init, const char* kind, const char* grammar) {
    for (const std::string_view word : kWords) {
        if (std::string_view(grammar).find(word) != std::string_view::npos) g_failure = word;
    }
    return real("llg_new_matcher", &llg_new_matcher)(init, kind, grammar);
}

const char* llg_matcher_get_error(LlgMatcher* matcher) {
    return g_error ? g_error : real("llg_matcher_get_error", &llg_matcher_get_error)(matcher);
}

int32_t llg_matcher_compute_mask_into(LlgMatcher* matcher, uint32_t* mask, size_t bytes) {
    if (g_accepted >= kTokens) fail_now();
    return real("llg_matcher_compute_mask_into", &llg_matcher_compute_mask_into)(matcher, mask, bytes);
}

size_t llg_matcher_get_mask_byte_size(const LlgMatcher* matcher) {
    return real("llg_matcher_get_mask_byte_size", &llg_matcher_get_mask_byte_size)(matcher);
}

int32_t llg_matcher_consume_tokens(LlgMatcher* matcher, const uint32_t* tokens, size_t count) {
    g_accepted += static_cast<int>(count);
    return real("llg_matcher_consume_tokens", &llg_matcher_consume_tokens)(matcher, tokens, count);
}

int32_t llg_matcher_rollback(LlgMatcher* matcher, size_t count) {
    g_accepted -= static_cast<int>(count);
    return real("llg_matcher_rollback", &llg_matcher_rollback)(matcher, count);
}

}  // extern "C"
