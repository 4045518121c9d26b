// How the rows of a weight become the bytes of one of its instances, and how many of them are worked on at a time.
#pragma once

#include "core/registry/registry.hpp"
#include "core/schedule/plan.hpp"
#include "core/schedule/team.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <span>

namespace tessera {

struct Packing {
    const tsr_layout* layout;  // null: rows as they are
    uint64_t elements;         // of a row
    uint64_t rows;
    uint64_t group_rows;
    uint64_t canonical_bytes;  // of a group
    uint64_t packed_bytes;     // of a group

    Packing(const Plan& plan, const Registry& registry, const Instance& instance);

    uint64_t groups() const noexcept { return rows / group_rows; }
    // Groups of at most `bytes` canonical bytes together, but one at least.
    uint64_t groups_of(uint64_t bytes) const noexcept { return std::max<uint64_t>(bytes / canonical_bytes, 1); }
    // Packs canonical rows, whole groups of them.
    void pack(std::span<const std::byte> rows_of_groups, std::byte* to) const;
};

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
