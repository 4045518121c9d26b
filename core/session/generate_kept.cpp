// Pages that a generator keeps between its steps.
#include "core/session/generate.hpp"
#include "core/session/task.hpp"

#include <algorithm>
#include <utility>

namespace tessera::session {
namespace {

// Of the time of steps, what is taken for copies of pages that are kept; and what of it is saved up at most.
constexpr double kKeptShare = 1.0 / 50, kMostKeptSeconds = 0.05;

}  // namespace

// A step has taken so long; when enough have, a page is copied.
void Generator::keep_beside(double seconds) {
    PageKeeper* const keeper = admission_.keeper();
    if (!keeper) return;
    kept_seconds_ = std::min(kept_seconds_ + kKeptShare * seconds, kMostKeptSeconds);
    if (kept_seconds_ <= 0 || !under_way_.empty()) return;
    const auto start = Clock::now();
    keeper->write(kept_seconds_);
    kept_seconds_ -= seconds_since(start);
}

PageKeeper::Left Generator::keep(double seconds) {
    PageKeeper* const keeper = admission_.keeper();
    return keeper && under_way_.empty() ? keeper->write(seconds) : PageKeeper::Left::kNothing;
}

uint64_t Generator::keep_rest(const std::function<bool()>& go_on) {
    PageKeeper* const keeper = admission_.keeper();
    return keeper ? keeper->finish(go_on) : 0;
}

std::optional<KeptStatus> Generator::kept() const {
    const PageKeeper* const keeper = admission_.keeper();
    return keeper ? std::optional(keeper->status()) : std::nullopt;
}

void Generator::keep_in(std::shared_ptr<PageStore> pages) {
    if (pages) admission_.keep_in(std::move(pages));
    pages_later_ = false;
}

Slots::Erased Generator::erase_slot(const std::string& space, uint32_t slot) {
    return slots_.erase(space, slot, admission_.keeper(), pages_later_);
}

}  // namespace tessera::session
