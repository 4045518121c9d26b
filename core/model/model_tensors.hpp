// The tensors that models are made of, and their names in files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

enum class ModelTensor : uint8_t {
    kTokenEmbeddings,
    kRopeFactors,
    kRopeFactorsShort,
    kRopeFactorsLong,
    kOutputNorm,
    kOutput,
    kOutputBias,
    // Of a layer.
    kAttentionNorm,
    kQkv,
    kQkvBias,
    kQ,
    kK,
    kV,
    kQBias,
    kKBias,
    kVBias,
    kQNorm,
    kKNorm,
    kQA,
    kQANorm,
    kQB,
    kKvA,
    kKvANorm,
    kKvB,
    kKB,
    kVB,
    kSinks,
    kAttentionGate,
    kAttentionOutput,
    kAttentionOutputBias,
    kPostAttentionNorm,
    kFeedForwardNorm,
    kGate,
    kUp,
    kDown,
    kGateBias,
    kUpBias,
    kDownBias,
    kRouter,
    kRouterBias,
    kSelectionBias,
    kGateUpExperts,
    kGateExperts,
    kUpExperts,
    kDownExperts,
    kGateExpertsBias,
    kUpExpertsBias,
    kDownExpertsBias,
    kGateShared,
    kUpShared,
    kDownShared,
    kSharedGate,
    kPostFeedForwardNorm,
    // Of a layer that predicts further tokens.
    kPredictionProjection,
    kPredictionTokenNorm,
    kPredictionStateNorm,
};
inline constexpr size_t kModelTensors = static_cast<size_t>(ModelTensor::kPredictionStateNorm) + 1;

struct TensorName {
    std::string_view name;        // of a layer's tensor: after "blk.N."
    std::string_view other = {};  // that some converters write in its place
    bool in_layer = true;
};
const TensorName& tensor_name(ModelTensor which) noexcept;

// "blk.3.attn_q.weight".
std::string in_layer(int64_t layer, std::string_view name);

}  // namespace tessera
