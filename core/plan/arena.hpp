// Offsets for buffers that share memory over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tessera {

// Where buffers of a plan begin, in bytes: on the host on cache lines, on devices as their allocators do.
inline constexpr uint64_t kHostAlignment = 64;
inline constexpr uint64_t kDeviceAlignment = 256;

// Places buffers of the given sizes, the largest first, each at the lowest offset where it overlaps none that
// `together` says it cannot share memory with (symmetric). Deterministic. Offsets are multiples of `alignment`; `total`
// gets the bytes needed in all.
std::vector<uint64_t> pack_buffers(std::span<const uint64_t> bytes, uint64_t alignment,
                                   const std::function<bool(size_t a, size_t b)>& together, uint64_t& total);

}  // namespace tessera
