// Which accesses to each byte the next one must come after, and vector clocks, which tell whether it does: races are
// found whatever the timing was.
//
// Source: vector clocks after Mattern, Virtual Time and Global States of Distributed Systems, 1989; used for races as
// by FastTrack (Flanagan and Freund, 2009).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace tessera {

// By number of a sequence of works (a queue, a stream, the host): how many of its works are ordered before now.
using VectorClock = std::vector<uint64_t>;

inline void join(VectorClock& to, const VectorClock& from) {
    if (to.size() < from.size()) to.resize(from.size());
    for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

// Whether work `index` of the sequence, counted from 1, is ordered before.
inline bool reaches(const VectorClock& clock, size_t sequence, uint64_t index) {
    return sequence < clock.size() && clock[sequence] >= index;
}

// The last write of each byte, and the reads since then of which none is ordered before another. `Visit` says who
// accessed, and when; those that are == are one. Not for several threads at a time.
template <typename Visit>
class AccessMap {
  public:
    struct Bytes {
        uint64_t end = 0;
        std::optional<Visit> writer;
        std::vector<Visit> readers;
    };

    // Calls found(visit, whether it has written, first byte) of each visit that the access to [begin, end) conflicts
    // with and that `before` does not order before it, until one call returns false.
    template <typename Before, typename Found>
    void conflicts(uint64_t begin, uint64_t end, bool writes, const Before& before, const Found& found) const {
        for (auto at = first_over(begin); at != map_.end() && at->first < end; ++at) {
            const Bytes& bytes = at->second;
            const uint64_t first = std::max(begin, at->first);
            if (bytes.writer && !before(*bytes.writer) && !found(*bytes.writer, true, first)) return;
            if (!writes) continue;
            for (const Visit& reader : bytes.readers)
                if (!before(reader) && !found(reader, false, first)) return;
        }
    }

    // The access has been made.
    template <typename Before>
    void note(uint64_t begin, uint64_t end, bool writes, const Visit& visit, const Before& before) {
        if (begin >= end) return;
        split(begin);
        split(end);
        auto at = map_.lower_bound(begin);
        if (writes) {
            while (at != map_.end() && at->first < end) at = map_.erase(at);
            map_.emplace_hint(at, begin, Bytes{end, visit, {}});
        } else {
            for (uint64_t done = begin; done < end; done = at->second.end, ++at) {
                if (at == map_.end() || at->first > done)
                    at = map_.emplace_hint(at, done, Bytes{at == map_.end() ? end : std::min(end, at->first), {}, {}});
                auto& readers = at->second.readers;
                std::erase_if(readers, before);
                readers.push_back(visit);
            }
        }
        merge(begin, end);
    }

    // The bytes belong to nobody any more.
    void forget(uint64_t begin, uint64_t end) {
        split(begin);
        split(end);
        map_.erase(map_.lower_bound(begin), map_.lower_bound(end));
    }

    // Of the byte; null if nobody has accessed it.
    const Bytes* find(uint64_t address) const {
        const auto at = first_over(address);
        return at == map_.end() || at->first > address ? nullptr : &at->second;
    }

    // Ranges that differ from their neighbours.
    size_t size() const noexcept { return map_.size(); }

  private:
    using Map = std::map<uint64_t, Bytes>;  // by first byte; none overlap

    // The first range that ends after `address`.
    template <typename M>
    static auto first_over(M& map, uint64_t address) {
        auto at = map.upper_bound(address);
        if (at != map.begin() && std::prev(at)->second.end > address) --at;
        return at;
    }
    auto first_over(uint64_t address) { return first_over(map_, address); }
    auto first_over(uint64_t address) const { return first_over(map_, address); }

    // Afterwards no range has bytes on both sides of `at`.
    void split(uint64_t at) {
        const auto over = first_over(at);
        if (over == map_.end() || over->first >= at) return;
        Bytes upper = over->second;
        over->second.end = at;
        map_.emplace_hint(std::next(over), at, std::move(upper));
    }

    // Neighbours in [begin, end], and those at its ends, that do not differ become one.
    void merge(uint64_t begin, uint64_t end) {
        auto at = first_over(begin);
        if (at != map_.begin()) --at;
        while (at != map_.end() && at->first <= end) {
            const auto next = std::next(at);
            if (next == map_.end()) return;
            if (at->second.end == next->first && at->second.writer == next->second.writer &&
                at->second.readers == next->second.readers) {
                at->second.end = next->second.end;
                map_.erase(next);
            } else {
                at = next;
            }
        }
    }

    Map map_;
};

}  // namespace tessera
