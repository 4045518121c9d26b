#include "core/plan/order_checker.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace tessera {

OrderChecker::OrderChecker(size_t tracks, std::function<std::string(uint32_t)> name)
    : name_(std::move(name)), clocks_(tracks, VectorClock(tracks, 0)) {}

void OrderChecker::start(TrackIndex track) {
    wait(track, clocks_[0]);
    ++clocks_[track][track];
}

void OrderChecker::access(TrackIndex track, const Access& access, std::string_view what) {
    AccessMap<Visit>& accesses = arenas_[access.arena];
    const auto before = [&](const Visit& earlier) { return reaches(clocks_[track], earlier.track, earlier.time); };
    accesses.conflicts(access.begin, access.end, access.writes, before, [&](const Visit& earlier, bool, uint64_t) {
        std::string line = fmt::format("{}: nothing orders {} and {}", name_(access.arena), *earlier.what, what);
        if (std::ranges::find(faults_, line) == faults_.end()) faults_.push_back(std::move(line));
        return true;
    });
    const Visit visit{track, clocks_[track][track], std::make_shared<const std::string>(what)};
    accesses.note(access.begin, access.end, access.writes, visit, before);
}

}  // namespace tessera
