#include "core/cache/paged_cache.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <utility>

namespace tessera {
PagedCache::PagedCache(std::vector<Group> groups) {
    if (groups.empty() || !groups.front().rule.keeps_all())
        fail(TSR_INTERNAL, "the first group of a cache keeps all tokens");
    for (const Group& group : groups) {
        Pool& pool = pools_.emplace_back();
        pool.rule = group.rule;
        pool.references.resize(group.pages, 0);
        pool.free.reserve(group.pages);
        for (PageId page = group.pages; page-- > 0;) pool.free.push_back(page);  // the lowest is taken first
    }
}

PageId PagedCache::Pool::take() {
    const PageId page = free.back();
    free.pop_back();
    references[page] = 1;
    return page;
}

void PagedCache::Pool::drop(PageId page) {
    if (--references[page] == 0) free.push_back(page);
}

void PagedCache::Pool::check_used(PageId page) const {
    if (page >= references.size() || references[page] == 0)
        fail(TSR_INVALID_ARGUMENT, "page {} of the cache holds nothing", page);
}

const PagedCache::Sequence& PagedCache::at(SequenceId sequence) const {
    const auto found = sequences_.find(sequence);
    if (found == sequences_.end()) fail(TSR_NOT_FOUND, "there is no cached sequence {}", sequence);
    return found->second;
}

PagedCache::Sequence& PagedCache::at(SequenceId sequence) {
    return const_cast<Sequence&>(static_cast<const PagedCache*>(this)->at(sequence));
}

HeldPages PagedCache::held(SequenceId sequence, GroupIndex group) const {
    const Run& run = at(sequence).runs.at(group);
    return {run.first, run.pages};
}

SequenceId PagedCache::create() {
    const SequenceId id = next_++;
    sequences_[id].runs.resize(pools_.size());
    return id;
}

void PagedCache::remove(SequenceId sequence) {
    truncate(sequence, 0);
    sequences_.erase(sequence);
}

bool PagedCache::can_go_on(const Sequence& sequence, uint32_t tokens) const {
    for (GroupIndex group = 0; group < pools_.size(); ++group) {
        // Pages are needed up to the one that the next token is written to, if it has others already.
        const uint32_t first = pools_[group].rule.first_page(tokens);
        if (first < pages_for(tokens) && first < sequence.runs[group].first) return false;
    }
    return true;
}

bool PagedCache::can_truncate(SequenceId sequence, uint32_t tokens) const {
    const Sequence& it = at(sequence);
    return tokens >= it.length || can_go_on(it, tokens);
}

SequenceId PagedCache::fork(SequenceId sequence, uint32_t tokens) {
    Sequence copy = at(sequence);
    if (tokens > copy.length) {
        fail(TSR_INVALID_ARGUMENT, "a prefix of {} tokens of a sequence of {}", tokens, copy.length);
    }
    if (!can_go_on(copy, tokens))
        fail(TSR_INVALID_ARGUMENT, "sequence {} holds no longer what its first {} tokens are continued by", sequence,
             tokens);
    for (GroupIndex group = 0; group < pools_.size(); ++group) {
        Run& run = copy.runs[group];
        const uint32_t first = pools_[group].rule.first_page(tokens), end = pages_for(tokens);
        run.pages.resize(end - std::min(end, run.first));
        const auto passed = std::min<size_t>(first - std::min(first, run.first), run.pages.size());
        run.pages.erase(run.pages.begin(), run.pages.begin() + static_cast<std::ptrdiff_t>(passed));
        run.first = run.pages.empty() ? end : run.first + static_cast<uint32_t>(passed);
        for (const PageId page : run.pages) ++pools_[group].references[page];
    }
    copy.length = tokens;
    const SequenceId id = next_++;
    sequences_.emplace(id, std::move(copy));
    return id;
}

SequenceId PagedCache::create(std::span<const HeldPages> groups, uint32_t tokens) {
    if (groups.size() != pools_.size())
        fail(TSR_INVALID_ARGUMENT, "pages of {} groups; there are {}", groups.size(), pools_.size());
    for (GroupIndex group = 0; group < pools_.size(); ++group) {
        const HeldPages& held = groups[group];
        const uint32_t end = pages_for(tokens), first = std::min(pools_[group].rule.first_page(tokens), end);
        if (held.first > first || held.first + held.pages.size() != end)
            fail(TSR_INVALID_ARGUMENT, "{} pages from page {} on for {} tokens; pages {} to {} are needed",
                 held.pages.size(), held.first, tokens, first, end);
        for (const PageId page : held.pages) pools_[group].check_used(page);
    }
    const SequenceId id = create();
    Sequence& made = sequences_[id];
    made.length = tokens;
    for (GroupIndex group = 0; group < pools_.size(); ++group) {
        made.runs[group] = {groups[group].first, {groups[group].pages.begin(), groups[group].pages.end()}};
        for (const PageId page : groups[group].pages) ++pools_[group].references[page];
    }
    return id;
}

PageId PagedCache::take(GroupIndex group) {
    Pool& pool = pools_.at(group);
    if (pool.free.empty()) fail(TSR_DOES_NOT_FIT, "the cache is full: no page of group {} is free", group);
    return pool.take();
}

void PagedCache::retain(GroupIndex group, PageId page) {
    pools_.at(group).check_used(page);
    ++pools_[group].references[page];
}

void PagedCache::release(GroupIndex group, PageId page) {
    pools_.at(group).check_used(page);
    pools_[group].drop(page);
}

std::optional<PageId> PagedCache::page_to_copy(SequenceId id, uint32_t tokens, GroupIndex group) const {
    const Sequence& sequence = at(id);
    if (tokens == 0 || sequence.length % TSR_PAGE_TOKENS == 0) return std::nullopt;
    const PageId last = sequence.runs.at(group).pages.back();
    return pools_[group].references[last] > 1 ? std::optional(last) : std::nullopt;
}

uint64_t PagedCache::pages_to_append(SequenceId id, uint32_t tokens, GroupIndex group) const {
    const Sequence& sequence = at(id);
    return pages_for(uint64_t{sequence.length} + tokens) - sequence.runs.at(group).end() +
           (page_to_copy(id, tokens, group) ? 1 : 0);
}

void PagedCache::append(SequenceId id, uint32_t tokens, std::vector<PageCopy>& copies) {
    Sequence& sequence = at(id);
    const uint64_t length = uint64_t{sequence.length} + tokens;
    const uint32_t end = pages_for(length);
    for (GroupIndex group = 0; group < pools_.size(); ++group) {
        const uint64_t fresh = pages_to_append(id, tokens, group);
        const Pool& pool = pools_[group];
        if (fresh <= pool.free.size()) continue;
        fail(TSR_DOES_NOT_FIT, "the cache is full: {} more tokens need {} pages of {} tokens, {} of {} are free{}",
             tokens, fresh, TSR_PAGE_TOKENS, pool.free.size(), pool.references.size(),
             pool.rule.keeps_all() ? "" : fmt::format(" (of layers with a window of {} tokens)", pool.rule.window));
    }
    for (GroupIndex group = 0; group < pools_.size(); ++group) {
        Pool& pool = pools_[group];
        std::vector<PageId>& pages = sequence.runs[group].pages;
        if (page_to_copy(id, tokens, group)) {
            const PageId own = pool.take();
            copies.push_back({group, pages.back(), own});
            pool.drop(pages.back());
            pages.back() = own;
        }
        while (sequence.runs[group].end() < end) pages.push_back(pool.take());
    }
    sequence.length = static_cast<uint32_t>(length);
}

void PagedCache::share_again(SequenceId id, const PageCopy& copy) {
    std::vector<PageId>& pages = at(id).runs.at(copy.group).pages;
    const auto copied = std::ranges::find(pages, copy.to);
    if (copied == pages.end()) return;
    retain(copy.group, copy.from);
    pools_[copy.group].drop(copy.to);
    *copied = copy.from;
}

void PagedCache::give_back(SequenceId id, uint32_t length) {
    Sequence& sequence = at(id);
    for (GroupIndex group = 0; group < pools_.size(); ++group) {
        Run& run = sequence.runs[group];
        const uint32_t first = pools_[group].rule.first_page(length - std::min(length, kRollbackTokens));
        if (first <= run.first) continue;
        const auto passed = std::min<size_t>(first - run.first, run.pages.size());
        for (size_t i = 0; i < passed; ++i) pools_[group].drop(run.pages[i]);
        run.pages.erase(run.pages.begin(), run.pages.begin() + static_cast<std::ptrdiff_t>(passed));
        run.first += static_cast<uint32_t>(passed);
    }
}

void PagedCache::truncate(SequenceId id, uint32_t tokens) {
    Sequence& sequence = at(id);
    if (tokens >= sequence.length) return;
    if (!can_go_on(sequence, tokens))
        fail(TSR_INVALID_ARGUMENT,
             "sequence {} of {} tokens cannot be cut to {}: layers with a window hold no longer what is before that",
             id, sequence.length, tokens);
    const uint32_t end = pages_for(tokens);
    for (GroupIndex group = 0; group < pools_.size(); ++group) {
        Run& run = sequence.runs[group];
        while (!run.pages.empty() && run.end() > end) {
            pools_[group].drop(run.pages.back());
            run.pages.pop_back();
        }
        run.first = std::min(run.first, end);
    }
    sequence.length = tokens;
}

}  // namespace tessera
