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

// Of a tensor whose rows, or elements of a vector, all take as many bytes.
FileWeights::Rows FileWeights::rows_of(const gguf::TensorEntry& tensor, const Storage& weight) {
    const SourceRows& source = *weight.source_rows;
    const uint64_t row = tensor.bytes / (tensor.elements() == source.of ? source.of : tensor.rows());
    return {&tensor, source.first * row, source.count * row, source.of * row, source.in_place};
}

FileWeights::FileWeights(const gguf::GgufFile& file, const Graph& graph, bool map) : file_(file), map_(map) {
    for (StorageId id = 1; id < graph.storage_count(); ++id) {
        const Storage& weight = graph.storage(id);
        if (weight.role != TSR_ROLE_WEIGHT || weight.derived) continue;
        const gguf::TensorEntry& entry = file.tensor(weight.source_rows ? weight.source_rows->tensor : weight.name);
        if (weight.source_rows) rows_[weight.name] = rows_of(entry, weight);
        if (weight.type != TSR_TYPE_F32 || (entry.type != TSR_TYPE_F16 && entry.type != TSR_TYPE_BF16)) continue;
        if (converted_.contains(weight.name)) continue;  // of several layers
        std::vector<uint16_t> halves(weight.bytes / sizeof(float));
        read(weight.name, 0, std::as_writable_bytes(std::span(halves)));
        std::vector<float>& values = converted_[weight.name];
        values.resize(halves.size());
        std::ranges::transform(halves, values.begin(), [&](uint16_t bits) { return to_f32(entry.type, bits); });
    }
}

template <typename Body>
void FileWeights::each_run(const std::string& name, uint64_t offset, uint64_t bytes, Body&& body) const {
    const auto at = rows_.find(name);
    if (at == rows_.end()) return body(file_.tensor(name), offset, 0, bytes);
    const Rows& rows = at->second;
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t within = (offset + done) % rows.run, count = std::min(rows.run - within, bytes - done);
        body(*rows.tensor, rows.first + (offset + done) / rows.run * rows.stride + within, done, count);
        done += count;
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
        each_run(name, offset, to.size(),
                 [&](const gguf::TensorEntry& tensor, uint64_t from, uint64_t at, uint64_t bytes) {
                     file_.read(tensor, from, to.subspan(at, bytes));
                 });
    }
}

const std::byte* FileWeights::mapped(const std::string& name) const {
    if (const auto at = converted_.find(name); at != converted_.end())
        return std::as_bytes(std::span(at->second)).data();
    const auto rows = rows_.find(name);
    if (rows == rows_.end()) return file_.map(file_.tensor(name)).data();
    return rows->second.in_place ? file_.map(*rows->second.tensor).data() + rows->second.first : nullptr;
}

std::span<const std::byte> FileWeights::acquire(const std::string& name, uint64_t offset, uint64_t bytes) const {
    if (!map_) return {};
    if (const auto here = converted(name, offset, bytes); !here.empty()) return here;
    const auto rows = rows_.find(name);
    if (rows == rows_.end()) return file_.acquire(file_.tensor(name), offset, bytes);
    if (!rows->second.in_place) return {};
    return file_.acquire(*rows->second.tensor, rows->second.first + offset, bytes);
}

void FileWeights::release(const std::string& name, uint64_t offset, uint64_t bytes) const {
    if (!map_ || converted_.contains(name)) return;
    each_run(name, offset, bytes, [&](const gguf::TensorEntry& tensor, uint64_t from, uint64_t, uint64_t count) {
        file_.drop_pages(tensor, from, count);
    });
}

}  // namespace tessera
