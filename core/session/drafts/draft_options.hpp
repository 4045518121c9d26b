// What users say of drafts.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tessera::session {

class DraftSource;

// Tokens of a draft that kernels compute as single ones, with the token before them (Engine::rows_as_single).
inline constexpr uint32_t kMostDrafted = 15;

struct DraftOptions {
    // In the order in which they are asked: the first that foresees anything of an answer is taken. None: no drafts.
    std::vector<std::shared_ptr<DraftSource>> sources;
    uint32_t most = kMostDrafted;  // tokens of a draft; Engine::rows_as_single() is a limit, too
    uint32_t least = 1;            // a shorter one is not verified
    // Drafts are as long as they can be, whatever they cost. For tests and measurements.
    bool always = false;
};

}  // namespace tessera::session
