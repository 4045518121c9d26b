#include "core/text/pretokenizer.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace tessera::text {
namespace {

std::string pcre2_message(int code) {
    PCRE2_UCHAR buffer[256] = {};
    pcre2_get_error_message(code, buffer, sizeof buffer);
    return reinterpret_cast<const char*>(buffer);
}

using MatchData = std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;
using MatchContext = std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;

// Gives `use` the matches of the first of `codes` in `piece`, and the gaps between them, each of them cut by the other
// codes first. False: `use` has had enough.
bool split_piece(std::span<pcre2_code* const> codes, pcre2_match_data* match, pcre2_match_context* context,
                 std::string_view piece, const std::function<bool(std::string_view)>& use) {
    if (codes.empty()) return use(piece);
    const pcre2_code* const code = codes.front();
    const auto pass_on = [&](std::string_view part) {
        return split_piece(codes.subspan(1), match, context, part, use);
    };
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(piece.data());
    size_t from = 0;     // where the search continues
    size_t pending = 0;  // start of the gap that has not been passed on
    while (from < piece.size()) {
        int rc = pcre2_match(code, subject, piece.size(), from, PCRE2_NO_UTF_CHECK, match, context);
        if (rc == PCRE2_ERROR_JIT_STACKLIMIT) {
            // The interpreter keeps its backtracking points on the heap.
            rc = pcre2_match(code, subject, piece.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match, context);
        }
        if (rc == PCRE2_ERROR_NOMATCH) break;
        if (rc < 0)
            fail(TSR_UNSUPPORTED,
                 "the pre-tokenizer's regular expression gave up {} bytes into a piece of {} bytes: {}", from,
                 piece.size(), pcre2_message(rc));
        const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match);
        const size_t begin = range[0];
        const size_t end = range[1];
        if (end <= begin) {
            ++from;
            while (from < piece.size() && (static_cast<unsigned char>(piece[from]) & 0xC0) == 0x80) ++from;
            continue;
        }
        if (begin > pending && !pass_on(piece.substr(pending, begin - pending))) return false;
        if (!pass_on(piece.substr(begin, end - begin))) return false;
        from = pending = end;
    }
    return pending == piece.size() || pass_on(piece.substr(pending));
}

}  // namespace

Pretokenizer::Pretokenizer(const std::vector<std::string>& expressions) {
    codes_.reserve(expressions.size());
    for (const std::string& expression : expressions) {
        int error = 0;
        PCRE2_SIZE offset = 0;
        pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                                         PCRE2_UTF | PCRE2_UCP, &error, &offset, nullptr);
        if (!code) {
            for (pcre2_code* compiled : codes_) pcre2_code_free(compiled);
            fail(TSR_INVALID_ARGUMENT, "pre-tokenizer expression does not compile at byte {}: {} in `{}`", offset,
                 pcre2_message(error), expression);
        }
        // Without JIT support the same code is interpreted; results are the same.
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
        codes_.push_back(code);
    }
}

Pretokenizer::~Pretokenizer() {
    for (pcre2_code* code : codes_) pcre2_code_free(code);
}

Pretokenizer::Pretokenizer(Pretokenizer&& other) noexcept : codes_(std::exchange(other.codes_, {})) {}

Pretokenizer& Pretokenizer::operator=(Pretokenizer&& other) noexcept {
    std::swap(codes_, other.codes_);
    return *this;
}

std::vector<std::string_view> Pretokenizer::split(std::string_view text) const {
    std::vector<std::string_view> pieces;
    split(text, [&](std::string_view piece) {
        pieces.push_back(piece);
        return true;
    });
    return pieces;
}

void Pretokenizer::split(std::string_view text, const std::function<bool(std::string_view)>& use) const {
    if (text.empty()) return;
    const MatchData match(pcre2_match_data_create(1, nullptr), &pcre2_match_data_free);
    const MatchContext context(pcre2_match_context_create(nullptr), &pcre2_match_context_free);
    if (!match || !context) fail(TSR_DOES_NOT_FIT, "no memory for a regular expression match");
    // PCRE2's default limit of ten million steps is for hostile patterns. Ours take a few steps a byte, so a single
    // word of many megabytes must raise the limit, and anything beyond it is an error in a pattern.
    constexpr uint32_t kDefaultLimit = 10'000'000;
    const size_t steps = std::min<size_t>(text.size() * 16, UINT32_MAX);
    pcre2_set_match_limit(context.get(), std::max(kDefaultLimit, static_cast<uint32_t>(steps)));

    split_piece(codes_, match.get(), context.get(), text, use);
}

}  // namespace tessera::text
