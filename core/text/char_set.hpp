// Sets of code points, as the classes of regular expressions are.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::text {

class CharSet {
  public:
    static constexpr uint32_t kLast = 0x10FFFF;

    struct Range {
        uint32_t first;
        uint32_t last;  // inclusive
        bool operator==(const Range&) const = default;
    };

    CharSet() = default;
    // first <= last <= kLast.
    CharSet(uint32_t first, uint32_t last) : ranges_{{first, last}} {}

    // "L", "Lu" and so on, or "Han". Throws Error(TSR_INVALID_ARGUMENT) for another.
    static CharSet of_property(std::string_view name);
    // White space as the Unicode standard lists it (White_Space).
    static CharSet white_space();

    void add(const CharSet& other);
    CharSet complement() const;
    CharSet intersection(const CharSet& other) const;

    bool contains(uint32_t code) const noexcept;
    // In rising order, neither touching nor overlapping.
    const std::vector<Range>& ranges() const noexcept { return ranges_; }
    bool operator==(const CharSet&) const = default;

  private:
    std::vector<Range> ranges_;
};

}  // namespace tessera::text
