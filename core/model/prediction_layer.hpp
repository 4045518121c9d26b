// Inside core/model: the layer of a file that predicts further tokens, as a model of its own.
#pragma once

#include "core/model/description.hpp"
#include "core/model/model_file.hpp"

#include <string>
#include <vector>

namespace tessera {

// The first of them; embeddings, norm and output matrix are the model's where the layer has no own ones. Throws Error:
// TSR_NOT_FOUND where the file has no such layer, TSR_UNSUPPORTED where it is not known of the architecture.
ModelDescription describe_prediction_layer(ModelDescription model, const ModelFile& file);

// When its graph has been built: notes on further such layers, and on tensors of the layer that the graph does without.
// Throws Error(TSR_UNSUPPORTED) for these unless they are allowed.
std::vector<std::string> check_prediction_tensors(const ModelDescription& layer, const ModelFile& file, bool allowed);

}  // namespace tessera
