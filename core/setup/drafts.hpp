// What drafts need when a model is loaded.
#pragma once

#include "core/base/notice.hpp"
#include "core/session/drafts/draft_source.hpp"
#include "core/session/engine.hpp"
#include "core/session/generator_options.hpp"
#include "core/setup/settings.hpp"

#include <memory>
#include <optional>

namespace tessera {

// Rows of logits for drafts, of one request or, where many are worked on, one each; and states, where drafts begin with
// them.
void make_room(const DraftSettings& drafts, EngineOptions& options);

// For a generator over the engine. `model`: of load_draft_model(); it is asked where nothing is repeated.
session::DraftOptions make_drafts(const DraftSettings& drafts, std::shared_ptr<session::DraftSource> model);

// That drafts may change answers on this engine, where they may; to be told when it is loaded.
std::optional<Notice> draft_notice(const DraftSettings& drafts, const Engine& engine);

}  // namespace tessera
