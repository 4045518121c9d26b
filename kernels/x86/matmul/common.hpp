// What the ops made of products share: reading weights of a node, preparing rows, sharing work, estimates.
#pragma once

#include "../estimate.hpp"
#include "../kernel.hpp"
#include "../past_caches.hpp"
#include "../rates.hpp"
#include "float_rows.hpp"
#include "weight_kernels.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/cpu/check.hpp>
#include <tessera/kernel.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

namespace tessera::x86 {

inline constexpr uint64_t kAlign = 64;

constexpr uint64_t aligned(uint64_t bytes) noexcept {
    return (bytes + kAlign - 1) / kAlign * kAlign;
}

// Of one row with no more elements every worker prepares all itself: that takes a microsecond or less, and so does a
// barrier, after which it would wait for the cache lines that others have prepared.
inline constexpr int64_t kOwnElements = 4096;

// A node in whose description every packed weight that is known here is canonical, so that checks of shapes need not
// know of layouts. Lives as long as the node.
class CanonicalNode {
  public:
    explicit CanonicalNode(const tsr_node& node) noexcept;
    CanonicalNode(const CanonicalNode&) = delete;
    CanonicalNode& operator=(const CanonicalNode&) = delete;
    const tsr_node& node() const noexcept { return node_; }

  private:
    tsr_node node_;
    std::array<tsr_tensor, TSR_MAX_OPERANDS> tensors_;
    std::array<const tsr_tensor*, TSR_MAX_OPERANDS> pointers_;
};

// A weight operand [k, n] or [k, n, batches].
struct Weight {
    const WeightKernels* kernels = nullptr;
    uint32_t operand = 0;
    int64_t k = 0;
    int64_t n = 0;
    int64_t row_bytes = 0;
    int64_t batch_bytes = 0;
    bool packed = false;

    Weight() = default;
    Weight(const tsr_node& node, uint32_t operand) noexcept;

    int64_t groups() const noexcept { return (n + kLanes - 1) / kLanes; }
    // Groups that a worker takes at a time: whole panels, and enough bytes that taking them costs nothing.
    int64_t piece() const noexcept {
        constexpr int64_t kMinimumBytes = 64 << 10;
        return kMaxPanelGroups * (kMinimumBytes / std::max<int64_t>(row_bytes * kLanes * kMaxPanelGroups, 1) + 1);
    }
    int64_t steps() const noexcept { return (k + kPrepareStep - 1) / kPrepareStep; }
    // Matrix `batch` of it.
    WeightRows rows(const tsr_node& node, const tsr_run& run, int64_t batch = 0) const noexcept;
    // Bytes of one matrix.
    double bytes() const noexcept { return static_cast<double>(row_bytes) * static_cast<double>(n); }
    double macs() const noexcept { return static_cast<double>(k) * static_cast<double>(n); }
};

// Whether rows of this operand can be packed: whole groups, at places where groups begin.
bool packable(const tsr_tensor& weight) noexcept;

// What one worker of a run does. Workers past those that the workspace was planned for only pass barriers.
class Worker {
  public:
    Worker(const tsr_run& run, uint32_t slots) noexcept
        : run_(run), active_(run.workers < slots ? run.workers : slots) {}

    bool idle() const noexcept { return run_.worker >= active_; }
    uint32_t index() const noexcept { return run_.worker; }
    uint32_t active() const noexcept { return active_; }
    cpu::Share share(int64_t count) const noexcept {
        return idle() ? cpu::Share{0, 0} : cpu::share(count, run_.worker, active_);
    }
    void barrier() const noexcept { run_.barrier(run_.team, run_.worker); }

    // Calls body(begin, end) for pieces of [0, count) of at most `piece`, as sdk::for_pieces.
    template <class Body>
    void divide(int64_t count, int64_t piece, Body&& body) const noexcept {
        if (idle()) return;
        sdk::for_pieces(run_, index(), active_, (count + piece - 1) / piece,
                        [&](int64_t i) { body(i * piece, std::min((i + 1) * piece, count)); });
    }

    // This worker's part of preparing `rows`: whole rows if there are many, else some steps of each.
    // row_at(r): the f32 row.
    template <class Prepare, class RowAt>
    void prepare(const ActivationRows& rows, Prepare&& prepare, RowAt&& row_at) const noexcept {
        const int64_t steps = (rows.elements + kPrepareStep - 1) / kPrepareStep;
        if (rows.rows >= 4 * static_cast<int64_t>(active_)) {
            const cpu::Share mine = share(rows.rows);
            for (int64_t r = mine.begin; r < mine.end; ++r) prepare(rows, r, row_at(r), 0, steps);
        } else {
            const cpu::Share mine = share(steps);
            if (mine.begin == mine.end) return;
            for (int64_t r = 0; r < rows.rows; ++r) {
                prepare(rows, r, row_at(r) + mine.begin * kPrepareStep, mine.begin, mine.end);
            }
        }
    }

  private:
    const tsr_run& run_;
    uint32_t active_;
};

// Results of one group, without those past the weight's last row. past: whole groups as write_past_caches() does.
inline void store_lanes(float* row, int64_t group, int64_t n, const float* lanes, bool past = false) noexcept {
    const int64_t at = group * kLanes;
    if (n - at >= kLanes) {
        if (past)
            write_past_caches(row + at, lanes, kLanes);
        else
            std::memcpy(row + at, lanes, kLanes * sizeof(float));
        return;
    }
    for (int64_t i = 0; i < n - at; ++i) row[at + i] = lanes[i];
}

// What the products of a node cost with one row and with all rows.
struct Cost {
    Amount one, all;

    // How many matrices of the weight are read, and rows multiplied with one, in a run of one row and of all rows.
    void add(const Weight& weight, double matrices_one, double rows_one, double matrices_all, double rows_all,
             const Macs& macs) noexcept;
    // barriers: of a run, with the one after it.
    void write(const tsr_device_info* device, int barriers, tsr_kernel_plan& plan) const noexcept;
};

}  // namespace tessera::x86
