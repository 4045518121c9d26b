#include "apps/tessera/model_shapes.hpp"

#include "core/hardware/hardware.hpp"
#include "core/model/model.hpp"
#include "core/registry/registry.hpp"
#include "testing/conformance/shapes.hpp"

#include <tessera/ops.h>

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera::app {
namespace {

// What rows of a batch choose from: more experts are more of the same.
constexpr int64_t kExperts = 8;

// The first weight of an op among its inputs, and how many sizes its shape has of that weight.
struct Weights {
    uint32_t first, sizes;
};
const std::map<std::string_view, Weights> kWeights = {{TSR_OP_MATMUL, {1, 2}},    {TSR_OP_MATMUL_GROUP, {1, 2}},
                                                      {TSR_OP_MATMUL_ID, {1, 3}}, {TSR_OP_GATED_FFN, {1, 2}},
                                                      {TSR_OP_MOE_FFN, {3, 3}},   {TSR_OP_GET_ROWS, {0, 2}}};
constexpr std::string_view kPlain[] = {TSR_OP_RMS_NORM, TSR_OP_ADD, TSR_OP_MUL, TSR_OP_SILU_MUL};

// Nothing for nodes of ops that have no shapes, and for signatures of an op that shapes do not tell.
std::vector<conformance::Shape> shapes_of(const Graph& graph, const Node& node) {
    conformance::Shape shape;
    shape.op = node.op;
    if (std::ranges::find(kPlain, node.op) != std::end(kPlain)) {
        shape.types = {TSR_TYPE_F32};
        shape.sizes = {graph.tensor(node.inputs[0]).dims[0]};
        return {shape};
    }
    const auto signature = kWeights.find(node.op);
    if (signature == kWeights.end() || !node.attributes.empty()) return {};
    for (uint32_t i = signature->second.first; i < node.inputs.size(); ++i) {
        const tsr_tensor& weight = graph.tensor(node.inputs[i]);
        if (weight.role != TSR_ROLE_WEIGHT) break;
        if (weight.rank != signature->second.sizes) return {};
        if (shape.types.empty()) {
            shape.sizes.assign(weight.dims, weight.dims + weight.rank);
            if (weight.rank == 3) shape.sizes[2] = std::min(shape.sizes[2], kExperts);
        } else if (node.op == TSR_OP_MATMUL_GROUP) {
            shape.sizes.push_back(weight.dims[1]);
        }
        shape.types.push_back(weight.type);
    }
    return shape.types.empty() ? std::vector<conformance::Shape>() : std::vector{shape};
}

}  // namespace

ModelShapes model_shapes(const std::filesystem::path& file) {
    const gguf::GgufFile model = gguf::GgufFile::open(file);
    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load({}, hardware);  // operators of models
    const BuiltModel built = build_model(model, registry, {});
    ModelShapes found;
    std::set<std::string> known;
    for (const Node& node : built.graph.nodes()) {
        for (const conformance::Shape& shape : shapes_of(built.graph, node)) {
            const std::string text = shape.text();
            if (!known.insert(text).second) continue;
            try {
                found.shapes.push_back(conformance::parse_shape(text).text());
            } catch (const std::invalid_argument& error) {
                found.skipped.emplace_back(error.what());
            }
        }
    }
    return found;
}

}  // namespace tessera::app
