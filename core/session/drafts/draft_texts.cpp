#include "core/session/drafts/draft_texts.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tessera::session {
namespace {

// Texts of requests that have ended, for each sequence of a step.
constexpr size_t kEndedTexts = 2;
// Logits so far below the largest add nothing to the sum of probabilities.
constexpr float kFarBelow = 16;

}  // namespace

uint8_t kind_of_probability(double probability) noexcept {
    constexpr double kFrom[kModelKinds - 1] = {0.3, 0.5, 0.7, 0.85, 0.95};
    return kMatchKinds + static_cast<uint8_t>(std::ranges::upper_bound(kFrom, probability) - kFrom);
}

bool extend(DraftWish& wish, std::span<const float> logits, double least) {
    const auto best = std::ranges::max_element(logits);
    const float largest = *best;
    if (!std::isfinite(largest)) return false;
    double sum = 0;
    for (const float logit : logits) {
        if (logit > largest - kFarBelow) sum += std::exp(logit - largest);
    }
    const double probability = 1 / sum;
    if (probability < least) return false;
    wish.draft.push_back({static_cast<Token>(best - logits.begin()), kind_of_probability(probability)});
    return wish.draft.size() < wish.most;
}

size_t same_beginning(std::span<const Token> a, std::span<const Token> b) {
    return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

DraftText* DraftTexts::find(RequestId owner) const noexcept {
    const auto at = std::ranges::find_if(texts_, [&](const auto& text) { return text->owner == owner; });
    return at == texts_.end() ? nullptr : at->get();
}

DraftText& DraftTexts::add(std::unique_ptr<DraftText> text) {
    texts_.push_back(std::move(text));
    return *texts_.back();
}

void DraftTexts::drop(const DraftText& text) {
    engine_.cache().remove(text.sequence);
    std::erase_if(texts_, [&](const auto& one) { return one.get() == &text; });
}

void DraftTexts::forget(RequestId owner) noexcept {
    for (const auto& text : texts_) {
        if (text->owner == owner) text->owner.reset();
    }
    const auto ended = [](const auto& text) { return !text->owner; };
    const auto most = static_cast<std::ptrdiff_t>(kEndedTexts * engine_.max_sequences());
    while (std::ranges::count_if(texts_, ended) > most) {
        const auto oldest = std::ranges::min_element(
            texts_, {}, [](const auto& text) { return text->owner ? UINT64_MAX : text->used; });
        drop(**oldest);
    }
}

bool DraftTexts::make_room(const DraftText& text, uint32_t tokens, uint64_t reserved) {
    PagedCache& cache = engine_.cache();
    const auto fits = [&] {
        for (GroupIndex group = 0; group < cache.groups(); ++group) {
            if (cache.pages_to_append(text.sequence, tokens, group) + reserved > cache.free_pages(group)) return false;
        }
        return true;
    };
    while (!fits()) {
        const auto least = std::ranges::min_element(texts_, {}, [&](const auto& one) {
            return one->used == calls_ ? std::pair(2, one->used) : std::pair(one->owner ? 1 : 0, one->used);
        });
        if (least == texts_.end() || (*least)->used == calls_) return false;
        drop(**least);
    }
    return true;
}

}  // namespace tessera::session
