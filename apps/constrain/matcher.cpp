#include "apps/constrain/matcher.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <bit>
#include <optional>

namespace tessera::constrain {
namespace {

using namespace structure;

// Tokens by which forced bytes are looked for, a mask each; and those that may be allowed where some are forced: all
// that such bytes begin with.
constexpr size_t kMostLooks = 48, kMostAllowed = 128;

const char* kind_name(GrammarKind kind) {
    switch (kind) {
        case GrammarKind::kJsonSchema:
            return "json";
        case GrammarKind::kRegex:
            return "regex";
        case GrammarKind::kLark:
            break;
    }
    return "lark";
}

// The first line, without the place in a grammar that the client has not written; the grammar itself follows it.
std::string shortened(std::string_view error) {
    constexpr std::string_view kCompile = "failed to compile JSON schema: ";
    error = error.substr(0, std::min<size_t>(error.find('\n'), 500));
    if (error.starts_with("at ")) {
        const size_t end = error.find("): ");
        if (end != error.npos) error.remove_prefix(end + 3);
    }
    if (error.starts_with(kCompile)) error.remove_prefix(kCompile.size());
    return std::string(error);
}

}  // namespace

Matcher::Matcher(const Llguidance& library, const Vocabulary& vocabulary, GrammarKind kind, const std::string& text)
    : library_(library), vocabulary_(vocabulary), looked_((vocabulary.size() + 31) / 32) {
    LlgInit init{};
    library.set_defaults(&init, vocabulary.tokenizer());
    init.tokenizer = vocabulary.tokenizer();
    init.log_stderr_level = 0;
    init.log_buffer_level = 0;
    init.limits.verbose_errors = false;
    matcher_ = library.new_matcher(&init, kind_name(kind), text.c_str());
    check(true);
    if (library.mask_bytes(matcher_) != looked_.size() * 4)
        fail(TSR_UNSUPPORTED, "llguidance's masks have {} bytes, expected {}", library.mask_bytes(matcher_),
             looked_.size() * 4);
}

void Matcher::check(bool good) {
    const char* const error = library_.get_error(matcher_);
    if (error) fail(TSR_INVALID_ARGUMENT, "{}", shortened(error));
    if (!good) fail(TSR_INVALID_ARGUMENT, "llguidance failed and does not say why");
}

void Matcher::accept(std::span<const uint32_t> tokens) {
    check(library_.consume_tokens(matcher_, tokens.data(), tokens.size()) == 0);
}

void Matcher::fill_mask(std::span<uint32_t> mask) {
    check(library_.compute_mask(matcher_, mask.data(), mask.size_bytes()) == 0);
}

Matcher::Forced Matcher::find_forced(std::span<const uint32_t> mask) {
    Forced forced;
    std::vector<uint32_t> steps;
    while (forced.bytes.size() < kMostForcedBytes && steps.size() < kMostLooks) {
        std::vector<uint32_t> allowed;
        for (size_t word = 0; word < mask.size() && allowed.size() <= kMostAllowed; ++word) {
            for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1)
                allowed.push_back(static_cast<uint32_t>(32 * word) + static_cast<uint32_t>(std::countr_zero(bits)));
        }
        if (allowed.empty() || allowed.size() > kMostAllowed) break;
        if (allowed.size() == 1 && steps.empty()) forced.only_token = static_cast<int32_t>(allowed[0]);
        const uint32_t first =
            *std::ranges::min_element(allowed, {}, [&](uint32_t token) { return vocabulary_.bytes(token).size(); });
        const std::string_view begin = vocabulary_.bytes(first);
        const bool all = std::ranges::all_of(allowed, [&](uint32_t token) {
            return !vocabulary_.ends_text(token) && !vocabulary_.is_special(token) &&
                   vocabulary_.bytes(token).starts_with(begin);
        });
        if (!all || begin.empty() || forced.bytes.size() + begin.size() > kMostForcedBytes) break;
        accept(std::span(&first, 1));
        steps.push_back(first);
        forced.bytes += begin;
        fill_mask(looked_);
        mask = looked_;
    }
    if (!steps.empty()) check(library_.rollback(matcher_, steps.size()) == 0);
    return forced;
}

}  // namespace tessera::constrain
