// A simulated GPU for tests, opened through the plugin's table.
#pragma once

#include "node_builder.hpp"
#include "plugins/simulated/simulated_failures.h"

#include <tessera/cpp/status.hpp>
#include <tessera/plugin.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>

namespace tessera::test {

inline const tsr_plugin& simulated_plugin() {
    static const tsr_plugin* const plugin = [] {
        void* library = dlopen(TSR_PLUGIN_DIR "/tessera_simulated.so", RTLD_NOW | RTLD_LOCAL);
        if (!library) throw std::runtime_error(dlerror());
        const auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
        tsr_host host{};
        host.struct_size = sizeof host;
        host.abi_major = TSR_ABI_MAJOR;
        return query(&host);
    }();
    return *plugin;
}

inline const tsr_simulated_failures& failures() {
    return *static_cast<const tsr_simulated_failures*>(
        simulated_plugin().get_extension(&simulated_plugin(), TSR_SIMULATED_FAILURES));
}

inline const tsr_kernel& simulated_kernel(std::string_view op) {
    const tsr_plugin& plugin = simulated_plugin();
    for (uint32_t i = 0; i < plugin.kernel_count; ++i) {
        if (op == plugin.kernels[i]->op) return *plugin.kernels[i];
    }
    throw std::runtime_error("no such kernel");
}

inline tsr_device_info device_info(uint32_t capability = 860, uint64_t memory = 64 << 20, const char* id = "SIM0") {
    tsr_device_info info{};
    info.struct_size = sizeof info;
    info.kind = "simulated";
    info.id = id;
    info.name = "a card for tests";
    info.compute_capability = capability;
    info.memory_bytes = info.free_memory_bytes = memory;
    return info;
}

// The message of a status, which is handed back; empty for success.
inline std::string message_of(const tsr_status* status, tsr_code* code = nullptr) {
    if (!status) return "";
    std::string message = status->message;
    if (code) *code = status->code;
    if (status->destroy) status->destroy(status);
    return message;
}

class Gpu {
  public:
    explicit Gpu(uint32_t capability = 860, uint64_t memory = 64 << 20, const char* id = "SIM0")
        : info(device_info(capability, memory, id)) {
        failures().reset(id);
        const tsr_device_provider& provider = *simulated_plugin().providers[0];
        sdk::check(provider.open(&provider, &info, &device));
        sdk::check(device->create_queue(device, &queue));
    }
    ~Gpu() {
        failures().reset(info.id);
        for (void* a : owned_) device->release(device, a);
        device->destroy_queue(device, queue);
        device->close(device);
    }
    Gpu(const Gpu&) = delete;

    void* allocate(uint64_t bytes) {
        void* address = nullptr;
        sdk::check(device->allocate(device, bytes, &address));
        owned_.push_back(address);
        return address;
    }
    void* upload(const void* from, uint64_t bytes) {
        void* address = allocate(bytes);
        sdk::check(device->upload(device, queue, address, from, bytes));
        sdk::check(device->wait_queue(device, queue));
        return address;
    }
    void download(void* to, const void* from, uint64_t bytes) {
        sdk::check(device->download(device, queue, to, from, bytes));
        sdk::check(device->wait_queue(device, queue));
    }
    void release(void* address) {
        std::erase(owned_, address);
        device->release(device, address);
    }

    // Computes a node whose operands lie in host memory: to the device and back. `change` may spoil the run. Throws
    // sdk::Failure.
    void compute(TestNode& node, const Ranges& ranges,
                 const std::function<void(std::vector<void*>&, tsr_launch&)>& change = {}) {
        const tsr_kernel& kernel = simulated_kernel(node.node.op);
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        sdk::check(kernel.plan(&kernel, &node.node, &info, &plan));
        if (!plan.supported) throw sdk::Failure(TSR_UNSUPPORTED, plan.reason);
        void* state = nullptr;
        sdk::check(kernel.prepare(&kernel, &node.node, &info, nullptr, &state));
        const std::shared_ptr<void> released(nullptr, [&](void*) { kernel.release(&kernel, state); });
        std::vector<void*> data;
        const uint32_t operands = node.node.input_count + node.node.output_count;
        for (uint32_t i = 0; i < operands; ++i) {
            Tensor& t = node.operand(i);
            data.push_back(t.bytes ? upload(t.bytes->data(), t.bytes->size()) : nullptr);
        }
        int32_t bounds[TSR_RANGE_COUNT];
        for (int i = 0; i < TSR_RANGE_COUNT; ++i) bounds[i] = ranges.all[i].end - ranges.all[i].begin;
        tsr_launch run{};
        run.struct_size = sizeof run;
        run.queue = queue;
        run.row_bounds = bounds;
        run.token_bound = INT64_MAX;
        run.ranges = static_cast<tsr_range*>(upload(ranges.all, sizeof ranges.all));
        run.workspace = plan.workspace_bytes ? allocate(plan.workspace_bytes) : nullptr;
        if (change) change(data, run);
        run.data = data.data();
        sdk::check(kernel.enqueue(&kernel, state, &run));
        // The array is the caller's again as soon as enqueue has returned.
        const std::vector<void*> kept = data;
        std::fill(data.begin(), data.end(), nullptr);
        sdk::check(device->wait_queue(device, queue));
        for (uint32_t i = node.node.input_count; i < operands; ++i) {
            Tensor& t = node.operand(i);
            download(t.bytes->data(), kept[i], t.bytes->size());
        }
    }

    tsr_device_info info;
    tsr_device* device = nullptr;
    void* queue = nullptr;

  private:
    std::vector<void*> owned_;
};

}  // namespace tessera::test
