// Drafts of a model's own layer that predicts further tokens: arXiv:2412.19437, section 2.2.
#pragma once

#include "core/session/drafts/draft_texts.hpp"
#include "core/session/engine.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace tessera::session {

// The layer computes pairs: the state that the model has behind a token, and the token that follows. What it gives for
// the last pair of a text is the first token of a draft, and its own state with that token the next pair. Pairs of a
// draft are taken out of its cache again, so that it has true ones alone.
//
// Pairs of a prompt are computed as the model's steps come to them, those of an answer with a draft or kBatch at once;
// of what the model finds in its cache there are none, unless a text before had them: the layer does without. Of pairs
// that it lacks, those behind follow those before.
class PredictionDrafts final : public DraftSource {
  public:
    // Pairs that wait at most, but those of the last step.
    static constexpr uint32_t kBatch = 32;
    // Rows of a step of the layer.
    static constexpr uint32_t kRows = 128;

    // `layer`: an engine of EngineOptions::prediction, of as many sequences as one call has wishes. `vocabulary`:
    // tokens that texts may have. A token that the layer finds less likely than `least` ends a draft.
    PredictionDrafts(std::unique_ptr<Engine> layer, size_t vocabulary, double least);
    ~PredictionDrafts() override;

    std::string_view name() const noexcept override { return "the layer of prediction"; }
    void propose(std::span<DraftWish> wishes) override;
    void forget(RequestId id) noexcept override;
    bool is_costly() const noexcept override { return true; }
    bool wants_states() const noexcept override { return true; }
    void computed(std::span<const DraftStates> given) override;

    const Engine& engine() const noexcept { return *layer_; }
    uint64_t computed_pairs() const noexcept { return computed_pairs_; }

  private:
    struct Text final : DraftText {
        using DraftText::DraftText;

        std::vector<uint32_t> places;  // in the text, of the states of the pairs that are cached, ascending
        // States that wait for what follows them, of rows from `next` on, with the rows' tokens.
        uint32_t next = 0;
        std::vector<Token> rows;
        std::vector<float> states;
    };
    struct Part {
        DraftWish* wish;
        Text* text;
        std::vector<Token> tokens;
        std::vector<float> states;
        uint32_t pairs;  // of the text, not of the draft
    };

    Text* find(RequestId id) const noexcept;
    void take(const DraftStates& given);
    void give_back(Text& text) const;
    Text& text_of(RequestId id, std::span<const Token> tokens);
    size_t known(const Text& text, std::span<const Token> tokens) const noexcept;
    void cut(Text& text, size_t waiting) const;
    void take_pairs(Text& text, std::span<const Token> tokens, size_t count) const;
    void compute(Text& text, std::span<const Token> tokens, size_t count);
    void draft(std::vector<Part> parts);

    const std::unique_ptr<Engine> layer_;
    const size_t width_;  // of a state
    DraftTexts texts_;
    const size_t vocabulary_;
    const double least_;
    uint64_t computed_pairs_ = 0;
};

}  // namespace tessera::session
