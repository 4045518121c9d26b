// What tests of drafts ask for, and a source of drafts that knows what comes.
#pragma once

#include "core/session/drafts/draft_source.hpp"
#include "core/session/generate.hpp"

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace tessera::session {

struct Asked {
    std::vector<Token> prompt;
    std::function<void(Request&)> change = [](Request&) {};
};

// Foresees what it was told of texts that begin so; a token each is right with the probability `share`.
class ToldDrafts final : public DraftSource {
  public:
    explicit ToldDrafts(double share, uint32_t vocabulary = 0, uint32_t seed = 1)
        : share_(share), vocabulary_(vocabulary), random_(seed) {}

    void tell(std::vector<Token> text) { texts_.push_back(std::move(text)); }
    void propose(std::span<DraftWish> wishes) override {
        for (DraftWish& wish : wishes) {
            for (const std::vector<Token>& text : texts_) {
                if (text.size() <= wish.tokens.size() ||
                    !std::equal(wish.tokens.begin(), wish.tokens.end(), text.begin()))
                    continue;
                for (size_t i = wish.tokens.size(); i < text.size() && wish.draft.size() < wish.most; ++i)
                    wish.draft.push_back({changed(text[i]), 4});
                break;
            }
            // Behind its end, and of texts that it does not know, anything.
            while (vocabulary_ && wish.draft.size() < wish.most)
                wish.draft.push_back({static_cast<Token>(random_() % vocabulary_), 4});
        }
    }
    void forget(RequestId) noexcept override { ++forgotten; }

    uint32_t forgotten = 0;

  private:
    Token changed(Token token) {
        if (std::uniform_real_distribution<double>(0, 1)(random_) < share_) return token;
        return token == 5 ? 6 : 5;
    }

    double share_;
    uint32_t vocabulary_;
    std::mt19937 random_;
    std::vector<std::vector<Token>> texts_;
};

}  // namespace tessera::session
