// gated_ffn and moe_ffn in one pass: x is prepared once, gate and up of 32 hidden elements at a time are combined in
// the first-level cache, where they are prepared for down at once; so hidden values are never stored as floats.
#include "../layouts/layouts.hpp"
#include "../matmul/common.hpp"
#include "../vectors.hpp"
#include "grouping.hpp"
#include "lanes.hpp"
#include "moe.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/checks/ffn.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <cstring>

namespace tessera::x86 {

namespace {

using cpu::Check;

constexpr int kGroupsOfStep = kPrepareStep / kLanes;
// Rows whose hidden elements wait for up at a time, 32 of each; of fewer rows more of each: whole tiles, 15 KiB.
constexpr int64_t kHiddenRows = kBatchRows;
// What a worker takes at a time: groups of the output. Pieces that follow each other are one run of memory.
constexpr int64_t kDownGroups = 16;
// The same of steps of a network's hidden elements. A piece is a run of gate and one of up, and what begins a run costs
// as much as 20 KB of it: pieces are as long as leaves each worker kPiecesOfWorker of them, so that they end together.
constexpr int64_t kMinSteps = 4, kMaxSteps = 16, kPiecesOfWorker = 4;
// With at most so many pairs of row and expert each has an output of its own, and they are summed at last: a worker
// then reads one expert's weights after another's, in long runs, not a little of each.
constexpr int64_t kOutputsApart = 32;
static_assert(kDownGroups % kMaxPanelGroups == 0);
static_assert(kHiddenRows % kTileRows == 0 && kHiddenRows % kFloatTileRows == 0);

// `count` rows from `first` (a multiple of any tile) on.
ActivationRows slice(const ActivationRows& rows, uint64_t row_bytes, int64_t first, int64_t count) noexcept {
    return {rows.data + static_cast<uint64_t>(first) * row_bytes, count, rows.elements};
}

// One network, or several with ids and weights.
struct Ffn {
    const tsr_node* node;
    uint32_t slots;
    const PanelTable* panels;
    bool routed;
    cpu::Glu glu;
    bool plain;  // silu(gate) * up, and no biases
    Weight gate, up, down;
    int64_t experts, used, max_rows;
    bool same_x;                                                   // gate and up need the same preparation of rows
    uint64_t scratch_bytes, hidden_bytes, own_bytes, group_bytes;  // of one worker
    uint64_t x_offset, up_x_offset, h_offset, out_offset, workspace_bytes;

    Ffn(const tsr_node& of, const tsr_device_info* device) noexcept
        : node(&of), slots(slots_of(device)), panels(vectors_of(device).panels), glu(of) {
        routed = cpu::is_routed(of);
        const uint32_t first = cpu::first_matrix(of);
        plain = glu.is_silu_mul() && of.input_count == first + 3;
        gate = Weight(of, first);
        up = Weight(of, first + 1);
        down = Weight(of, first + 2);
        experts = routed ? of.inputs[first]->dims[2] : 1;
        used = routed ? of.inputs[1]->dims[0] : 1;
        max_rows = of.inputs[0]->dims[1];
        same_x = gate.kernels->activations == up.kernels->activations;
        const int64_t places = max_rows * used;
        scratch_bytes = std::max({gate.kernels->scratch_bytes, up.kernels->scratch_bytes, down.kernels->scratch_bytes});
        hidden_bytes = aligned(kHiddenRows * kPrepareStep * sizeof(float));
        own_bytes = gate.k > kOwnElements ? 0 : own_up_offset() + (same_x ? 0 : aligned(x_bytes(up)));
        group_bytes = routed ? aligned(grouping_bytes(experts, places)) : 0;
        x_offset = slots * worker_bytes();
        up_x_offset = x_offset + aligned(static_cast<uint64_t>(places) * x_bytes(gate));
        h_offset = same_x ? up_x_offset : up_x_offset + aligned(static_cast<uint64_t>(places) * x_bytes(up));
        out_offset = h_offset + aligned(static_cast<uint64_t>(places) * x_bytes(down));
        const int64_t apart = routed ? std::min(places, kOutputsApart) : 0;
        workspace_bytes = out_offset + aligned(static_cast<uint64_t>(apart * down.n) * sizeof(float));
    }

    // Rows of this run have outputs for each of their experts.
    bool apart(int64_t rows) const noexcept { return routed && rows * used <= kOutputsApart; }

    // One row is prepared by each worker for itself.
    bool prepares_own() const noexcept { return own_bytes > 0; }

    static uint64_t x_bytes(const Weight& weight) noexcept {
        return prepared_row_bytes(weight.kernels->activations, weight.k);
    }
    uint64_t worker_bytes() const noexcept { return scratch_bytes + hidden_bytes + own_bytes + group_bytes; }
    // Of the row as up needs it, in a worker's own.
    uint64_t own_up_offset() const noexcept { return aligned(x_bytes(gate)); }
};

const tsr_status* plan_ffn(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device,
                           tsr_kernel_plan* plan) {
    const CanonicalNode canonical(*node);
    Check check(canonical.node(), *plan);
    if (!cpu::check_ffn(check, canonical.node(), cpu::Networks::kAll)) return nullptr;
    const Ffn op(canonical.node(), device);
    const auto rows = static_cast<double>(op.max_rows), used = static_cast<double>(op.used);
    const double all = std::min(static_cast<double>(op.experts), rows * used);
    Cost cost;
    for (const Weight* weight : {&op.gate, &op.up, &op.down}) {
        plan->layouts[weight->operand] =
            layouts_of(weight->kernels->type, packable(*canonical.node().inputs[weight->operand]));
        cost.add(*weight, std::min(used, static_cast<double>(op.experts)), used, all, rows * used,
                 vectors_of(device).macs(*weight->kernels));
    }
    plan->supported = 1;
    plan->workspace_bytes = op.workspace_bytes;
    if (op.routed) cost.one.bytes *= kShortRuns;
    cost.write(device, op.routed ? 4 : 3, *plan);
    std::snprintf(plan->reason, sizeof plan->reason, "%s, %s, %s, fused, %s", op.gate.kernels->name,
                  op.up.kernels->name, op.down.kernels->name, vectors_of(device).name);
    return nullptr;
}

const tsr_status* prepare_ffn(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_device*,
                              void** state) {
    return sdk::guarded([&] { *state = new Ffn(*node, device); });
}

void release_ffn(const tsr_kernel*, void* state) {
    delete static_cast<Ffn*>(state);
}

// The work of one run. An expert's rows, in the order of `place`, follow each other in the prepared buffers.
class Pass {
  public:
    Pass(const Ffn& op, const tsr_run& run, tsr_range rows, const Worker& worker, const Grouping* grouping,
         bool one_row) noexcept
        : op_(op),
          run_(run),
          worker_(worker),
          grouping_(grouping),
          range_(rows),
          rows_(rows.end - rows.begin),
          one_row_(one_row),
          own_(one_row && op.prepares_own()) {
        workspace_ = static_cast<unsigned char*>(run.workspace);
        scratch_ = workspace_ + (worker.idle() ? 0 : worker.index()) * op.worker_bytes();
        hidden_ = reinterpret_cast<float*>(scratch_ + op.scratch_bytes);
    }

    // Rows of x as gate and up need them, for all workers or for this one.
    void prepare_x() const {
        if (own_) {
            if (worker_.idle()) return;
            prepare_own(op_.gate, x_rows(op_.gate, op_.x_offset, 0));
            if (!op_.same_x) prepare_own(op_.up, x_rows(op_.up, op_.up_x_offset, 0));
            return;
        }
        prepare_x(op_.gate, op_.x_offset);
        if (!op_.same_x) prepare_x(op_.up, op_.up_x_offset);
    }

    // Hidden elements of all experts, prepared for down. A piece is some steps of one expert.
    void hidden() const {
        const int64_t steps = (op_.gate.n + kPrepareStep - 1) / kPrepareStep;
        const int64_t wanted = kPiecesOfWorker * worker_.active(), networks = std::max<int64_t>(busy(), 1);
        const int64_t pieces = std::max((steps + kMaxSteps - 1) / kMaxSteps, (wanted + networks - 1) / networks);
        const int64_t piece = std::max((steps + pieces - 1) / pieces, kMinSteps);
        divide(steps, piece, [&](int64_t expert, int64_t begin, int64_t end) {
            for (int64_t first = 0; first < count(expert); first += kHiddenRows) {
                hidden_of(expert, {begin, end}, first, std::min(kHiddenRows, count(expert) - first));
            }
        });
    }

    // The output of all experts together, or where they are kept apart.
    void output() const {
        if (op_.apart(rows_)) {
            divide(op_.down.groups(), kDownGroups, [&](int64_t expert, int64_t begin, int64_t end) {
                const float* bias = bias_of(op_.down, expert);
                const auto store = [&](int64_t r, int64_t group, const float* lanes) {
                    store_lanes(apart_row(first(expert) + r), group, op_.down.n, lanes);
                };
                multiply(op_.down, op_.down.rows(*op_.node, run_, expert), begin, end, h_rows(expert), bias, store);
            });
            return;
        }
        worker_.divide(op_.down.groups(), kDownGroups, [&](int64_t begin, int64_t end) {
            if (grouping_) {
                add_experts(begin, end);
                return;
            }
            const auto store = [&](int64_t r, int64_t group, const float* lanes) {
                store_lanes(out_row(r), group, op_.down.n, lanes);
            };
            multiply(op_.down, op_.down.rows(*op_.node, run_), begin, end, h_rows(0), bias_of(op_.down, 0), store);
        });
    }

    // What was kept apart, in the order in which add_experts adds.
    void sum() const {
        const cpu::Share mine = worker_.share(op_.down.groups());
        const int64_t begin = mine.begin * kLanes, end = std::min(mine.end * kLanes, op_.down.n);
        clear(begin, end);
        for (int64_t i = 0; i < grouping_->first[op_.experts]; ++i) {
            const int64_t place = grouping_->place[i];
            add_scaled(out_row(place / op_.used) + begin, apart_row(i) + begin, end - begin, factor_of(place));
        }
    }

  private:
    // Of a matrix of expert e; nullptr: there is none.
    const float* bias_of(const Weight& weight, int64_t e) const noexcept {
        const uint32_t index = weight.operand + 3;
        if (op_.plain || !sdk::has_input(*op_.node, index)) return nullptr;
        const char* data = sdk::operand_data<char>(*op_.node, run_, index);
        return reinterpret_cast<const float*>(data + e * op_.node->inputs[index]->strides[1]);
    }
    // Groups begin .. end of the products with rows, plus the bias, each to `sink`.
    template <class Function>
    void multiply(const Weight& weight, const WeightRows& matrix, int64_t begin, int64_t end,
                  const ActivationRows& rows, const float* bias, const Function& sink) const {
        if (!bias) {
            weight.kernels->multiply(*op_.panels, matrix, begin, end, rows, scratch_, Sink(sink));
            return;
        }
        const auto biased = [&](int64_t r, int64_t group, const float* lanes) {
            float sums[kLanes];
            add_bias_8(sums, lanes, bias + group * kLanes, weight.n - group * kLanes);
            sink(r, group, sums);
        };
        weight.kernels->multiply(*op_.panels, matrix, begin, end, rows, scratch_, Sink(biased));
    }

    const float* x_row(int64_t r) const noexcept {
        const tsr_tensor& x = *op_.node->inputs[0];
        const char* data = sdk::operand_data<char>(*op_.node, run_, 0);
        return reinterpret_cast<const float*>(data + (range_.begin + r) * x.strides[1]);
    }
    void prepare_own(const Weight& weight, const ActivationRows& to) const noexcept {
        weight.kernels->prepare(to, 0, x_row(0), 0, weight.steps());
    }
    // Rows of x for a weight, at `offset` of the workspace. One row serves all its experts; else each expert has its
    // rows together.
    void prepare_x(const Weight& weight, uint64_t offset) const {
        if (!grouping_ || one_row_) {
            worker_.prepare(ActivationRows{workspace_ + offset, rows_, weight.k}, weight.kernels->prepare,
                            [&](int64_t r) { return x_row(r); });
            return;
        }
        prepare_grouped(
            worker_, *grouping_, op_.experts, weight, [&](int64_t e) { return x_rows(weight, offset, e); },
            [&](int64_t place) { return x_row(place / op_.used); });
    }

    // Networks that have rows.
    int64_t busy() const noexcept { return grouping_ ? busy_experts(*grouping_, op_.experts) : 1; }
    // Calls body(expert, begin, end) for pieces of [0, of_each) of each of them.
    template <class Body>
    void divide(int64_t of_each, int64_t piece, Body&& body) const {
        if (grouping_)
            divide_experts(worker_, *grouping_, op_.experts, of_each, piece, body);
        else
            worker_.divide(of_each, piece, [&](int64_t begin, int64_t end) { body(int64_t{0}, begin, end); });
    }

    float* out_row(int64_t row) const noexcept {
        const tsr_tensor& out = *op_.node->outputs[0];
        char* data = sdk::operand_data<char>(*op_.node, run_, op_.node->input_count);
        return reinterpret_cast<float*>(data + (range_.begin + row) * out.strides[1]);
    }
    float* apart_row(int64_t index) const noexcept {
        return reinterpret_cast<float*>(workspace_ + op_.out_offset) + index * op_.down.n;
    }
    float factor_of(int64_t place) const noexcept {
        const tsr_tensor& weights = *op_.node->inputs[2];
        const char* row =
            sdk::operand_data<char>(*op_.node, run_, 2) + (range_.begin + place / op_.used) * weights.strides[1];
        return reinterpret_cast<const float*>(row)[place % op_.used];
    }
    void clear(int64_t begin, int64_t end) const noexcept {
        for (int64_t r = 0; r < rows_; ++r) std::fill(out_row(r) + begin, out_row(r) + end, 0.0f);
    }

    // Groups begin .. end of the output: the experts' sum, in their order.
    void add_experts(int64_t begin, int64_t end) const {
        clear(begin * kLanes, std::min(end * kLanes, op_.down.n));
        for (int64_t e = 0; e < op_.experts; ++e) {
            if (count(e) == 0) continue;
            const auto add_lanes = [&](int64_t r, int64_t group, const float* lanes) {
                const int64_t place = grouping_->place[grouping_->first[e] + r], at = group * kLanes;
                add_scaled(out_row(place / op_.used) + at, lanes, std::min<int64_t>(kLanes, op_.down.n - at),
                           factor_of(place));
            };
            multiply(op_.down, op_.down.rows(*op_.node, run_, e), begin, end, h_rows(e), bias_of(op_.down, e),
                     add_lanes);
        }
    }

    // `rows` rows of expert e from `first` on.
    void hidden_of(int64_t e, cpu::Share mine, int64_t first, int64_t rows) const {
        const auto part = [&](const ActivationRows& all, const Weight& weight) {
            return slice(all, Ffn::x_bytes(weight), first, rows);
        };
        const WeightRows gate = op_.gate.rows(*op_.node, run_, e), up = op_.up.rows(*op_.node, run_, e);
        const ActivationRows gate_x = part(x_rows(op_.gate, op_.x_offset, e), op_.gate);
        const ActivationRows up_x = op_.same_x ? gate_x : part(x_rows(op_.up, op_.up_x_offset, e), op_.up);
        const ActivationRows to = part(h_rows(e), op_.down);
        // With few rows each weight is one long read, and changing from one to the other costs time.
        const int64_t at_once = std::max<int64_t>(kHiddenRows / rows, 1), width = at_once * kPrepareStep;
        for (int64_t step = mine.begin; step < mine.end; step += at_once) {
            const int64_t last = std::min(step + at_once, mine.end);
            const int64_t begin = step * kGroupsOfStep, end = std::min(op_.gate.groups(), last * kGroupsOfStep);
            const auto keep = [&](int64_t r, int64_t group, const float* lanes) {
                std::memcpy(hidden_ + r * width + (group - begin) * kLanes, lanes, kLanes * sizeof(float));
            };
            multiply(op_.gate, gate, begin, end, gate_x, bias_of(op_.gate, e), keep);
            if (op_.plain) {
                multiply(op_.up, up, begin, end, up_x, nullptr, [&](int64_t r, int64_t group, const float* lanes) {
                    silu_mul_8(hidden_ + r * width + (group - begin) * kLanes, lanes);
                });
            } else {
                multiply(op_.up, up, begin, end, up_x, bias_of(op_.up, e),
                         [&](int64_t r, int64_t group, const float* lanes) {
                             glu_8(op_.glu, hidden_ + r * width + (group - begin) * kLanes, lanes);
                         });
            }
            for (int64_t r = 0; r < rows; ++r) {
                op_.down.kernels->prepare(to, r, hidden_ + r * width, step, last);
            }
        }
    }

    int64_t count(int64_t e) const noexcept { return grouping_ ? grouping_->count(e) : rows_; }
    int64_t first(int64_t e) const noexcept { return grouping_ ? grouping_->first[e] : 0; }
    ActivationRows x_rows(const Weight& weight, uint64_t offset, int64_t e) const noexcept {
        if (own_) {
            unsigned char* own = scratch_ + op_.scratch_bytes + op_.hidden_bytes;
            return {own + (offset == op_.x_offset ? 0 : op_.own_up_offset()), 1, weight.k};
        }
        const int64_t at = one_row_ ? 0 : first(e);
        return {workspace_ + offset + static_cast<uint64_t>(at) * Ffn::x_bytes(weight), count(e), weight.k};
    }
    ActivationRows h_rows(int64_t e) const noexcept {
        return {workspace_ + op_.h_offset + static_cast<uint64_t>(first(e)) * Ffn::x_bytes(op_.down), count(e),
                op_.down.k};
    }

    const Ffn& op_;
    const tsr_run& run_;
    const Worker& worker_;
    const Grouping* grouping_;
    tsr_range range_;
    int64_t rows_;
    bool one_row_;  // and no expert twice: all experts read it in one place
    bool own_;      // of which each worker has one of its own
    unsigned char* workspace_;
    unsigned char* scratch_;
    float* hidden_;
};

const tsr_status* run_ffn(const tsr_kernel*, void* state, const tsr_run* run) {
    const Ffn& op = *static_cast<Ffn*>(state);
    const tsr_range rows = sdk::actual_rows(*op.node->inputs[0], *run);
    if (rows.end <= rows.begin) return nullptr;
    const Worker worker(*run, op.slots);
    if (op.routed && !check_ids(*op.node, *run, 1, rows, op.experts)) {
        return sdk::guarded([&] { refuse_ids(*op.node, op.experts); });
    }
    const bool apart = op.apart(rows.end - rows.begin);
    const bool one_row =
        rows.end - rows.begin == 1 && (!op.routed || distinct_experts(Ids(*op.node, *run, 1, rows), 0));
    const bool own = one_row && op.prepares_own();
    return sdk::guarded([&] {
        const auto go = [&](const Grouping* grouping) {
            const Pass pass(op, *run, rows, worker, grouping, one_row);
            pass.prepare_x();
            if (!own) worker.barrier();
            const TilesInUse tiles(*op.panels, worker.idle() ? 0 : rows.end - rows.begin);
            pass.hidden();
            worker.barrier();
            pass.output();
            if (!apart) return;
            worker.barrier();
            pass.sum();
        };
        if (!op.routed) {
            go(nullptr);
        } else if (worker.idle()) {
            if (!own) worker.barrier();
            worker.barrier();
            if (apart) worker.barrier();
        } else {
            auto* memory =
                static_cast<unsigned char*>(run->workspace) + (worker.index() + 1) * op.worker_bytes() - op.group_bytes;
            const Grouping grouping(memory, Ids(*op.node, *run, 1, rows), op.experts);
            go(&grouping);
        }
    });
}

constexpr tsr_kernel kGated = cpu_kernel(TSR_OP_GATED_FFN, plan_ffn, prepare_ffn, release_ffn, run_ffn);
constexpr tsr_kernel kMoe = cpu_kernel(TSR_OP_MOE_FFN, plan_ffn, prepare_ffn, release_ffn, run_ffn);
constexpr const tsr_kernel* kKernels[] = {&kGated, &kMoe};

}  // namespace

std::span<const tsr_kernel* const> ffn_kernels() noexcept {
    return kKernels;
}

}  // namespace tessera::x86
