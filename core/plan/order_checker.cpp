#include "core/plan/order_checker.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace tessera {

OrderChecker::OrderChecker(size_t lanes, std::function<std::string(uint32_t)> name)
    : name_(std::move(name)), clocks_(lanes, VectorClock(lanes, 0)) {}

void OrderChecker::start(LaneIndex lane) {
    wait(lane, clocks_[0]);
    ++clocks_[lane][lane];
}

void OrderChecker::access(LaneIndex lane, const Access& access, std::string_view what) {
    AccessMap<Visit>& accesses = arenas_[access.arena];
    const auto before = [&](const Visit& earlier) { return reaches(clocks_[lane], earlier.lane, earlier.time); };
    accesses.conflicts(access.begin, access.end, access.writes, before, [&](const Visit& earlier, bool, uint64_t) {
        std::string line = fmt::format("{}: nothing orders {} and {}", name_(access.arena), *earlier.what, what);
        if (std::ranges::find(faults_, line) == faults_.end()) faults_.push_back(std::move(line));
        return true;
    });
    const Visit visit{lane, clocks_[lane][lane], std::make_shared<const std::string>(what)};
    accesses.note(access.begin, access.end, access.writes, visit, before);
}

}  // namespace tessera
