// What architectures read alike of a file. Functions throw Error naming the key or tensor: TSR_NOT_FOUND where it is
// missing, TSR_CORRUPT_DATA where it contradicts itself or another, TSR_UNSUPPORTED for values that are not known.
#pragma once

#include "core/model/description.hpp"
#include "core/model/model_file.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace tessera {

// Of a model; real ones have one to three.
inline constexpr int64_t kMaxPredictionLayers = 64;

// Hyperparameters that all architectures have. `model` is without layers yet.
struct CommonParameters {
    ModelDescription model;
    int64_t layers = 0;  // block_count, until an architecture takes those off that are not computed
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t feed_forward = 0;  // 0: the file does not say
};
CommonParameters read_common(ModelFile& model);

// How many of the last layers predict further tokens. Their tensors become known ones that are not used.
int64_t read_prediction_layers(ModelFile& model, int64_t layers);

// `mode`: how the architecture pairs elements for the rotary embedding.
Attention read_grouped_attention(ModelFile& model, const CommonParameters& common, RopeMode mode);
// As DeepSeek has it: one rotary key for all heads, YaRN's temperature in the scale of scores.
Attention read_latent_attention(ModelFile& model, const CommonParameters& common);

// What a file that does not say means.
struct ExpertDefaults {
    bool normalize = false;
    int64_t length = 0;  // 0: the file has to say
};
// Nothing where the file has no experts. `layers`: those that are computed.
std::optional<Experts> read_experts(ModelFile& model, int64_t layers, const ExpertDefaults& defaults);
// The length of all shared experts of a layer together, of which there are some from `first_layer` on; 0: there are
// none. Two keys may tell it.
int64_t read_shared_experts(ModelFile& model, int64_t first_layer, int64_t layers, const Experts& experts);

// `layers` equal ones; the first `dense` of them have no experts. Throws for a dense layer whose length is not given.
std::vector<Layer> make_layers(const ModelFile& model, const CommonParameters& common, const Attention& attention,
                               const std::optional<Experts>& experts, int64_t dense);

}  // namespace tessera
