// What a model computes, as plain data: the file of its architecture (core/model/architectures) makes it from a file's
// metadata, expected_tensors.hpp lists the tensors that it takes, build_graph.hpp writes its graph. It can say more
// than the graph can compute; not_computed.hpp names what that is.
#pragma once

#include "core/model/model_tensors.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// Pairs of elements that a rotary embedding turns: neighbours, or those of the two halves.
enum class RopeMode : uint8_t { kNorm, kNeox };

// Parameters of the op "rope" (tessera/ops.h).
struct Rope {
    RopeMode mode = RopeMode::kNorm;
    int64_t dimensions = 0;  // the first elements of a head that are turned; of latent attention the last
    double base = 10000.0;
    double freq_scale = 1.0;
    double ext_factor = 0.0;   // 1 with YaRN
    double attn_factor = 1.0;  // multiplies sine and cosine
    double beta_fast = 32.0;
    double beta_slow = 1.0;
    int64_t original_context = 0;
    bool whole_ramp = true;  // YaRN's ramp begins and ends at whole pairs
    // Frequencies are divided by the factors of one of two tables (LongRoPE, arXiv 2402.13753): for contexts up to so
    // many tokens, and for longer ones. 0: there are no such tables.
    int64_t short_context = 0;
    // Frequencies are divided by those of the table rope_freqs.weight, where the file has it, whose first elements
    // count.
    bool uses_factors = true;
    int64_t factors = 0;  // of the table; 0: one for each pair
};

// Grouped: keys and values of heads, each for a group of queries. Latent: multi-head latent attention (arXiv
// 2405.04434). Recurrent: a state of fixed size in place of a cache of tokens.
enum class AttentionKind : uint8_t { kGrouped, kLatent, kRecurrent };

// RMS norms of q and k: none, of each head, or of a row of all heads.
enum class HeadNorm : uint8_t { kNone, kHeads, kRows };

// What the heads' results are multiplied with: nothing, the sigmoid of elements that q holds beside its own, or that of
// one number a head.
enum class OutputGate : uint8_t { kNone, kElements, kHeads };

// The state of a recurrent layer of one sequence.
struct RecurrentState {
    std::string kind;         // "gated_delta_net", "kda", "mamba2", "short_conv"
    int64_t convolution = 0;  // tokens that a short convolution spans
    int64_t heads = 0;
    int64_t key_length = 0, value_length = 0;  // of a head: the state is a matrix of these
};

struct Attention {
    AttentionKind kind = AttentionKind::kGrouped;
    int64_t heads = 0;
    int64_t kv_heads = 0;
    int64_t key_length = 0;    // of a head; latent attention: those without rotary embedding and those with it
    int64_t value_length = 0;  // of a head
    int64_t q_lora = 0;        // latent attention: the length of compressed queries; 0: they are not compressed
    int64_t kv_lora = 0;       // latent attention: the length of compressed keys and values
    std::optional<Rope> rope;  // none: positions are not encoded
    HeadNorm head_norm = HeadNorm::kNone;
    bool norm_after_rope = false;
    double scale = 0;                // of scores
    double value_scale = 1;          // of values
    double softcap = 0;              // scores are softcap * tanh(score / softcap); 0: as they are
    double temperature_scale = 0;    // q is multiplied with 1 + this * ln(floor(position / length) + 1)
    int64_t temperature_length = 0;  // of positions
    int64_t window = 0;              // tokens that a token sees, its own included; 0: all before it
    bool chunked = false;            // the window begins at a multiple of its length
    bool sinks = false;              // a score of each head that no token has
    OutputGate gate = OutputGate::kNone;
    std::optional<int64_t> cache_of;      // the layer whose keys and values are used in place of own ones
    std::optional<RecurrentState> state;  // of kRecurrent
};

// What a layer keeps of a sequence between steps: a row a token, a row of the last tokens, a state of fixed size with
// snapshots, or nothing.
enum class CacheKind : uint8_t { kAllTokens, kWindow, kState, kNone };

// Of gate and up, a gated linear unit (op "glu" of tessera/ops.h).
enum class Activation : uint8_t { kSilu, kGelu, kSwigluOai };
struct Unit {
    Activation activation = Activation::kSilu;
    double limit = 0;  // of what is clamped; 0: nothing is

    bool operator==(const Unit&) const = default;
};

enum class Gating : uint8_t { kSoftmax, kSigmoid, kSqrtSoftplus };

// Routed experts, and shared ones beside them (op "moe_route" of tessera/ops.h).
struct Experts {
    int64_t count = 0;
    int64_t used = 0;
    int64_t length = 0;  // of the hidden row of one
    int64_t groups = 1;
    int64_t groups_used = 1;
    Gating gating = Gating::kSoftmax;
    bool normalize = false;
    double scale = 1.0;
    Unit unit, shared_unit;
    bool biased = false;        // biases of the router and of the matrices
    int64_t shared_length = 0;  // of the hidden row of all shared experts together; 0: there are none
    bool shared_gate = false;   // what shared experts give is multiplied with a sigmoid
};

struct FeedForward {
    int64_t length = 0;              // of the hidden row; 0: the metadata do not say
    Unit unit;                       // of the dense network
    bool fused_gate_up = false;      // gate and, after it, up are one matrix, which is called up
    std::optional<Experts> experts;  // in place of the dense network
};

struct Layer {
    Attention attention;
    FeedForward feed_forward;
    bool norm_before = true;      // of the rows that attention and feed-forward read
    bool norm_after = false;      // of what they give, before it is added
    bool parallel = false;        // both read the same rows, and both results are added
    double residual_scale = 1.0;  // of what is added
};

struct ModelDescription {
    int64_t embedding = 0;  // elements of a row
    int64_t vocabulary = 0;
    int64_t context = 0;  // tokens that the model was made for
    double epsilon = 0;   // of RMS norms
    double embedding_scale = 1.0;
    double logit_scale = 1.0;
    double logit_softcap = 0;
    bool tied_embeddings = false;  // the table of embeddings is the output matrix, too
    std::vector<Layer> layers;     // those that are computed
    int64_t first_layer = 0;       // number in files of the first of them
    // The first of the layers that predict further tokens (DeepSeek-V3, arXiv 2412.19437, section 2.2), behind the
    // others. None: the file has none, or they are not known of this architecture.
    std::optional<Layer> prediction;
    bool predicts = false;  // `layers` is such a layer alone
    // Tensors that the architecture has under another name than the usual one, with ".weight" or ".bias".
    std::map<ModelTensor, std::string> names;
};

CacheKind cache_kind(const Attention& attention);

}  // namespace tessera
