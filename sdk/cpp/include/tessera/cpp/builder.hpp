// Writing a lowering: tsr_builder with values, initializer lists and exceptions.
#pragma once

#include <tessera/cpp/abi.hpp>
#include <tessera/cpp/node.hpp>
#include <tessera/cpp/status.hpp>
#include <tessera/graph.h>

#include <initializer_list>
#include <span>
#include <vector>

namespace tessera::sdk {

// Wraps the host's table for the time of one build call.
class Builder {
  public:
    using Attributes = std::initializer_list<tsr_attribute>;
    using Values = std::initializer_list<tsr_value>;

    explicit Builder(tsr_builder* table) noexcept : table_(table) {}

    tsr_value input(uint32_t index) const noexcept { return table_->input(table_, index); }
    tsr_value cache(uint32_t index) const noexcept { return table_->cache(table_, index); }
    // A copy: the host's description is valid only until the next tensor is made.
    tsr_tensor describe(tsr_value value) const noexcept { return copy_struct(*table_->describe(table_, value)); }

    // Adds a node of one output and returns it; `into`, if given, is where it is written.
    tsr_value add(const char* op, const char* name, Values inputs, Attributes attributes = {}, tsr_value into = 0,
                  tsr_stage stage = TSR_STAGE_RUN) const {
        tsr_value output = into;
        add_to(stage, op, name, {inputs.begin(), inputs.size()}, {attributes.begin(), attributes.size()}, &output, 1);
        return output;
    }
    // The same with as many operands and attributes as there happen to be.
    tsr_value add(const char* op, const char* name, const std::vector<tsr_value>& inputs,
                  const std::vector<tsr_attribute>& attributes, tsr_value into = 0) const {
        tsr_value output = into;
        add_to(TSR_STAGE_RUN, op, name, {inputs.data(), inputs.size()}, {attributes.data(), attributes.size()}, &output,
               1);
        return output;
    }

    std::vector<tsr_value> add_many(const char* op, const char* name, Values inputs, uint32_t outputs,
                                    Attributes attributes = {}) const {
        std::vector<tsr_value> values(outputs, 0);
        add_to(TSR_STAGE_RUN, op, name, {inputs.begin(), inputs.size()}, {attributes.begin(), attributes.size()},
               values.data(), outputs);
        return values;
    }

    // A dense f32 buffer of the given extents (fastest first) over a range of rows.
    tsr_value buffer(std::initializer_list<int64_t> dims, int32_t range) const {
        tsr_tensor shape = shape_of(dims, range);
        shape.type = TSR_TYPE_F32;
        tsr_value value = 0;
        check(table_->buffer(table_, &shape, &value));
        return value;
    }

    // Any view; see tsr_builder.view.
    tsr_value view(tsr_value of, const tsr_tensor& shape) const {
        tsr_value value = 0;
        check(table_->view(table_, of, &shape, &value));
        return value;
    }

    // `count` elements from `begin` on of the first dimension (whole blocks).
    tsr_value slice(tsr_value of, int64_t begin, int64_t count) const {
        tsr_tensor shape = describe(of);
        shape.offset += begin * shape.strides[0];
        shape.dims[0] = count;
        return view(of, shape);
    }

    // The same tensor over another range of rows.
    tsr_value rows(tsr_value of, int32_t range) const {
        tsr_tensor shape = describe(of);
        shape.range = range;
        return view(of, shape);
    }

    // The same elements of a dense f32 tensor with other extents; the range still bounds the slowest dimension.
    tsr_value reshape(tsr_value of, std::initializer_list<int64_t> dims) const {
        const tsr_tensor old = describe(of);
        tsr_tensor shape = shape_of(dims, old.range);
        shape.type = old.type;
        shape.role = old.role;
        shape.offset = old.offset;
        int64_t stride = old.strides[0];
        for (uint32_t i = 0; i < TSR_MAX_RANK; ++i) {
            shape.strides[i] = stride;
            stride *= shape.dims[i];
        }
        return view(of, shape);
    }

    void output(uint32_t index, tsr_value value) const { check(table_->output(table_, index, value)); }

  private:
    void add_to(tsr_stage stage, const char* op, const char* name, std::span<const tsr_value> inputs,
                std::span<const tsr_attribute> attributes, tsr_value* outputs, uint32_t output_count) const {
        const auto pointers = pointers_to(attributes.data(), attributes.size());
        check(table_->add(table_, stage, op, name, pointers.data(), static_cast<uint32_t>(pointers.size()),
                          inputs.data(), static_cast<uint32_t>(inputs.size()), outputs, output_count));
    }

    static tsr_tensor shape_of(std::initializer_list<int64_t> dims, int32_t range) {
        tsr_tensor shape{};
        shape.struct_size = sizeof shape;
        shape.range = range;
        for (int64_t& extent : shape.dims) extent = 1;
        for (const int64_t extent : dims) shape.dims[shape.rank++] = extent;
        return shape;
    }

    tsr_builder* table_;
};

}  // namespace tessera::sdk
