// Which page holds which tokens of which sequence. Pages are refcounted: sequences share prefixes, can be rolled back,
// and do not divide a context into slots. Only the bookkeeping; the data of the pages is in PlanMemory.
#pragma once

#include <tessera/tensor.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tessera {

using SequenceId = uint32_t;
using PageId = uint32_t;

// Pages that hold so many tokens of one sequence.
constexpr uint32_t pages_for(uint64_t tokens) noexcept {
    return static_cast<uint32_t>((tokens + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS);
}

// One thread at a time.
class PagedCache {
  public:
    explicit PagedCache(uint32_t pages);

    uint32_t page_count() const noexcept { return static_cast<uint32_t>(references_.size()); }
    uint32_t free_pages() const noexcept { return static_cast<uint32_t>(free_.size()); }

    // An empty sequence.
    SequenceId create();
    // Releases its pages.
    void remove(SequenceId sequence);

    uint32_t length(SequenceId sequence) const { return at(sequence).length; }
    std::span<const PageId> pages(SequenceId sequence) const { return at(sequence).pages; }

    // A new sequence of the first `tokens` tokens of another. Whole pages are shared; a page that is shared in part is
    // copied on the first write (see append). Throws Error(TSR_INVALID_ARGUMENT) if the other is shorter.
    SequenceId fork(SequenceId sequence, uint32_t tokens);

    // A new sequence of `tokens` tokens that others have written: `pages` hold them, in order, the last one in part
    // perhaps. They are shared as fork() shares them. Throws Error(TSR_INVALID_ARGUMENT) for pages that are free or too
    // few or many for the tokens.
    SequenceId create(std::span<const PageId> pages, uint32_t tokens);

    // Holds a page that is not free beyond the life of its sequences, once more for each call; release() ends that.
    void retain(PageId page);
    void release(PageId page);

    // Free pages that append() would take.
    uint64_t pages_to_append(SequenceId sequence, uint32_t tokens) const;

    // Makes room for `tokens` more. Pages to be written to belong to this sequence alone afterwards: for those that did
    // not, the copy {from, to} that must be made before the next step is appended to `copies`. Throws
    // Error(TSR_DOES_NOT_FIT), changing nothing, if there are not enough free pages.
    void append(SequenceId sequence, uint32_t tokens, std::vector<std::pair<PageId, PageId>>& copies);

    // Takes back a copy {from, to} of append() that could not be made, if it was for this sequence.
    void share_again(SequenceId sequence, PageId from, PageId to);

    // Forgets all but the first `tokens` tokens.
    void truncate(SequenceId sequence, uint32_t tokens);

  private:
    struct Sequence {
        std::vector<PageId> pages;
        uint32_t length = 0;
    };

    const Sequence& at(SequenceId sequence) const;
    Sequence& at(SequenceId sequence);
    void check_used(PageId page) const;
    // Whether that many more tokens would begin in a page that others have, too.
    bool writes_shared(const Sequence& sequence, uint32_t tokens) const;
    PageId take();
    void drop(PageId page);

    std::vector<uint32_t> references_;
    std::vector<PageId> free_;
    std::unordered_map<SequenceId, Sequence> sequences_;
    SequenceId next_ = 0;
};

}  // namespace tessera
