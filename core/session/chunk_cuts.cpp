#include "core/session/chunk_cuts.hpp"

#include "core/plan/predict.hpp"

#include <tessera/tensor.h>

#include <algorithm>

namespace tessera::session {
namespace {

// Whole pages up to `rows`, and `rows`; of many only some.
std::vector<uint32_t> sizes(uint32_t rows) {
    constexpr uint32_t kMost = 16;
    const uint32_t pages = (rows + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS;
    const uint32_t step = (pages + kMost - 1) / kMost * TSR_PAGE_TOKENS;
    std::vector<uint32_t> all;
    for (uint32_t some = TSR_PAGE_TOKENS; some < rows; some += step) all.push_back(some);
    all.push_back(rows);
    return all;
}

std::vector<ChunkTime> predicted(const Plan& plan, uint32_t rows, double seconds) {
    if (seconds <= 0) return {};
    std::vector<ChunkTime> times;
    for (const uint32_t some : sizes(std::min(rows, plan.options.max_rows))) {
        const bool prompt = some >= plan.prompt_rows_from;
        times.push_back({some, step_time(plan, some, 0, prompt).seconds,
                         step_time(plan, some, plan.options.max_tokens, prompt).seconds});
    }
    return times;
}

}  // namespace

ChunkCuts::ChunkCuts(uint32_t rows, double seconds, uint32_t depth, std::span<const ChunkTime> times) : rows_(rows) {
    if (seconds <= 0 || times.empty()) return;
    const double bound = std::max(seconds, kLonger * times.back().first);
    for (uint32_t position = 0; position < depth;) {
        const double share = static_cast<double>(position) / depth;
        uint32_t most = times.front().rows;
        for (const ChunkTime& time : times) {
            if (time.first + (time.deep - time.first) * share <= bound) most = std::max(most, time.rows);
        }
        position += most;
        cuts_.push_back(position);
    }
}

ChunkCuts::ChunkCuts(const Plan& plan, uint32_t rows, double seconds)
    : ChunkCuts(rows, seconds, plan.options.max_tokens, predicted(plan, rows, seconds)) {}

uint32_t ChunkCuts::after(uint32_t position) const noexcept {
    const auto found = std::ranges::upper_bound(cuts_, position);
    return found != cuts_.end() ? *found : (position / rows_ + 1) * rows_;
}

uint32_t ChunkCuts::before(uint32_t position) const noexcept {
    const auto found = std::ranges::upper_bound(cuts_, position);
    if (found == cuts_.end()) return position / rows_ * rows_;
    return found == cuts_.begin() ? 0 : *(found - 1);
}

}  // namespace tessera::session
