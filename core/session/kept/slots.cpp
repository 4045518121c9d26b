#include "core/session/kept/slots.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"

#include <algorithm>
#include <chrono>
#include <exception>

namespace tessera::session {
namespace {

// Texts of a slot whose files are tried again.
constexpr size_t kMostLeft = 16;

enum class Removal { kPending, kDone, kFailed };

Removal removal_of(const std::shared_future<void>& files) {
    if (files.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return Removal::kPending;
    try {
        files.get();
        return Removal::kDone;
    } catch (const std::exception&) {
        return Removal::kFailed;
    }
}

// Of files that cannot be looked for.
std::shared_future<void> left_alone() {
    std::promise<void> promise;
    promise.set_exception(std::make_exception_ptr(Error(TSR_IO_ERROR, "the folder of pages has not answered")));
    return promise.get_future().share();
}

}  // namespace

void Slots::remember(const std::string& space, uint32_t slot, std::span<const Token> tokens) {
    if (slot < engine_.max_sequences()) texts_[{space, slot}].assign(tokens.begin(), tokens.end());
}

Slots::Opened Slots::open(const std::string& space, uint32_t slot) {
    Opened opened;
    const std::vector<Token>& text = texts_[{space, slot}];
    const PrefixTree::Match match = tree_.find(space, text);
    opened.tokens.assign(text.begin(), text.begin() + match.tokens);
    for (uint32_t page = 0; page < match.pages.size(); ++page) {
        opened.parts.push_back({page, 0, match.pages[page]});
        for (GroupIndex group = 1; group <= match.windows.size(); ++group) {
            const PrefixTree::Match::Window& window = match.windows[group - 1];
            if (page >= window.first) opened.parts.push_back({page, group, window.pages[page - window.first]});
        }
    }
    opened.sequence = engine_.cache().create(match.held(), match.tokens);
    ++moving_;
    return opened;
}

void Slots::copy(const Opened& opened, size_t index, SlotPage& page) const {
    const Opened::Part& part = opened.parts.at(index);
    const size_t begin = size_t{part.page} * TSR_PAGE_TOKENS;
    const size_t count = std::min<size_t>(TSR_PAGE_TOKENS, opened.tokens.size() - begin);
    // Of the record before, of the same page or the one that it follows.
    const PathId parent = index == 0 ? PathId{} : part.group == 0 ? page.record.path() : page.record.parent;
    page.record = {};
    page.record.parent = parent;
    page.record.group = part.group;
    page.record.count = static_cast<uint32_t>(count);
    std::copy_n(opened.tokens.begin() + static_cast<std::ptrdiff_t>(begin), count, page.record.tokens.begin());
    page.bytes.resize(engine_.page_bytes(part.group));
    engine_.read_page(part.group, part.id, page.bytes);
}

void Slots::close(const Opened& opened) {
    engine_.cache().remove(opened.sequence);
    --moving_;
}

PageId Slots::take(GroupIndex group) {
    PagedCache& cache = engine_.cache();
    while (cache.free_pages(group) == 0) {
        if (!(group == 0 ? tree_.evict_one() : tree_.evict_window(group)))
            fail(TSR_DOES_NOT_FIT, "the cache has no room for this text: all of it is in use");
    }
    return cache.take(group);
}

void Slots::add(Restored& restored, const SlotPage& page) {
    const PageRecord& record = page.record;
    if (record.group == 0) {
        if (restored.tokens.size() + record.count > engine_.sequence_tokens())
            fail(TSR_DOES_NOT_FIT, "the text has more than the {} tokens of one request", engine_.sequence_tokens());
        for (const Token token : record.own_tokens()) {
            if (token < 0 || static_cast<uint32_t>(token) >= engine_.info().vocabulary)
                fail(TSR_CORRUPT_DATA, "token {} is outside the vocabulary of {}", token, engine_.info().vocabulary);
        }
    }
    const PageId id = take(record.group);
    try {
        engine_.write_page(record.group, id, page.bytes);
        if (record.group == 0) {
            const auto tokens = record.own_tokens();
            if (restored.pages.empty()) ++moving_;
            restored.pages.emplace_back(engine_.cache().groups());
            restored.tokens.insert(restored.tokens.end(), tokens.begin(), tokens.end());
        }
        restored.pages.back().at(record.group) = id;
    } catch (...) {
        engine_.cache().release(record.group, id);
        throw;
    }
}

void Slots::finish(Restored& restored, const std::string& space, uint32_t slot) {
    PrefixTree::Node* tail = &tree_.root(space);
    tree_.pin(*tail);
    const std::span<const Token> tokens = restored.tokens;
    for (size_t page = 0; page < restored.pages.size(); ++page) {
        const size_t begin = page * TSR_PAGE_TOKENS;
        const size_t count = std::min<size_t>(TSR_PAGE_TOKENS, tokens.size() - begin);
        PrefixTree::Node* const node = tree_.insert(*tail, tokens.subspan(begin, count), restored.pages[page]);
        tree_.move_pin(*tail, *node);
        tail = node;
    }
    tree_.unpin(*tail);
    remember(space, slot, tokens);
    give_up(restored);
}

// Of what is in the tree the tree holds its own.
void Slots::give_up(Restored& restored) {
    if (!restored.pages.empty()) --moving_;
    for (const PrefixTree::Pages& pages : restored.pages) {
        for (GroupIndex group = 0; group < pages.size(); ++group) {
            if (pages[group]) engine_.cache().release(group, *pages[group]);
        }
    }
    restored.pages.clear();
}

Slots::Erased Slots::erase(const std::string& space, uint32_t slot, PageKeeper* keeper, bool unknown) {
    const std::vector<Token> text = std::exchange(texts_[{space, slot}], {});
    std::vector<PrefixTree::Node*> path;
    for (PrefixTree::Node* at = &tree_.root(space); at;) {
        const std::span<const Token> rest = std::span(text).subspan(path.size() * TSR_PAGE_TOKENS);
        const auto page = rest.first(std::min<size_t>(rest.size(), TSR_PAGE_TOKENS));
        // The last tokens of a text may not have been computed.
        PrefixTree::Node* const before = at;
        at = nullptr;
        for (size_t count = page.size(); count > 0 && !at; --count) at = PrefixTree::child(*before, page.first(count));
        if (!at) break;
        path.push_back(at);
        if (at->tokens().size() < TSR_PAGE_TOKENS) break;
    }
    // A page that others follow, or that a request uses, and all before it stay.
    while (!path.empty() && tree_.evict(*path.back())) path.pop_back();
    if (keeper || unknown) return erase_files({space, slot}, text, keeper);
    return {static_cast<uint32_t>(text.size()), {}};
}

// What was asked for and did not succeed is tried again, so that no later erase answers as if nothing were left.
Slots::Erased Slots::erase_files(const Slot& slot, const std::vector<Token>& text, PageKeeper* keeper) {
    const auto forget = [&](const std::vector<Token>& of) {
        return keeper ? keeper->forget(slot.first, of) : left_alone();
    };
    // Nothing is held of what has been removed, whoever's it was.
    for (auto& [other, all] : left_)
        std::erase_if(all, [](const Left& one) { return removal_of(one.files) == Removal::kDone; });
    std::erase_if(left_, [](const auto& one) { return one.second.empty(); });
    Erased erased{static_cast<uint32_t>(text.size()), {}};
    if (text.empty() && !left_.contains(slot)) return erased;
    std::vector<Left>& left = left_[slot];
    for (Left& one : left) {
        if (removal_of(one.files) == Removal::kFailed) one.files = forget(one.text);
    }
    if (!text.empty()) left.push_back({text, forget(text)});
    for (const Left& one : left) erased.files.push_back(one.files);
    if (left.size() > kMostLeft) {
        const auto done =
            std::ranges::find(left, Removal::kDone, [](const Left& one) { return removal_of(one.files); });
        if (done == left.end())
            log().warn(
                "slot {}: files of a text that was erased are not tried again, and may stay: more than {} texts "
                "wait for that",
                slot.second, kMostLeft);
        left.erase(done == left.end() ? left.begin() : done);
    }
    return erased;
}

}  // namespace tessera::session
