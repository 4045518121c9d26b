#include "core/setup/model_sizes.hpp"

#include "core/graph/types.hpp"

#include <spdlog/fmt/fmt.h>

#include <charconv>

namespace tessera {

std::string_view kind_name(TensorKind kind) noexcept {
    constexpr std::array<std::string_view, kTensorKinds> names = {"embeddings",     "attention",      "dense ffn",
                                                                  "routed experts", "shared experts", "router",
                                                                  "norms",          "output",         "others"};
    return names[static_cast<size_t>(kind)];
}

TensorKind kind_of(std::string_view name) noexcept {
    const auto has = [&](std::string_view part) { return name.find(part) != std::string_view::npos; };
    if (has("norm")) return TensorKind::kNorms;
    if (name.starts_with("token_embd")) return TensorKind::kEmbeddings;
    if (name.starts_with("output")) return TensorKind::kOutput;
    if (has("_exps")) return TensorKind::kRoutedExperts;
    if (has("_shexp")) return TensorKind::kSharedExperts;
    if (has("ffn_gate_inp") || has("exp_probs")) return TensorKind::kRouter;
    if (has(".attn_")) return TensorKind::kAttention;
    if (has(".ffn_")) return TensorKind::kDenseFfn;
    return TensorKind::kOthers;
}

int layer_of(std::string_view name) noexcept {
    if (!name.starts_with("blk.")) return -1;
    int layer = -1;
    const auto [end, error] = std::from_chars(name.data() + 4, name.data() + name.size(), layer);
    return error == std::errc() && end != name.data() + name.size() && *end == '.' ? layer : -1;
}

ModelSizes measure(const gguf::GgufFile& file) {
    ModelSizes sizes;
    for (const gguf::TensorEntry& tensor : file.tensors()) {
        const auto kind = static_cast<size_t>(kind_of(tensor.name));
        KindSize& size = sizes.kinds[kind];
        size.bytes += tensor.bytes;
        size.weights += tensor.elements();
        ++size.tensors;
        size.bytes_by_type[std::string(type_info(tensor.type).name)] += tensor.bytes;
        sizes.bytes += tensor.bytes;
        sizes.weights += tensor.elements();
        const int layer = layer_of(tensor.name);
        if (layer < 0) continue;
        sizes.layers[layer][kind] += tensor.bytes;
        if (tensor.name.find(".nextn.") != std::string::npos) sizes.predicting.insert(layer);
    }
    return sizes;
}

uint64_t ModelSizes::computed_bytes(TensorKind kind) const {
    uint64_t sum = 0;
    for (const auto& [layer, of_kinds] : layers) {
        if (!predicting.contains(layer)) sum += of_kinds[static_cast<size_t>(kind)];
    }
    return sum;
}

uint64_t ModelSizes::computed_bytes() const {
    uint64_t rest = bytes;
    for (const int layer : predicting) {
        for (const uint64_t of_kind : layers.at(layer)) rest -= of_kind;
    }
    return rest;
}

std::string ranges_text(const std::vector<int>& rising) {
    std::string text;
    for (size_t i = 0; i < rising.size();) {
        size_t end = i;
        while (end + 1 < rising.size() && rising[end + 1] == rising[end] + 1) ++end;
        text += fmt::format("{}{}", text.empty() ? "" : ", ", rising[i]);
        if (end > i) text += fmt::format("-{}", rising[end]);
        i = end + 1;
    }
    return text;
}

std::string number_pattern(int first, int last) {
    std::string pattern;
    // Ten by ten, so that each term is one character class.
    for (int at = first; at <= last;) {
        const int tens = at / 10;
        const int end = std::min(last, tens * 10 + 9);
        if (!pattern.empty()) pattern += '|';
        if (tens > 0) pattern += std::to_string(tens);
        if (at == end) {
            pattern += std::to_string(at % 10);
        } else {
            pattern += fmt::format("[{}-{}]", at % 10, end % 10);
        }
        at = end + 1;
    }
    return pattern;
}

}  // namespace tessera
