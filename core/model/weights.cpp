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

// The first layer that has a tensor, and the first that lacks it.
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
    std::map<ModelTensor, Layers> everywhere;
    std::map<std::string_view, const ExpectedTensor*> alone;  // by the tensor that they might be a part of
    for (const ExpectedTensor& tensor : expected_.all()) {
        const Found found = find(tensor);
        if (found) check(tensor, found);
        if (found && !found.fused && !tensor.fused.empty()) alone.emplace(tensor.fused, &tensor);
        if (!found && tensor.presence == Presence::kRequired) {
            fail(TSR_NOT_FOUND, "{}: the tensor {} is missing{}", model_.source(), tensor.name,
                 tensor.fused.empty() || tensor.always_fused ? "" : fmt::format(", and so is {}", tensor.fused));
        }
        if (tensor.presence != Presence::kEverywhere) continue;
        Layers& layers = everywhere[tensor.which];
        const ExpectedTensor*& first = found ? layers.with : layers.without;
        if (!first) first = &tensor;
    }
    for (const auto& [which, layers] : everywhere) {
        if (layers.with && layers.without)
            fail(TSR_NOT_FOUND, "{}: the tensor {} is missing, though {} is there", model_.source(),
                 layers.without->name, layers.with->name);
    }
    for (const ExpectedTensor& tensor : expected_.all()) {
        if (!find(tensor).fused || !alone.contains(tensor.fused)) continue;
        fail(TSR_CORRUPT_DATA, "{}: the tensor {} is in the file, and so is {}, of which it would be a part",
             model_.source(), alone.at(tensor.fused)->name, tensor.fused);
    }
}

Weights::Found Weights::find(const ExpectedTensor& tensor) const {
    if (!tensor.always_fused) {
        for (const std::string* name : {&tensor.name, &tensor.other}) {
            const gguf::TensorEntry* entry = name->empty() ? nullptr : model_.file().find_tensor(*name);
            if (entry) return {entry, false};
        }
    }
    const gguf::TensorEntry* whole = tensor.fused.empty() ? nullptr : model_.file().find_tensor(tensor.fused);
    return {whole, whole != nullptr};
}

void Weights::check(const ExpectedTensor& tensor, const Found& found) const {
    if (!found.fused) return check_entry(model_, *found.entry, tensor.dims, tensor.joined, tensor.vector);
    check_entry(model_, *found.entry, tensor.fused_dims(), {}, tensor.vector);
    const uint32_t together = type_info(found.entry->type).interleaved_rows;
    if (together > 1 && (tensor.first % together != 0 || tensor.dims[1] % together != 0)) {
        fail(TSR_UNSUPPORTED, "{}: the tensor {} interleaves {} rows, and {}, rows {} to {} of it, would share some",
             model_.source(), found.entry->name, together, tensor.name, tensor.first, tensor.first + tensor.dims[1]);
    }
}

Value Weights::add_part(const ExpectedTensor& tensor, const gguf::TensorEntry& whole) {
    constexpr uint64_t kAligned = 32;  // bytes; tensors of files are
    const TypeInfo& type = type_info(whole.type);
    SourceRows rows{whole.name, static_cast<uint64_t>(tensor.first),
                    static_cast<uint64_t>(tensor.dims[tensor.vector ? 0 : 1]),
                    static_cast<uint64_t>(tensor.fused_rows)};
    rows.in_place = tensor.dims.size() < 3 && rows.first * (whole.bytes / rows.of) % kAligned == 0;
    return graph_.weight(tensor.name, {tensor.vector ? tsr_type{TSR_TYPE_F32} : type.rows_type, tensor.dims},
                         type.interleaved_rows > 1 ? std::string(type.name) : "", std::move(rows));
}

Value Weights::get(ModelTensor which, int64_t layer) {
    const ExpectedTensor* tensor = expected_.find(which, layer);
    const Found found = tensor ? find(*tensor) : Found{};
    if (!found) return 0;
    model_.claim_tensor(found.entry->name);
    if (found.fused) return add_part(*tensor, *found.entry);
    return add_weight(graph_, model_, *found.entry, fits(*found.entry, tensor->dims) ? tensor->dims : tensor->joined,
                      tensor->vector);
}

void Weights::check_all_taken() const {
    for (const ExpectedTensor& tensor : expected_.all()) {
        const Found found = find(tensor);
        if (found && !model_.is_claimed(found.entry->name))
            fail(TSR_INTERNAL, "{}: the tensor {} is expected, but the graph does not read it", model_.source(),
                 found.entry->name);
    }
}

}  // namespace tessera
