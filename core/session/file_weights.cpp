#include "core/session/file_weights.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tessera {
namespace {

// Of f16 or bf16.
float to_f32(tsr_type type, uint16_t bits) {
    if (type == TSR_TYPE_BF16) return std::bit_cast<float>(uint32_t{bits} << 16);
    return static_cast<float>(std::bit_cast<_Float16>(bits));
}

}  // namespace

FileWeights::FileWeights(const gguf::GgufFile& file, const Graph& graph, bool map) : file_(file), map_(map) {
    for (StorageId id = 1; id < graph.storage_count(); ++id) {
        const Storage& weight = graph.storage(id);
        if (weight.role != TSR_ROLE_WEIGHT || weight.derived || weight.type != TSR_TYPE_F32) continue;
        const gguf::TensorEntry& entry = file.tensor(weight.name);
        if (entry.type != TSR_TYPE_F16 && entry.type != TSR_TYPE_BF16) continue;
        std::vector<uint16_t> halves(entry.elements());
        file.read(entry, 0, std::as_writable_bytes(std::span(halves)));
        std::vector<float>& values = converted_[weight.name];
        values.resize(halves.size());
        std::ranges::transform(halves, values.begin(), [&](uint16_t bits) { return to_f32(entry.type, bits); });
    }
}

std::span<const std::byte> FileWeights::converted(const std::string& name, uint64_t offset, uint64_t bytes) const {
    const auto at = converted_.find(name);
    if (at == converted_.end()) return {};
    const auto all = std::as_bytes(std::span(at->second));
    if (offset > all.size() || bytes > all.size() - offset)
        fail(TSR_INVALID_ARGUMENT, "{} has {} bytes, asked for {} at {}", name, all.size(), bytes, offset);
    return all.subspan(offset, bytes);
}

void FileWeights::read(const std::string& name, uint64_t offset, std::span<std::byte> to) const {
    if (const auto here = converted(name, offset, to.size()); !here.empty()) {
        std::ranges::copy(here, to.begin());
    } else {
        file_.read(file_.tensor(name), offset, to);
    }
}

const std::byte* FileWeights::mapped(const std::string& name) const {
    if (const auto at = converted_.find(name); at != converted_.end())
        return std::as_bytes(std::span(at->second)).data();
    return file_.map(file_.tensor(name)).data();
}

std::span<const std::byte> FileWeights::acquire(const std::string& name, uint64_t offset, uint64_t bytes) const {
    if (!map_) return {};
    if (const auto here = converted(name, offset, bytes); !here.empty()) return here;
    return file_.acquire(file_.tensor(name), offset, bytes);
}

void FileWeights::release(const std::string& name, uint64_t offset, uint64_t bytes) const {
    if (map_ && !converted_.contains(name)) file_.drop_pages(file_.tensor(name), offset, bytes);
}

}  // namespace tessera
