#include "core/model/weights.hpp"

#include "core/base/error.hpp"
#include "core/graph/types.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <map>

namespace tessera {
namespace {

// As many dimensions as were asked for, so that [n, 1] in a file serves as [n]. Rows that the file interleaves are rows
// of their own in a model.
bool fits(const gguf::TensorEntry& entry, std::span<const int64_t> dims) {
    if (dims.empty() || dims.size() > entry.dims.size()) return false;
    for (size_t i = 0; i < entry.dims.size(); ++i) {
        const int64_t extent = i < dims.size() ? dims[i] : 1;
        if (extent <= 0 || entry.dims[i] != static_cast<uint64_t>(extent)) return false;
    }
    return true;
}

void check_entry(const ModelFile& model, const gguf::TensorEntry& entry, std::span<const int64_t> dims,
                 std::span<const int64_t> joined, bool vector) {
    if (!fits(entry, dims) && !fits(entry, joined)) {
        fail(TSR_CORRUPT_DATA, "{}: the tensor {} has the shape {}; the metadata ask for [{}]{}", model.source(),
             entry.name, gguf::shape_text(entry), fmt::join(dims, ", "),
             joined.empty() ? "" : fmt::format(" or [{}]", fmt::join(joined, ", ")));
    }
    if (vector && entry.type != TSR_TYPE_F32 && entry.type != TSR_TYPE_F16 && entry.type != TSR_TYPE_BF16) {
        fail(TSR_UNSUPPORTED, "{}: the tensor {} is {}; f32, f16 or bf16 is needed", model.source(), entry.name,
             type_info(entry.type).name);
    }
}

// The first layer that has a part, and the first that lacks it.
struct Layers {
    const ExpectedTensor *with = nullptr, *without = nullptr;
};

}  // namespace

Value add_weight(Graph& graph, const ModelFile& model, const gguf::TensorEntry& entry, std::span<const int64_t> dims,
                 bool vector) {
    check_entry(model, entry, dims, {}, vector);
    const TypeInfo& type = type_info(entry.type);
    Shape shape{type.rows_type, {dims.begin(), dims.end()}};
    if (vector) shape.type = TSR_TYPE_F32;
    return graph.weight(entry.name, shape, type.interleaved_rows > 1 ? std::string(type.name) : "");
}

Weights::Weights(ModelFile& model, Graph& graph, const ExpectedTensors& expected)
    : model_(model), graph_(graph), expected_(expected) {
    std::map<TensorPart, Layers> everywhere;
    for (const ExpectedTensor& tensor : expected_.all()) {
        const gguf::TensorEntry* entry = entry_of(tensor);
        if (entry) check_entry(model_, *entry, tensor.dims, tensor.joined, tensor.vector);
        if (!entry && tensor.presence == Presence::kRequired)
            fail(TSR_NOT_FOUND, "{}: the tensor {} is missing", model_.source(), tensor.name);
        if (tensor.presence != Presence::kEverywhere) continue;
        Layers& layers = everywhere[tensor.part];
        const ExpectedTensor*& first = entry ? layers.with : layers.without;
        if (!first) first = &tensor;
    }
    for (const auto& [part, layers] : everywhere) {
        if (layers.with && layers.without)
            fail(TSR_NOT_FOUND, "{}: the tensor {} is missing, though {} is there", model_.source(),
                 layers.without->name, layers.with->name);
    }
}

const gguf::TensorEntry* Weights::entry_of(const ExpectedTensor& tensor) const {
    const gguf::TensorEntry* entry = model_.file().find_tensor(tensor.name);
    return entry || tensor.other.empty() ? entry : model_.file().find_tensor(tensor.other);
}

Value Weights::get(TensorPart part, int64_t layer) {
    const ExpectedTensor* tensor = expected_.find(part, layer);
    const gguf::TensorEntry* entry = tensor ? entry_of(*tensor) : nullptr;
    if (!entry) return 0;
    model_.claim_tensor(entry->name);
    return add_weight(graph_, model_, *entry, fits(*entry, tensor->dims) ? tensor->dims : tensor->joined,
                      tensor->vector);
}

void Weights::check_all_taken() const {
    for (const ExpectedTensor& tensor : expected_.all()) {
        const gguf::TensorEntry* entry = entry_of(tensor);
        if (entry && !model_.is_claimed(entry->name))
            fail(TSR_INTERNAL, "{}: the tensor {} is expected, but the graph does not read it", model_.source(),
                 entry->name);
    }
}

}  // namespace tessera
