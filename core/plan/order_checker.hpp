// Finds two accesses to the same bytes of which one writes and that nothing orders, whatever the timing was: with
// vector clocks, one for each track.
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
    OrderChecker(size_t tracks, std::function<std::string(uint32_t arena)> name);

    // The host puts new work on a track: it comes after all that the host has done. For the host, the next action.
    void start(TrackIndex track);
    // The work that was started touches these bytes. `what` names it.
    void access(TrackIndex track, const Access& access, std::string_view what);
    // What an event holds that is recorded on the track now.
    const VectorClock& record(TrackIndex track) const { return clocks_[track]; }
    // The track goes on after that event.
    void wait(TrackIndex track, const VectorClock& event) { join(clocks_[track], event); }

    // One line for each pair of works found.
    const std::vector<std::string>& faults() const noexcept { return faults_; }

  private:
    struct Visit {
        TrackIndex track = 0;
        uint64_t time = 0;
        std::shared_ptr<const std::string> what;

        bool operator==(const Visit& other) const { return track == other.track && time == other.time; }
    };

    std::function<std::string(uint32_t)> name_;
    std::vector<VectorClock> clocks_;
    std::map<uint32_t, AccessMap<Visit>> arenas_;
    std::vector<std::string> faults_;
};

}  // namespace tessera
