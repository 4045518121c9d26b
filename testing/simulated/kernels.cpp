#include "kernels.hpp"

#include "device.hpp"
#include "estimate.hpp"
#include "kernels/plain/kernel_table.hpp"
#include "launch.hpp"
#include "layouts.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/checks/attention.hpp>
#include <tessera/cpu/checks/matmul.hpp>
#include <tessera/cpu/formats.hpp>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::simulated {
namespace {

using cpu::AttentionShape;
using cpu::AttentionVariant;
using plain::KernelTable;
using sdk::Failure;
using sdk::guarded;

// ---- what is claimed ----

struct HeadSize {
    int64_t k, v;
};

// Flash attention of both generations of GPUs; 576/512, which is the prefix variant, is of the newer alone.
constexpr HeadSize kFlashSizes[] = {{192, 128}, {128, 128}, {64, 64}};
constexpr HeadSize kLatentSize = {576, 512};

// The node has passed the reference's plan.
bool claims_flash(const tsr_node& node, uint32_t capability, tsr_kernel_plan& plan) noexcept {
    const AttentionShape shape(node);
    const bool ampere = capability >= kAmpere;
    if (shape.variant == AttentionVariant::kPrefix) {
        if (ampere && shape.dk == kLatentSize.k && shape.dv == kLatentSize.v) return true;
    } else {
        for (const HeadSize& size : kFlashSizes) {
            if (shape.dk == size.k && shape.dv == size.v) return true;
        }
    }
    sdk::refuse(plan,
                "flash_attention: required heads of %lld/%lld%s; supported at compute capability %u.%u: %s192/128 "
                "128/128 64/64; "
                "missing: that head size",
                static_cast<long long>(shape.dk), static_cast<long long>(shape.dv),
                shape.variant == AttentionVariant::kPrefix ? " over one latent row" : "", capability / 100,
                capability / 10 % 10, ampere ? "576/512 over one latent row, " : "");
    return false;
}

// Whether the device is one that is to lack the op, or the type of an operand.
bool lacks(const tsr_node& node, const tsr_device_info& device, const Options& options, tsr_kernel_plan& plan) {
    if (options.lacks.empty()) return false;
    if (options.lacking(node.op)) {
        sdk::refuse(plan, "%s: required that op; supported: what the options of %s leave; missing: it", node.op,
                    device.id);
        return true;
    }
    for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) {
        const tsr_tensor& tensor = sdk::operand(node, i);
        if (!sdk::present(&tensor) || !options.lacking(cpu::format_name(tensor.type))) continue;
        sdk::refuse(plan, "%s: required type %s; supported: what the options of %s leave; missing: that type", node.op,
                    cpu::format_name(tensor.type), device.id);
        return true;
    }
    return false;
}

constexpr uint32_t kWeight = 1;  // operand of products

// Products with the weight's rows, and not with its columns.
bool takes_packed_weights(const tsr_node& node) noexcept {
    const std::string_view op = node.op;
    return node.input_count > kWeight && sdk::present(node.inputs[kWeight]) &&
           (op == TSR_OP_MATMUL_ID || (op == TSR_OP_MATMUL && !cpu::matmul_transposed(node)));
}

const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                       tsr_kernel_plan* plan) {
    return guarded([&] {
        if (device->compute_capability < kMinimumCapability) {
            sdk::refuse(*plan,
                        "%s: required compute capability %u.%u; supported: 6.0 or more; missing: an older generation",
                        node->op, device->compute_capability / 100, device->compute_capability / 10 % 10);
            return;
        }
        const Options options = Control::of(device->id ? device->id : "?").options();
        if (lacks(*node, *device, options, *plan)) return;
        const bool is_product = takes_packed_weights(*node);
        std::optional<CanonicalNode> canonical;
        try {
            if (is_product) canonical.emplace(*node);
        } catch (const Failure& failure) {
            sdk::refuse(*plan, "%s: %s", node->op, failure.what());
            return;
        }
        plain::Work work;
        KernelTable::op_of(self).plan(canonical ? canonical->node() : *node, 1, *plan, work);
        if (!plan->supported) return;
        if (is_product) plan->layouts[kWeight] = layouts_of(*node->inputs[kWeight], *device, options);
        if (std::string_view(node->op) == TSR_OP_FLASH_ATTENTION &&
            !claims_flash(*node, device->compute_capability, *plan)) {
            return;
        }
        std::snprintf(plan->reason, sizeof plan->reason, "simulated, compute capability %u.%u",
                      device->compute_capability / 100, device->compute_capability / 10 % 10);
        write_estimate(work, *device, *plan);
    });
}

const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info, tsr_device* device,
                          void** state) {
    const tsr_status* failed = nullptr;
    const tsr_status* refused = guarded([&] {
        Device& on = Device::of(device, node->op);
        tsr_kernel_plan answer{};
        answer.struct_size = sizeof answer;
        sdk::check(plan(self, node, info, &answer));
        if (!answer.supported) throw Failure(TSR_UNSUPPORTED, answer.reason);
        const plain::Op& op = KernelTable::op_of(self);
        failed = on.call(
            TSR_SIMULATED_PREPARE, Threads::kOne, [&] { *state = new State(on, op, *node, answer.workspace_bytes); },
            op.name);
    });
    return refused ? refused : failed;
}

void release(const tsr_kernel*, void* state) {
    std::unique_ptr<State> released(static_cast<State*>(state));
    if (!released) return;
    Device& device = released->device;
    if (released->queued() && !device.control().lost())
        device.remember("release of " + released->describe() + " that is still on a queue");
    released->mark_released();
    if (!released->free()) device.keep(std::move(released));
}

const tsr_status* enqueue(const tsr_kernel*, void* state, const tsr_launch* launch) {
    State& prepared = *static_cast<State*>(state);
    return prepared.device.call(
        TSR_SIMULATED_ENQUEUE, Threads::kOne, [&] { enqueue_launch(prepared, *launch); }, prepared.op.name);
}

tsr_kernel prototype() noexcept {
    tsr_kernel kernel{};
    kernel.device_kind = "simulated";
    kernel.interop = TSR_SIMULATED_INTEROP;
    kernel.device_abi = TSR_DEVICE_ABI;
    kernel.plan = plan;
    kernel.prepare = prepare;
    kernel.release = release;
    kernel.enqueue = enqueue;
    return kernel;
}

}  // namespace

const tsr_kernel* const* kernel_list(uint32_t& count) {
    static const KernelTable kernels(prototype(), "simulated");
    count = plain::kOpCount;
    return kernels.list();
}

}  // namespace tessera::simulated
