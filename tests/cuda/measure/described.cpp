#include "described.hpp"

#include <tessera/formats/formats.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace tessera::test {
namespace {

formats::FormatSize size_of(tsr_type type) {
    if (type == TSR_TYPE_I32) return {1, sizeof(int32_t), 0};
    const formats::FormatSize size = formats::listed_size(type);
    if (size.elements == 0) throw std::invalid_argument("no element type has the number " + std::to_string(type));
    return size;
}

}  // namespace

int64_t row_bytes_of(tsr_type type, int64_t elements) {
    const formats::FormatSize size = size_of(type);
    return size.prefix + elements / size.elements * size.bytes;
}

int64_t rows_of(const tsr_tensor& tensor) noexcept {
    return tensor.dims[1] * tensor.dims[2] * tensor.dims[3];
}

int64_t bytes_of(const tsr_tensor& tensor) noexcept {
    return tensor.type == TSR_TYPE_NONE ? 0 : tensor.strides[1] * rows_of(tensor);
}

DescribedOperand& Described::add(tsr_type type, tsr_role role, std::initializer_list<int64_t> dims, int32_t range,
                                 Content content) {
    DescribedOperand& made = operands_.emplace_back();
    made.content = content;
    tsr_tensor& t = made.tensor;
    t.struct_size = sizeof t;
    t.type = type;
    t.role = role;
    t.rank = static_cast<uint32_t>(dims.size());
    t.range = range;
    std::fill_n(t.dims, TSR_MAX_RANK, 1);
    std::ranges::copy(dims, t.dims);
    t.strides[0] = size_of(type).bytes;
    t.strides[1] = row_bytes_of(type, t.dims[0]);
    for (int i = 2; i < TSR_MAX_RANK; ++i) t.strides[i] = t.strides[i - 1] * t.dims[i - 1];
    t.layout = "";
    t.name = "measured";
    return made;
}

void Described::weight(tsr_type type, std::initializer_list<int64_t> dims) {
    add(type, TSR_ROLE_WEIGHT, dims, TSR_RANGE_FIXED, Content::kNumbers);
}
void Described::cache(tsr_type type, std::initializer_list<int64_t> dims) {
    add(type, TSR_ROLE_CACHE, dims, TSR_RANGE_FIXED, Content::kNumbers);
}
void Described::activation(std::initializer_list<int64_t> dims) {
    add(TSR_TYPE_F32, TSR_ROLE_ACTIVATION, dims, TSR_RANGE_ROWS, Content::kNumbers);
}
void Described::integers(std::initializer_list<int64_t> dims, std::vector<int32_t> values, int32_t range) {
    add(TSR_TYPE_I32, TSR_ROLE_INPUT, dims, range, Content::kIntegers).integers = std::move(values);
}
void Described::absent() {
    tsr_tensor& none = operands_.emplace_back().tensor;
    none.struct_size = sizeof none;
    none.type = TSR_TYPE_NONE;
}
void Described::output(std::initializer_list<int64_t> dims) {
    add(TSR_TYPE_F32, TSR_ROLE_ACTIVATION, dims, TSR_RANGE_ROWS, Content::kNothing);
    ++outputs_;
}
void Described::attribute(const char* name, int64_t value) {
    attributes_.push_back(sdk::attribute(name, value));
}
void Described::attribute(const char* name, double value) {
    attributes_.push_back(sdk::attribute(name, value));
}

const tsr_node& Described::node() {
    pointers_.clear();
    attribute_pointers_.clear();
    for (const DescribedOperand& operand : operands_) pointers_.push_back(&operand.tensor);
    for (const tsr_attribute& attribute : attributes_) attribute_pointers_.push_back(&attribute);
    const size_t inputs = operands_.size() - outputs_;
    node_ = {};
    node_.struct_size = sizeof node_;
    node_.op_version = 1;
    node_.op = op_;
    node_.name = "measured";
    node_.inputs = pointers_.data();
    node_.outputs = pointers_.data() + inputs;
    node_.input_count = static_cast<uint32_t>(inputs);
    node_.output_count = static_cast<uint32_t>(outputs_);
    node_.attributes = attribute_pointers_.data();
    node_.attribute_count = static_cast<uint32_t>(attributes_.size());
    node_.layer = -1;
    return node_;
}

}  // namespace tessera::test
