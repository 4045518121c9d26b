// The core's ops (ops.h), whose shapes are inferred by the table of op_shapes.hpp.
#include "core/graph/builtin_lowerings.hpp"
#include "core/graph/op_set.hpp"

#include <tessera/cpp/op_shapes.hpp>
#include <tessera/cpp/status.hpp>

#include <algorithm>
#include <vector>

namespace tessera {
namespace {

using sdk::Failure;
using sdk::OperandKind;

void require(bool holds, const std::string& what) {
    if (!holds) throw Failure(TSR_INVALID_ARGUMENT, what);
}

void require_kind(const sdk::OperandShape& shape, const tsr_tensor& tensor) {
    require(shape.kind != OperandKind::kFloats || tensor.type == TSR_TYPE_F32,
            std::string(shape.name) + ": expected f32 activations");
    require(shape.kind != OperandKind::kIndices || tensor.type == TSR_TYPE_I32,
            std::string(shape.name) + ": expected i32 indices");
    require(shape.kind != OperandKind::kCache || tensor.role == TSR_ROLE_CACHE,
            std::string(shape.name) + ": expected a cache");
}

tsr_type type_of(OperandKind kind, const tsr_node& node) {
    if (kind == OperandKind::kIndices) return TSR_TYPE_I32;
    if (kind != OperandKind::kWeight) return TSR_TYPE_F32;
    return static_cast<tsr_type>(sdk::int_attribute(node, "type", TSR_TYPE_F32));
}

const tsr_status* infer(const tsr_operator* op, const tsr_node* node, tsr_tensor* const* outputs) {
    return sdk::guarded([&] {
        const sdk::OpShapes& row = *sdk::find_shapes(op->name, *node);
        for (uint32_t i = 0; i < node->input_count; ++i) {
            if (sdk::has_input(*node, i)) require_kind(row.input(i), *node->inputs[i]);
        }
        const uint32_t count = op->output_count ? op->output_count : std::max(node->input_count, 1u) - 1;
        for (uint32_t i = 0; i < count; ++i) {
            *outputs[i] = {};
            outputs[i]->struct_size = sizeof(tsr_tensor);
            outputs[i]->type = type_of(row.output(i).kind, *node);
        }
        sdk::ShapeFault fault;
        require(sdk::infer_shapes(row, *node, outputs, fault), fault.text());
    });
}

std::vector<tsr_operator> operators() {
    std::vector<tsr_operator> all;
    for (const sdk::OpShapes& row : sdk::kOpShapes) {
        if (!all.empty() && row.op == all.back().name) continue;  // another signature of it
        const auto lowerings = builtin_lowerings(row.op);
        all.push_back({sizeof(tsr_operator), 1, nullptr, nullptr, row.op.data(), infer, lowerings.data(),
                       static_cast<uint32_t>(lowerings.size()),
                       row.repeats ? 0 : static_cast<uint32_t>(row.outputs.size())});
    }
    return all;
}

}  // namespace

std::span<const tsr_operator* const> builtin_operators() {
    static const std::vector<tsr_operator> kOperators = operators();
    static const std::vector<const tsr_operator*> kPointers = sdk::pointers_to(kOperators.data(), kOperators.size());
    return kPointers;
}

}  // namespace tessera
