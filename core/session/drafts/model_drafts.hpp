// Drafts of a smaller model: speculative decoding, Leviathan et al., arXiv:2211.17192.
#pragma once

#include "core/session/drafts/draft_texts.hpp"
#include "core/session/engine.hpp"
#include "core/text/tokenizer.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tessera::session {

// Throws Error(TSR_UNSUPPORTED) with the first token that two models spell in different ways. One vocabulary may have
// kSpareTokens tokens more than the other, since some are filled up to a round number.
inline constexpr size_t kSpareTokens = 128;
void check_same_vocabulary(const text::Tokenizer& model, const text::Tokenizer& draft);

// What a model that needs less time would go on with: of its tokens always the most likely. Each request has a sequence
// in the model's own cache, which is brought up to the request's text when drafts are asked for: the text from where it
// was drafted wrongly, or, of a new request, all that no other request's text begins with, at most a step of the engine
// for each call; until then there is no draft. Texts of requests that have ended stay until their pages are needed.
class ModelDrafts final : public DraftSource {
  public:
    std::string_view name() const noexcept override { return "the draft model"; }
    bool reads_texts() const noexcept override { return true; }

    // `vocabulary`: tokens that texts may have and the model knows. A token that the model finds less likely than
    // `least` ends a draft. `engine` is of as many sequences as one call has wishes.
    ModelDrafts(std::unique_ptr<Engine> engine, size_t vocabulary, double least);
    ~ModelDrafts() override;

    void propose(std::span<DraftWish> wishes) override;
    void forget(RequestId id) noexcept override { texts_.forget(id); }
    bool is_costly() const noexcept override { return true; }

    const Engine& engine() const noexcept { return *engine_; }
    uint64_t computed_tokens() const noexcept { return computed_tokens_; }

  private:
    // A wish in a step: the next tokens of its text.
    struct Part {
        DraftWish* wish;
        DraftText* text;
        std::span<const Token> next;
        bool last;  // behind these the draft begins
    };

    DraftText* text_of(const DraftWish& wish);
    DraftText* new_text(const DraftWish& wish);
    bool shorten(DraftText& text, size_t tokens);

    const std::unique_ptr<Engine> engine_;
    DraftTexts texts_;
    const size_t vocabulary_;
    const double least_;
    uint64_t computed_tokens_ = 0;
};

}  // namespace tessera::session
