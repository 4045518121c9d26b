// Drafts that repeat what a request's text has: prompt lookup, Saxena 2023
// (github.com/apoorvumang/prompt-lookup-decoding).
#pragma once

#include "core/session/drafts/draft_source.hpp"
#include "core/session/drafts/ngram_index.hpp"

#include <optional>
#include <unordered_map>

namespace tessera::session {

// What followed the last tokens where they occurred before in prompt and answer.
class NgramDrafts final : public DraftSource {
  public:
    void propose(std::span<DraftWish> wishes) override;
    std::string_view name() const noexcept override { return "repeated text"; }
    void forget(RequestId id) noexcept override { texts_.erase(id); }

    // Of a token behind so many that match.
    static uint8_t kind_of(uint32_t matching) noexcept;

  private:
    struct Text {
        NgramIndex index;
        size_t tokens = 0;            // at the last call
        std::optional<size_t> match;  // the position behind what matched then
    };
    std::unordered_map<RequestId, Text> texts_;
};

}  // namespace tessera::session
