#include "attention.hpp"

#include "../estimate.hpp"
#include "../layouts/byte_pages.hpp"
#include "../layouts/int16_pages.hpp"
#include "../layouts/layouts.hpp"
#include "../matmul/common.hpp"
#include "../vectors.hpp"
#include "cache_write.hpp"
#include "code.hpp"

#include <tessera/ops.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace tessera::x86 {

namespace {

using cpu::kWk;
using cpu::kWv;

const AttentionCode& code_of(const attention::Problem& problem, const tsr_device_info* device) noexcept {
    const Vectors& vectors = vectors_of(device);
    if (problem.byte_pages && problem.variant == attention::Variant::kPrefix) return *vectors.bytes;
    return problem.exact ? *vectors.floats : *vectors.int16;
}

attention::Budget budget_of(const tsr_node& node, const attention::Problem& problem, const AttentionCode& code,
                            int workers, int64_t& minimum) noexcept {
    const int64_t cap = std::max<int64_t>(0, sdk::int_attribute(node, "scratch_bytes", 0));
    return code.budget(problem, workers, cap, minimum);
}

static_assert(kLanes <= attention::kMaximumGroupRows);

attention::PackedRows packing_of(const tsr_tensor& weight) noexcept {
    if (sdk::canonical(weight)) return {};
    return {find_weight_kernels(weight.type)->unpack, kLanes};
}

// Whether the node can read its cache in the layout of int16_pages.hpp: its scales are those of the parts of keys.
bool attends_int16_pages(const attention::Problem& problem, const tsr_node& node) noexcept {
    const tsr_tensor& k = *node.inputs[cpu::kK];
    if (problem.exact || !takes_int16_pages(k.type, k.dims[0])) return false;
    if (problem.variant == attention::Variant::kProjected) return problem.latent == Int16Pages::kFirstPart;
    return problem.variant == attention::Variant::kPrefix && problem.group > attention::kFewLanes &&
           problem.shape.first_part == Int16Pages::kFirstPart;
}

// Whether the node can read its cache in the layout of byte_pages.hpp.
bool attends_byte_pages(const attention::Problem& problem, const tsr_node& node,
                        const tsr_device_info* device) noexcept {
    const tsr_tensor& k = *node.inputs[cpu::kK];
    if (!attends_in_bytes(device) || !takes_byte_pages(k.type, k.dims[0])) return false;
    if (problem.variant == attention::Variant::kProjected) return problem.latent % BytePages::kBlock == 0;
    return problem.variant == attention::Variant::kPrefix && problem.group > attention::kFewLanes &&
           problem.shape.value % BytePages::kBlock == 0;
}

// The layouts of the cache that the node can read, best first; nullptr: the canonical one alone.
const char* const* cache_layouts(const attention::Problem& problem, const tsr_node& node,
                                 const tsr_device_info* device) noexcept {
    if (attends_int16_pages(problem, node))
        return int16_layout_names(node.inputs[cpu::kK]->type, attention_lanes(device));
    return attends_byte_pages(problem, node, device) ? byte_layout_names() : nullptr;
}

// Refuses a cache that is in a layout which the node cannot read.
bool attends_layout(const attention::Problem& problem, const tsr_node& node, const tsr_device_info* device,
                    tsr_kernel_plan& plan) noexcept {
    const tsr_tensor& k = *node.inputs[cpu::kK];
    if (sdk::canonical(k)) return true;
    const char* const* names = cache_layouts(problem, node, device);
    for (; names && *names; ++names) {
        if (std::strcmp(*names, k.layout) == 0) return true;
    }
    sdk::refuse(plan, "%s: required the k cache in layout %s; supported: the canonical layout; missing: that layout",
                node.op, k.layout);
    return false;
}

// Scratch memory that a node needs.
struct Scratch {
    attention::Budget budget;  // without workers: the node's limit is below the minimum
    int64_t minimum = 0;
    int64_t bytes = 0;
};

// Of a problem whose pages get the layout that the plan names first, or stay canonical, because others that use the
// cache may not take that: enough for either.
Scratch scratch_of(const tsr_node& node, attention::Problem problem, const tsr_device_info* device) noexcept {
    const int workers = static_cast<int>(slots_of(device));
    Scratch scratch;
    scratch.budget = budget_of(node, problem, code_of(problem, device), workers, scratch.minimum);
    scratch.bytes = scratch.budget.bytes();
    if (!problem.byte_pages || !sdk::canonical(*node.inputs[cpu::kK])) return scratch;
    problem.byte_pages = false;
    int64_t minimum = 0;
    const attention::Budget budget = budget_of(node, problem, code_of(problem, device), workers, minimum);
    if (budget.workers == 0) scratch.budget.workers = 0;
    scratch.minimum = std::max(scratch.minimum, minimum);
    scratch.bytes = std::max(scratch.bytes, budget.bytes());
    return scratch;
}

struct Prepared {
    attention::State state;
    const AttentionCode* code;
};

// Cached rows are converted once for all heads that share them, which is as much work as some lanes of a panel more:
// pages of int16 are reordered alone, bytes are multiplied as they are, and projected rows are not what is attended. By
// bench_attention 1, of one token over 8,192 (16 heads over one row): 1.37 ms from canonical pages, 1.09 from pages of
// int16, 0.82 from bytes, at the rates of attention_rates().
double conversion_lanes(const attention::Problem& problem, const tsr_node& node) noexcept {
    if (problem.variant == attention::Variant::kProjected || problem.byte_pages) return 0;
    return attends_int16_pages(problem, node) ? 3 : 8;
}

// Whether single rows are attended in f32 along the cached rows (few_lanes.hpp). Code for vectors of 256 bits takes
// halves of blocks of 32, too.
bool attends_few(const attention::Problem& problem, const tsr_node& node) noexcept {
    const auto takes = [](const tsr_tensor& cache, int elements) {
        return elements % 32 == 0 && (cache.type == TSR_TYPE_F32 || cache.type == TSR_TYPE_F16 ||
                                      cache.type == TSR_TYPE_BF16 || cache.type == TSR_TYPE_Q8_0);
    };
    const tsr_tensor& k = *node.inputs[cpu::kK];
    const tsr_tensor& v = problem.variant == attention::Variant::kPlain ? *node.inputs[cpu::kV] : k;
    return problem.group <= problem.most_few_lanes() && takes(k, problem.shape.key) && takes(v, problem.shape.value);
}

// `rows` rows, which attend to `tokens` tokens each on average.
Amount amount_of(const attention::Problem& problem, double lanes, double conversion, double rate,
                 const attention::Budget& budget, double row_bytes, double rows, double tokens,
                 double cached) noexcept {
    // Few rows leave lanes of a panel idle.
    const double used = rows * problem.group;
    const double idle = (std::ceil(used / lanes) * lanes + conversion) / used;
    double macs = problem.macs_a_token() * tokens * rows * std::max(1.0, idle);
    double passes = 1;
    if (problem.variant == attention::Variant::kProjected) {
        passes = std::max(1.0, std::ceil(rows / (budget.panels_of_block * lanes)));
        macs += passes * cached * problem.heads * problem.latent * (problem.projected_key() + problem.shape.value);
    }
    return {row_bytes * cached * passes, macs / rate};
}

void write_estimate(const attention::Problem& problem, const AttentionCode& code, const attention::Budget& budget,
                    const tsr_node& node, const tsr_device_info* device, tsr_kernel_plan& plan) noexcept {
    const auto bytes_a_token = [&](uint32_t operand) {
        if (!sdk::has_input(node, operand)) return 0.0;
        const tsr_tensor& pages = *node.inputs[operand];
        return cpu::tensor_bytes(pages) / static_cast<double>(pages.dims[1] * pages.dims[2]);
    };
    const double row_bytes = bytes_a_token(1) + bytes_a_token(2);
    const double all = static_cast<double>(problem.max_rows), full = static_cast<double>(problem.most_seen());
    const AttentionRates rates = attention_rates(vectors_of(device).processor);
    const double rate = rates.*code.rate;
    const double conversion = conversion_lanes(problem, node);
    const bool few = attends_few(problem, node);
    const auto amount = [&](double rows, double tokens, double cached) {
        if (few && rows <= attention::kFewRows)
            return Amount{row_bytes * cached * rows, problem.macs_a_token() * tokens * rows / rates.floats};
        return amount_of(problem, code.lanes, conversion, rate, budget, row_bytes, rows, tokens, cached);
    };
    // With nothing cached a row attends to those before it in the batch: half of them.
    Estimate(device).write(plan, 3, amount(1, 1, 1), amount(all, std::min(full, (all + 1) / 2), all),
                           amount(1, full, full), amount(all, full, full + (problem.window > 0 ? all : 0)));
}

const tsr_status* plan(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_kernel_plan* plan) {
    const CanonicalNode canonical(*node);
    attention::Problem problem;
    if (!attention::read_problem(canonical.node(), *plan, problem)) return nullptr;
    if (!attends_layout(problem, *node, device, *plan)) return nullptr;
    problem.byte_pages = attends_byte_pages(problem, *node, device);
    const AttentionCode& code = code_of(problem, device);
    const Scratch scratch = scratch_of(*node, problem, device);
    plan->minimum_scratch_bytes = static_cast<uint64_t>(scratch.minimum);
    if (scratch.budget.workers == 0) {
        sdk::refuse(*plan,
                    "%s: required at most %lld bytes of scratch memory; supported: %lld or more; missing: %lld bytes",
                    node->op, static_cast<long long>(sdk::int_attribute(*node, "scratch_bytes", 0)),
                    static_cast<long long>(scratch.minimum),
                    static_cast<long long>(scratch.minimum - sdk::int_attribute(*node, "scratch_bytes", 0)));
        return nullptr;
    }
    const char* variants[] = {"plain", "value is a prefix of the key", "keys and values projected from latent rows"};
    const bool projected_bytes = problem.variant == attention::Variant::kProjected && problem.byte_pages;
    std::snprintf(plan->reason, sizeof plan->reason, "%s, heads of %d/%d, %s%s", code.arithmetic, problem.shape.key,
                  problem.shape.value, variants[static_cast<int>(problem.variant)], projected_bytes ? " in int8" : "");
    if (problem.variant == attention::Variant::kProjected) {
        for (const uint32_t weight : {kWk, kWv}) {
            const tsr_tensor& tensor = *canonical.node().inputs[weight];
            plan->layouts[weight] = layouts_of(tensor.type, packable(tensor));
        }
    }
    plan->layouts[cpu::kK] = cache_layouts(problem, *node, device);
    plan->supported = 1;
    plan->workspace_bytes = static_cast<uint64_t>(scratch.bytes);
    write_estimate(problem, code, scratch.budget, *node, device, *plan);
    return nullptr;
}

const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_device*,
                          void** state) {
    return sdk::guarded([&] {
        const tsr_tensor& k = *node->inputs[cpu::kK];
        Prepared prepared{{node, {}, {}, {}, {}, int16_pages_of(k), byte_pages_of(k)}, nullptr};
        const CanonicalNode canonical(*node);
        tsr_kernel_plan plan{};
        attention::Problem& problem = prepared.state.problem;
        if (!attention::read_problem(canonical.node(), plan, problem)) throw sdk::Failure(TSR_UNSUPPORTED, plan.reason);
        if (!attends_layout(problem, *node, device, plan)) throw sdk::Failure(TSR_UNSUPPORTED, plan.reason);
        int64_t minimum = 0;
        problem.byte_pages = prepared.state.byte_pages.elements > 0;
        prepared.code = &code_of(problem, device);
        prepared.state.budget = budget_of(*node, problem, *prepared.code, static_cast<int>(slots_of(device)), minimum);
        if (problem.variant == attention::Variant::kProjected) {
            prepared.state.wk = packing_of(*node->inputs[kWk]);
            prepared.state.wv = packing_of(*node->inputs[kWv]);
        }
        *state = new Prepared(prepared);
    });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<Prepared*>(state);
}

const tsr_status* run(const tsr_kernel*, void* state, const tsr_run* run) {
    return sdk::guarded([&] {
        const auto& prepared = *static_cast<const Prepared*>(state);
        prepared.code->run(prepared.state, *run);
    });
}

constexpr tsr_kernel kFlash = cpu_kernel(TSR_OP_FLASH_ATTENTION, plan, prepare, release, run);
constexpr tsr_kernel kTiled = cpu_kernel(TSR_OP_TILED_ATTENTION, plan, prepare, release, run);
constexpr std::array kKernels{&kFlash, &kTiled, &kCacheWrite};

}  // namespace

int attention_lanes(const tsr_device_info* device) noexcept {
    return vectors_of(device).int16->lanes;
}

bool attends_in_bytes(const tsr_device_info* device) noexcept {
    return vectors_of(device).bytes != nullptr;
}

std::span<const tsr_kernel* const> attention_kernels() noexcept {
    return kKernels;
}

}  // namespace tessera::x86
