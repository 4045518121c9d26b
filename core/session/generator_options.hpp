// What a generator is told, and what it counts.
#pragma once

#include "core/session/drafts/draft_options.hpp"
#include "core/session/generation.hpp"
#include "core/session/kept/page_store.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace tessera::session {

struct GeneratorOptions {
    // Rows of prompts in one step. 0: what Engine::max_rows leaves beside one row for each other sequence.
    uint32_t chunk_rows = 0;
    // Chunks are smaller, down to a page, where a step is predicted to take longer than this and much longer than at
    // the beginning of a prompt (ChunkCuts). 0: always chunk_rows.
    double chunk_seconds = 0;
    // Steps with prompts should take no longer than this while others generate: chunks become smaller then, down to a
    // page. 0: chunks are always of chunk_rows, so that results do not depend on the time that steps take.
    double target_step_seconds = 0;
    // What is drafted is verified in steps of generation, and changes no answer where Engine::rows_have_same_bits().
    DraftOptions drafts;
    // Errors of a step end its requests, and those of other steps under way, with FinishReason::kFailed, and others go
    // on. False: step() throws them.
    bool contain_errors = false;
    // Where cached pages are kept; null: nowhere.
    std::shared_ptr<PageStore> pages;
    // Where there are none yet: they come later, by Generator::keep_in().
    bool pages_later = false;
    // Texts of requests are remembered by their slots.
    bool slots = false;
    // Called before a step with its requests and those of other steps under way, and with none after it.
    std::function<void(std::span<const RequestId> requests)> on_step;
    // Called when a request waits no longer: its work begins, or it has ended.
    std::function<void(const std::string& client, uint32_t prompt_tokens)> on_waited;
};

// Sums since the start.
struct GeneratorCounters {
    uint64_t steps = 0, failed_steps = 0;
    uint64_t sequences = 0;    // of all steps
    uint32_t most_tokens = 0;  // that a sequence has held
    double busy_seconds = 0;
    uint64_t prompt_tokens = 0, reused_tokens = 0, recomputed_tokens = 0, generated_tokens = 0;
    uint64_t drafted_tokens = 0, accepted_tokens = 0;  // as of Answer
    double prompt_seconds = 0, generation_seconds = 0;
    uint64_t finished = 0, cancelled = 0, failed = 0;
    uint64_t preempted = 0;  // requests that gave up their pages to others
    uint64_t paused = 0;     // requests that gave up their place in steps to another client's
};

// What one request is at.
struct RequestState {
    RequestId id;
    std::string client;
    uint32_t prompt_tokens, cached_tokens, new_tokens, reused_tokens;
    bool generating, paused;
    double seconds;
};

}  // namespace tessera::session
