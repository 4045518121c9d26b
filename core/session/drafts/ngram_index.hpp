// Where the last tokens of a text occurred in it before.
#pragma once

#include "core/session/engine.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tessera::session {

// Of one text that grows. Takes 4 bytes for each of its tokens and at most 8 more. One thread at a time.
class NgramIndex {
  public:
    struct Match {
        size_t next;      // the position behind the earlier occurrence
        uint32_t length;  // tokens that are the same, at most kLongestMatch
    };
    static constexpr uint32_t kLongestMatch = 64;

    // Takes in what is new of `tokens`, which begin with those of the last call, and finds where their end occurred
    // before: the longest match and, of those as long, the last, among the last kCandidates of at least kKey tokens.
    // `expected`: a position that is tried besides, for which the last token alone must match.
    std::optional<Match> find(std::span<const Token> tokens, std::optional<size_t> expected);

  private:
    static constexpr size_t kKey = 2;
    static constexpr int kCandidates = 32;

    void take_in(std::span<const Token> tokens, size_t position);
    void grow(std::span<const Token> tokens);
    size_t slot(std::span<const Token> tokens, size_t position) const noexcept;

    // Positions behind keys: the last with each hash, and for each position the one before with the same hash. 0: none.
    std::vector<uint32_t> last_, before_;
};

}  // namespace tessera::session
