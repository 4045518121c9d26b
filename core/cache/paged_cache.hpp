// Which page holds which tokens of which sequence. Pages are refcounted: sequences share prefixes, can be rolled back,
// and do not divide a context into slots. Only the bookkeeping; the data of the pages is in PlanMemory.
#pragma once

#include "core/cache/cache_rule.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tessera {

using SequenceId = uint32_t;
using PageId = uint32_t;
using GroupIndex = uint32_t;

// Pages of one group that a sequence holds: those from index `first` on, where page i has tokens i * TSR_PAGE_TOKENS
// on.
struct HeldPages {
    uint32_t first = 0;
    std::span<const PageId> pages;
};

// A page whose contents must be copied to another one of its group before the next step.
struct PageCopy {
    GroupIndex group;
    PageId from, to;
    bool operator==(const PageCopy&) const = default;
};

// Groups are independent pools of pages, each with a rule of what is kept of a sequence. Group 0 keeps all tokens. One
// thread at a time.
class PagedCache {
  public:
    struct Group {
        CacheRule rule;
        uint32_t pages;
    };

    // One group, of all tokens.
    explicit PagedCache(uint32_t pages) : PagedCache(std::vector<Group>{{{}, pages}}) {}
    explicit PagedCache(std::vector<Group> groups);

    GroupIndex groups() const noexcept { return static_cast<GroupIndex>(pools_.size()); }
    const CacheRule& rule(GroupIndex group) const { return pools_.at(group).rule; }
    uint32_t page_count(GroupIndex group = 0) const {
        return static_cast<uint32_t>(pools_.at(group).references.size());
    }
    uint32_t free_pages(GroupIndex group = 0) const { return static_cast<uint32_t>(pools_.at(group).free.size()); }

    // An empty sequence.
    SequenceId create();
    // Releases its pages.
    void remove(SequenceId sequence);

    uint32_t length(SequenceId sequence) const { return at(sequence).length; }
    // Of group 0: from the first token on.
    std::span<const PageId> pages(SequenceId sequence) const { return held(sequence, 0).pages; }
    HeldPages held(SequenceId sequence, GroupIndex group) const;

    // A new sequence of the first `tokens` tokens of another. Whole pages are shared; a page that is shared in part is
    // copied on the first write (see append). Throws Error(TSR_INVALID_ARGUMENT) if the other is shorter, or holds no
    // longer what would be needed (can_truncate).
    SequenceId fork(SequenceId sequence, uint32_t tokens);

    // A new sequence of `tokens` tokens that others have written: of each group the pages that hold what is needed of
    // them, up to the last one, in order, which may hold them in part. They are shared as fork() shares them. Throws
    // Error(TSR_INVALID_ARGUMENT) for pages that are free or not those that the tokens need.
    SequenceId create(std::span<const HeldPages> groups, uint32_t tokens);

    // A free page, held once as retain() holds it, for contents that its caller writes. Throws Error(TSR_DOES_NOT_FIT)
    // if there is none.
    PageId take(GroupIndex group);
    // Holds a page that is not free beyond the life of its sequences, once more for each call; release() ends that.
    void retain(GroupIndex group, PageId page);
    void release(GroupIndex group, PageId page);
    // Sequences and others that hold it.
    uint32_t holders(GroupIndex group, PageId page) const { return pools_.at(group).references.at(page); }

    // Free pages of a group that append() would take.
    uint64_t pages_to_append(SequenceId sequence, uint32_t tokens, GroupIndex group = 0) const;

    // Returns the page of a group that append() would copy because others hold it, too, if there is one.
    std::optional<PageId> page_to_copy(SequenceId sequence, uint32_t tokens, GroupIndex group = 0) const;

    // Makes room for `tokens` more. Pages to be written to belong to this sequence alone afterwards: for those that did
    // not, the copy that must be made before the next step is appended to `copies`. Throws Error(TSR_DOES_NOT_FIT),
    // changing nothing, if there are not enough free pages.
    void append(SequenceId sequence, uint32_t tokens, std::vector<PageCopy>& copies);

    // Takes back a copy of append() that could not be made, if it was for this sequence.
    void share_again(SequenceId sequence, const PageCopy& copy);

    // Gives back the pages that no token after the first `length` reads, nor one after a rollback of kRollbackTokens.
    void give_back(SequenceId sequence, uint32_t length);

    // Whether the sequence can go on from its first `tokens` tokens.
    bool can_truncate(SequenceId sequence, uint32_t tokens) const;
    // Forgets all but the first `tokens` tokens. Throws Error(TSR_INVALID_ARGUMENT) if it cannot go on from there.
    void truncate(SequenceId sequence, uint32_t tokens);

  private:
    struct Pool {
        CacheRule rule;
        std::vector<uint32_t> references;
        std::vector<PageId> free;

        PageId take();
        void drop(PageId page);
        void check_used(PageId page) const;
    };
    struct Run {
        uint32_t first = 0;
        std::vector<PageId> pages;
        uint32_t end() const noexcept { return first + static_cast<uint32_t>(pages.size()); }
    };
    struct Sequence {
        std::vector<Run> runs;  // a group each
        uint32_t length = 0;
    };

    const Sequence& at(SequenceId sequence) const;
    Sequence& at(SequenceId sequence);
    bool can_go_on(const Sequence& sequence, uint32_t tokens) const;

    std::vector<Pool> pools_;
    std::unordered_map<SequenceId, Sequence> sequences_;
    SequenceId next_ = 0;
};

}  // namespace tessera
