// Operands of the ops of ops.h: what they are, and which shapes fit together. The host infers the shapes of results
// from this table, and kernels check by it what they are asked to compute.
#pragma once

#include <tessera/cpp/node.hpp>
#include <tessera/ops.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string_view>

namespace tessera::sdk {

enum class OperandKind : uint8_t { kFloats, kIndices, kWeight, kCache };

// `dims` has a letter for each dimension, the fastest first; '*' stands for any number of them, also none. The same
// letter is the same extent in all operands of a node, '*' the same dimensions, and operands whose last letters are the
// same have the same range.
struct OperandShape {
    const char* name;  // as it is said in refusals
    OperandKind kind;
    std::string_view dims;
    bool optional = false;

    bool any_rank() const noexcept { return dims.find('*') != std::string_view::npos; }
    uint32_t rank() const noexcept { return any_rank() ? 0 : static_cast<uint32_t>(dims.size()); }  // 0: any
};

// What is wrong with a node, in words for people.
class ShapeFault {
  public:
    explicit operator bool() const noexcept { return text_[0] != 0; }
    const char* text() const noexcept { return text_; }

    // Returns false.
    template <typename... Args>
    bool say(const char* format, Args... args) noexcept {
        std::snprintf(text_, sizeof text_, format, args...);
        return false;
    }

  private:
    char text_[192] = {};
};

// What the letters of a node stand for; 0: nothing that is known.
class Extents {
  public:
    int64_t operator[](char letter) const noexcept { return of_[index(letter)]; }
    void set(char letter, int64_t extent) noexcept { of_[index(letter)] = extent; }

    // Whether the tensor agrees with what is known; then what it says is known, too.
    bool match(const OperandShape& shape, const tsr_tensor& tensor, ShapeFault& fault) noexcept {
        const std::string_view dims = shape.dims;
        const size_t star = std::min(dims.find('*'), dims.size());
        const size_t after = star == dims.size() ? 0 : dims.size() - star - 1;
        if (tensor.rank > TSR_MAX_RANK || (shape.any_rank() ? tensor.rank < star + after : tensor.rank != dims.size()))
            return fault.say("required %s of rank %u; supported: rank %s%zu; missing: that rank", shape.name,
                             tensor.rank, shape.any_rank() ? "at least " : "", star + after);
        const auto rank = static_cast<uint32_t>(tensor.rank);
        const uint32_t rest = rank - static_cast<uint32_t>(star + after);
        if (shape.any_rank()) {
            if (rest_known_ && rest_rank_ != rest)
                return fault.say("required %s of rank %u; supported: rank %u; missing: that rank", shape.name, rank,
                                 rank - rest + rest_rank_);
            rest_known_ = true;
            rest_rank_ = rest;
        }
        for (uint32_t axis = 0; axis < rank; ++axis) {
            int64_t& known = axis < star          ? of_[index(dims[axis])]
                             : axis < star + rest ? rest_[axis - star]
                                                  : of_[index(dims[axis - rest + 1])];
            if (known != 0 && known != tensor.dims[axis])
                return fault.say(
                    "required %s with dims[%u] = %lld; supported: %lld, as the other operands say; missing: matching "
                    "shapes",
                    shape.name, axis, static_cast<long long>(tensor.dims[axis]), static_cast<long long>(known));
            known = tensor.dims[axis];
        }
        Range& range = range_[index(dims.back())];
        if (range.known && range.value != tensor.range)
            return fault.say(
                "required %s over range %d; supported: range %d, as the other operands have; missing: that", shape.name,
                tensor.range, range.value);
        range = {true, tensor.range};
        return true;
    }

    // Dims, rank and range of a result. What nothing tells is 1.
    void fill(const OperandShape& shape, tsr_tensor& tensor) const noexcept {
        std::ranges::fill(tensor.dims, 1);
        tensor.rank = 0;
        for (const char letter : shape.dims) {
            if (letter == '*') {
                for (uint32_t i = 0; i < rest_rank_; ++i) tensor.dims[tensor.rank++] = rest_[i];
            } else {
                tensor.dims[tensor.rank++] = std::max<int64_t>(1, (*this)[letter]);
            }
        }
        const Range& range = range_[index(shape.dims.back())];
        tensor.range = range.known ? range.value : TSR_RANGE_FIXED;
    }

  private:
    struct Range {
        bool known = false;
        int32_t value = TSR_RANGE_FIXED;
    };

    static size_t index(char letter) noexcept { return static_cast<size_t>(letter) % 128; }

    int64_t of_[128] = {};
    Range range_[128] = {};
    int64_t rest_[TSR_MAX_RANK] = {};
    uint32_t rest_rank_ = 0;
    bool rest_known_ = false;
};

// One signature of an op. An op has several where its operands are of several ranks.
struct OpShapes {
    std::string_view op;
    std::span<const OperandShape> inputs;
    std::span<const OperandShape> outputs;
    // Whether the node, whose operands may be missing, has this signature; nullptr: yes. The first one that it has
    // counts.
    bool (*applies)(const tsr_node& node) noexcept = nullptr;
    // A letter that an attribute tells, 0: none.
    char told = 0;
    const char* attribute = nullptr;
    // What equal letters do not say; nullptr: nothing.
    bool (*agrees)(const tsr_node& node, const Extents& extents, ShapeFault& fault) noexcept = nullptr;
    // The last input and the last output are those of any number of pairs, each with letters of its own where the first
    // input has none.
    bool repeats = false;

    const OperandShape& input(uint32_t index) const noexcept {
        return inputs[std::min<size_t>(index, inputs.size() - 1)];
    }
    const OperandShape& output(uint32_t index) const noexcept {
        return outputs[std::min<size_t>(index, outputs.size() - 1)];
    }
};

namespace shapes {

using enum OperandKind;

inline long long whole(int64_t value) noexcept {
    return static_cast<long long>(value);
}

inline uint32_t rank_of(const tsr_node& node, uint32_t input) noexcept {
    return has_input(node, input) ? node.inputs[input]->rank : 0;
}

inline constexpr OperandShape kLike[] = {{"the output", kFloats, "n*"}};
inline constexpr OperandShape kLikeRows[] = {{"the output", kFloats, "n*R"}};
inline constexpr OperandShape kOne[] = {{"x", kFloats, "n*"}};
inline constexpr OperandShape kOneOfRows[] = {{"x", kFloats, "n*R"}};
inline constexpr OperandShape kRows[] = {{"the output", kFloats, "nR"}};
inline constexpr OperandShape kBatches[] = {{"the output", kFloats, "nBR"}};
inline constexpr OperandShape kChosen[] = {{"the output", kFloats, "nKR"}};

inline constexpr OperandShape kGetRows[] = {{"the table", kWeight, "nT"}, {"ids", kIndices, "R"}};
inline constexpr OperandShape kRmsNorm[] = {{"x", kFloats, "n*"}, {"the weight", kFloats, "n"}};

inline constexpr OperandShape kMatmul[] = {{"x", kFloats, "kR"}, {"the weight", kWeight, "kn"}};
inline constexpr OperandShape kMatmulTransposed[] = {{"x", kFloats, "kR"}, {"the weight", kWeight, "nk"}};
inline constexpr OperandShape kMatmulBatched[] = {{"x", kFloats, "kBR"}, {"the weight", kWeight, "knB"}};
inline constexpr OperandShape kMatmulBatchedTransposed[] = {{"x", kFloats, "kBR"}, {"the weight", kWeight, "nkB"}};

inline bool is_transposed(const tsr_node& node) noexcept {
    return int_attribute(node, "transpose_weight", 0) != 0;
}
inline bool is_matmul_batched(const tsr_node& node) noexcept {
    return rank_of(node, 0) == 3 && !is_transposed(node);
}
inline bool is_matmul_batched_transposed(const tsr_node& node) noexcept {
    return rank_of(node, 0) == 3 && is_transposed(node);
}

inline constexpr OperandShape kMatmulGroup[] = {{"x", kFloats, "kR"}, {"a weight", kWeight, "kn"}};
inline constexpr OperandShape kGroupResults[] = {{"an output", kFloats, "nR"}};

inline constexpr OperandShape kGatedFfn[] = {{"x", kFloats, "kR"},
                                             {"gate", kWeight, "kf"},
                                             {"up", kWeight, "kf"},
                                             {"down", kWeight, "fn"},
                                             {"the gate's bias", kFloats, "f", true},
                                             {"the up's bias", kFloats, "f", true},
                                             {"the down's bias", kFloats, "n", true}};
inline constexpr OperandShape kMoeFfn[] = {{"x", kFloats, "kR"},
                                           {"ids", kIndices, "KR"},
                                           {"the weights of experts", kFloats, "KR"},
                                           {"gate", kWeight, "kfE"},
                                           {"up", kWeight, "kfE"},
                                           {"down", kWeight, "fnE"},
                                           {"the gate's bias", kFloats, "fE", true},
                                           {"the up's bias", kFloats, "fE", true},
                                           {"the down's bias", kFloats, "nE", true}};
inline constexpr OperandShape kMatmulId[] = {
    {"x", kFloats, "kR"}, {"the weight", kWeight, "knE"}, {"ids", kIndices, "KR"}};
inline constexpr OperandShape kMatmulIdOfChosen[] = {
    {"x", kFloats, "kKR"}, {"the weight", kWeight, "knE"}, {"ids", kIndices, "KR"}};

inline bool has_chosen_rows(const tsr_node& node) noexcept {
    return rank_of(node, 0) == 3;
}

inline constexpr OperandShape kWeightedSum[] = {{"x", kFloats, "nKR"}, {"the weights", kFloats, "KR"}};

inline constexpr OperandShape kAddId[] = {{"x", kFloats, "nKR"}, {"the bias", kFloats, "nE"}, {"ids", kIndices, "KR"}};

inline constexpr OperandShape kMoeRoute[] = {{"logits", kFloats, "ER"}, {"bias", kFloats, "E", true}};
inline constexpr OperandShape kMoeRouteResults[] = {{"ids", kIndices, "KR"}, {"weights", kFloats, "KR"}};

inline bool route_agrees(const tsr_node& node, const Extents& extents, ShapeFault& fault) noexcept {
    const int64_t experts = extents['E'], used = int_attribute(node, "used", 0);
    const int64_t groups = int_attribute(node, "groups", 1), groups_used = int_attribute(node, "groups_used", 1);
    if (groups < 1 || experts % groups != 0 || groups_used < 1 || groups_used > groups)
        return fault.say("required %lld of %lld groups of %lld experts; supported: equal groups; missing: that",
                         whole(groups_used), whole(groups), whole(experts));
    const int64_t choosable = experts / groups * groups_used;
    if (used < 1 || used > choosable)
        return fault.say("required %lld experts chosen; supported: 1 to %lld; missing: that many", whole(used),
                         whole(choosable));
    return true;
}

inline constexpr OperandShape kRope[] = {
    {"x", kFloats, "dHR"}, {"positions", kIndices, "R"}, {"factors", kFloats, "f", true}};
inline constexpr OperandShape kHeads[] = {{"the output", kFloats, "dHR"}};

inline bool rope_agrees(const tsr_node& node, const Extents& extents, ShapeFault& fault) noexcept {
    const int64_t d = extents['d'];
    if (d % 2 != 0) return fault.say("required %lld elements; supported: pairs; missing: odd counts", whole(d));
    if (has_input(node, 2) && extents['f'] != d / 2)
        return fault.say("required factors with dims[0] = %lld; supported: %lld, one for each pair; missing: that",
                         whole(extents['f']), whole(d / 2));
    return true;
}

inline constexpr OperandShape kScaleByPosition[] = {{"x", kFloats, "n*R"}, {"positions", kIndices, "R"}};

inline bool position_agrees(const tsr_node& node, const Extents&, ShapeFault& fault) noexcept {
    return int_attribute(node, "length", 0) >= 1 ||
           fault.say("required without a length; supported: with one of 1 or more; missing: it");
}
inline bool scale_agrees(const tsr_node& node, const Extents&, ShapeFault& fault) noexcept {
    return find_attribute(node, "factor") || fault.say("required without factor; supported: with; missing: it");
}

inline constexpr OperandShape kGatedRows[] = {{"x", kFloats, "nHR"}, {"the gate", kFloats, "HR"}};
inline constexpr OperandShape kRowsOfHeads[] = {{"the output", kFloats, "nHR"}};

inline constexpr OperandShape kPair[] = {{"the first operand", kFloats, "n*"}, {"the second operand", kFloats, "n*"}};
inline constexpr OperandShape kRowForAll[] = {{"the first operand", kFloats, "n*"},
                                              {"the second operand", kFloats, "n"}};

inline bool is_row_for_all(const tsr_node& node) noexcept {
    return rank_of(node, 1) == 1 && rank_of(node, 0) > 1 && node.inputs[1]->range == TSR_RANGE_FIXED;
}

inline constexpr OperandShape kWeightAlone[] = {{"the weight", kWeight, "n*"}};
inline constexpr OperandShape kConverted[] = {{"the output", kWeight, "n*"}};
inline constexpr OperandShape kToTranspose[] = {{"the weight", kWeight, "kn*"}};
inline constexpr OperandShape kTransposed[] = {{"the output", kWeight, "nk*"}};

inline constexpr OperandShape kCacheWrite[] = {
    {"x", kFloats, "nR"}, {"positions", kIndices, "R"}, {"sequences", kIndices, "R"}, {"page_table", kIndices, "QS"}};
inline constexpr OperandShape kWrittenCache[] = {{"the cache", kCache, "nTP"}};

inline constexpr OperandShape kAttention[] = {
    {"q", kFloats, "dHR"},        {"the k cache", kCache, "kTP"}, {"the v cache", kCache, "wTP", true},
    {"positions", kIndices, "R"}, {"sequences", kIndices, "R"},   {"page_table", kIndices, "QS"},
    {"wk", kWeight, "cuH", true}, {"wv", kWeight, "cvH", true},   {"sinks", kFloats, "H", true}};
inline constexpr OperandShape kValues[] = {{"the output", kFloats, "vHR"}};

inline bool window_agrees(const tsr_node& node, ShapeFault& fault) noexcept {
    return int_attribute(node, "window", 0) >= 0 ||
           fault.say("required a negative window; supported: 0 or more; missing: that");
}

inline bool attention_agrees(const tsr_node& node, const Extents& extents, ShapeFault& fault) noexcept {
    const int64_t dk = extents['d'], dv = extents['v'], heads = extents['H'];
    const int64_t cached = extents['k'], kv_heads = int_attribute(node, "kv_heads", 1);
    const bool plain = has_input(node, 2), projected = has_input(node, 6) || has_input(node, 7);
    const auto k_cache = [&](int64_t wanted) {
        return cached == wanted ||
               fault.say(
                   "required the k cache with dims[0] = %lld; supported: %lld, as the other operands say; "
                   "missing: matching shapes",
                   whole(cached), whole(wanted));
    };
    if (!window_agrees(node, fault)) return false;
    if (dv < 1) return fault.say("required head_dim_v of %lld; supported: 1 or more; missing: that", whole(dv));
    if (projected) {
        if (plain || !has_input(node, 6) || !has_input(node, 7))
            return fault.say("required %s with %s; supported: v alone, or wk and wv without v; missing: that",
                             plain ? "v" : "one of wk and wv", plain ? "wk or wv" : "none of the other");
        const int64_t latent = extents['c'], unprojected = cached - latent;
        if (unprojected < 0 || unprojected > dk || extents['u'] != dk - unprojected)
            return fault.say(
                "required cache rows of %lld with projections of %lld to %lld and keys of %lld; supported: c + p; "
                "missing: matching shapes",
                whole(cached), whole(latent), whole(extents['u']), whole(dk));
        return true;
    }
    if (plain) {
        if (kv_heads < 1 || heads % kv_heads != 0)
            return fault.say("required %lld heads over %lld of keys; supported: a multiple; missing: that",
                             whole(heads), whole(kv_heads));
        if (!k_cache(kv_heads * dk)) return false;
        return extents['w'] == kv_heads * dv ||
               fault.say(
                   "required the v cache with dims[0] = %lld; supported: %lld, as the other operands say; "
                   "missing: matching shapes",
                   whole(extents['w']), whole(kv_heads * dv));
    }
    if (!k_cache(dk)) return false;
    if (kv_heads != 1 || dv > dk)
        return fault.say(
            "required values of %lld as a part of keys of %lld, kv_heads %lld; supported: at most the "
            "key, kv_heads 1; missing: that",
            whole(dv), whole(dk), whole(kv_heads));
    return true;
}

inline constexpr OperandShape kCachedAttention[] = {{"q", kFloats, "dHR"},        {"k", kFloats, "dGR"},
                                                    {"v", kFloats, "vGR"},        {"positions", kIndices, "R"},
                                                    {"sequences", kIndices, "R"}, {"page_table", kIndices, "QS"},
                                                    {"sinks", kFloats, "H", true}};

inline bool cached_attention_agrees(const tsr_node& node, const Extents& extents, ShapeFault& fault) noexcept {
    if (extents['H'] % extents['G'] != 0)
        return fault.say("required %lld heads over %lld of keys; supported: a multiple; missing: that",
                         whole(extents['H']), whole(extents['G']));
    return window_agrees(node, fault);
}

}  // namespace shapes

inline constexpr OpShapes kOpShapes[] = {
    {TSR_OP_GET_ROWS, shapes::kGetRows, shapes::kRows},
    {TSR_OP_RMS_NORM, shapes::kRmsNorm, shapes::kLike},
    {TSR_OP_MATMUL, shapes::kMatmulBatchedTransposed, shapes::kBatches, shapes::is_matmul_batched_transposed},
    {TSR_OP_MATMUL, shapes::kMatmulBatched, shapes::kBatches, shapes::is_matmul_batched},
    {TSR_OP_MATMUL, shapes::kMatmulTransposed, shapes::kRows, shapes::is_transposed},
    {TSR_OP_MATMUL, shapes::kMatmul, shapes::kRows},
    {TSR_OP_MATMUL_GROUP, shapes::kMatmulGroup, shapes::kGroupResults, nullptr, 0, nullptr, nullptr, true},
    {TSR_OP_GATED_FFN, shapes::kGatedFfn, shapes::kRows},
    {TSR_OP_MATMUL_ID, shapes::kMatmulIdOfChosen, shapes::kChosen, shapes::has_chosen_rows},
    {TSR_OP_MATMUL_ID, shapes::kMatmulId, shapes::kChosen},
    {TSR_OP_ADD_ID, shapes::kAddId, shapes::kChosen},
    {TSR_OP_WEIGHTED_SUM, shapes::kWeightedSum, shapes::kRows},
    {TSR_OP_MOE_FFN, shapes::kMoeFfn, shapes::kRows},
    {TSR_OP_MOE_ROUTE, shapes::kMoeRoute, shapes::kMoeRouteResults, nullptr, 'K', "used", shapes::route_agrees},
    {TSR_OP_ROPE, shapes::kRope, shapes::kHeads, nullptr, 0, nullptr, shapes::rope_agrees},
    {TSR_OP_SCALE_BY_POSITION, shapes::kScaleByPosition, shapes::kLikeRows, nullptr, 0, nullptr,
     shapes::position_agrees},
    {TSR_OP_SCALE, shapes::kOneOfRows, shapes::kLikeRows, nullptr, 0, nullptr, shapes::scale_agrees},
    {TSR_OP_SIGMOID_MUL, shapes::kGatedRows, shapes::kRowsOfHeads},
    {TSR_OP_ADD, shapes::kRowForAll, shapes::kLike, shapes::is_row_for_all},
    {TSR_OP_ADD, shapes::kPair, shapes::kLike},
    {TSR_OP_MUL, shapes::kRowForAll, shapes::kLike, shapes::is_row_for_all},
    {TSR_OP_MUL, shapes::kPair, shapes::kLike},
    {TSR_OP_SILU_MUL, shapes::kPair, shapes::kLike},
    {TSR_OP_GLU, shapes::kPair, shapes::kLike},
    {TSR_OP_HADAMARD, shapes::kOne, shapes::kLike},
    {TSR_OP_CONVERT, shapes::kWeightAlone, shapes::kConverted},
    {TSR_OP_TRANSPOSE, shapes::kToTranspose, shapes::kTransposed},
    {TSR_OP_CACHE_WRITE, shapes::kCacheWrite, shapes::kWrittenCache},
    {TSR_OP_FLASH_ATTENTION, shapes::kAttention, shapes::kValues, nullptr, 'v', "head_dim_v", shapes::attention_agrees},
    {TSR_OP_TILED_ATTENTION, shapes::kAttention, shapes::kValues, nullptr, 'v', "head_dim_v", shapes::attention_agrees},
    {TSR_OP_CACHED_ATTENTION, shapes::kCachedAttention, shapes::kValues, nullptr, 0, nullptr,
     shapes::cached_attention_agrees},
};

// The signature of the node; nullptr if the table has no such op.
inline const OpShapes* find_shapes(std::string_view op, const tsr_node& node) noexcept {
    for (const OpShapes& row : kOpShapes) {
        if (row.op == op && (!row.applies || row.applies(node))) return &row;
    }
    return nullptr;
}

// What inputs and attributes tell.
inline bool match_inputs(const OpShapes& row, const tsr_node& node, Extents& extents, ShapeFault& fault) noexcept {
    if (const tsr_attribute* const told = row.told ? find_attribute(node, row.attribute) : nullptr) {
        const int64_t extent = told->kind == TSR_ATTRIBUTE_INT ? told->i : 0;
        if (extent < 1)
            return fault.say("required %s of %lld; supported: 1 or more; missing: that", row.attribute,
                             shapes::whole(extent));
        extents.set(row.told, extent);
    }
    for (uint32_t i = 0; i < row.inputs.size(); ++i) {
        const OperandShape& shape = row.inputs[i];
        if (has_input(node, i)) {
            if (!extents.match(shape, *node.inputs[i], fault)) return false;
        } else if (!shape.optional) {
            return fault.say("required no %s; supported: with %s; missing: it", shape.name, shape.name);
        }
    }
    return true;
}

// Calls use(shape, index, extents) for each output with what the operands tell of it, until one returns false.
template <typename Use>
bool for_outputs(const OpShapes& row, const tsr_node& node, uint32_t outputs, ShapeFault& fault, Use&& use) noexcept {
    Extents extents;
    if (!row.repeats) {
        if (!match_inputs(row, node, extents, fault)) return false;
        // What an attribute should tell, and does not, the results do.
        const bool early = row.agrees && (!row.told || extents[row.told] != 0);
        if (early && !row.agrees(node, extents, fault)) return false;
        for (uint32_t i = 0; i < outputs; ++i) {
            if (!use(row.output(i), i, extents)) return false;
        }
        return !row.agrees || early || row.agrees(node, extents, fault);
    }
    if (!has_input(node, 0)) return fault.say("required no %s; supported: with it; missing: it", row.input(0).name);
    if (!extents.match(row.input(0), *node.inputs[0], fault)) return false;
    for (uint32_t i = 1; i < node.input_count; ++i) {
        Extents pair = extents;
        if (!has_input(node, i)) return fault.say("required no %s; supported: with it; missing: it", row.input(i).name);
        if (!pair.match(row.input(i), *node.inputs[i], fault) || !use(row.output(i - 1), i - 1, pair)) return false;
    }
    return true;
}

// Whether operands, results among them, fit together. Their number is right.
inline bool shapes_fit(const OpShapes& row, const tsr_node& node, ShapeFault& fault) noexcept {
    return for_outputs(row, node, node.output_count, fault,
                       [&](const OperandShape& shape, uint32_t index, Extents& extents) noexcept {
                           return extents.match(shape, *node.outputs[index], fault);
                       });
}

// Dims, rank and range of the results.
inline bool infer_shapes(const OpShapes& row, const tsr_node& node, tsr_tensor* const* outputs,
                         ShapeFault& fault) noexcept {
    if (row.repeats && node.input_count < 2)
        return fault.say("required no %s; supported: one or more; missing: it", row.inputs.back().name);
    if (!row.repeats && node.input_count > row.inputs.size())
        return fault.say("required %u inputs; supported: up to %zu; missing: that count", node.input_count,
                         row.inputs.size());
    return for_outputs(row, node, static_cast<uint32_t>(row.outputs.size()), fault,
                       [&](const OperandShape& shape, uint32_t index, Extents& extents) noexcept {
                           if (row.told && extents[row.told] == 0)
                               return fault.say("required without %s; supported: with; missing: it", row.attribute);
                           extents.fill(shape, *outputs[index]);
                           return true;
                       });
}

}  // namespace tessera::sdk
