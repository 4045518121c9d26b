#include "core/setup/drafts.hpp"

#include "core/session/drafts/ngram_drafts.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace tessera {

void make_room(const DraftSettings& drafts, EngineOptions& options) {
    if (drafts.any())
        options.output_rows =
            options.sequences + std::max(std::min(drafts.most, session::kMostDrafted), options.sequences);
    options.states = drafts.any() && drafts.prediction;
}

session::DraftOptions make_drafts(const DraftSettings& drafts, std::shared_ptr<session::DraftSource> model) {
    session::DraftOptions options;
    options.most = drafts.most;
    options.least = drafts.least;
    if (drafts.repeat) options.sources.push_back(std::make_shared<session::NgramDrafts>());
    if (model) options.sources.push_back(std::move(model));
    return options;
}

std::optional<Notice> draft_notice(const DraftSettings& drafts, const Engine& engine) {
    if (!drafts.any()) return std::nullopt;
    const uint32_t rows = engine.rows_as_single();
    if (const uint32_t most = std::min(drafts.most, session::kMostDrafted); rows <= most) {
        return Notice(fmt::format("drafts: at most {} tokens of {}, since more than {} rows are computed as a prompt's",
                                  rows - 1, most, rows));
    }
    if (engine.rows_have_same_bits()) return std::nullopt;
    return Notice(
        "drafts: devices compute rows of a draft with other kernels than single rows, so that an answer may differ "
        "from that without drafts where two tokens are nearly as likely");
}

}  // namespace tessera
