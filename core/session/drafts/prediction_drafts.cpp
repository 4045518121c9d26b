#include "core/session/drafts/prediction_drafts.hpp"

#include "core/session/drafts/draft_options.hpp"

#include <algorithm>
#include <utility>

namespace tessera::session {

PredictionDrafts::PredictionDrafts(std::unique_ptr<Engine> layer, size_t vocabulary, double least)
    : layer_(std::move(layer)),
      width_(layer_->info().embedding),
      texts_(*layer_),
      vocabulary_(std::min<size_t>(vocabulary, layer_->info().vocabulary)),
      least_(least) {}

PredictionDrafts::~PredictionDrafts() = default;

PredictionDrafts::Text* PredictionDrafts::find(RequestId id) const noexcept {
    return static_cast<Text*>(texts_.find(id));
}

void PredictionDrafts::forget(RequestId id) noexcept {
    if (Text* const text = find(id)) cut(*text, 0);
    texts_.forget(id);
}

// Keeps so many of the states that wait.
void PredictionDrafts::cut(Text& text, size_t waiting) const {
    text.rows.resize(std::min(text.rows.size(), waiting));
    text.states.resize(text.rows.size() * width_);
    give_back(text);
}

// Memory that states of a prompt took, which many texts together would keep.
void PredictionDrafts::give_back(Text& text) const {
    const size_t batch = kBatch * width_;
    if (text.states.size() <= batch && text.states.capacity() > 2 * batch) text.states.shrink_to_fit();
}

// The request's own, or a new one with the pairs that another text has of its beginning.
PredictionDrafts::Text& PredictionDrafts::text_of(RequestId id, std::span<const Token> tokens) {
    if (Text* const own = find(id)) return *own;
    PagedCache& cache = layer_->cache();
    Text* best = nullptr;
    size_t shared = kFewestShared - 1;
    for (const auto& one : texts_.all()) {
        auto& text = static_cast<Text&>(*one);
        // A pair has the token behind its state.
        const size_t common = same_beginning(text.tokens, tokens);
        const auto pairs = static_cast<size_t>(
            std::ranges::lower_bound(text.places, static_cast<uint32_t>(common > 0 ? common - 1 : 0)) -
            text.places.begin());
        if (pairs <= shared || !cache.can_truncate(text.sequence, static_cast<uint32_t>(pairs))) continue;
        best = &text;
        shared = pairs;
    }
    if (!best) {
        auto& made = static_cast<Text&>(texts_.add(std::make_unique<Text>(cache.create())));
        made.owner = id;
        return made;
    }
    Text* text = best;
    const auto pairs = static_cast<uint32_t>(shared);
    if (best->owner) {
        text = static_cast<Text*>(&texts_.add(std::make_unique<Text>(cache.fork(best->sequence, pairs))));
        text->places.assign(best->places.begin(), best->places.begin() + pairs);
    } else {
        cache.truncate(text->sequence, pairs);
        text->places.resize(pairs);
    }
    text->owner = id;
    text->next = text->places.back() + 1;
    const auto known = tokens.first(text->next + 1);
    text->tokens.assign(known.begin(), known.end());
    return *text;
}

// How many of the states that wait are the text's, of rows that were no draft or an accepted one, and have a token
// behind them.
size_t PredictionDrafts::known(const Text& text, std::span<const Token> tokens) const noexcept {
    size_t count = 0;
    while (count < text.rows.size() && text.next + count + 1 < tokens.size() &&
           tokens[text.next + count] == text.rows[count])
        ++count;
    return count;
}

// The first of the states that wait have been computed as pairs.
void PredictionDrafts::take_pairs(Text& text, std::span<const Token> tokens, size_t count) const {
    for (size_t i = 0; i < count; ++i) text.places.push_back(text.next++);
    text.rows.erase(text.rows.begin(), text.rows.begin() + static_cast<std::ptrdiff_t>(count));
    text.states.erase(text.states.begin(), text.states.begin() + static_cast<std::ptrdiff_t>(count * width_));
    give_back(text);
    if (text.tokens.size() > text.next + 1) text.tokens.resize(text.next + 1);
    text.tokens.insert(text.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(text.tokens.size()),
                       tokens.begin() + text.next + 1);
}

void PredictionDrafts::compute(Text& text, std::span<const Token> tokens, size_t count) {
    while (count > 0) {
        const size_t some = std::min<size_t>(count, layer_->max_rows());
        const BatchEntry entry{text.sequence, tokens.subspan(text.next + 1, some),        false, false,
                               false,         std::span(text.states).first(some * width_)};
        layer_->step({&entry, 1});
        computed_pairs_ += some;
        take_pairs(text, tokens, some);
        count -= some;
    }
}

void PredictionDrafts::computed(std::span<const DraftStates> given) {
    texts_.begin_call();
    // Texts of a step do not make room for each other.
    for (const DraftStates& one : given) {
        if (Text* const text = find(one.id)) texts_.use(*text);
    }
    for (const DraftStates& one : given) take(one);
}

void PredictionDrafts::take(const DraftStates& given) {
    const auto unknown = [&](Token token) { return static_cast<size_t>(token) >= vocabulary_; };
    if (std::ranges::any_of(given.text, unknown)) return;
    Text& text = text_of(given.id, given.text);
    texts_.use(text);
    uint32_t position = given.position;
    std::span<const Token> rows = given.rows;
    std::span<const float> states = given.states;
    // A request that gave up its pages is computed anew.
    const size_t again = position < text.next ? std::min<size_t>(text.next - position, rows.size()) : 0;
    position += static_cast<uint32_t>(again);
    rows = rows.subspan(again);
    states = states.subspan(again * width_);
    if (rows.empty()) return;
    if (position > text.next + text.rows.size()) {
        cut(text, 0);
        text.next = position;
    }
    cut(text, position - text.next);
    text.rows.insert(text.rows.end(), rows.begin(), rows.end());
    text.states.insert(text.states.end(), states.begin(), states.end());
    const size_t count = known(text, given.text);
    // Those of a prompt at once, so that a draft is not asked for with them.
    const bool prompt = given.rows.size() > kMostDrafted + 1;
    if (count == 0 || (count < kBatch && !prompt)) return;
    if (text.places.size() + count < layer_->sequence_tokens() &&
        texts_.make_room(text, static_cast<uint32_t>(count), 0)) {
        compute(text, given.text, count);
        return;
    }
    // No memory is left for it: its drafts, if it gets some again, begin here.
    texts_.drop(text);
}

void PredictionDrafts::propose(std::span<DraftWish> wishes) {
    texts_.begin_call();
    uint32_t rows = layer_->max_rows();
    uint64_t reserved = 0;
    std::vector<Part> parts;
    for (DraftWish& wish : wishes) {
        Text* const text = find(wish.id);
        if (!text || wish.most == 0 || parts.size() == layer_->max_sequences()) continue;
        const size_t count = known(*text, wish.tokens);
        // Behind a draft that was not accepted states are those of another text.
        cut(*text, count);
        if (count == 0 || text->next + count + 1 != wish.tokens.size() || count > rows) continue;
        const auto pairs = static_cast<uint32_t>(count);
        if (text->places.size() + pairs + wish.most > layer_->sequence_tokens()) continue;
        texts_.use(*text);
        if (!texts_.make_room(*text, pairs + wish.most, reserved)) continue;
        reserved += pages_for(pairs + wish.most) + 1;
        const auto tokens = wish.tokens.last(count);
        parts.push_back({&wish, text, {tokens.begin(), tokens.end()}, text->states, pairs});
        rows -= pairs;
    }
    draft(std::move(parts));
}

void PredictionDrafts::draft(std::vector<Part> parts) {
    std::vector<Text*> drafted;
    std::vector<BatchEntry> entries;
    while (!parts.empty()) {
        entries.clear();
        for (const Part& part : parts)
            entries.push_back({part.text->sequence, part.tokens, true, false, false, part.states});
        const auto logits = layer_->step(entries);
        std::vector<Part> more;
        for (size_t i = 0; i < parts.size(); ++i) {
            Part& part = parts[i];
            if (part.pairs > 0) {
                take_pairs(*part.text, part.wish->tokens, part.pairs);
                computed_pairs_ += part.pairs;
                drafted.push_back(part.text);
            }
            if (!extend(*part.wish, logits[i].first(vocabulary_), least_)) continue;
            const auto state = layer_->states(i);
            more.push_back({part.wish, part.text, {part.wish->draft.back().token}, {state.begin(), state.end()}, 0});
        }
        parts = std::move(more);
    }
    for (const Text* const text : drafted)
        layer_->cache().truncate(text->sequence, static_cast<uint32_t>(text->places.size()));
}

}  // namespace tessera::session
