// Drafts of a smaller model: speculative decoding, Leviathan et al., arXiv:2211.17192.
#pragma once

#include "core/session/drafts/draft_texts.hpp"
#include "core/session/engine.hpp"
#include "core/text/tokenizer.hpp"

#include <memory>
#include <span>
#include <utility>
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
//
// Where not so much may be read, tokens in the middle are left out of the sequence: behind what is cached, or the first
// kHead, the last ones follow at once, as in arXiv:2309.17453, by which a model predicts badly without its first
// tokens. Other requests share it as far as their texts begin with what is cached.
class ModelDrafts final : public DraftSource {
  public:
    static constexpr size_t kHead = 4;

    std::string_view name() const noexcept override { return "the draft model"; }

    // `vocabulary`: tokens that texts may have and the model knows. A token that the model finds less likely than
    // `least` ends a draft. `engine` is of as many sequences as one call has wishes.
    ModelDrafts(std::unique_ptr<Engine> engine, size_t vocabulary, double least);
    ~ModelDrafts() override;

    void propose(std::span<DraftWish> wishes) override;
    DraftUnread unread(const DraftWish& wish) const override;
    void forget(RequestId id) noexcept override;
    bool is_costly() const noexcept override { return true; }

    const Engine& engine() const noexcept { return *engine_; }
    uint64_t computed_tokens() const noexcept { return computed_tokens_; }

  private:
    struct Text final : DraftText {
        using DraftText::DraftText;

        // Of the request's text, what is left out behind its first `head` tokens, of which fewer may be cached.
        size_t head = 0, left_out = 0;
    };
    // A wish in a step: the next tokens of its text.
    struct Part {
        DraftWish* wish;
        Text* text;
        std::vector<Token> next;
        bool last;  // behind these the draft begins
    };
    struct Beginning {
        Text* text;  // of another request, or null
        size_t tokens;
    };

    Text* find(RequestId id) const noexcept;
    bool can_draft(const DraftWish& wish) const;
    Beginning beginning(const DraftWish& wish) const;
    static size_t right(const Text& text, std::span<const Token> tokens);
    Text* text_of(const DraftWish& wish);
    Text* new_text(const DraftWish& wish);
    bool shorten(Text& text, size_t tokens);

    const std::unique_ptr<Engine> engine_;
    DraftTexts texts_;
    const size_t vocabulary_;
    const double least_;
    uint64_t computed_tokens_ = 0;
};

}  // namespace tessera::session
