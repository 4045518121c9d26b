// Finds two accesses to the same bytes of which one writes and that nothing orders, whatever the timing was: with
// vector clocks, one for each lane.
#pragma once

#include "core/base/access_map.hpp"
#include "core/plan/accesses.hpp"
#include "core/plan/step.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class OrderChecker {
  public:
    // `name`: of an arena, for messages.
    OrderChecker(size_t lanes, std::function<std::string(uint32_t arena)> name);

    // The host puts new work on a lane: it comes after all that the host has done. For the host, the next action.
    void start(LaneIndex lane);
    // The work that was started touches these bytes. `what` names it.
    void access(LaneIndex lane, const Access& access, std::string_view what);
    // What an event holds that is recorded on the lane now.
    const VectorClock& record(LaneIndex lane) const { return clocks_[lane]; }
    // The lane goes on after that event.
    void wait(LaneIndex lane, const VectorClock& event) { join(clocks_[lane], event); }

    // One line for each pair of works found.
    const std::vector<std::string>& faults() const noexcept { return faults_; }

  private:
    struct Visit {
        LaneIndex lane = 0;
        uint64_t time = 0;
        std::shared_ptr<const std::string> what;

        bool operator==(const Visit& other) const { return lane == other.lane && time == other.time; }
    };

    std::function<std::string(uint32_t)> name_;
    std::vector<VectorClock> clocks_;
    std::map<uint32_t, AccessMap<Visit>> arenas_;
    std::vector<std::string> faults_;
};

}  // namespace tessera
