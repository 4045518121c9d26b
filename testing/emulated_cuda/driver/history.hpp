// Which operation last wrote and read each byte, and whether the next access is ordered after it. What orders work
// is what a program relies on with a real driver: a stream, an event that a stream waits for, a wait or a query of the
// host before the call, an edge of a graph. When work was done by chance does not matter.
//
// The host is taken for one thread: calls of one of its threads are ordered after what another has waited for. No race
// is reported wrongly; one between two threads of the host may be missed.
#pragma once

#include "core/base/access_map.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera::cuda::emulated {

using tessera::join;
using tessera::VectorClock;

// For each node of a graph those that it comes after. Nodes come after ones of smaller index only.
class Ancestors {
  public:
    explicit Ancestors(const std::vector<std::vector<size_t>>& after);
    bool before(size_t earlier, size_t later) const noexcept {
        return (bits_[later * words_ + earlier / 64] >> earlier % 64 & 1) != 0;
    }

  private:
    size_t words_;
    std::vector<uint64_t> bits_;
};

// An operation of a stream, or one node of a graph that was launched as one.
struct Moment {
    size_t card = 0;
    uint32_t stream = 0;
    uint64_t index = 0;  // among the stream's work, from 1 on
    size_t node = 0;

    bool operator==(const Moment&) const = default;
};

struct Stream;

// What is done now, and what it is ordered after.
struct Execution {
    Stream* stream = nullptr;
    Moment moment;
    std::shared_ptr<const VectorClock> known;  // work that is ordered before it
    std::shared_ptr<const VectorClock> host;   // what the host had waited for when it was called
    const Ancestors* ancestors = nullptr;      // of a graph's nodes
};

struct Access {
    Moment moment;
    std::shared_ptr<const std::string> what;  // "kernel scale"

    bool operator==(const Access& other) const { return moment == other.moment; }
};

struct Race {
    Access other;
    bool with_write;
    uintptr_t address;  // the first byte that both access
};

// Not for several threads at a time.
class History {
  public:
    // An access to [begin, end), which has been made; noted unless it is in a race with an earlier one.
    std::optional<Race> note(uintptr_t begin, uintptr_t end, bool written, const Execution& execution,
                             const std::shared_ptr<const std::string>& what);
    // The bytes belong to nobody any more.
    void forget(uintptr_t begin, uintptr_t end) { accesses_.forget(begin, end); }
    // Whether the byte was last written by work that the host had not waited for at `host`.
    bool written_since(uintptr_t address, const VectorClock& host) const;

  private:
    AccessMap<Access> accesses_;
};

// "kernel scale on stream 2 of card 0"
std::string describe(const Access& access);

}  // namespace tessera::cuda::emulated
