#include "core/cache/paged_cache.hpp"

#include "core/base/error.hpp"

#include <algorithm>

namespace tessera {
PagedCache::PagedCache(uint32_t pages) : references_(pages, 0) {
    free_.reserve(pages);
    for (PageId page = pages; page-- > 0;) free_.push_back(page);  // the lowest is taken first
}

const PagedCache::Sequence& PagedCache::at(SequenceId sequence) const {
    const auto found = sequences_.find(sequence);
    if (found == sequences_.end()) fail(TSR_NOT_FOUND, "there is no cached sequence {}", sequence);
    return found->second;
}

PagedCache::Sequence& PagedCache::at(SequenceId sequence) {
    return const_cast<Sequence&>(static_cast<const PagedCache*>(this)->at(sequence));
}

PageId PagedCache::take() {
    const PageId page = free_.back();
    free_.pop_back();
    references_[page] = 1;
    return page;
}

void PagedCache::drop(PageId page) {
    if (--references_[page] == 0) free_.push_back(page);
}

SequenceId PagedCache::create() {
    const SequenceId id = next_++;
    sequences_.emplace(id, Sequence{});
    return id;
}

void PagedCache::remove(SequenceId sequence) {
    truncate(sequence, 0);
    sequences_.erase(sequence);
}

SequenceId PagedCache::fork(SequenceId sequence, uint32_t tokens) {
    Sequence copy = at(sequence);
    if (tokens > copy.length) {
        fail(TSR_INVALID_ARGUMENT, "a prefix of {} tokens of a sequence of {}", tokens, copy.length);
    }
    copy.pages.resize(pages_for(tokens));
    copy.length = tokens;
    for (const PageId page : copy.pages) ++references_[page];
    const SequenceId id = next_++;
    sequences_.emplace(id, std::move(copy));
    return id;
}

SequenceId PagedCache::create(std::span<const PageId> pages, uint32_t tokens) {
    if (pages.size() != pages_for(tokens))
        fail(TSR_INVALID_ARGUMENT, "{} pages for {} tokens; {} are needed", pages.size(), tokens, pages_for(tokens));
    for (const PageId page : pages) check_used(page);
    const SequenceId id = create();
    for (const PageId page : pages) ++references_[page];
    sequences_[id] = {{pages.begin(), pages.end()}, tokens};
    return id;
}

void PagedCache::check_used(PageId page) const {
    if (page >= references_.size() || references_[page] == 0)
        fail(TSR_INVALID_ARGUMENT, "page {} of the cache holds nothing", page);
}

void PagedCache::retain(PageId page) {
    check_used(page);
    ++references_[page];
}

void PagedCache::release(PageId page) {
    check_used(page);
    drop(page);
}

bool PagedCache::writes_shared(const Sequence& sequence, uint32_t tokens) const {
    return tokens > 0 && sequence.length % TSR_PAGE_TOKENS != 0 && references_[sequence.pages.back()] > 1;
}

uint64_t PagedCache::pages_to_append(SequenceId id, uint32_t tokens) const {
    const Sequence& sequence = at(id);
    return pages_for(uint64_t{sequence.length} + tokens) - sequence.pages.size() +
           (writes_shared(sequence, tokens) ? 1 : 0);
}

void PagedCache::append(SequenceId id, uint32_t tokens, std::vector<std::pair<PageId, PageId>>& copies) {
    Sequence& sequence = at(id);
    const uint64_t length = uint64_t{sequence.length} + tokens;
    const uint64_t needed = pages_for(length);
    const bool shared = writes_shared(sequence, tokens);
    const uint64_t fresh = pages_to_append(id, tokens);
    if (fresh > free_.size()) {
        fail(TSR_DOES_NOT_FIT, "the cache is full: {} more tokens need {} pages of {} tokens, {} of {} are free",
             tokens, fresh, TSR_PAGE_TOKENS, free_.size(), references_.size());
    }
    if (shared) {
        const PageId own = take();
        copies.emplace_back(sequence.pages.back(), own);
        drop(sequence.pages.back());
        sequence.pages.back() = own;
    }
    while (sequence.pages.size() < needed) sequence.pages.push_back(take());
    sequence.length = static_cast<uint32_t>(length);
}

void PagedCache::share_again(SequenceId id, PageId from, PageId to) {
    std::vector<PageId>& pages = at(id).pages;
    const auto copied = std::ranges::find(pages, to);
    if (copied == pages.end()) return;
    retain(from);
    drop(to);
    *copied = from;
}

void PagedCache::truncate(SequenceId id, uint32_t tokens) {
    Sequence& sequence = at(id);
    if (tokens >= sequence.length) return;
    const uint32_t kept = pages_for(tokens);
    while (sequence.pages.size() > kept) {
        drop(sequence.pages.back());
        sequence.pages.pop_back();
    }
    sequence.length = tokens;
}

}  // namespace tessera
