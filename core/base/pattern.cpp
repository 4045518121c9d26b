#include "core/base/pattern.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <new>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tessera {
namespace {

constexpr size_t kMaxExpressionBytes = 4096;
// Per start position. Usual expressions over names of tensors take some tens.
constexpr uint32_t kMaxMatchCalls = 100'000;
constexpr uint32_t kMaxHeapKib = 16 << 10;

std::string message_of(int code) {
    PCRE2_UCHAR buffer[256] = {};
    pcre2_get_error_message(code, buffer, sizeof buffer);
    return reinterpret_cast<const char*>(buffer);
}

using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;
using MatchContext = std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;

}  // namespace

void Pattern::Free::operator()(pcre2_real_code_8* code) const noexcept {
    pcre2_code_free(code);
}

Pattern::Pattern(std::string_view expression) : expression_(expression) {
    if (expression.size() > kMaxExpressionBytes) {
        fail(TSR_INVALID_ARGUMENT, "a regular expression of {} bytes; at most {} are possible", expression.size(),
             kMaxExpressionBytes);
    }
    int error = 0;
    PCRE2_SIZE offset = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression_.data()), expression_.size(),
                              PCRE2_ALT_BSUX | PCRE2_ALLOW_EMPTY_CLASS | PCRE2_MATCH_UNSET_BACKREF, &error, &offset,
                              nullptr));
    if (!code_) {
        fail(TSR_INVALID_ARGUMENT, "'{}' is not a regular expression: {} (at byte {})", printable(expression_),
             message_of(error), offset);
    }
}

bool Pattern::found_in(std::string_view subject) const {
    const MatchData match(pcre2_match_data_create_from_pattern(code_.get(), nullptr), pcre2_match_data_free);
    const MatchContext context(pcre2_match_context_create(nullptr), pcre2_match_context_free);
    if (!match || !context) throw std::bad_alloc();
    pcre2_set_match_limit(context.get(), kMaxMatchCalls);
    pcre2_set_heap_limit(context.get(), kMaxHeapKib);
    const int rc = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), 0, 0,
                               match.get(), context.get());
    if (rc >= 0) return true;
    if (rc == PCRE2_ERROR_NOMATCH) return false;
    if (rc == PCRE2_ERROR_NOMEMORY) throw std::bad_alloc();
    fail(TSR_UNSUPPORTED,
         "the regular expression '{}' backtracks too much on '{}' ({}); write it without nested "
         "repetitions like (a+)+",
         printable(expression_), printable(subject, 80), message_of(rc));
}

}  // namespace tessera
