// Texts that a source of drafts has in the cache of an engine of its own.
#pragma once

#include "core/session/drafts/draft_source.hpp"
#include "core/session/engine.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace tessera::session {

// Adds the most likely token to the draft, with the kind of its probability, unless it is less likely than `least` or
// the logits are not finite. False: the draft has ended.
bool extend(DraftWish& wish, std::span<const float> logits, double least);
// Of a token to which a model gives this probability.
uint8_t kind_of_probability(double probability) noexcept;

size_t same_beginning(std::span<const Token> a, std::span<const Token> b);
// A shorter beginning of another text is not worth a copy.
inline constexpr size_t kFewestShared = 16;

struct DraftText {
    explicit DraftText(SequenceId cached) : sequence(cached) {}
    virtual ~DraftText() = default;

    SequenceId sequence;
    std::vector<Token> tokens;
    std::optional<RequestId> owner;  // none: the request has ended
    uint64_t used = 0;               // the last call that needed it
};

// Those of requests that have ended stay until their pages are needed, or there are many.
class DraftTexts {
  public:
    // `engine` outlives it.
    explicit DraftTexts(Engine& engine) : engine_(engine) {}

    std::span<const std::unique_ptr<DraftText>> all() const noexcept { return texts_; }
    DraftText* find(RequestId owner) const noexcept;  // null: there is none
    DraftText& add(std::unique_ptr<DraftText> text);
    void drop(const DraftText& text);
    void forget(RequestId owner) noexcept;

    void begin_call() noexcept { ++calls_; }
    void use(DraftText& text) const noexcept { text.used = calls_; }
    // Pages for so many more tokens, beside those reserved; where there are too few, of texts that this call does not
    // need, those of requests that have ended first. False: there are too few.
    bool make_room(const DraftText& text, uint32_t tokens, uint64_t reserved);

  private:
    Engine& engine_;
    std::vector<std::unique_ptr<DraftText>> texts_;
    uint64_t calls_ = 0;
};

}  // namespace tessera::session
