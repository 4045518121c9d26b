// A loop over a team whose bodies may throw.
#pragma once

#include "core/run/team.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>

namespace tessera {

// Calls body(worker, i) for every i below `count`, each once, on at most `workers` of the team (0: all). Throws the
// first of what the calls throw; not all of them are made then.
template <typename Body>
void each_on_team(Team& team, uint32_t workers, size_t count, Body&& body) {
    std::atomic<size_t> next{0};
    std::exception_ptr error;
    std::mutex error_mutex;
    auto work = [&](uint32_t worker, uint32_t) {
        for (size_t i; (i = next.fetch_add(1)) < count;) {
            try {
                body(worker, i);
            } catch (...) {
                const std::scoped_lock lock(error_mutex);
                if (!error) error = std::current_exception();
                next = count;
            }
        }
    };
    team.run(workers, work);
    if (error) std::rethrow_exception(error);
}

}  // namespace tessera
