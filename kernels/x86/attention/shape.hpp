// Sizes that the attention algorithms share.
//
// A *lane* is one query: a (row, head) pair. A *panel* is up to two vectors of lanes that read the same keys. A *strip*
// is 128 cached tokens of one sequence; what must be converted is converted once for all panels of a unit of work.
#pragma once

#include "../kit.hpp"

#include <cstddef>
#include <cstdint>

namespace tessera::x86::attention {

inline constexpr int kStrip = 128;
// Tiles of rows may run past the last token of a strip; what they compute there is never read.
inline constexpr int kStripPadding = 16;
// Query heads of a key up to which single rows are attended in f32 along canonical rows (few_lanes.hpp): where they
// share latent rows, and where key heads have rows of their own.
inline constexpr int kFewLanes = 4, kFewLanesOfHeads = 16;
// Tokens that such code computes at a time, for all key heads of a unit.
inline constexpr int kFewBlock = 32;
// Their scores lie [token][width]: vectors hold whole tokens, or tokens whole vectors. Up to kFewLanes are as wide as
// these, since they may be of several rows.
constexpr int few_width(int lanes) noexcept {
    return lanes <= kFewLanes ? kFewLanes : lanes <= 8 ? 8 : 16;
}
// Floats that the scores of a key head take.
constexpr int few_scores(int lanes) noexcept {
    return kFewBlock * few_width(lanes);
}
// The score of a token that a lane must not see.
inline constexpr float kHidden = -1e30f;

constexpr int64_t rounded_up(int64_t n, int64_t multiple) noexcept {
    return (n + multiple - 1) / multiple * multiple;
}

// The heads of one node. Elements of keys and values are padded to blocks of 32 with zeros.
struct HeadShape {
    int key = 0;    // elements of a key
    int value = 0;  // elements of a value
    // Elements of a key that have one scale; the rest has another. A multiple of 32, or the whole key.
    int first_part = 0;
    bool prefix = false;  // the value is the first part of the key

    int padded_key() const noexcept { return static_cast<int>(rounded_up(key, 32)); }
    int padded_value() const noexcept { return static_cast<int>(rounded_up(value, 32)); }
    int parts() const noexcept { return first_part < key ? 2 : 1; }
    int part_begin(int part) const noexcept { return part == 0 ? 0 : first_part; }
    int part_end(int part) const noexcept { return part + 1 < parts() ? first_part : padded_key(); }
};

// Allocates parts of a buffer, or only counts their bytes if the buffer is null.
class Arena {
  public:
    explicit Arena(void* base) noexcept : base_(static_cast<char*>(base)) {}
    template <typename T>
    T* take(int64_t count) noexcept {
        T* at = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
        used_ += rounded_up(count * static_cast<int64_t>(sizeof(T)), 64);
        return at;
    }
    int64_t used() const noexcept { return used_; }

  private:
    char* base_;
    int64_t used_ = 0;
};

}  // namespace tessera::x86::attention
