#include "core/text/char_set.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/unicode_categories.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace tessera::text {
namespace {

constexpr auto kCategoryNames = std::to_array<std::string_view>(
    {"Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps", "Pe",
     "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co", "Cn"});

}  // namespace

CharSet CharSet::of_property(std::string_view name) {
    CharSet set;
    if (name == "Han") {
        const auto edges = han_edges();
        for (size_t i = 0; i + 1 < edges.size(); i += 2) set.ranges_.push_back({edges[i], edges[i + 1] - 1});
        return set;
    }
    std::array<bool, kCategoryNames.size()> wanted{};
    std::ranges::transform(kCategoryNames, wanted.begin(),
                           [&](std::string_view one) { return !name.empty() && one.starts_with(name); });
    if (std::ranges::find(wanted, true) == wanted.end())
        fail(TSR_INVALID_ARGUMENT, "\\p{{{}}} is neither a general category of Unicode nor the script Han",
             printable(name, 40));
    const auto runs = category_runs();
    for (size_t i = 0; i < runs.size(); ++i) {
        if (!wanted[runs[i] & 0xFF]) continue;
        const uint32_t first = runs[i] >> 8;
        const uint32_t last = i + 1 < runs.size() ? (runs[i + 1] >> 8) - 1 : kLast;
        if (!set.ranges_.empty() && set.ranges_.back().last + 1 == first) {
            set.ranges_.back().last = last;
        } else {
            set.ranges_.push_back({first, last});
        }
    }
    return set;
}

CharSet CharSet::white_space() {
    CharSet set = of_property("Z");
    set.add({0x9, 0xD});
    set.add({0x85, 0x85});
    return set;
}

void CharSet::add(const CharSet& other) {
    std::vector<Range> all;
    all.reserve(ranges_.size() + other.ranges_.size());
    std::ranges::merge(ranges_, other.ranges_, std::back_inserter(all), {}, &Range::first, &Range::first);
    ranges_.clear();
    for (const Range& one : all) {
        if (!ranges_.empty() && one.first <= ranges_.back().last + 1) {
            ranges_.back().last = std::max(ranges_.back().last, one.last);
        } else {
            ranges_.push_back(one);
        }
    }
}

CharSet CharSet::complement() const {
    CharSet out;
    uint32_t next = 0;
    for (const Range& one : ranges_) {
        if (one.first > next) out.ranges_.push_back({next, one.first - 1});
        next = one.last + 1;
    }
    if (next <= kLast) out.ranges_.push_back({next, kLast});
    return out;
}

CharSet CharSet::intersection(const CharSet& other) const {
    CharSet outside = complement();
    outside.add(other.complement());
    return outside.complement();
}

bool CharSet::contains(uint32_t code) const noexcept {
    const auto after = std::ranges::upper_bound(ranges_, code, {}, &Range::first);
    return after != ranges_.begin() && code <= std::prev(after)->last;
}

}  // namespace tessera::text
