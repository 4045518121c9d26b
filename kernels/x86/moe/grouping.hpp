// The rows of a batch, grouped by their experts.
#pragma once

#include "../matmul/common.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/cpp/status.hpp>
#include <tessera/kernel.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace tessera::x86 {

// Bytes that could have been read while one row's experts are, for each that is: runs of one expert are short, and
// more of their time goes by before memory answers.
inline constexpr double kShortRuns = 1.05;

// Memory of one worker's grouping.
constexpr uint64_t grouping_bytes(int64_t experts, int64_t places) noexcept {
    return (2 * static_cast<uint64_t>(experts) + 2 + static_cast<uint64_t>(places)) * sizeof(int32_t);
}

// Expert ids [used, R] of the actual rows.
class Ids {
  public:
    Ids(const tsr_node& node, const tsr_run& run, uint32_t operand, tsr_range rows) noexcept
        : tensor_(*node.inputs[operand]), rows_(rows.end - rows.begin) {
        data_ = sdk::operand_data<char>(node, run, operand) + rows.begin * tensor_.strides[1];
    }
    int64_t used() const noexcept { return tensor_.dims[0]; }
    int64_t rows() const noexcept { return rows_; }
    // Rows are counted from the actual range's first.
    int32_t at(int64_t row, int64_t slot) const noexcept {
        return *reinterpret_cast<const int32_t*>(data_ + row * tensor_.strides[1] + slot * tensor_.strides[0]);
    }

  private:
    const tsr_tensor& tensor_;
    int64_t rows_;
    const char* data_;
};

// Whether all ids are experts or -1. Every worker asks before the first barrier, so that all stop or none does.
inline bool check_ids(const tsr_node& node, const tsr_run& run, uint32_t operand, tsr_range rows,
                      int64_t experts) noexcept {
    const Ids ids(node, run, operand, rows);
    for (int64_t r = 0; r < ids.rows(); ++r) {
        for (int64_t slot = 0; slot < ids.used(); ++slot) {
            if (ids.at(r, slot) < -1 || ids.at(r, slot) >= experts) return false;
        }
    }
    return true;
}

// Whether no expert is named twice for a row.
inline bool distinct_experts(const Ids& ids, int64_t row) noexcept {
    for (int64_t slot = 1; slot < ids.used(); ++slot) {
        for (int64_t other = 0; other < slot; ++other) {
            if (ids.at(row, slot) >= 0 && ids.at(row, slot) == ids.at(row, other)) return false;
        }
    }
    return true;
}

[[noreturn]] inline void refuse_ids(const tsr_node& node, int64_t experts) {
    throw sdk::Failure(TSR_INVALID_ARGUMENT, std::string(node.op) + " " + (node.name ? node.name : "") +
                                                 ": an expert's id is not below " + std::to_string(experts));
}

// A place is row * used + slot, with rows counted from the actual range's first. Places of expert e are
// place[first[e]] .. place[first[e + 1] - 1], ascending; experts ascend too, so sums over experts have one order
// however many rows there are. Places whose id is -1 are in none.
struct Grouping {
    int32_t* first;  // [experts + 1]
    int32_t* place;

    // Every worker makes its own: it costs less than waiting for another's. The ids have been checked.
    Grouping(void* memory, const Ids& ids, int64_t experts) noexcept
        : first(static_cast<int32_t*>(memory)), place(first + 2 * experts + 2) {
        int32_t* next = first + experts + 1;
        for (int64_t e = 0; e <= experts; ++e) first[e] = 0;
        for (int64_t r = 0; r < ids.rows(); ++r) {
            for (int64_t slot = 0; slot < ids.used(); ++slot) {
                if (ids.at(r, slot) >= 0) ++first[ids.at(r, slot) + 1];
            }
        }
        for (int64_t e = 0; e < experts; ++e) {
            first[e + 1] += first[e];
            next[e] = first[e];
        }
        for (int64_t r = 0; r < ids.rows(); ++r) {
            for (int64_t slot = 0; slot < ids.used(); ++slot) {
                const int32_t id = ids.at(r, slot);
                if (id >= 0) place[next[id]++] = static_cast<int32_t>(r * ids.used() + slot);
            }
        }
    }

    int64_t count(int64_t expert) const noexcept { return first[expert + 1] - first[expert]; }
};

// Experts that have rows.
inline int64_t busy_experts(const Grouping& grouping, int64_t experts) noexcept {
    int64_t busy = 0;
    for (int64_t e = 0; e < experts; ++e) busy += grouping.count(e) > 0;
    return busy;
}

// Calls body(expert, begin, end) for pieces of [0, of_each) of each expert that has rows, divided among the workers:
// one expert after another, so that a worker's pieces are long runs of memory.
template <class Body>
void divide_experts(const Worker& worker, const Grouping& grouping, int64_t experts, int64_t of_each, int64_t piece,
                    Body&& body) {
    const int64_t pieces = (of_each + piece - 1) / piece;
    int64_t expert = -1, nth = -1;  // of those that have rows
    worker.divide(busy_experts(grouping, experts) * pieces, 1, [&](int64_t item, int64_t) {
        if (item / pieces < nth) expert = nth = -1;
        while (nth < item / pieces) nth += grouping.count(++expert) > 0;
        const int64_t begin = item % pieces * piece;
        body(expert, begin, std::min(begin + piece, of_each));
    });
}

// A worker's part of preparing grouped rows for a weight: whole rows if there are many, else some steps of each.
// rows_of(expert): its prepared rows; row_at(place): the f32 row.
template <class RowsOf, class RowAt>
void prepare_grouped(const Worker& worker, const Grouping& grouping, int64_t experts, const Weight& weight,
                     RowsOf&& rows_of, RowAt&& row_at) {
    const int64_t places = grouping.first[experts];
    const bool whole = places >= 4 * static_cast<int64_t>(worker.active());
    const cpu::Share mine = worker.share(whole ? places : weight.steps());
    if (mine.begin == mine.end) return;
    for (int64_t e = 0; e < experts; ++e) {
        const ActivationRows to = rows_of(e);
        const int64_t first = grouping.first[e];
        const int64_t begin = whole ? std::max<int64_t>(mine.begin - first, 0) : 0;
        const int64_t end = whole ? std::min(mine.end - first, to.rows) : to.rows;
        const int64_t step = whole ? 0 : mine.begin, last = whole ? weight.steps() : mine.end;
        for (int64_t r = begin; r < end; ++r) {
            weight.kernels->prepare(to, r, row_at(grouping.place[first + r]) + step * kPrepareStep, step, last);
        }
    }
}

}  // namespace tessera::x86
