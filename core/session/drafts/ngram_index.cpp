#include "core/session/drafts/ngram_index.hpp"

#include <algorithm>
#include <bit>

namespace tessera::session {
namespace {

constexpr size_t kFewestSlots = 256;

// Tokens before two positions that are the same.
uint32_t common_end(std::span<const Token> tokens, size_t a, size_t b) {
    uint32_t length = 0;
    const auto most = static_cast<uint32_t>(std::min<size_t>({a, b, NgramIndex::kLongestMatch}));
    while (length < most && tokens[a - 1 - length] == tokens[b - 1 - length]) ++length;
    return length;
}

}  // namespace

size_t NgramIndex::slot(std::span<const Token> tokens, size_t position) const noexcept {
    uint64_t hash = 0;
    for (size_t i = 0; i < kKey; ++i)
        hash = (hash + static_cast<uint32_t>(tokens[position - 1 - i])) * 0x9E3779B97F4A7C15u;
    return hash >> 32 & (last_.size() - 1);
}

void NgramIndex::take_in(std::span<const Token> tokens, size_t position) {
    before_.push_back(0);
    if (position < kKey) return;
    uint32_t& last = last_[slot(tokens, position)];
    before_.back() = last;
    last = static_cast<uint32_t>(position);
}

void NgramIndex::grow(std::span<const Token> tokens) {
    const size_t taken = before_.size();
    last_.assign(std::max(kFewestSlots, std::bit_ceil(tokens.size())), 0);
    before_.clear();
    for (size_t position = 0; position < taken; ++position) take_in(tokens, position);
}

std::optional<NgramIndex::Match> NgramIndex::find(std::span<const Token> tokens, std::optional<size_t> expected) {
    const size_t end = tokens.size();
    if (end > last_.size()) grow(tokens);
    // What the text ends in is no earlier occurrence.
    while (before_.size() < end) take_in(tokens, before_.size());
    Match best{0, 0};
    const auto consider = [&](size_t position, uint32_t shortest) {
        const uint32_t length = common_end(tokens, position, end);
        if (length >= shortest && length > best.length) best = {position, length};
    };
    if (expected && *expected < end) consider(*expected, 1);
    if (end >= kKey) {
        uint32_t position = last_[slot(tokens, end)];
        for (int i = 0; i < kCandidates && position; ++i, position = before_[position]) {
            consider(position, kKey);
            if (best.length == kLongestMatch) break;
        }
    }
    return best.length ? std::optional(best) : std::nullopt;
}

}  // namespace tessera::session
