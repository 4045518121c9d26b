// From a file's header to the graph of its model. Nothing of the weights is read.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/graph/graph.hpp"
#include "core/registry/registry.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Of the experts chosen for a row, the first `at_least` are used, and of the others those whose weight is at least
// `ratio` times the largest. Faster, but not what the model was trained for. Ratio 0: all are used.
struct ExpertReduction {
    uint32_t at_least = 0;
    double ratio = 0;
};

// What a graph is built for: the maxima that its bounded dimensions get, and what of the model is computed.
struct GraphLimits {
    uint32_t rows = 512;           // of a step
    uint32_t output_rows = 1;      // of a step
    bool hidden_states = false;    // can be had of all rows, in place of logits; not of a plugin's architecture
    bool states = false;           // are outputs beside logits; not of a plugin's architecture
    bool prediction = false;       // the model's layer that predicts further tokens, in place of the model
    uint32_t sequences = 1;        // in a step
    uint32_t sequence_pages = 64;  // of one sequence
    ExpertReduction experts;
    bool allow_unused = false;  // tensors and keys of the file that this version would not use do not refuse it
};

struct ModelInfo {
    std::string architecture;  // "deepseek2"
    std::string name;          // general.name
    uint32_t layers = 0;
    uint32_t embedding = 0;
    uint32_t vocabulary = 0;
    uint32_t context = 0;  // tokens that the model was made for
    bool latent_attention = false;
    uint32_t experts_used = 0;  // routed ones of a row; 0: the model has none
};

// Names of the graph's inputs. tokens, positions, sequences: i32 [rows]; page_table: i32 [sequence_pages, sequences];
// output_rows: i32 [output_rows]. Its output is "logits": f32 [vocabulary, output_rows]. With
// GraphLimits::hidden_states it has another, "hidden": f32 [embedding, rows], what the last layer gives behind the
// final norm. Then the input output_rows has room for all rows, and "logits" for the first output_rows of them.
// With GraphLimits::states the same is the output "states": f32 [embedding, output_rows], of the rows whose logits are
// computed, and "row_states": f32 [embedding, rows], of all. A layer of prediction has no "row_states", and one more
// input, "given_states": f32 [embedding, rows], the state that the model, or the layer itself, has given before the
// token of the row.
inline constexpr const char* kTokens = "tokens";
inline constexpr const char* kPositions = "positions";
inline constexpr const char* kSequences = "sequences";
inline constexpr const char* kPageTable = "page_table";
inline constexpr const char* kOutputRows = "output_rows";
inline constexpr const char* kLogits = "logits";
inline constexpr const char* kHidden = "hidden";
inline constexpr const char* kStates = "states";
inline constexpr const char* kRowStates = "row_states";
inline constexpr const char* kGivenStates = "given_states";

// The architecture is the core's or that of a plugin of the registry. Reads hyperparameters only. Throws Error:
// TSR_UNSUPPORTED for an architecture that is not known (listing those that are), TSR_NOT_FOUND or TSR_CORRUPT_DATA
// naming the key.
ModelInfo read_model_info(const gguf::GgufFile& file, const Registry& registry);

struct BuiltModel {
    std::shared_ptr<const OpSet> ops;  // of the graph, which it outlives
    Graph graph;
    std::vector<std::string> notes;  // what of the file is not used, and what was taken where it says nothing
};

// Throws what read_model_info throws, and Error naming the tensor or key: TSR_CORRUPT_DATA where a shape does not fit
// the architecture, TSR_NOT_FOUND for a tensor that is missing, TSR_UNSUPPORTED for tensors and keys that would not be
// used though results depend on them.
BuiltModel build_model(const gguf::GgufFile& file, const Registry& registry, const GraphLimits& limits);

}  // namespace tessera
