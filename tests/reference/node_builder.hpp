// Nodes with data for tests of kernels: tensors in guarded host memory, described as the core describes them.
#pragma once

#include "kernels/plain/plain.hpp"
#include "tests/random_rows.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace tessera::test {

// A tensor with storage of its own. Copies share the storage, so that views can be made.
struct Tensor {
    tsr_tensor desc{};
    std::shared_ptr<std::vector<unsigned char>> bytes;

    float* floats() const { return reinterpret_cast<float*>(bytes->data() + desc.offset); }
    int32_t* integers() const { return reinterpret_cast<int32_t*>(bytes->data() + desc.offset); }
    float& at(int64_t i0, int64_t i1 = 0, int64_t i2 = 0) const {
        return *reinterpret_cast<float*>(bytes->data() + desc.offset + i0 * desc.strides[0] + i1 * desc.strides[1] +
                                         i2 * desc.strides[2]);
    }
};

// Dense, filled with 0xFF: not-a-number as f32, f16 and bf16, and -1 as an integer.
inline Tensor make_tensor(tsr_type type, std::vector<int64_t> dims, int32_t range = TSR_RANGE_FIXED) {
    Tensor t;
    t.desc.struct_size = sizeof t.desc;
    t.desc.type = type;
    t.desc.rank = static_cast<uint32_t>(dims.size());
    t.desc.range = range;
    cpu::FormatSize size = cpu::format_size(type);
    if (type == TSR_TYPE_I32) size = {1, 4};
    for (uint32_t i = 0; i < TSR_MAX_RANK; ++i) t.desc.dims[i] = i < dims.size() ? dims[i] : 1;
    t.desc.strides[0] = size.bytes;
    int64_t stride = t.desc.dims[0] / size.elements * size.bytes + size.prefix;
    for (uint32_t i = 1; i < TSR_MAX_RANK; ++i) {
        t.desc.strides[i] = stride;
        stride *= t.desc.dims[i];
    }
    t.bytes = std::make_shared<std::vector<unsigned char>>(static_cast<size_t>(stride), 0xFF);
    return t;
}

inline Tensor floats(std::vector<int64_t> dims, std::vector<float> values, int32_t range = TSR_RANGE_FIXED) {
    Tensor t = make_tensor(TSR_TYPE_F32, std::move(dims), range);
    std::memcpy(t.bytes->data(), values.data(), std::min(t.bytes->size(), values.size() * 4));
    return t;
}

inline Tensor integers(std::vector<int64_t> dims, std::vector<int32_t> values, int32_t range = TSR_RANGE_FIXED) {
    Tensor t = make_tensor(TSR_TYPE_I32, std::move(dims), range);
    std::memcpy(t.bytes->data(), values.data(), std::min(t.bytes->size(), values.size() * 4));
    return t;
}

// Dense f32 with values drawn from (-scale, scale).
inline Tensor random_floats(std::mt19937& rng, std::vector<int64_t> dims, int32_t range = TSR_RANGE_FIXED,
                            float scale = 1.0f) {
    Tensor t = make_tensor(TSR_TYPE_F32, std::move(dims), range);
    std::uniform_real_distribution<float> draw(-scale, scale);
    for (size_t i = 0; i < t.bytes->size() / 4; ++i) t.floats()[i] = draw(rng);
    return t;
}

// Any type, dense, of about `scale`.
inline Tensor random_weight(std::mt19937& rng, tsr_type type, std::vector<int64_t> dims, float scale = 1.0f) {
    Tensor t = make_tensor(type, dims);
    const auto row_bytes = static_cast<size_t>(t.desc.strides[1]);
    tests::fill_rows(type, t.bytes->data(), static_cast<size_t>(dims[0]), t.bytes->size() / row_bytes, scale / 2, rng);
    return t;
}

// The weight as f32, dense.
inline Tensor decoded(const Tensor& t) {
    Tensor out = make_tensor(TSR_TYPE_F32, {t.desc.dims[0], t.desc.dims[1], t.desc.dims[2], t.desc.dims[3]});
    for (int64_t i3 = 0; i3 < t.desc.dims[3]; ++i3) {
        for (int64_t i2 = 0; i2 < t.desc.dims[2]; ++i2) {
            for (int64_t i1 = 0; i1 < t.desc.dims[1]; ++i1) {
                const unsigned char* from = t.bytes->data() + t.desc.offset + i1 * t.desc.strides[1] +
                                            i2 * t.desc.strides[2] + i3 * t.desc.strides[3];
                auto* to =
                    out.bytes->data() + i1 * out.desc.strides[1] + i2 * out.desc.strides[2] + i3 * out.desc.strides[3];
                cpu::decode_row(t.desc.type, from, static_cast<size_t>(t.desc.dims[0]), reinterpret_cast<float*>(to));
            }
        }
    }
    return out;
}

struct Ranges {
    tsr_range all[TSR_RANGE_COUNT] = {};

    // `rows` of which the first `prompt` are of prompts.
    static Ranges of(int32_t rows, int32_t prompt = 0) {
        Ranges r;
        r.all[TSR_RANGE_ROWS] = {0, rows};
        r.all[TSR_RANGE_PROMPT_ROWS] = {0, prompt};
        r.all[TSR_RANGE_GENERATION_ROWS] = {prompt, rows};
        r.all[TSR_RANGE_OUTPUT_ROWS] = {0, rows};
        return r;
    }
};

// A node over tensors. Absent operands are Tensor{}.
class TestNode {
  public:
    TestNode(std::string op, std::vector<Tensor> inputs, std::vector<Tensor> outputs,
             std::vector<tsr_attribute> attributes = {})
        : op_(std::move(op)), operands_(std::move(inputs)), attributes_(std::move(attributes)) {
        const size_t input_count = operands_.size();
        operands_.insert(operands_.end(), outputs.begin(), outputs.end());
        for (Tensor& t : operands_) {
            if (!t.bytes) t.desc.type = TSR_TYPE_NONE;
            pointers_.push_back(&t.desc);
            data_.push_back(t.bytes ? t.bytes->data() : nullptr);
        }
        node.struct_size = sizeof node;
        node.op = op_.c_str();
        node.op_version = 1;
        node.name = "test";
        attribute_pointers_ = sdk::pointers_to(attributes_.data(), attributes_.size());
        node.attributes = attribute_pointers_.data();
        node.attribute_count = static_cast<uint32_t>(attributes_.size());
        node.inputs = pointers_.data();
        node.input_count = static_cast<uint32_t>(input_count);
        node.outputs = pointers_.data() + input_count;
        node.output_count = static_cast<uint32_t>(operands_.size() - input_count);
    }
    TestNode(const TestNode&) = delete;
    TestNode& operator=(const TestNode&) = delete;

    Tensor& operand(size_t i) { return operands_[i]; }
    tsr_tensor& desc(size_t i) { return operands_[i].desc; }

    tsr_kernel_plan plan(uint32_t slots = 1) const {
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        plain::Work work;
        const plain::Op* op = plain::find_op(op_);
        if (op) op->plan(node, slots, plan, work);
        return plan;
    }

    // Plans and runs with that many workers, each a thread. Throws what a worker throws, or std::runtime_error with the
    // reason of a refusal.
    void run(const Ranges& ranges = Ranges::of(0), uint32_t workers = 1) {
        const tsr_kernel_plan answer = plan(workers);
        if (!answer.supported) throw std::runtime_error(answer.reason);
        std::vector<unsigned char> workspace(answer.workspace_bytes + 64, 0xFF);
        auto start = reinterpret_cast<uintptr_t>(workspace.data());
        start = (start + 63) / 64 * 64;
        std::vector<std::thread> team;
        std::vector<std::exception_ptr> errors(workers);
        for (uint32_t w = 0; w < workers; ++w) {
            team.emplace_back([&, w] {
                tsr_run run{};
                run.struct_size = sizeof run;
                run.data = data_.data();
                run.ranges = ranges.all;
                run.workspace = reinterpret_cast<void*>(start);
                run.worker = w;
                run.workers = workers;
                try {
                    plain::find_op(op_)->run(node, workers, run);
                } catch (...) {
                    errors[w] = std::current_exception();
                }
            });
        }
        for (std::thread& t : team) t.join();
        for (const std::exception_ptr& error : errors) {
            if (error) std::rethrow_exception(error);
        }
    }

    tsr_node node{};

  private:
    std::string op_;
    std::vector<Tensor> operands_;
    std::vector<tsr_attribute> attributes_;
    std::vector<const tsr_attribute*> attribute_pointers_;
    std::vector<const tsr_tensor*> pointers_;
    std::vector<void*> data_;
};

// |a - b| / |b| over all elements (L2), infinite if anything is not a number.
inline double relative_error(const std::vector<double>& got, const std::vector<double>& wanted) {
    double difference = 0, norm = 0;
    if (got.size() != wanted.size()) return std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < got.size(); ++i) {
        difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
        norm += wanted[i] * wanted[i];
    }
    const double error = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
}

}  // namespace tessera::test
