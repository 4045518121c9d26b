// The reference plugin: kernels for kind "cpu" in plain C++, for every op of ops.h but the fused ones, which fall back
// to their parts. It is the oracle of the tests and the last fallback.
#include "kernels/plain/kernel_table.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/formats.hpp>
#include <tessera/formats/interleaved.hpp>
#include <tessera/plugin.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>

namespace {

using tessera::plain::KernelTable;
using tessera::plain::Work;
namespace sdk = tessera::sdk;

// Below every kernel that is made to be fast.
constexpr int32_t kPriority = -100;

// Multiply-adds a second of one core, and bytes a second where the device does not tell, for estimates. Of the order
// that scalar decoding and sums in double reach on a CPU of 2020.
constexpr double kMacsASecond = 1e9;
constexpr double kBytesASecond = 10e9;

struct State {
    const tsr_node* node;
    uint32_t slots;
};

uint32_t slots_of(const tsr_device_info* device) noexcept {
    return device && device->threads > 0 ? device->threads : 1;
}

const tsr_status* plan(const tsr_kernel* self, const tsr_node* node, const tsr_device_info* device,
                       tsr_kernel_plan* plan) {
    const uint32_t slots = slots_of(device);
    Work work;
    KernelTable::op_of(self).plan(*node, slots, *plan, work);
    if (!plan->supported) return nullptr;
    std::snprintf(plan->reason, sizeof plan->reason, "plain C++, sums in double");
    const double cores = device && device->processors ? std::min(device->processors, slots) : slots;
    const double bandwidth = device && device->memory_bandwidth > 0 ? device->memory_bandwidth : kBytesASecond;
    tessera::cpu::write_estimates(
        work, *plan, [&](double macs, double bytes) { return macs / (kMacsASecond * cores) + bytes / bandwidth; });
    return nullptr;
}

const tsr_status* prepare(const tsr_kernel*, const tsr_node* node, const tsr_device_info* device, tsr_device*,
                          void** state) {
    return sdk::guarded([&] { *state = new State{node, slots_of(device)}; });
}

void release(const tsr_kernel*, void* state) {
    delete static_cast<State*>(state);
}

const tsr_status* run(const tsr_kernel* self, void* state, const tsr_run* run) {
    return sdk::guarded([&] {
        const State& prepared = *static_cast<State*>(state);
        KernelTable::op_of(self).run(*prepared.node, prepared.slots, *run);
    });
}

tsr_kernel prototype() noexcept {
    tsr_kernel kernel{};
    kernel.device_kind = "cpu";
    kernel.priority = kPriority;
    kernel.plan = plan;
    kernel.prepare = prepare;
    kernel.release = release;
    kernel.run = run;
    return kernel;
}

// ---- layouts that files have: interleaved rows, to be unpacked ----

constexpr tsr_type kInterleaved[] = {
#define TSR_NUMBER(id, number, ...) TSR_TYPE_##id,
    TSR_INTERLEAVED_TYPES(TSR_NUMBER)
#undef TSR_NUMBER
};

// A tsr_layout with the type that it undoes.
struct FileLayout : tsr_layout {
    tsr_type file_type;
};

uint64_t group_bytes(const tsr_layout* self, int64_t elements) {
    return tessera::cpu::format_bytes(self->type, static_cast<size_t>(elements), self->group_rows);
}

void unpack(const tsr_layout* self, int64_t elements, int64_t groups, const void* packed, void* rows) {
    tessera::cpu::separate_rows(static_cast<const FileLayout*>(self)->file_type, static_cast<size_t>(elements),
                                static_cast<size_t>(groups), packed, rows);
}

FileLayout file_layout(tsr_type type) noexcept {
    FileLayout layout{};
    layout.struct_size = sizeof(tsr_layout);
    layout.name = tessera::cpu::format_name(type);
    layout.group_bytes = group_bytes;
    layout.unpack = unpack;
    layout.file_type = type;
    tessera::cpu::visit_interleaved(type, [&]<class Kind>(tsr_type rows_type) {
        layout.type = rows_type;
        layout.group_rows = Kind::kRows;
        layout.elements_multiple = Kind::Block::kElements;
    });
    return layout;
}

struct Plugin {
    std::array<FileLayout, std::size(kInterleaved)> layouts;
    std::array<const tsr_layout*, std::size(kInterleaved)> layout_list;
    KernelTable kernels{prototype(), "reference"};
    tsr_plugin table{};

    Plugin() {
        table.struct_size = sizeof table;
        table.abi_major = TSR_ABI_MAJOR;
        table.abi_minor = TSR_ABI_MINOR;
        table.name = "reference";
        table.version = "0.1.0";
        table.kernels = kernels.list();
        table.kernel_count = tessera::plain::kOpCount;
        for (size_t i = 0; i < layouts.size(); ++i) {
            layouts[i] = file_layout(kInterleaved[i]);
            layout_list[i] = &layouts[i];
        }
        table.layouts = layout_list.data();
        table.layout_count = static_cast<uint32_t>(layout_list.size());
    }
};

}  // namespace

extern "C" TSR_EXPORT const tsr_plugin* tessera_plugin_query(const tsr_host* host) {
    // Built for minor version 0, which no host is below.
    static_assert(TSR_ABI_MINOR == 0);
    if (!host || host->abi_major != TSR_ABI_MAJOR) return nullptr;
    try {
        static const Plugin plugin;
        return &plugin.table;
    } catch (...) {
        return nullptr;
    }
}
