#include "core/model/weights.hpp"

#include "core/base/error.hpp"
#include "core/graph/types.hpp"

#include <algorithm>

namespace tessera {
namespace {

// As many dimensions as were asked for, so that [n, 1] in a file serves as [n]. Rows that the file interleaves are rows
// of their own in a model.
bool fits(const gguf::TensorEntry& entry, std::initializer_list<int64_t> dims) {
    size_t i = 0;
    for (const int64_t extent : dims) {
        if (i >= entry.dims.size() || entry.dims[i++] != static_cast<uint64_t>(extent)) return false;
    }
    for (; i < entry.dims.size(); ++i) {
        if (entry.dims[i] != 1) return false;
    }
    return true;
}

}  // namespace

Value Weights::make(const gguf::TensorEntry& entry, std::initializer_list<int64_t> dims, bool as_f32) {
    if (std::ranges::any_of(dims, [](int64_t extent) { return extent <= 0; }) || !fits(entry, dims)) {
        std::string wanted;
        for (const int64_t extent : dims) wanted += fmt::format("{}{}", wanted.empty() ? "" : ", ", extent);
        fail(TSR_CORRUPT_DATA, "{}: the tensor {} has the shape {}; the metadata ask for [{}]", model_.source(),
             entry.name, gguf::shape_text(entry), wanted);
    }
    const TypeInfo& type = type_info(entry.type);
    Shape shape{type.rows_type, dims};
    if (as_f32) {
        if (entry.type != TSR_TYPE_F32 && entry.type != TSR_TYPE_F16 && entry.type != TSR_TYPE_BF16) {
            fail(TSR_UNSUPPORTED, "{}: the tensor {} is {}; f32, f16 or bf16 is needed", model_.source(), entry.name,
                 type.name);
        }
        shape.type = TSR_TYPE_F32;
    }
    return graph_.weight(entry.name, shape, type.interleaved_rows > 1 ? std::string(type.name) : "");
}

Value Weights::find(const std::string& name, std::initializer_list<int64_t> dims) {
    const gguf::TensorEntry* entry = model_.claim_tensor(name + ".weight");
    return entry ? make(*entry, dims, false) : 0;
}

Value Weights::get(const std::string& name, std::initializer_list<int64_t> dims) {
    const Value value = find(name, dims);
    if (!value) fail(TSR_NOT_FOUND, "{}: the tensor {}.weight is missing", model_.source(), name);
    return value;
}

Value Weights::find_vector(const std::string& full_name, int64_t length) {
    const gguf::TensorEntry* entry = model_.claim_tensor(full_name);
    return entry ? make(*entry, {length}, true) : 0;
}

Value Weights::get_vector(const std::string& full_name, int64_t length) {
    const Value value = find_vector(full_name, length);
    if (!value) fail(TSR_NOT_FOUND, "{}: the tensor {} is missing", model_.source(), full_name);
    return value;
}

Value Weights::find_in_layer(int64_t layer, const std::string& part, int64_t length, const std::string& other) {
    Value value = find_vector(fmt::format("blk.{}.{}", layer, part), length);
    if (!value && !other.empty()) value = find_vector(fmt::format("blk.{}.{}", layer, other), length);
    Layers& layers = parts_[part];
    (value ? layers.with : layers.without).push_back(layer);
    return value;
}

void Weights::check_layers() const {
    for (const auto& [part, layers] : parts_) {
        if (layers.with.empty() || layers.without.empty()) continue;
        fail(TSR_NOT_FOUND, "{}: the tensor blk.{}.{} is missing, though blk.{}.{} is there", model_.source(),
             layers.without.front(), part, layers.with.front(), part);
    }
}

int64_t Weights::extent(const std::string& full_name, uint32_t index) const {
    return static_cast<int64_t>(model_.file().tensor(full_name).dims.at(index));
}

}  // namespace tessera
