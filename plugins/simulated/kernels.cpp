#include "kernels.hpp"

#include "device.hpp"
#include "plugins/reference/oracle/kernel_table.hpp"
#include "queue.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/checks/attention.hpp>
#include <tessera/cpu/formats.hpp>

#include <cstdio>
#include <string>
#include <string_view>

namespace tessera::simulated {
namespace {

using cpu::AttentionForm;
using cpu::AttentionShape;
using oracle::KernelTable;
using sdk::Failure;
using sdk::guarded;

struct State {
    const tsr_node* node;
    std::string device;
    uint64_t workspace_bytes;
};

// ---- what is claimed ----

struct HeadSize {
    int64_t k, v;
};

// Flash attention of both generations of GPUs; 576/512, which is the prefix form, is of the newer alone.
constexpr HeadSize kFlashSizes[] = {{192, 128}, {128, 128}, {64, 64}};
constexpr HeadSize kLatentSize = {576, 512};

// The node has passed the reference's plan.
bool claims_flash(const tsr_node& node, uint32_t capability, tsr_kernel_plan& plan) noexcept {
    const AttentionShape shape(node);
    const bool ampere = capability >= kAmpere;
    if (shape.form == AttentionForm::kPrefix) {
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
                shape.form == AttentionForm::kPrefix ? " over one latent row" : "", capability / 100,
                capability / 10 % 10, ampere ? "576/512 over one latent row, " : "");
    return false;
}

// Rates of cards of each generation, of the right order, where the device does not tell.
struct Rates {
    double bytes, macs;  // a second
};

Rates rates_of(const tsr_device_info& device) noexcept {
    Rates rates{350e9, 5e12};
    if (device.compute_capability >= 700) rates = {600e9, 7e12};
    if (device.compute_capability >= kAmpere) rates = {800e9, 60e12};
    if (device.compute_capability >= 900) rates = {1500e9, 200e12};
    if (device.memory_bandwidth > 0) rates.bytes = device.memory_bandwidth;
    return rates;
}

constexpr double kLaunchSeconds = 4e-6;

const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                       tsr_kernel_plan* plan) {
    if (device->compute_capability < kLeastCapability) {
        sdk::refuse(*plan,
                    "%s: required compute capability %u.%u; supported: 6.0 or more; missing: an older generation",
                    node->op, device->compute_capability / 100, device->compute_capability / 10 % 10);
        return nullptr;
    }
    oracle::Work work;
    KernelTable::op_of(self).plan(*node, 1, *plan, work);
    if (!plan->supported) return nullptr;
    if (std::string_view(node->op) == TSR_OP_FLASH_ATTENTION &&
        !claims_flash(*node, device->compute_capability, *plan)) {
        return nullptr;
    }
    std::snprintf(plan->reason, sizeof plan->reason, "simulated, compute capability %u.%u",
                  device->compute_capability / 100, device->compute_capability / 10 % 10);
    const Rates rates = rates_of(*device);
    plan->seconds_one_row = kLaunchSeconds + work.macs_one_row / rates.macs + work.bytes_one_row / rates.bytes;
    plan->seconds_all_rows = kLaunchSeconds + work.macs_all_rows / rates.macs + work.bytes_all_rows / rates.bytes;
    return nullptr;
}

const tsr_status* prepare(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device, tsr_device*,
                          void** state) {
    return guarded([&] {
        tsr_kernel_plan answer{};
        answer.struct_size = sizeof answer;
        plan(self, node, device, &answer);
        if (!answer.supported) throw Failure(TSR_UNSUPPORTED, answer.reason);
        *state = new State{node, device->id ? device->id : "?", answer.workspace_bytes};
    });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

// ---- launching ----

// Bytes from the start of the storage to past the last element that the node can reach.
uint64_t reach_of(const tsr_tensor& tensor) noexcept {
    const cpu::FormatSize size = cpu::format_size(tensor.type);
    const int64_t row = size.elements == 0
                            ? tensor.dims[0] * tensor.strides[0]
                            : static_cast<int64_t>(cpu::format_bytes(tensor.type, static_cast<size_t>(tensor.dims[0])));
    int64_t reach = tensor.offset + row;
    for (uint32_t i = 1; i < tensor.rank; ++i) reach += (tensor.dims[i] - 1) * tensor.strides[i];
    return reach > 0 ? static_cast<uint64_t>(reach) : 0;
}

std::string operand_name(const tsr_node& node, uint32_t index) {
    const tsr_tensor& tensor = sdk::operand(node, index);
    std::string name = std::string(node.op) + " " + (node.name ? node.name : "") + ", ";
    name += index < node.input_count ? "input " + std::to_string(index)
                                     : "output " + std::to_string(index - node.input_count);
    return tensor.name && *tensor.name ? name + " (" + tensor.name + ")" : name;
}

const tsr_status* enqueue(const tsr_kernel* self, void* state, const tsr_launch* run) {
    return guarded([&] {
        const State& prepared = *static_cast<State*>(state);
        const tsr_node& node = *prepared.node;
        if (!Queue::is_queue(run->queue))
            throw Failure(TSR_INVALID_ARGUMENT, std::string(node.op) + ": a queue that is none of this plugin's");
        Queue& on = *static_cast<Queue*>(run->queue);
        Device& device = on.device();
        if (device.id() != prepared.device) {
            throw Failure(TSR_INVALID_ARGUMENT, std::string(node.op) + ": prepared for " + prepared.device +
                                                    ", put on a queue of " + device.id());
        }
        device.failures().kernel(node.op, node.name ? node.name : "");
        Launch launch{&KernelTable::op_of(self), &node, {}, nullptr, nullptr};
        for (uint32_t i = 0; i < node.input_count + node.output_count; ++i) {
            const tsr_tensor& tensor = sdk::operand(node, i);
            if (!sdk::present(&tensor)) continue;
            launch.data[i] = device.resolve(run->data[i], reach_of(tensor), [&] { return operand_name(node, i); });
        }
        const auto whose = [&](const char* what) {
            return std::string(node.op) + " " + (node.name ? node.name : "") + ", " + what;
        };
        launch.ranges = reinterpret_cast<const tsr_range*>(
            device.resolve(run->ranges, sizeof(tsr_range) * TSR_RANGE_COUNT, [&] { return whose("ranges"); }));
        if (prepared.workspace_bytes > 0) {
            launch.workspace =
                device.resolve(run->workspace, prepared.workspace_bytes, [&] { return whose("workspace"); });
        }
        on.put_launch(launch);
    });
}

tsr_kernel prototype() noexcept {
    tsr_kernel kernel{};
    kernel.device_kind = "simulated";
    kernel.interop = kInterop;
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
    count = oracle::kOpCount;
    return kernels.list();
}

}  // namespace tessera::simulated
