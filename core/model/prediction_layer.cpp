#include "core/model/prediction_layer.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace tessera {
namespace {

bool is_of_prediction(const gguf::TensorEntry& tensor) {
    return std::string_view(tensor.name).find(".nextn.") != std::string_view::npos;
}

}  // namespace

ModelDescription describe_prediction_layer(ModelDescription model, const ModelFile& file) {
    if (std::ranges::none_of(file.file().tensors(), is_of_prediction)) {
        fail(TSR_NOT_FOUND,
             "{}: the file has no layer that predicts further tokens: there are no tensors blk.N.nextn.*, which "
             "converters may leave out",
             file.source());
    }
    if (!model.prediction) {
        fail(TSR_UNSUPPORTED,
             "{}: of the architecture '{}' layers that predict further tokens are not computed, or {} does not count "
             "the one that the file has",
             file.source(), printable(file.architecture(), 80), file.key("block_count"));
    }
    model.first_layer = static_cast<int64_t>(model.layers.size());
    model.layers = {*model.prediction};
    model.prediction.reset();
    model.predicts = true;
    const auto own = [&](ModelTensor which, const char* part) {
        const std::string name = in_layer(model.first_layer, part);
        if (!file.has_tensor(name)) return false;
        model.names[which] = name;
        return true;
    };
    own(ModelTensor::kTokenEmbeddings, "nextn.embed_tokens.weight");
    own(ModelTensor::kOutputNorm, "nextn.shared_head_norm.weight");
    if (own(ModelTensor::kOutput, "nextn.shared_head_head.weight")) model.tied_embeddings = false;
    return model;
}

std::vector<std::string> check_prediction_tensors(const ModelDescription& layer, const ModelFile& file, bool allowed) {
    const std::string prefix = in_layer(layer.first_layer, "");
    std::vector<std::string> notes;
    if (file.has_tensor(in_layer(layer.first_layer + 1, "nextn.eh_proj.weight")))
        notes.push_back("of the layers that predict further tokens the first is used alone");
    for (const gguf::TensorEntry& tensor : file.file().tensors()) {
        const std::string_view name = tensor.name;
        // Attention is dense, as in the other layers.
        const bool indexer = name.substr(std::min(prefix.size(), name.size())).starts_with("indexer.");
        if (!name.starts_with(prefix) || indexer || file.is_claimed(name)) continue;
        const std::string what =
            fmt::format("the tensor {} of a layer that predicts further tokens", printable(name, 100));
        if (!allowed) {
            fail(TSR_UNSUPPORTED, Notice(fmt::format("{}: {} would not be used", file.source(), what),
                                         {{AdviceCode::kAllowUnused, ""}}));
        }
        notes.push_back(what + " is not used");
    }
    return notes;
}

}  // namespace tessera
