#include "core/session/drafts/model_drafts.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::session {
namespace {

// A shorter beginning of another text is not worth a copy.
constexpr size_t kFewestShared = 16;
// Texts of requests that have ended, for each sequence of a step.
constexpr size_t kEndedTexts = 2;
// Logits so far below the largest add nothing to the sum of probabilities.
constexpr float kFarBelow = 16;

size_t same_beginning(std::span<const Token> a, std::span<const Token> b) {
    return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

void check_same_vocabulary(const text::Tokenizer& model, const text::Tokenizer& draft) {
    const size_t a = model.size(), b = draft.size();
    if (std::max(a, b) - std::min(a, b) > kSpareTokens)
        fail(TSR_UNSUPPORTED, "the draft model has {} tokens, the model {}: a draft needs the same vocabulary", b, a);
    for (size_t i = 0; i < std::min(a, b); ++i) {
        const auto token = static_cast<Token>(i);
        if (model.spelling(token) == draft.spelling(token) && model.type(token) == draft.type(token)) continue;
        fail(TSR_UNSUPPORTED,
             "token {} is '{}' of the draft model and '{}' of the model: a draft needs the same vocabulary", i,
             printable(draft.spelling(token), 60), printable(model.spelling(token), 60));
    }
}

ModelDrafts::ModelDrafts(std::unique_ptr<Engine> engine, size_t vocabulary, double least)
    : engine_(std::move(engine)),
      vocabulary_(std::min<size_t>(vocabulary, engine_->info().vocabulary)),
      least_(least) {}

ModelDrafts::~ModelDrafts() = default;

uint8_t ModelDrafts::kind_of(double probability) noexcept {
    constexpr double kFrom[kModelKinds - 1] = {0.3, 0.5, 0.7, 0.85, 0.95};
    return kMatchKinds + static_cast<uint8_t>(std::ranges::upper_bound(kFrom, probability) - kFrom);
}

void ModelDrafts::drop(const Text& text) {
    engine_->cache().remove(text.sequence);
    std::erase_if(texts_, [&](const auto& one) { return one.get() == &text; });
}

void ModelDrafts::forget(RequestId id) noexcept {
    for (const auto& text : texts_) {
        if (text->owner == id) text->owner.reset();
    }
    const auto ended = [](const auto& text) { return !text->owner; };
    const auto most = static_cast<std::ptrdiff_t>(kEndedTexts * engine_->max_sequences());
    while (std::ranges::count_if(texts_, ended) > most) {
        const auto oldest = std::ranges::min_element(
            texts_, {}, [](const auto& text) { return text->owner ? UINT64_MAX : text->used; });
        drop(**oldest);
    }
}

// Cuts a text. False: layers with a window do not allow it, and it is gone.
bool ModelDrafts::shorten(Text& text, size_t tokens) {
    if (!engine_->cache().can_truncate(text.sequence, static_cast<uint32_t>(tokens))) {
        drop(text);
        return false;
    }
    engine_->cache().truncate(text.sequence, static_cast<uint32_t>(tokens));
    text.tokens.resize(std::min(text.tokens.size(), tokens));
    return true;
}

// Of what others have computed of it, or none.
ModelDrafts::Text* ModelDrafts::new_text(const DraftWish& wish) {
    PagedCache& cache = engine_->cache();
    Text* best = nullptr;
    size_t shared = kFewestShared - 1;
    for (const auto& text : texts_) {
        // Without the last one, as text_of() wants it: what is shared need not be cut, which a window may not allow.
        const size_t common = same_beginning(text->tokens, wish.tokens.first(wish.tokens.size() - 1));
        if (common <= shared || !cache.can_truncate(text->sequence, static_cast<uint32_t>(common))) continue;
        best = text.get();
        shared = common;
    }
    if (best && !best->owner) {
        best->owner = wish.id;
        return best;
    }
    auto made = std::make_unique<Text>();
    made->owner = wish.id;
    if (best) made->tokens.assign(wish.tokens.begin(), wish.tokens.begin() + static_cast<std::ptrdiff_t>(shared));
    made->sequence = best ? cache.fork(best->sequence, static_cast<uint32_t>(shared)) : cache.create();
    texts_.push_back(std::move(made));
    return texts_.back().get();
}

// The wish's text, as far as it is cached; without its last token, whose logits are wanted.
ModelDrafts::Text* ModelDrafts::text_of(const DraftWish& wish) {
    for (;;) {
        const auto owned = std::ranges::find_if(texts_, [&](const auto& text) { return text->owner == wish.id; });
        Text* const text = owned == texts_.end() ? new_text(wish) : owned->get();
        const size_t right = std::min(same_beginning(text->tokens, wish.tokens), wish.tokens.size() - 1);
        if (right < text->tokens.size() && !shorten(*text, right)) continue;
        text->used = calls_;
        return text;
    }
}

// Pages for so many more tokens, beside those reserved; where there are too few, of texts that this call does not need,
// those of requests that have ended first. False: there are too few.
bool ModelDrafts::make_room(Text& text, uint32_t tokens, uint64_t reserved) {
    PagedCache& cache = engine_->cache();
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

// The most likely token, if it is likely enough. Whether the draft goes on.
bool ModelDrafts::take_token(const Part& part, std::span<const float> logits) const {
    const auto known = logits.first(vocabulary_);
    const auto best = std::ranges::max_element(known);
    const float largest = *best;
    if (!std::isfinite(largest)) return false;
    double sum = 0;
    for (const float logit : known) {
        if (logit > largest - kFarBelow) sum += std::exp(logit - largest);
    }
    const double probability = 1 / sum;
    if (probability < least_) return false;
    part.wish->draft.push_back({static_cast<Token>(best - known.begin()), kind_of(probability)});
    return part.wish->draft.size() < part.wish->most;
}

void ModelDrafts::propose(std::span<DraftWish> wishes) {
    ++calls_;
    uint32_t rows = engine_->max_rows();
    uint64_t reserved = 0;
    std::vector<Part> parts;
    for (DraftWish& wish : wishes) {
        const auto unknown = [&](Token token) { return static_cast<size_t>(token) >= vocabulary_; };
        if (wish.most == 0 || wish.tokens.empty() || parts.size() == engine_->max_sequences() || rows == 0) continue;
        if (wish.tokens.size() + wish.most > engine_->sequence_tokens() || std::ranges::any_of(wish.tokens, unknown))
            continue;
        Text* const text = text_of(wish);
        const size_t left = wish.tokens.size() - text->tokens.size();
        const auto count = static_cast<uint32_t>(std::min<size_t>(left, rows));
        // With those of the draft.
        if (!make_room(*text, count + wish.most, reserved)) continue;
        reserved += pages_for(count + wish.most) + 1;
        parts.push_back({&wish, text, wish.tokens.subspan(text->tokens.size(), count), count == left});
        rows -= count;
    }
    std::vector<BatchEntry> entries;
    std::vector<Token> next;
    while (!parts.empty()) {
        entries.clear();
        for (const Part& part : parts) entries.push_back({part.text->sequence, part.next, part.last});
        const auto logits = engine_->step(entries);
        for (const Part& part : parts) {
            part.text->tokens.insert(part.text->tokens.end(), part.next.begin(), part.next.end());
            computed_tokens_ += part.next.size();
        }
        size_t output = 0;
        std::vector<Part> more;
        for (const Part& part : parts) {
            if (part.last && take_token(part, logits[output++])) more.push_back(part);
        }
        // All that are read are there before any of them is read.
        next.clear();
        for (const Part& part : more) next.push_back(part.wish->draft.back().token);
        for (size_t i = 0; i < more.size(); ++i) more[i].next = std::span(next).subspan(i, 1);
        parts = std::move(more);
    }
}

}  // namespace tessera::session
