// convert, transpose and cache_write: what stores rows in another type.
#pragma once

#include <tessera/cpu/reference/check.hpp>
#include <tessera/cpu/reference/rows.hpp>
#include <tessera/ops.h>

#include <string>

namespace tessera::cpu::reference {

// Columns of blocks that are turned at a time.
inline constexpr int64_t kTurn = 32;

inline bool check_target(Check& check, const tsr_node& node, bool turned) noexcept {
    check.counts(1, 1, 1);
    check.weight(0, "the weight", 0);
    check.weight(check.out(), "the output", 0);
    if (!check) return false;
    const tsr_tensor& from = check.at(0);
    const tsr_tensor& to = check.at(check.out());
    check.rank(check.out(), "the output", from.rank);
    if (turned) {
        if (from.rank < 2) check.rank(0, "the weight", 2);
        check.dims(check.out(), "the output", {from.dims[1], from.dims[0], from.dims[2], from.dims[3]});
    } else {
        check.dims(check.out(), "the output", {from.dims[0], from.dims[1], from.dims[2], from.dims[3]});
    }
    if (!check) return false;
    if (!can_encode(to.type) || static_cast<int64_t>(to.type) != sdk::int_attribute(node, "type", -1)) {
        return check.no(
            "%s: required type %lld into %s; supported: f32 f16 bf16 q8_0 q6_0 q5_0 q5_1 q4_0 q4_1 iq4_nl, as the "
            "output has; "
            "missing: that type",
            node.op, static_cast<long long>(sdk::int_attribute(node, "type", -1)), format_name(to.type));
    }
    return true;
}

inline void plan_convert(const tsr_node& node, uint32_t, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check_target(check, node, false)) return;
    work = row_work(check.at(0), 1);
    plan.supported = 1;
}

inline void plan_transpose(const tsr_node& node, uint32_t, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check_target(check, node, true)) return;
    work = row_work(check.at(0), 1);
    plan.supported = 1;
}

inline void run_convert(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View from = input(node, run, 0);
    const View to = output(node, run);
    const int64_t n = from.dim(0), n1 = from.dim(1), n2 = from.dim(2);
    const FormatSize size = format_size(to.tensor->type);
    const Share part = share(n1 * n2 * from.dim(3), run);
    for (int64_t r = part.begin; r < part.end; ++r) {
        const int64_t i1 = r % n1, i2 = r / n1 % n2, i3 = r / n1 / n2;
        for (int64_t first = 0; first < n; first += kChunk) {
            float values[kChunk];
            const int64_t count = std::min(kChunk, n - first);
            decode_elements(from.tensor->type, from.row(i1, i2, i3), first, count, values);
            encode_row(to.tensor->type, values, static_cast<size_t>(count),
                       to.row(i1, i2, i3) + first / size.elements * size.bytes);
        }
    }
}

inline void run_transpose(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View from = input(node, run, 0);
    const View to = output(node, run);
    const int64_t n0 = from.dim(0), n1 = from.dim(1), n2 = from.dim(2);
    const FormatSize size = format_size(to.tensor->type);
    // An item is a chunk of columns, which are whole rows of the output.
    const int64_t chunks = (n0 + kChunk - 1) / kChunk;
    const Share part = share(chunks * n2 * from.dim(3), run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t first = item % chunks * kChunk;
        const int64_t i2 = item / chunks % n2, i3 = item / chunks / n2;
        const int64_t columns = std::min(kChunk, n0 - first);
        for (int64_t begin = 0; begin < n1; begin += kTurn) {
            const int64_t count = std::min(kTurn, n1 - begin);
            float values[kTurn][kChunk];
            for (int64_t r = 0; r < count; ++r) {
                decode_elements(from.tensor->type, from.row(begin + r, i2, i3), first, columns, values[r]);
            }
            for (int64_t c = 0; c < columns; ++c) {
                float turned[kTurn];
                for (int64_t r = 0; r < count; ++r) turned[r] = values[r][c];
                encode_row(to.tensor->type, turned, static_cast<size_t>(count),
                           to.row(first + c, i2, i3) + begin / size.elements * size.bytes);
            }
        }
    }
}

// ---- the cache ----

// Where a token of a sequence lies: checks what came in as data.
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

// 0 x, 1 positions, 2 sequences, 3 page_table; output the cache.
inline void plan_cache_write(const tsr_node& node, uint32_t, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    check.counts(4, 4, 1);
    check.activation(0, "x", 2);
    check.integers(1, "positions", 1);
    check.integers(2, "sequences", 1);
    check.integers(3, "page_table", 2);
    check.cache(check.out(), "the cache");
    if (!check) return;
    check.dim(1, "positions", 0, check.at(0).dims[1]);
    check.dim(2, "sequences", 0, check.at(0).dims[1]);
    check.dim(check.out(), "the cache", 0, check.at(0).dims[0]);
    check.same_range(0, 1);
    check.same_range(0, 2);
    if (!check) return;
    work = row_work(check.at(0), 1);
    plan.supported = 1;
}

inline void run_cache_write(const tsr_node& node, uint32_t, const tsr_run& run) {
    const View x = input(node, run, 0);
    const View positions = input(node, run, 1);
    const View sequences = input(node, run, 2);
    const View cache = output(node, run);
    const PageTable table(node, input(node, run, 3), cache.dim(2));
    const tsr_range rows = sdk::actual_rows(*x.tensor, run);
    const Share part = share(rows.end - rows.begin, run);
    for (int64_t r = rows.begin + part.begin; r < rows.begin + part.end; ++r) {
        const int64_t position = positions.integer(r);
        const int64_t page = table.page(position, sequences.integer(r));
        encode_row(cache.tensor->type, x.floats(r), static_cast<size_t>(x.dim(0)),
                   cache.row(position % TSR_PAGE_TOKENS, page));
    }
}

}  // namespace tessera::cpu::reference
