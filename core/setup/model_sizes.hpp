// What the tensors of a file are for, and how large each kind is.
#pragma once

#include "core/gguf/reader.hpp"

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

enum class TensorKind : uint8_t {
    kEmbeddings,
    kAttention,
    kDenseFfn,
    kRoutedExperts,
    kSharedExperts,
    kRouter,
    kNorms,
    kOutput,
    kOthers
};
inline constexpr size_t kTensorKinds = 9;
std::string_view kind_name(TensorKind kind) noexcept;

TensorKind kind_of(std::string_view tensor_name) noexcept;
// N of "blk.N.rest"; -1 for others.
int layer_of(std::string_view tensor_name) noexcept;

struct KindSize {
    uint64_t bytes = 0;
    uint64_t weights = 0;
    size_t tensors = 0;
    std::map<std::string, uint64_t> bytes_by_type;
};

struct ModelSizes {
    std::array<KindSize, kTensorKinds> kinds;
    std::map<int, std::array<uint64_t, kTensorKinds>> layers;  // bytes
    std::set<int> predicting;  // layers with tensors of multi-token prediction: no step computes them
    uint64_t bytes = 0;
    uint64_t weights = 0;

    const KindSize& of(TensorKind kind) const { return kinds[static_cast<size_t>(kind)]; }
    uint64_t layer_bytes(int layer, TensorKind kind) const { return layers.at(layer)[static_cast<size_t>(kind)]; }
    // Of the layers that steps compute.
    uint64_t computed_bytes(TensorKind kind) const;
    uint64_t computed_bytes() const;  // of all tensors but those of layers that predict
};
ModelSizes measure(const gguf::GgufFile& file);

// Neighbouring numbers as ranges: {3, 4, 5, 9} is "3-5, 9".
std::string ranges_text(const std::vector<int>& rising);

// A regular expression for the whole numbers first .. last, without parentheses around it: 3 .. 12 is "[3-9]|1[0-2]".
std::string number_pattern(int first, int last);

}  // namespace tessera
