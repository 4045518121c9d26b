#include "core/session/drafts/model_drafts.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>

namespace tessera::session {

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
      texts_(*engine_),
      vocabulary_(std::min<size_t>(vocabulary, engine_->info().vocabulary)),
      least_(least) {}

ModelDrafts::~ModelDrafts() = default;

// Cuts a text. False: layers with a window do not allow it, and it is gone.
bool ModelDrafts::shorten(DraftText& text, size_t tokens) {
    if (!engine_->cache().can_truncate(text.sequence, static_cast<uint32_t>(tokens))) {
        texts_.drop(text);
        return false;
    }
    engine_->cache().truncate(text.sequence, static_cast<uint32_t>(tokens));
    text.tokens.resize(std::min(text.tokens.size(), tokens));
    return true;
}

// Of what others have computed of it, or none.
DraftText* ModelDrafts::new_text(const DraftWish& wish) {
    PagedCache& cache = engine_->cache();
    DraftText* best = nullptr;
    size_t shared = kFewestShared - 1;
    for (const auto& text : texts_.all()) {
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
    auto made =
        std::make_unique<DraftText>(best ? cache.fork(best->sequence, static_cast<uint32_t>(shared)) : cache.create());
    made->owner = wish.id;
    if (best) made->tokens.assign(wish.tokens.begin(), wish.tokens.begin() + static_cast<std::ptrdiff_t>(shared));
    return &texts_.add(std::move(made));
}

// The wish's text, as far as it is cached; without its last token, whose logits are wanted.
DraftText* ModelDrafts::text_of(const DraftWish& wish) {
    for (;;) {
        DraftText* const owned = texts_.find(wish.id);
        DraftText* const text = owned ? owned : new_text(wish);
        const size_t right = std::min(same_beginning(text->tokens, wish.tokens), wish.tokens.size() - 1);
        if (right < text->tokens.size() && !shorten(*text, right)) continue;
        texts_.use(*text);
        return text;
    }
}

void ModelDrafts::propose(std::span<DraftWish> wishes) {
    texts_.begin_call();
    uint32_t rows = engine_->max_rows();
    uint64_t reserved = 0;
    std::vector<Part> parts;
    for (DraftWish& wish : wishes) {
        const auto unknown = [&](Token token) { return static_cast<size_t>(token) >= vocabulary_; };
        if (wish.most == 0 || wish.tokens.empty() || parts.size() == engine_->max_sequences() || rows == 0) continue;
        if (wish.tokens.size() + wish.most > engine_->sequence_tokens() || std::ranges::any_of(wish.tokens, unknown))
            continue;
        DraftText* const text = text_of(wish);
        const size_t left = wish.tokens.size() - text->tokens.size();
        const auto count = static_cast<uint32_t>(std::min<size_t>(left, rows));
        // With those of the draft.
        if (!texts_.make_room(*text, count + wish.most, reserved)) continue;
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
            if (part.last && extend(*part.wish, logits[output++].first(vocabulary_), least_)) more.push_back(part);
        }
        // All that are read are there before any of them is read.
        next.clear();
        for (const Part& part : more) next.push_back(part.wish->draft.back().token);
        for (size_t i = 0; i < more.size(); ++i) more[i].next = std::span(next).subspan(i, 1);
        parts = std::move(more);
    }
}

}  // namespace tessera::session
