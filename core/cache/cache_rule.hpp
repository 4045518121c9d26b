// What caches keep of a sequence.
#pragma once

#include <tessera/tensor.h>

#include <cstdint>

namespace tessera {

// Pages that hold so many tokens of one sequence, from its first on.
constexpr uint32_t pages_for(uint64_t tokens) noexcept {
    return static_cast<uint32_t>((tokens + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS);
}

// Tokens by which a sequence can always be shortened, whatever its caches keep.
inline constexpr uint32_t kRollbackTokens = TSR_PAGE_TOKENS;

// Caches with the same rule are a group: they have one page table, and a page is one of each. The rule says which pages
// of a sequence can still be read; all else that differs between kinds of cache follows from that: what is given back
// while the sequence grows, to which lengths it can be cut, where its beginning can be shared, and how many pages a
// plan has. So a list of rows beside keys and values (an indexer's keys) is one more cache of the group of all tokens,
// and a state of fixed size would be a rule whose pages are snapshots: page i that after (i + 1) * TSR_PAGE_TOKENS
// tokens, of which the last alone is needed, to which a sequence can be cut, and from which another can go on.
struct CacheRule {
    uint32_t window = 0;  // tokens that a token sees, its own included; 0: all before it

    bool keeps_all() const noexcept { return window == 0; }
    // The first page that tokens after the first `length` of a sequence read.
    uint32_t first_page(uint32_t length) const noexcept {
        return keeps_all() || length < window ? 0 : (length - window + 1) / TSR_PAGE_TOKENS;
    }
    // The most pages that a sequence has while `rows` more of its tokens are computed.
    uint64_t pages_of_sequence(uint64_t rows) const noexcept {
        return pages_for(uint64_t{window} + kRollbackTokens + rows) + 1;  // the first may be needed in part
    }

    bool operator==(const CacheRule&) const = default;
};

}  // namespace tessera
