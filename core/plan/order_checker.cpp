#include "core/plan/order_checker.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tessera {

OrderChecker::OrderChecker(size_t lanes, std::function<std::string(uint32_t)> name)
    : name_(std::move(name)), clocks_(lanes, Clock(lanes, 0)) {}

void OrderChecker::start(LaneIndex lane) {
    wait(lane, clocks_[0]);
    ++clocks_[lane][lane];
}

void OrderChecker::wait(LaneIndex lane, const Clock& event) {
    for (size_t i = 0; i < event.size(); ++i) clocks_[lane][i] = std::max(clocks_[lane][i], event[i]);
}

// Afterwards no cell has bytes on both sides of `at`.
void OrderChecker::split(Cells& cells, uint64_t at) {
    auto next = cells.upper_bound(at);
    if (next == cells.begin()) return;
    const auto cell = std::prev(next);
    if (cell->first == at || cell->second.end <= at) return;
    Cell rest = cell->second;
    cell->second.end = at;
    cells.emplace_hint(next, at, std::move(rest));
}

void OrderChecker::compare(LaneIndex lane, const Visit& earlier, const Access& access, std::string_view what) {
    if (earlier.time == 0 || earlier.time <= clocks_[lane][earlier.lane]) return;
    std::string line = fmt::format("{}: nothing orders {} and {}", name_(access.arena), earlier.what, what);
    if (std::ranges::find(faults_, line) == faults_.end()) faults_.push_back(std::move(line));
}

void OrderChecker::access(LaneIndex lane, const Access& access, std::string_view what) {
    if (access.begin >= access.end) return;
    Cells& cells = arenas_[access.arena];
    split(cells, access.begin);
    split(cells, access.end);
    // Bytes that nobody has touched yet get cells, too.
    for (uint64_t at = access.begin; at < access.end;) {
        const auto cell = cells.lower_bound(at);
        if (cell != cells.end() && cell->first == at) {
            at = cell->second.end;
            continue;
        }
        const uint64_t end = cell == cells.end() ? access.end : std::min(access.end, cell->first);
        cells[at].end = end;
        at = end;
    }
    const Visit visit{lane, clocks_[lane][lane], std::string(what)};
    for (auto cell = cells.find(access.begin); cell != cells.end() && cell->first < access.end; ++cell) {
        Cell& bytes = cell->second;
        compare(lane, bytes.writer, access, what);
        if (access.writes) {
            for (const Visit& reader : bytes.readers) compare(lane, reader, access, what);
            bytes.writer = visit;
            bytes.readers.clear();
            continue;
        }
        const auto same = std::ranges::find(bytes.readers, lane, &Visit::lane);
        if (same == bytes.readers.end()) {
            bytes.readers.push_back(visit);
        } else {
            *same = visit;
        }
    }
}

}  // namespace tessera
