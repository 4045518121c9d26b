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

ModelDrafts::Text* ModelDrafts::find(RequestId id) const noexcept {
    return static_cast<Text*>(texts_.find(id));
}

void ModelDrafts::forget(RequestId id) noexcept {
    // What is behind a gap is of use to nobody else.
    Text* const text = find(id);
    if (text && text->left_out > 0 && text->head < kFewestShared) {
        texts_.drop(*text);
    } else if (text && text->left_out > 0) {
        shorten(*text, text->head);
    }
    texts_.forget(id);
}

bool ModelDrafts::can_draft(const DraftWish& wish) const {
    const auto unknown = [&](Token token) { return static_cast<size_t>(token) >= vocabulary_; };
    return wish.most > 0 && !wish.tokens.empty() && wish.tokens.size() + wish.most <= engine_->sequence_tokens() &&
           std::ranges::none_of(wish.tokens, unknown);
}

// Cuts a text. False: layers with a window do not allow it, and it is gone.
bool ModelDrafts::shorten(Text& text, size_t tokens) {
    if (!engine_->cache().can_truncate(text.sequence, static_cast<uint32_t>(tokens))) {
        texts_.drop(text);
        return false;
    }
    engine_->cache().truncate(text.sequence, static_cast<uint32_t>(tokens));
    text.tokens.resize(std::min(text.tokens.size(), tokens));
    if (tokens <= text.head) text.left_out = 0;
    return true;
}

// The longest that the text of another request begins with, too.
ModelDrafts::Beginning ModelDrafts::beginning(const DraftWish& wish) const {
    Beginning best{nullptr, 0};
    for (const auto& one : texts_.all()) {
        auto& text = static_cast<Text&>(*one);
        // Without the last one, as text_of() wants it: what is shared need not be cut, which a window may not allow.
        const size_t common = same_beginning(text.tokens, wish.tokens.first(wish.tokens.size() - 1));
        if (common < kFewestShared || common <= best.tokens) continue;
        if (engine_->cache().can_truncate(text.sequence, static_cast<uint32_t>(common))) best = {&text, common};
    }
    return best;
}

ModelDrafts::Text* ModelDrafts::new_text(const DraftWish& wish) {
    PagedCache& cache = engine_->cache();
    const auto [best, shared] = beginning(wish);
    if (best && !best->owner) {
        best->owner = wish.id;
        return best;
    }
    auto made =
        std::make_unique<Text>(best ? cache.fork(best->sequence, static_cast<uint32_t>(shared)) : cache.create());
    made->owner = wish.id;
    const auto known = wish.tokens.first(shared);
    made->tokens.assign(known.begin(), known.end());
    return static_cast<Text*>(&texts_.add(std::move(made)));
}

// How many of its cached tokens are those of the request; without the last one of these, whose logits are wanted.
size_t ModelDrafts::right(const Text& text, std::span<const Token> tokens) {
    const std::span<const Token> cached = text.tokens;
    const size_t behind = text.head + text.left_out;
    if (text.left_out == 0 || tokens.size() <= behind) return same_beginning(cached, tokens.first(tokens.size() - 1));
    const size_t head = same_beginning(cached, tokens);
    if (head < text.head) return head;
    return text.head +
           same_beginning(cached.subspan(text.head), tokens.subspan(behind).first(tokens.size() - behind - 1));
}

DraftUnread ModelDrafts::unread(const DraftWish& wish) const {
    if (!can_draft(wish)) return {};
    const auto size = static_cast<uint32_t>(wish.tokens.size());
    const Text* const text = find(wish.id);
    const auto known = static_cast<uint32_t>(text ? right(*text, wish.tokens) : beginning(wish).tokens);
    if (!text || text->left_out == 0 || known <= text->head) return {size - known, size - known};
    return {size - static_cast<uint32_t>(text->head), size - known - static_cast<uint32_t>(text->left_out)};
}

// The wish's text, as far as it is cached, with what is left out of it.
ModelDrafts::Text* ModelDrafts::text_of(const DraftWish& wish) {
    const size_t size = wish.tokens.size();
    for (;;) {
        Text* const owned = find(wish.id);
        Text* const text = owned ? owned : new_text(wish);
        size_t known = right(*text, wish.tokens);
        // A gap is closed where that may be; or another one is made where too much has come behind it.
        if (text->left_out > 0 && (size - text->head <= wish.may_read || size - known - text->left_out > wish.may_read))
            known = std::min(known, text->head);
        if (known < text->tokens.size() && !shorten(*text, known)) continue;
        if (known <= text->head) text->left_out = 0;
        const size_t head = std::max(known, kHead), missing = head - known;
        if (text->left_out == 0 && size - known > wish.may_read && missing < wish.may_read) {
            text->head = head;
            text->left_out = size - known - wish.may_read;
        }
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
        if (!can_draft(wish) || parts.size() == engine_->max_sequences() || rows == 0) continue;
        Text* const text = text_of(wish);
        const size_t at = text->tokens.size(), left = wish.tokens.size() - text->left_out - at;
        const auto count = static_cast<uint32_t>(std::min<size_t>(left, rows));
        // With those of the draft.
        if (!texts_.make_room(*text, count + wish.most, reserved)) continue;
        reserved += pages_for(count + wish.most) + 1;
        std::vector<Token> next(count);
        for (size_t i = 0; i < count; ++i) next[i] = wish.tokens[at + i + (at + i < text->head ? 0 : text->left_out)];
        parts.push_back({&wish, text, std::move(next), count == left});
        wish.read = count;
        rows -= count;
    }
    std::vector<BatchEntry> entries;
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
            if (part.last && extend(*part.wish, logits[output++].first(vocabulary_), least_))
                more.push_back({part.wish, part.text, {part.wish->draft.back().token}, true});
        }
        parts = std::move(more);
    }
}

}  // namespace tessera::session
