#include "attention.hpp"

#include "../layouts/layouts.hpp"
#include "../matmul/common.hpp"
#include "../vectors.hpp"
#include "cache_write.hpp"
#include "code.hpp"

#include <tessera/ops.h>

#include <array>

namespace tessera::cpu_x86 {

namespace {

namespace attention = cpu::attention;
using cpu::kWk;
using cpu::kWv;

// What a call costs beside its arithmetic.
constexpr double kCall = 3e-6;

const AttentionCode& code_of(const attention::Problem& problem, const tsr_device_info* device) noexcept {
    const Vectors& vectors = vectors_of(device);
    return problem.exact ? *vectors.floats : *vectors.int16;
}

attention::Budget budget_of(const tsr_node& node, const attention::Problem& problem, const AttentionCode& code,
                            int workers, int64_t& minimum) noexcept {
    const int64_t cap = std::max<int64_t>(0, sdk::int_attribute(node, "scratch_bytes", 0));
    return code.budget(problem, workers, cap, minimum);
}

static_assert(kLanes <= attention::kMostGroupRows);

attention::PackedRows packing_of(const tsr_tensor& weight) noexcept {
    if (sdk::canonical(weight)) return {};
    return {find_weight_kernels(weight.type)->unpack, kLanes};
}

struct Prepared {
    attention::State state;
    const AttentionCode* code;
};

const tsr_status* plan(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_kernel_plan* plan) {
    const CanonicalNode canonical(*node);
    attention::Problem problem;
    if (!attention::read_problem(canonical.node(), *plan, problem)) return nullptr;
    int64_t minimum = 0;
    const int workers = static_cast<int>(slots_of(device));
    const AttentionCode& code = code_of(problem, device);
    const attention::Budget budget = budget_of(*node, problem, code, workers, minimum);
    plan->minimum_scratch_bytes = static_cast<uint64_t>(minimum);
    if (budget.workers == 0) {
        sdk::refuse(*plan,
                    "%s: required at most %lld bytes of scratch memory; supported: %lld or more; missing: %lld bytes",
                    node->op, static_cast<long long>(sdk::int_attribute(*node, "scratch_bytes", 0)),
                    static_cast<long long>(minimum),
                    static_cast<long long>(minimum - sdk::int_attribute(*node, "scratch_bytes", 0)));
        return nullptr;
    }
    const char* forms[] = {"plain", "value is a prefix of the key", "keys and values projected from latent rows"};
    std::snprintf(plan->reason, sizeof plan->reason, "%s, heads of %d/%d, %s", problem.exact ? "f32" : "int16",
                  problem.shape.key, problem.shape.value, forms[static_cast<int>(problem.form)]);
    if (problem.form == attention::Form::kProjected) {
        for (const uint32_t weight : {kWk, kWv}) {
            const tsr_tensor& tensor = *canonical.node().inputs[weight];
            plan->layouts[weight] = layouts_of(tensor.type, packable(tensor));
        }
    }
    plan->supported = 1;
    plan->workspace_bytes = static_cast<uint64_t>(budget.bytes());
    const double tokens = static_cast<double>(problem.max_tokens) / 2;
    const double rate = code.macs * workers;
    double expansion = 0;
    if (problem.form == attention::Form::kProjected) {
        expansion = tokens * problem.heads * problem.latent * (problem.projected_key() + problem.shape.value);
    }
    const double blocks =
        std::max(1.0, static_cast<double>(problem.max_rows) / (budget.panels_of_block * 2.0 * code.lanes));
    // A single row leaves most lanes of its panel idle.
    const double idle = std::max(1.0, static_cast<double>(code.lanes) / problem.group);
    plan->seconds_one_row = kCall + (problem.macs_a_token() * tokens * idle + expansion) / rate;
    plan->seconds_all_rows =
        kCall + (problem.macs_a_token() * tokens * static_cast<double>(problem.max_rows) + expansion * blocks) / rate;
    return nullptr;
}

const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_device*,
                          void** state) {
    return sdk::guarded([&] {
        Prepared prepared{{node, {}, {}, {}, {}}, nullptr};
        const CanonicalNode canonical(*node);
        tsr_kernel_plan plan{};
        attention::Problem& problem = prepared.state.problem;
        if (!attention::read_problem(canonical.node(), plan, problem)) throw sdk::Failure(TSR_UNSUPPORTED, plan.reason);
        int64_t minimum = 0;
        prepared.code = &code_of(problem, device);
        prepared.state.budget = budget_of(*node, problem, *prepared.code, static_cast<int>(slots_of(device)), minimum);
        if (problem.form == attention::Form::kProjected) {
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

std::span<const tsr_kernel* const> attention_kernels() noexcept {
    return kKernels;
}

}  // namespace tessera::cpu_x86
