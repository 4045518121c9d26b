// The graph of a described model.
#pragma once

#include "core/model/description.hpp"
#include "core/model/model.hpp"
#include "core/model/model_file.hpp"

namespace tessera {

// The inputs of every model's graph (model.hpp), made first and in this order.
struct GraphInputs {
    Value tokens, positions, sequences, page_table, output_rows;
};
GraphInputs add_inputs(Graph& graph, const GraphLimits& limits);

// Claims the tensors that it reads. Throws Error: TSR_UNSUPPORTED naming what is not computed (not_computed.hpp), and
// what Weights throws.
Graph build_graph(const ModelDescription& description, ModelFile& model, const OpSet& ops, const GraphLimits& limits);

}  // namespace tessera
