// The reference plugin: kernels for kind "cpu" in plain C++, for every op of ops.h but the fused ones, which fall back
// to their parts. It is the oracle of the tests and the last fallback.
#include <tessera/cpp/status.hpp>
#include <tessera/cpu/reference/ops.hpp>
#include <tessera/plugin.h>

#include <array>
#include <string>

namespace {

using tessera::cpu::reference::Op;
using tessera::cpu::reference::Work;
namespace reference = tessera::cpu::reference;
namespace sdk = tessera::sdk;

// Below every kernel that is made to be fast.
constexpr int32_t kPriority = -100;

// Multiply-adds a second of one worker and bytes a second of all, for estimates. Of the order that scalar decoding and
// sums in double reach on a CPU of 2020.
constexpr double kMacsASecond = 1e9;
constexpr double kBytesASecond = 10e9;

struct State {
    const tsr_node* node;
    uint32_t slots;
};

uint32_t slots_of(const tsr_device_info* device) noexcept {
    return device && device->threads > 0 ? device->threads : 1;
}

const Op& op_of(const tsr_kernel* self) noexcept {
    return *static_cast<const Op*>(self->context);
}

const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                       tsr_kernel_plan* plan) {
    const uint32_t slots = slots_of(device);
    Work work;
    op_of(self).plan(*node, slots, *plan, work);
    if (!plan->supported) return nullptr;
    std::snprintf(plan->reason, sizeof plan->reason, "plain C++, sums in double");
    plan->state_bytes = sizeof(State);
    plan->seconds_one_row = work.macs_one_row / (kMacsASecond * slots) + work.bytes_one_row / kBytesASecond;
    plan->seconds_all_rows = work.macs_all_rows / (kMacsASecond * slots) + work.bytes_all_rows / kBytesASecond;
    return nullptr;
}

const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, void** state) {
    return sdk::guarded([&] { *state = new State{node, slots_of(device)}; });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

const tsr_status* run(const tsr_kernel* self, void* state, const tsr_run* run) {
    return sdk::guarded([&] {
        const State& prepared = *static_cast<State*>(state);
        op_of(self).run(*prepared.node, prepared.slots, *run);
    });
}

struct Tables {
    std::array<std::string, reference::kOpCount> names;
    std::array<tsr_kernel, reference::kOpCount> kernels{};
    std::array<const tsr_kernel*, reference::kOpCount> list{};
    tsr_plugin plugin{};

    Tables() {
        for (uint32_t i = 0; i < reference::kOpCount; ++i) {
            const Op& op = reference::kOps[i];
            names[i] = std::string(op.name) + ".reference";
            tsr_kernel& kernel = kernels[i];
            kernel.struct_size = sizeof kernel;
            kernel.name = names[i].c_str();
            kernel.op = op.name;
            kernel.op_version = 1;
            kernel.device_kind = "cpu";
            kernel.priority = kPriority;
            kernel.context = &op;
            kernel.plan = plan;
            kernel.prepare = prepare;
            kernel.release = release;
            kernel.run = run;
            list[i] = &kernel;
        }
        plugin.struct_size = sizeof plugin;
        plugin.abi_major = TSR_ABI_MAJOR;
        plugin.abi_minor = TSR_ABI_MINOR;
        plugin.name = "reference";
        plugin.version = "0.1.0";
        plugin.kernels = list.data();
        plugin.kernel_count = reference::kOpCount;
    }
};

}  // namespace

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which no host is below.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    try {
        static const Tables tables;
        return &tables.plugin;
    } catch (...) {
        return nullptr;
    }
}
