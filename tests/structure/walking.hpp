// Texts of random tokens that a grammar allows, as a model with random logits would write them.
#pragma once

#include "apps/structure/helper.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/tokenizer.hpp"

#include <bit>
#include <chrono>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace tessera::structure {

inline void wait_for_mask(session::TokenConstraint& constraint) {
    if (!constraint.wait(std::chrono::steady_clock::now() + std::chrono::seconds(30)))
        fail(TSR_IO_ERROR, "there was no mask for 30 s");
}

inline bool is_allowed(session::TokenConstraint& constraint, text::Token token) {
    const auto number = static_cast<size_t>(token);
    const session::TokenMask mask = constraint.allowed();
    return number / 32 < mask.size() && (mask[number / 32] >> number % 32 & 1) != 0;
}

struct Walked {
    std::string text;
    bool ended = false;  // else it was cut
};

// The text by the longest tokens, control tokens among them; without the blank that encode() may put before it.
inline std::vector<text::Token> longest_tokens(std::string_view text, const text::Tokenizer& tokenizer) {
    std::vector<text::Token> made;
    while (!text.empty()) {
        text::Token longest = text::kNoToken;
        size_t length = 0;
        for (text::Token token = 0; static_cast<size_t>(token) < tokenizer.size(); ++token) {
            const std::string_view bytes = tokenizer.bytes(token);
            if (bytes.size() <= length || !text.starts_with(bytes) || tokenizer.ends_generation(token)) continue;
            longest = token;
            length = bytes.size();
        }
        if (longest == text::kNoToken) return {};
        made.push_back(longest);
        text.remove_prefix(length);
    }
    return made;
}

// `hints`: texts that end something, which are begun now and then; texts end more often than by chance. Throws Error
// where no token is allowed.
inline Walked walk(const Grammar& grammar, const text::Tokenizer& tokenizer, std::span<const std::string> hints,
                   size_t most_tokens, std::mt19937& random) {
    const auto chance = [&](unsigned percent) { return random() % 100 < percent; };
    std::vector<std::vector<text::Token>> hinted;
    for (const std::string& hint : hints) hinted.push_back(longest_tokens(hint, tokenizer));
    const auto constraint = grammar.begin();
    Walked made;
    std::vector<text::Token> next;  // of a hint that was begun, the last first
    for (size_t count = 0; count < most_tokens; ++count) {
        wait_for_mask(*constraint);
        std::vector<text::Token> tokens(constraint->forced().begin(), constraint->forced().end());
        if (tokens.empty()) {
            if (!next.empty() && !is_allowed(*constraint, next.back())) next.clear();
            if (next.empty() && chance(40)) {
                std::vector<const std::vector<text::Token>*> possible;
                for (const auto& one : hinted)
                    if (!one.empty() && is_allowed(*constraint, one.front())) possible.push_back(&one);
                if (!possible.empty()) {
                    const auto& one = *possible[random() % possible.size()];
                    next.assign(one.rbegin(), one.rend());
                }
            }
            if (!next.empty()) {
                tokens = {next.back()};
                next.pop_back();
            } else {
                std::vector<text::Token> allowed;
                const session::TokenMask mask = constraint->allowed();
                bool may_end = false;
                for (size_t word = 0; word < mask.size(); ++word) {
                    for (uint32_t bits = mask[word]; bits != 0; bits &= bits - 1) {
                        const auto token = static_cast<text::Token>(32 * word) + std::countr_zero(bits);
                        if (static_cast<size_t>(token) >= tokenizer.size()) continue;
                        allowed.push_back(token);
                        may_end |= tokenizer.ends_generation(token);
                    }
                }
                if (allowed.empty()) fail(TSR_INTERNAL, "no token is allowed");
                if (may_end && (allowed.size() == 1 || chance(30))) {
                    made.ended = true;
                    return made;
                }
                tokens = {allowed[random() % allowed.size()]};
            }
        }
        for (const text::Token token : tokens) {
            if (tokenizer.ends_generation(token)) {
                made.ended = true;
                return made;
            }
            made.text += tokenizer.bytes(token);
        }
        constraint->accept(tokens);
    }
    // It may have been cut within a character.
    while (!is_utf8(made.text)) made.text.pop_back();
    return made;
}

}  // namespace tessera::structure
