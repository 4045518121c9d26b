// The page table of the cache.
#pragma once

#include <tessera/cpp/node.hpp>
#include <tessera/cpp/status.hpp>
#include <tessera/cpu/rows.hpp>
#include <tessera/tensor.h>

#include <string>

namespace tessera::cpu {

// Finds the page of a token of a sequence; checks its data, which is untrusted.
class PageTable {
  public:
    PageTable(const tsr_node& node, const View& table, int64_t pages) noexcept
        : node_(node), table_(table), pages_(pages) {}

    int64_t page(int64_t position, int64_t sequence) const {
        if (position < 0 || position / TSR_PAGE_TOKENS >= table_.dim(0))
            bad("position", position, table_.dim(0) * TSR_PAGE_TOKENS);
        if (sequence < 0 || sequence >= table_.dim(1)) bad("sequence", sequence, table_.dim(1));
        const int64_t page = table_.integer(position / TSR_PAGE_TOKENS, sequence);
        if (page < 0 || page >= pages_) bad("page", page, pages_);
        return page;
    }

  private:
    [[noreturn]] void bad(const char* what, int64_t found, int64_t limit) const {
        throw sdk::Failure(TSR_INVALID_ARGUMENT, std::string(node_.op) + " " + (node_.name ? node_.name : "") + ": " +
                                                     what + " " + std::to_string(found) + "; expected 0 to " +
                                                     std::to_string(limit - 1));
    }
    const tsr_node& node_;
    View table_;
    int64_t pages_;
};

}  // namespace tessera::cpu
