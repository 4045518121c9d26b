// A draft model, or the model's own layer that predicts further tokens, beside the model that answers.
#pragma once

#include "core/session/drafts/draft_source.hpp"
#include "core/setup/loading.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/settings.hpp"
#include "core/text/tokenizer.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera {

// What is to be drafted for: requests at once, and tokens that all of them hold.
struct DraftUse {
    uint32_t sequences = 1, context = 0;
};

// The draft model of the settings with a machine of its own, as its devices are its own choice, loaded or planned
// before the model: what it takes of memory is taken from `machine`. Lines and notices begin with "draft model: ", or
// "layer of prediction: ", which is loaded so, too, of the model's file. Throws what open_model, settle, load_engine
// and check_same_vocabulary throw, and Error(TSR_INVALID_ARGUMENT) where both are asked for. Settings of neither: null.
std::shared_ptr<session::DraftSource> load_draft_model(const ModelSettings& settings, Machine& machine,
                                                       const text::Tokenizer& tokenizer, DraftUse use,
                                                       const NoticeSink& say, const LoadProgress& progress);

// The same, planned alone: a line for each device. `rig`: as of Machine.
std::vector<std::string> plan_draft_model(const ModelSettings& settings, Machine& machine, DraftUse use,
                                          const std::optional<std::filesystem::path>& rig);

}  // namespace tessera
