// A simulated GPU for tests, opened through the plugin's table.
#pragma once

#include "node_builder.hpp"
#include "testing/simulated/simulated_failures.h"

#include <tessera/cpp/status.hpp>
#include <tessera/plugin.h>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tessera::test {

inline const tsr_plugin& simulated_plugin() {
    static const tsr_plugin* const plugin = [] {
        void* library = dlopen(TSR_PLUGIN_DIR "/../test-plugins/tessera_simulated.so", RTLD_NOW | RTLD_LOCAL);
        if (!library) throw std::runtime_error(dlerror());
        const auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
        static tsr_host host{};
        host.struct_size = sizeof host;
        host.abi_major = TSR_ABI_MAJOR;
        host.log = [](const tsr_host*, tsr_log_level, const char*, const char* message) {
            ADD_FAILURE() << "logged: " << message;
        };
        return query(&host);
    }();
    return *plugin;
}

inline const tsr_simulated_failures& failures() {
    const tsr_plugin& plugin = simulated_plugin();
    return *static_cast<const tsr_simulated_failures*>(plugin.get_extension(&plugin, TSR_SIMULATED_FAILURES));
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

inline tsr_simulated_options options(tsr_simulated_policy policy, uint64_t seed = 1, uint32_t without = 0,
                                     const char* lacks = nullptr) {
    return {sizeof(tsr_simulated_options), policy, seed, without, 0, lacks};
}

// The message of a status, which is handed back; empty for success.
inline std::string message_of(const tsr_status* status, tsr_code* code = nullptr) {
    if (code) *code = status ? status->code : tsr_code{TSR_OK};
    if (!status) return "";
    std::string message = status->message;
    if (status->destroy) status->destroy(status);
    return message;
}

// What `body` fails with, which has to have that code.
template <class Body>
std::string failure(Body&& body, tsr_code code) {
    try {
        body();
    } catch (const sdk::Failure& f) {
        EXPECT_EQ(f.code(), code) << f.what();
        return f.what();
    }
    return "nothing failed";
}

// An opened device with one queue. Every function throws sdk::Failure.
class Gpu {
  public:
    explicit Gpu(uint32_t capability = 860, uint64_t memory = 64 << 20, const char* id = "SIM0",
                 const tsr_simulated_options& how = options(TSR_SIMULATED_RANDOM))
        : Gpu(device_info(capability, memory, id), how) {}
    explicit Gpu(const tsr_simulated_options& how, const char* id = "SIM0") : Gpu(860, 64 << 20, id, how) {}
    Gpu(const tsr_device_info& description, const tsr_simulated_options& how) : info(description) {
        failures().reset(info.id);
        EXPECT_EQ(failures().configure(info.id, &how), 1u);
        const tsr_device_provider& provider = *simulated_plugin().providers[0];
        sdk::check(provider.open(&provider, &info, &device));
        queue = create_queue();
    }
    ~Gpu() {
        failures().reset(info.id);
        for (void* recording : recordings_) device->destroy_recording(device, recording);
        for (void* a : owned_) device->release(device, a);
        for (void* event : events_) device->destroy_event(device, event);
        for (void* one : queues_) device->destroy_queue(device, one);
        for (void* memory : pinned_) device->release_pinned(device, memory);
        device->close(device);
        failures().configure(info.id, nullptr);
    }
    Gpu(const Gpu&) = delete;
    Gpu& operator=(const Gpu&) = delete;

    // ---- memory ----

    void* allocate(uint64_t bytes) {
        void* address = nullptr;
        sdk::check(device->allocate(device, bytes, &address));
        owned_.push_back(address);
        return address;
    }
    void release(void* address) {
        std::erase(owned_, address);
        device->release(device, address);
    }
    template <class T>
    T* pinned(size_t count) {
        void* memory = nullptr;
        sdk::check(device->allocate_pinned(device, count * sizeof(T), &memory));
        pinned_.push_back(memory);
        return static_cast<T*>(memory);
    }

    // ---- asynchronous; `on` NULL: the first queue ----

    tsr_queue create_queue() {
        tsr_queue made = nullptr;
        sdk::check(device->create_queue(device, &made));
        queues_.push_back(made);
        return made;
    }
    tsr_event create_event(bool timed = false) {
        tsr_event made = nullptr;
        sdk::check(device->create_event(device, timed, &made));
        events_.push_back(made);
        return made;
    }
    void put_upload(void* to, const void* from, uint64_t bytes, tsr_queue on = nullptr) {
        sdk::check(device->upload(device, on ? on : queue, to, from, bytes));
    }
    void put_download(void* to, const void* from, uint64_t bytes, tsr_queue on = nullptr) {
        sdk::check(device->download(device, on ? on : queue, to, from, bytes));
    }
    void put_copy(void* to, const void* from, uint64_t bytes, tsr_queue on = nullptr) {
        sdk::check(device->copy(device, on ? on : queue, to, from, bytes));
    }
    void record(tsr_event event, tsr_queue on = nullptr) {
        sdk::check(device->record_event(device, on ? on : queue, event));
    }
    void queue_wait(tsr_event event, tsr_queue on = nullptr) { queue_wait(*this, event, on); }
    void queue_wait(const Gpu& owner, tsr_event event, tsr_queue on = nullptr) {
        sdk::check(device->queue_wait_event(device, on ? on : queue, owner.device, event));
    }
    bool complete(tsr_event event) {
        uint32_t done = 0;
        sdk::check(device->query_event(device, event, &done));
        return done == 1;
    }
    void wait(tsr_queue on = nullptr) { sdk::check(device->wait_queue(device, on ? on : queue)); }
    void wait_event(tsr_event event) { sdk::check(device->wait_event(device, event)); }
    void begin_recording(tsr_queue on = nullptr) { sdk::check(device->begin_recording(device, on ? on : queue)); }
    tsr_recording end_recording(tsr_queue on = nullptr) {
        tsr_recording made = nullptr;
        sdk::check(device->end_recording(device, on ? on : queue, &made));
        recordings_.push_back(made);
        return made;
    }
    void destroy_recording(tsr_recording recording) {
        std::erase(recordings_, recording);
        device->destroy_recording(device, recording);
    }
    void replay(tsr_recording recording, tsr_queue on = nullptr) {
        sdk::check(device->replay(device, on ? on : queue, recording));
    }

    // ---- and waited for ----

    void* upload(const void* from, uint64_t bytes) {
        void* address = allocate(bytes);
        put_upload(address, from, bytes);
        wait();
        return address;
    }
    void download(void* to, const void* from, uint64_t bytes) {
        put_download(to, from, bytes);
        wait();
    }

    // ---- kernels ----

    // Computes a node whose operands are in host memory: copies to the device and back. `change` may corrupt the
    // launch.
    void compute(TestNode& node, const Ranges& ranges,
                 const std::function<void(std::vector<void*>&, tsr_launch&)>& change = {}) {
        Prepared prepared(*this, node);
        tsr_launch launch = prepared.launch(ranges);
        if (change) change(prepared.data, launch);
        std::vector<void*> given = prepared.data;
        launch.data = given.data();
        const std::vector<void*> kept = given;
        sdk::check(prepared.kernel.enqueue(&prepared.kernel, prepared.state, &launch));
        // The arrays are the caller's again as soon as enqueue has returned.
        std::fill(given.begin(), given.end(), nullptr);
        wait();
        for (uint32_t i = node.node.input_count; i < kept.size(); ++i) {
            Tensor& t = node.operand(i);
            download(t.bytes->data(), kept[i], t.bytes->size());
        }
    }

    // A node whose kernel is prepared and whose operands are on the device.
    struct Prepared {
        Prepared(Gpu& on, TestNode& node) : gpu(on), kernel(simulated_kernel(node.node.op)) {
            tsr_kernel_plan plan{};
            plan.struct_size = sizeof plan;
            sdk::check(kernel.plan(&kernel, &node.node, &gpu.info, &plan));
            if (!plan.supported) throw sdk::Failure(TSR_UNSUPPORTED, plan.reason);
            sdk::check(kernel.prepare(&kernel, &node.node, &gpu.info, gpu.device, &state));
            for (uint32_t i = 0; i < node.node.input_count + node.node.output_count; ++i) {
                Tensor& t = node.operand(i);
                data.push_back(t.bytes ? gpu.upload(t.bytes->data(), t.bytes->size()) : nullptr);
            }
            ranges = gpu.allocate(sizeof(tsr_range) * TSR_RANGE_COUNT);
            workspace = plan.workspace_bytes ? gpu.allocate(plan.workspace_bytes) : nullptr;
        }
        ~Prepared() { kernel.release(&kernel, state); }
        Prepared(const Prepared&) = delete;

        void set(const Ranges& actual) {
            gpu.put_upload(ranges, actual.all, sizeof actual.all);
            gpu.wait();
        }
        // For these ranges, which also go to the device.
        tsr_launch launch(const Ranges& actual) {
            set(actual);
            for (int i = 0; i < TSR_RANGE_COUNT; ++i) bounds[i] = actual.all[i].end - actual.all[i].begin;
            tsr_launch launch{};
            launch.struct_size = sizeof launch;
            launch.data = data.data();
            launch.ranges = static_cast<tsr_range*>(ranges);
            launch.row_bounds = bounds;
            launch.token_bound = 1 << 20;
            launch.workspace = workspace;
            launch.queue = gpu.queue;
            return launch;
        }

        Gpu& gpu;
        const tsr_kernel& kernel;
        void* state = nullptr;
        std::vector<void*> data;
        void* ranges = nullptr;
        void* workspace = nullptr;
        int32_t bounds[TSR_RANGE_COUNT] = {};
    };

    tsr_device_info info;
    tsr_device* device = nullptr;
    tsr_queue queue = nullptr;

  private:
    std::vector<void*> owned_, queues_, events_, recordings_, pinned_;
};

inline std::string policy_name(tsr_simulated_policy policy) {
    constexpr const char* kNames[] = {"random", "at_once", "on_wait", "oldest_last", "newest_last"};
    return kNames[policy];
}

}  // namespace tessera::test
