#include "core/plan/arena.hpp"

#include "core/base/checked.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tessera {

uint64_t pack_lifetimes(std::deque<Lifetime>& buffers, uint64_t alignment) {
    std::vector<size_t> order(buffers.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });

    std::vector<const Lifetime*> placed;  // by offset
    uint64_t total = 0;
    for (const size_t index : order) {
        Lifetime& buffer = buffers[index];
        uint64_t at = 0;
        for (const Lifetime* other : placed) {
            if (other->last < buffer.first || other->first > buffer.last) continue;
            if (at + buffer.bytes <= other->offset) break;
            at = std::max(at, checked_align_up(other->offset + other->bytes, alignment, "bytes of activations"));
        }
        buffer.offset = at;
        total = std::max(total, checked_add(at, buffer.bytes, "bytes of activations"));
        placed.insert(std::ranges::upper_bound(placed, at, {}, &Lifetime::offset), &buffer);
    }
    return checked_align_up(total, alignment, "bytes of activations");
}

}  // namespace tessera
