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
    // Of the first layer.
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t feed_forward = 0;  // 0: the file does not say
    // Of each of block_count layers.
    std::vector<int64_t> layer_heads, layer_kv_heads, layer_feed_forward;
};
CommonParameters read_common(ModelFile& model);

// How many of the last layers predict further tokens. Their tensors become known ones that are not used.
int64_t read_prediction_layers(ModelFile& model, int64_t layers);
// Where there is one of them, it is as the last of the layers that are computed, which are there.
void describe_prediction(CommonParameters& common);

// `mode`: how the architecture pairs elements for the rotary embedding.
Attention read_grouped_attention(ModelFile& model, const CommonParameters& common, RopeMode mode);
// The same of an architecture whose models rotate a part of each head: where the file does not say how much, the whole
// head is taken, which is said.
Attention read_partly_rotated_attention(ModelFile& model, const CommonParameters& common, RopeMode mode);
// Factors of LongRoPE for the rotary embedding, where the file has its two tables.
void read_rope_tables(ModelFile& model, Rope& rope, int64_t context);
// Gives the layers that have one the window of attention.sliding_window, by attention.sliding_window_pattern; without a
// pattern all but every `every`-th have it, with 0 all. Nothing where the file has no window.
void read_windows(ModelFile& model, std::vector<Layer>& layers, size_t every);
// The same of an architecture whose files have both keys. Throws where one is missing.
void read_needed_windows(ModelFile& model, std::vector<Layer>& layers);
// What differs from DeepSeek.
struct LatentDefaults {
    RopeMode mode = RopeMode::kNorm;
    int64_t value_length = 0;  // of a file that does not say; 0: it has to
};
// As DeepSeek has it: one rotary key for all heads, YaRN's temperature in the scale of scores.
Attention read_latent_attention(ModelFile& model, const CommonParameters& common, const LatentDefaults& defaults = {});
// Queries that are scaled by their position, where the file asks for it. `attention` has its rope.
void read_temperature(ModelFile& model, Attention& attention);

// What a file that does not say means.
struct ExpertDefaults {
    bool normalize = false;
    int64_t length = 0;            // 0: the file has to say
    std::optional<Gating> gating;  // none: sigmoid where there is a bias on selection, else softmax
};
// Nothing where the file has no experts. `layers`: those that are computed.
std::optional<Experts> read_experts(ModelFile& model, int64_t layers, const ExpertDefaults& defaults);
// Throws where the file has no experts.
Experts read_needed_experts(ModelFile& model, const CommonParameters& common, const ExpertDefaults& defaults);
// The length of all shared experts of a layer together, of which there are some from `first_layer` on; 0: there are
// none. Two keys may tell it.
int64_t read_shared_experts(ModelFile& model, int64_t first_layer, int64_t layers, const Experts& experts);

// `layers` of them, dense where no experts are given, equal but for the numbers of heads and the lengths of
// feed-forward networks. The first `dense` have no experts; of the others each `step`th layer of the model has. Throws
// for a dense layer whose length is not given.
std::vector<Layer> make_layers(const ModelFile& model, const CommonParameters& common, const Attention& attention,
                               const std::optional<Experts>& experts = {}, int64_t dense = 0, int64_t step = 1);
// The first leading_dense_block_count of them are dense, the others have experts, perhaps shared ones, too. Throws
// where the file has no experts.
std::vector<Layer> make_expert_layers(ModelFile& model, const CommonParameters& common, const Attention& attention,
                                      const ExpertDefaults& defaults);

// What embeddings, residuals and logits are scaled with, as Granite's files have it: the last is a divisor. The layers
// are there.
void read_scales(ModelFile& model, ModelDescription& described);

// The same as files of MiniCPM have it, or leave it out: runtimes know what its models are scaled with.
void read_minicpm_scales(ModelFile& model, ModelDescription& described);

// A whole model as DeepSeek's are: latent attention, the first layers dense, the others with routed and shared experts,
// or all of them dense. Sparse attention is read as dense attention, with a note.
ModelDescription read_latent_model(ModelFile& model);

}  // namespace tessera
