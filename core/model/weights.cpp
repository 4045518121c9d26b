#include "core/model/weights.hpp"

#include "core/base/error.hpp"
#include "core/graph/types.hpp"

#include <algorithm>

namespace tessera {
namespace {

// As many dimensions as were asked for, so that [n, 1] in a file serves as [n]. Rows that the file interleaves are rows
// of their own in a model.
Shape shape_of(const gguf::TensorEntry& entry, std::initializer_list<int64_t> dims) {
    return {type_info(entry.type).rows_type, dims};
}

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

Value Weights::find_exact(const std::string& name, std::initializer_list<int64_t> dims) {
    const gguf::TensorEntry* entry = file_.find_tensor(name);
    if (!entry) return 0;
    if (std::ranges::any_of(dims, [](int64_t extent) { return extent <= 0; }) || !fits(*entry, dims)) {
        std::string wanted;
        for (const int64_t extent : dims) wanted += fmt::format("{}{}", wanted.empty() ? "" : ", ", extent);
        fail(TSR_CORRUPT_DATA, "{}: the tensor {} has the shape {}; the metadata ask for [{}]",
             file_.metadata().source(), name, gguf::shape_text(*entry), wanted);
    }
    const TypeInfo& type = type_info(entry->type);
    return graph_.weight(name, shape_of(*entry, dims), type.interleaved_rows > 1 ? std::string(type.name) : "");
}

Value Weights::find(const std::string& name, std::initializer_list<int64_t> dims) {
    return find_exact(name + ".weight", dims);
}

Value Weights::get(const std::string& name, std::initializer_list<int64_t> dims) {
    const Value value = find(name, dims);
    if (!value) fail(TSR_NOT_FOUND, "{}: the tensor {}.weight is missing", file_.metadata().source(), name);
    return value;
}

int64_t Weights::extent(const std::string& name, uint32_t index) const {
    return static_cast<int64_t>(file_.tensor(name).dims.at(index));
}

}  // namespace tessera
