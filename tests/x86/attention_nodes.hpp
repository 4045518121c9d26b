// Nodes with data for tests of kernels: operands are made, filled, poisoned and run by a team of threads.
#pragma once

#include "core/run/pieces.hpp"
#include "plugin_under_test.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/cpp/status.hpp>
#include <tessera/cpu/formats.hpp>
#include <tessera/kernel.h>

#include <atomic>
#include <barrier>
#include <cmath>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tessera::tests {

// A tensor with storage of its own, canonical and dense unless made otherwise.
struct Operand {
    tsr_tensor tensor{};
    std::vector<char> storage;  // 64 bytes more than needed, to align
    char* data() {
        const auto at = reinterpret_cast<uintptr_t>(storage.data());
        return storage.data() + (64 - at % 64) % 64;
    }
    float* floats() { return reinterpret_cast<float*>(data() + tensor.offset); }
    int32_t* integers() { return reinterpret_cast<int32_t*>(data() + tensor.offset); }
};

// What the workers of a node share.
struct Team {
    struct Next {
        std::atomic<uint32_t>* phase;
        void operator()() const noexcept { ++*phase; }
    };
    uint32_t workers;
    std::atomic<uint32_t> phase{1};
    Pieces pieces;
    std::barrier<Next> barrier;

    explicit Team(uint32_t count) : workers(count), pieces(count), barrier(count, Next{&phase}) {}
    uint32_t piece(uint32_t worker, uint32_t count) { return pieces.take(phase, worker, workers, count); }
};

class NodeCase {
  public:
    explicit NodeCase(const char* op) {
        node_.struct_size = sizeof node_;
        node_.op = op;
        node_.op_version = 1;
        node_.name = "test";
    }
    NodeCase(const NodeCase&) = delete;
    NodeCase& operator=(const NodeCase&) = delete;

    // Adds an operand. Rows past the first dimension are `gap` bytes apart from each other.
    Operand& add(bool input, tsr_type type, std::initializer_list<int64_t> dims, uint32_t role,
                 int32_t range = TSR_RANGE_FIXED, int64_t gap = 0) {
        Operand& operand = operands_.emplace_back();
        tsr_tensor& t = operand.tensor;
        t.struct_size = sizeof t;
        t.type = type;
        t.role = role;
        t.range = range;
        for (auto& d : t.dims) d = 1;
        for (const int64_t d : dims) t.dims[t.rank++] = d;
        const cpu::FormatSize size = type == TSR_TYPE_I32 ? cpu::FormatSize{1, 4} : cpu::format_size(type);
        t.strides[0] = size.bytes;
        t.strides[1] = t.dims[0] / size.elements * size.bytes + size.prefix + gap;
        t.strides[2] = t.strides[1] * t.dims[1];
        t.strides[3] = t.strides[2] * t.dims[2];
        operand.storage.assign(static_cast<size_t>(t.strides[3] * t.dims[3]) + 128, static_cast<char>(0xFF));  // NaN
        (input ? inputs_ : outputs_).push_back(&t);
        (input ? input_operands_ : output_operands_).push_back(&operand);
        return operand;
    }
    void add_absent() {
        Operand& operand = operands_.emplace_back();
        operand.tensor.struct_size = sizeof operand.tensor;
        operand.tensor.type = TSR_TYPE_NONE;
        inputs_.push_back(&operand.tensor);
        input_operands_.push_back(&operand);
    }
    // The output is input `index` itself.
    void output_in_place(size_t index) {
        outputs_.push_back(inputs_[index]);
        output_operands_.push_back(input_operands_[index]);
    }
    void attribute(const char* name, int64_t value) { attributes_.push_back(sdk::attribute(name, value)); }
    void attribute(const char* name, double value) { attributes_.push_back(sdk::attribute(name, value)); }
    void attribute(const char* name, const char* value) { attributes_.push_back(sdk::attribute(name, value)); }

    const tsr_node& node() {
        attribute_pointers_ = sdk::pointers_to(attributes_.data(), attributes_.size());
        node_.attributes = attribute_pointers_.data();
        node_.attribute_count = static_cast<uint32_t>(attributes_.size());
        node_.inputs = inputs_.data();
        node_.input_count = static_cast<uint32_t>(inputs_.size());
        node_.outputs = outputs_.data();
        node_.output_count = static_cast<uint32_t>(outputs_.size());
        return node_;
    }

    // Calls body(tsr_run) in `workers` threads at once. `ranges`: TSR_RANGE_COUNT of them.
    template <class Body>
    void run(uint32_t workers, uint64_t workspace_bytes, const tsr_range* ranges, Body&& body) {
        std::vector<void*> data;
        for (Operand* o : input_operands_) data.push_back(o->tensor.type == TSR_TYPE_NONE ? nullptr : o->data());
        for (Operand* o : output_operands_) data.push_back(o->data());
        constexpr uint64_t kGuard = 4096;
        std::vector<char> workspace(workspace_bytes + kGuard + 64, static_cast<char>(0xFF));
        char* start = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
        // Even teams have tsr_run.piece, odd ones do not: both kinds of division are tested.
        Team shared(workers);
        const auto work = [&](uint32_t worker) {
            tsr_run run{};
            run.struct_size = sizeof run;
            run.data = data.data();
            run.ranges = ranges;
            run.workspace = start;
            run.worker = worker;
            run.workers = workers;
            run.team = &shared;
            run.barrier = [](void* of, uint32_t) { static_cast<Team*>(of)->barrier.arrive_and_wait(); };
            if (workers % 2 == 0) {
                run.piece = [](void* of, uint32_t index, uint32_t count) {
                    return static_cast<Team*>(of)->piece(index, count);
                };
            }
            body(run);
        };
        std::vector<std::thread> team;
        for (uint32_t w = 1; w < workers; ++w) team.emplace_back(work, w);
        work(0);
        for (auto& t : team) t.join();
        for (uint64_t i = 0; i < kGuard; ++i) {
            if (start[workspace_bytes + i] != static_cast<char>(0xFF))
                throw std::runtime_error("written past the workspace");
        }
    }

    // Plans, prepares and runs a kernel. Throws what it refuses.
    tsr_kernel_plan run_kernel(const tsr_kernel& kernel, uint32_t workers, const tsr_range* ranges) {
        tsr_device_info device = device_of(workers);
        if (cpu_flags) device.cpu_flags = cpu_flags;
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        sdk::check(kernel.plan(&kernel, &node(), &device, &plan));
        if (!plan.supported) throw std::runtime_error(plan.reason);
        void* state = nullptr;
        sdk::check(kernel.prepare(&kernel, &node(), &device, nullptr, &state));
        std::vector<const tsr_status*> statuses(workers);
        run(workers, plan.workspace_bytes, ranges,
            [&](const tsr_run& r) { statuses[r.worker] = kernel.run(&kernel, state, &r); });
        kernel.release(&kernel, state);
        std::string message;
        for (const tsr_status* s : statuses) {
            if (!s) continue;
            message = s->message;
            s->destroy(s);
        }
        if (!message.empty()) throw std::runtime_error(message);
        return plan;
    }

    const char* const* cpu_flags = nullptr;  // of the processor; nullptr: as device_of() says

    Operand& input(size_t i) { return *input_operands_[i]; }
    Operand& output(size_t i = 0) { return *output_operands_[i]; }

  private:
    std::deque<Operand> operands_;
    std::vector<const tsr_tensor*> inputs_, outputs_;
    std::vector<Operand*> input_operands_, output_operands_;
    std::vector<tsr_attribute> attributes_;
    std::vector<const tsr_attribute*> attribute_pointers_;
    tsr_node node_{};
};

// Packs a canonical cache into the best of the layouts that a kernel's plan names for it; false if that is the
// canonical one.
inline bool pack_cache(Operand& cache, const char* const* names) {
    if (!names || !names[0] || !names[0][0]) return false;
    for (const tsr_layout* layout : layouts_of_plugin()) {
        if (std::strcmp(layout->name, names[0]) != 0) continue;
        const int64_t elements = cache.tensor.dims[0];
        const int64_t groups = cache.tensor.dims[1] * cache.tensor.dims[2] / layout->group_rows;
        Operand packed;
        const auto bytes = layout->group_bytes(layout, elements) * static_cast<uint64_t>(groups);
        packed.storage.assign(bytes + 128, static_cast<char>(0xFF));
        layout->pack(layout, elements, groups, cache.data(), packed.data());
        // Aligned anew where it now lies: moving keeps the address.
        cache.storage = std::move(packed.storage);
        cache.tensor.layout = layout->name;
        return true;
    }
    throw std::runtime_error(std::string("no layout ") + names[0]);
}

inline void fill_normal(float* to, size_t count, std::mt19937& random, float deviation = 1) {
    std::normal_distribution<float> normal(0, deviation);
    for (size_t i = 0; i < count; ++i) to[i] = normal(random);
}

// ||got - wanted|| / ||wanted||; infinite if anything is not a number.
inline double relative_error(const std::vector<float>& got, const std::vector<float>& wanted) {
    double difference = 0, norm = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
        const double d = double(got[i]) - wanted[i];
        difference += d * d;
        norm += double(wanted[i]) * wanted[i];
    }
    const double e = std::sqrt(difference / norm);
    return e == e ? e : std::numeric_limits<double>::infinity();
}

}  // namespace tessera::tests
