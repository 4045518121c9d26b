#include "core/plan/arena.hpp"

#include "core/base/checked.hpp"

#include <algorithm>
#include <numeric>

namespace tessera {

std::vector<uint64_t> pack_buffers(std::span<const uint64_t> bytes, uint64_t alignment,
                                   const std::function<bool(size_t a, size_t b)>& together, uint64_t& total) {
    std::vector<size_t> order(bytes.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });

    std::vector<uint64_t> offsets(bytes.size(), 0);
    std::vector<size_t> placed;  // by offset
    uint64_t end = 0;
    for (const size_t buffer : order) {
        uint64_t at = 0;
        for (const size_t other : placed) {
            // Only a range that ends after `at` can overlap.
            if (offsets[other] + bytes[other] <= at || !together(buffer, other)) continue;
            if (at + bytes[buffer] <= offsets[other]) break;
            at = checked_align_up(offsets[other] + bytes[other], alignment, "bytes of activations");
        }
        offsets[buffer] = at;
        end = std::max(end, checked_add(at, bytes[buffer], "bytes of activations"));
        placed.insert(std::ranges::upper_bound(placed, at, {}, [&](size_t i) { return offsets[i]; }), buffer);
    }
    total = checked_align_up(end, alignment, "bytes of activations");
    return offsets;
}

}  // namespace tessera
