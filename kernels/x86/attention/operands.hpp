// The operands of one run of an attention node, and the cached rows of its slices.
#pragma once

#include "../kit.hpp"
#include "../layouts/byte_pages.hpp"
#include "../layouts/int16_pages.hpp"
#include "work.hpp"

#include <tessera/cpu/rows.hpp>

#include <algorithm>
#include <string>

namespace tessera::x86::attention {

// The state of a prepared node.
struct State {
    const tsr_node* node;
    Problem problem;
    Budget budget;
    PackedRows wk, wv;  // projected
    // Of the k cache; at most one of them is its layout.
    Int16Pages int16_pages;
    BytePages byte_pages;
};

class Operands {
  public:
    Operands(const State& state, const tsr_run& run) noexcept
        : state_(state),
          run_(run),
          q(view(0)),
          k(view(1)),
          v(view(2)),
          table(view(5)),
          wk(view(6)),
          wv(view(7)),
          sinks(view(8)),
          out(cpu::view(*state.node, run, state.node->input_count)),
          positions(sdk::operand_data<const int32_t>(*state.node, run, 3)),
          sequences(sdk::operand_data<const int32_t>(*state.node, run, 4)),
          rows(sdk::actual_rows(*q.tensor, run)),
          int16_pages(state.int16_pages),
          byte_pages(state.byte_pages),
          page_bytes_(has_int16_pages() ? int16_pages.page_bytes() : byte_pages.page_bytes()) {}

    const State& state() const noexcept { return state_; }
    const tsr_run& run() const noexcept { return run_; }
    const Problem& problem() const noexcept { return state_.problem; }
    const HeadShape& shape() const noexcept { return state_.problem.shape; }
    // The cache that holds the values.
    const View& values() const noexcept { return problem().variant == Variant::kPlain ? v : k; }

    template <class Arithmetic>
    Slices<Arithmetic> slices(bool few) const noexcept {
        return {problem(), state_.budget, positions, sequences, rows, few};
    }

    // Throws sdk::Failure if a sequence, a position or a page of a slice is out of range.
    void check(const Slice& s) const {
        if (s.sequence < 0 || s.sequence >= table.dim(1))
            fail("sequence slot " + std::to_string(s.sequence) + " of " + std::to_string(table.dim(1)));
        if (s.first_position < 0 || s.tokens() > table.dim(0) * TSR_PAGE_TOKENS)
            fail("position " + std::to_string(s.tokens() - 1) + " of " +
                 std::to_string(table.dim(0) * TSR_PAGE_TOKENS));
        for (int64_t page = s.first_token / TSR_PAGE_TOKENS; page * TSR_PAGE_TOKENS < s.tokens(); ++page) {
            const int32_t id = table.integer(page, s.sequence);
            if (id < 0 || id >= k.dim(2) || (v.tensor && id >= v.dim(2)))
                fail("page " + std::to_string(id) + " of " + std::to_string(k.dim(2)));
        }
    }

    // Row and head of a lane of a slice.
    int32_t row_of(const Slice& s, int64_t lane) const noexcept {
        return static_cast<int32_t>(s.begin + lane / problem().group);
    }
    int head_of(int key, int64_t lane) const noexcept {
        return static_cast<int>(key * problem().group + lane % problem().group);
    }

    // Whether the cache is in the layout of int16_pages.hpp, or of byte_pages.hpp. Then pages are found by
    // page_of_token() alone, and rows by int16_row() or not at all.
    bool has_int16_pages() const noexcept { return int16_pages.lanes > 0; }
    bool has_byte_pages() const noexcept { return byte_pages.elements > 0; }
    const char* page_of_token(const Slice& s, int32_t token) const noexcept {
        return k.data + table.integer(token / TSR_PAGE_TOKENS, s.sequence) * page_bytes_;
    }
    const int16_t* int16_row(const Slice& s, int32_t token) const noexcept {
        return int16_pages.row(page_of_token(s, token), token % TSR_PAGE_TOKENS);
    }

    // The cached rows of `tokens` tokens from `first` on.
    void find_rows(const View& cache, const Slice& s, int32_t first, int tokens, const char** to) const noexcept {
        for (int t = 0; t < tokens;) {
            const char* row = row_of_token(cache, s, first + t);
            const int end = std::min(tokens, t + TSR_PAGE_TOKENS - (first + t) % TSR_PAGE_TOKENS);
            for (; t < end; ++t, row += cache.tensor->strides[1]) to[t] = row;
        }
    }
    const char* row_of_token(const View& cache, const Slice& s, int32_t token) const noexcept {
        return cache.row(token % TSR_PAGE_TOKENS, table.integer(token / TSR_PAGE_TOKENS, s.sequence));
    }

  private:
    View view(uint32_t index) const noexcept {
        return sdk::has_input(*state_.node, index) ? cpu::view(*state_.node, run_, index) : View{};
    }
    [[noreturn]] void fail(const std::string& what) const {
        throw sdk::Failure(TSR_INVALID_ARGUMENT,
                           std::string("attention ") + (state_.node->name ? state_.node->name : "") + ": " + what);
    }

    const State& state_;
    const tsr_run& run_;

  public:
    const View q, k, v, table, wk, wv, sinks, out;  // without data where the node has no such operand
    const int32_t* const positions;
    const int32_t* const sequences;
    const tsr_range rows;
    const Int16Pages& int16_pages;
    const BytePages& byte_pages;

  private:
    const int64_t page_bytes_;  // in the layouts above
};

// Lanes of a panel of a slice.
template <class Isa, class Arithmetic>
struct Lanes {
    static int count(const Slice& s, int64_t panel) noexcept {
        return static_cast<int>(std::min<int64_t>(Arithmetic::kPanel, s.lanes - panel * Arithmetic::kPanel));
    }
    static int vectors(const Slice& s, int64_t panel) noexcept { return count(s, panel) > Isa::kLanes ? 2 : 1; }
};

}  // namespace tessera::x86::attention
