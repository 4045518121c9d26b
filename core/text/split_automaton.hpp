// A deterministic automaton that finds what a regular expression matches as a backtracking engine would (the first
// alternative that leads to a match, greedy repetitions), in one pass over the characters. States are lists of places
// in the expression in the order of their priority, as in Cox, "Regular Expression Matching: the Virtual Machine
// Approach" (2009) and RE2; what looks at a character is decided when that character comes.
#pragma once

#include "core/text/split_expression.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::text {

// Immutable: every method may be called from any thread at the same time.
class SplitAutomaton {
  public:
    // Throws Error(TSR_INVALID_ARGUMENT) for an expression that is not understood or needs too many states.
    explicit SplitAutomaton(std::string_view expression);

    // Where the match that begins at text[from] ends; `from` if there is none or it is empty. `text` must be valid
    // UTF-8, and `from` < text.size() the beginning of a character.
    size_t match(std::string_view text, size_t from) const noexcept {
        const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
        const size_t size = text.size();
        uint32_t state = looks_back_ ? start_[class_before(text, from)] : start_.back();
        size_t end = from;
        for (size_t at = from; at < size;) {
            uint32_t kind = 0;
            size_t length = 1;
            if (bytes[at] < 0x80) {
                kind = ascii_[bytes[at]];
            } else {
                kind = class_of_long(bytes + at, length);
            }
            const uint16_t entry = transitions_[state * stride_ + kind];
            if (entry & kMatches) end = at;
            state = entry & kState;
            if (state == kDead) return end;
            at += length;
        }
        return transitions_[state * stride_ + stride_ - 1] & kMatches ? size : end;
    }

    // The first place from `from` on where a match may begin; text.size() if there is none.
    size_t skip(std::string_view text, size_t from) const noexcept {
        const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
        while (from < text.size()) {
            size_t length = 1;
            const uint32_t kind = bytes[from] < 0x80 ? ascii_[bytes[from]] : class_of_long(bytes + from, length);
            if (may_begin_[kind]) break;
            from += length;
        }
        return from;
    }

    size_t states() const noexcept { return transitions_.size() / stride_; }

  private:
    class Builder;

    static constexpr uint16_t kMatches = 0x8000;  // what was read before this character is a match
    static constexpr uint16_t kState = 0x7FFF;
    static constexpr uint32_t kDead = 0;
    static constexpr size_t kBlock = 128;  // code points

    uint32_t class_of(uint32_t code) const noexcept {
        return blocks_[block_of_[code / kBlock] * kBlock + code % kBlock];
    }

    // Of a character of more than one byte, which `length` becomes.
    uint32_t class_of_long(const uint8_t* bytes, size_t& length) const noexcept {
        if (bytes[0] < 0xE0) {
            length = 2;
            return class_of((bytes[0] & 0x1Fu) << 6 | (bytes[1] & 0x3Fu));
        }
        if (bytes[0] < 0xF0) {
            length = 3;
            return class_of((bytes[0] & 0x0Fu) << 12 | (bytes[1] & 0x3Fu) << 6 | (bytes[2] & 0x3Fu));
        }
        length = 4;
        return class_of((bytes[0] & 0x07u) << 18 | (bytes[1] & 0x3Fu) << 12 | (bytes[2] & 0x3Fu) << 6 |
                        (bytes[3] & 0x3Fu));
    }

    // Of the character that ends at text[at]; stride_ - 1 where there is none.
    uint32_t class_before(std::string_view text, size_t at) const noexcept;

    bool looks_back_ = false;
    size_t stride_ = 0;                  // classes of characters, and one more for the end of the text
    std::array<uint8_t, 128> ascii_{};   // class by character
    std::vector<uint8_t> may_begin_;     // by class: whether a match may begin with such a character
    std::vector<uint16_t> block_of_;     // by code point / kBlock
    std::vector<uint8_t> blocks_;        // kBlock classes each
    std::vector<uint32_t> start_;        // state by the class of the character before; the last: there is none
    std::vector<uint16_t> transitions_;  // [state][class]: kMatches | next state
};

}  // namespace tessera::text
