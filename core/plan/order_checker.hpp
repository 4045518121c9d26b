// Finds two accesses to the same bytes of which one writes and that nothing orders, whatever the timing was: with
// vector clocks, one for each lane.
//
// Source: vector clocks after Mattern, Virtual Time and Global States of Distributed Systems, 1989; used for races as
// by FastTrack (Flanagan and Freund, 2009).
#pragma once

#include "core/plan/accesses.hpp"
#include "core/plan/step.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

class OrderChecker {
  public:
    using Clock = std::vector<uint64_t>;  // of each lane, what it has done

    // `name`: of an arena, for messages.
    OrderChecker(size_t lanes, std::function<std::string(uint32_t arena)> name);

    // The host puts new work on a lane: it comes after all that the host has done. For the host, the next action.
    void start(LaneIndex lane);
    // The work that was started touches these bytes. `what` names it.
    void access(LaneIndex lane, const Access& access, std::string_view what);
    // What an event holds that is recorded on the lane now.
    const Clock& record(LaneIndex lane) const { return clocks_[lane]; }
    // The lane goes on after that event.
    void wait(LaneIndex lane, const Clock& event);

    // One line for each pair of works found.
    const std::vector<std::string>& faults() const noexcept { return faults_; }

  private:
    struct Visit {
        LaneIndex lane = 0;
        uint64_t time = 0;  // 0: none
        std::string what;
    };
    struct Cell {
        uint64_t end = 0;
        Visit writer;
        std::vector<Visit> readers;  // since, one a lane
    };
    using Cells = std::map<uint64_t, Cell>;  // by first byte

    static void split(Cells& cells, uint64_t at);
    void compare(LaneIndex lane, const Visit& earlier, const Access& access, std::string_view what);

    std::function<std::string(uint32_t)> name_;
    std::vector<Clock> clocks_;
    std::map<uint32_t, Cells> arenas_;
    std::vector<std::string> faults_;
};

}  // namespace tessera
