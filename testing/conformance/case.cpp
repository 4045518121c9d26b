#include "case.hpp"

#include "random_rows.hpp"

#include <algorithm>
#include <cstring>
#include <functional>

namespace tessera::conformance {
namespace {

constexpr auto kPoison = std::byte{0xFF};  // of f32, f16 and bf16 not a number

struct Size {
    int64_t elements, bytes, prefix;
};

Size size_of(tsr_type type) {
    const formats::FormatSize size = formats::listed_size(type);
    return {size.elements, size.bytes, size.prefix};
}

}  // namespace

size_t Operand::rows() const noexcept {
    size_t rows = 1;
    for (uint32_t d = 1; d < tensor.rank; ++d) rows *= static_cast<size_t>(tensor.dims[d]);
    return rows;
}

size_t Operand::row_bytes() const noexcept {
    const Size size = size_of(tensor.type);
    return size.elements ? static_cast<size_t>(tensor.dims[0] / size.elements * size.bytes + size.prefix) : 0;
}

const std::byte* Operand::row(const std::byte* storage, size_t index) const noexcept {
    int64_t at = tensor.offset;
    auto left = static_cast<int64_t>(index);
    for (uint32_t d = 1; d < tensor.rank; ++d) {
        at += left % tensor.dims[d] * tensor.strides[d];
        left /= tensor.dims[d];
    }
    return storage + at;
}

std::byte* Operand::row(std::vector<std::byte>& storage, size_t index) const {
    return const_cast<std::byte*>(row(static_cast<const std::byte*>(storage.data()), index));
}

bool Operand::is_dense() const noexcept {
    return tensor.offset == 0 && bytes.size() == rows() * row_bytes();
}

Case::Case(std::string op, std::string name_of_case)
    : name(std::move(name_of_case)),
      random(static_cast<uint32_t>(std::hash<std::string>{}(op + name))),
      op_(std::move(op)) {}

Operand& Case::add(const char* name_of_operand, tsr_type type, std::initializer_list<int64_t> dims, tsr_role role,
                   int32_t range, int64_t gap) {
    Operand& operand = operands_.emplace_back();
    operand.name = name_of_operand;
    tsr_tensor& t = operand.tensor;
    t.struct_size = sizeof t;
    t.type = type;
    t.role = role;
    t.range = range;
    t.layout = "";
    std::ranges::fill(t.dims, 1);
    for (const int64_t dim : dims) t.dims[t.rank++] = dim;
    t.strides[0] = size_of(type).bytes;
    t.strides[1] = static_cast<int64_t>(operand.row_bytes()) + gap;
    t.strides[2] = t.strides[1] * t.dims[1];
    t.strides[3] = t.strides[2] * t.dims[2];
    operand.bytes.assign(static_cast<size_t>(t.strides[3] * t.dims[3]), kPoison);
    return operand;
}

Operand& Case::input(const char* name_of_operand, tsr_type type, std::initializer_list<int64_t> dims, tsr_role role,
                     int32_t range, int64_t gap) {
    ++inputs_;
    return add(name_of_operand, type, dims, role, range, gap);
}

void Case::absent() {
    Operand& operand = operands_.emplace_back();
    operand.tensor.struct_size = sizeof operand.tensor;
    operand.tensor.type = TSR_TYPE_NONE;
    ++inputs_;
}

Operand& Case::output(const char* name_of_operand, tsr_type type, std::initializer_list<int64_t> dims, int32_t range,
                      int64_t gap, tsr_role role) {
    Operand& operand = add(name_of_operand, type, dims, role, range, gap);
    operand.is_output = true;
    return operand;
}

void Case::output_in_place(size_t index) {
    const Operand& from = operands_[index];
    Operand copy = from;
    copy.is_output = true;
    copy.shares_input = static_cast<int>(index);
    operands_.push_back(std::move(copy));
}

Operand& Case::fill(Operand& operand, float size) {
    const auto elements = static_cast<size_t>(operand.tensor.dims[0]);
    for (size_t r = 0; r < operand.rows(); ++r)
        fill_rows(operand.tensor.type, operand.row(operand.bytes, r), elements, 1, size, random);
    return operand;
}

void Case::attribute(const char* of, int64_t value) {
    attributes_.push_back({sizeof(tsr_attribute), TSR_ATTRIBUTE_INT, nullptr, of, value, 0, nullptr});
    attribute_list_.push_back(&attributes_.back());
}
void Case::attribute(const char* of, double value) {
    attributes_.push_back({sizeof(tsr_attribute), TSR_ATTRIBUTE_FLOAT, nullptr, of, 0, value, nullptr});
    attribute_list_.push_back(&attributes_.back());
}
void Case::attribute(const char* of, const char* value) {
    attributes_.push_back({sizeof(tsr_attribute), TSR_ATTRIBUTE_STRING, nullptr, of, 0, 0, value});
    attribute_list_.push_back(&attributes_.back());
}

void Case::row_ranges(int32_t rows) {
    const auto of = [&](int32_t begin, int32_t end) {
        Ranges all{};
        all[TSR_RANGE_ROWS] = {0, end};
        all[TSR_RANGE_PROMPT_ROWS] = {0, begin};
        all[TSR_RANGE_GENERATION_ROWS] = {begin, end};
        all[TSR_RANGE_OUTPUT_ROWS] = {0, end};
        return all;
    };
    ranges.push_back(of(0, rows));
    if (rows > 2) ranges.push_back(of(rows / 3, rows / 3 + rows / 2));
    if (rows > 1) ranges.push_back(of(rows - 1, rows));
    ranges.push_back(of(rows / 2, rows / 2));
}

CaseNode::CaseNode(const Case& of) {
    for (size_t i = 0; i < of.operands(); ++i) {
        tensors_.push_back(of.operand(i).tensor);
        tensors_.back().name = of.operand(i).name.c_str();
    }
    for (const tsr_tensor& tensor : tensors_) pointers_.push_back(&tensor);
    node_.struct_size = sizeof node_;
    node_.op_version = 1;
    node_.op = of.op().c_str();
    node_.name = of.name.c_str();
    node_.attributes = of.attributes().data();
    node_.attribute_count = static_cast<uint32_t>(of.attributes().size());
    node_.inputs = pointers_.data();
    node_.input_count = static_cast<uint32_t>(of.inputs());
    node_.outputs = pointers_.data() + of.inputs();
    node_.output_count = static_cast<uint32_t>(of.operands() - of.inputs());
    node_.layer = -1;
}

}  // namespace tessera::conformance
