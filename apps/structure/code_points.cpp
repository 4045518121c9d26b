#include "apps/structure/code_points.hpp"

#include <algorithm>
#include <utility>

namespace tessera::structure {

CodePoints joined(CodePoints ranges) {
    std::ranges::sort(ranges);
    CodePoints set;
    for (const auto& range : ranges) {
        if (!set.empty() && range.first <= set.back().second + 1) {
            set.back().second = std::max(set.back().second, range.second);
        } else {
            set.push_back(range);
        }
    }
    return set;
}

CodePoints others_than(const CodePoints& set) {
    CodePoints others;
    uint32_t next = 0;
    for (const auto& [first, last] : set) {
        if (first > next) others.emplace_back(next, first - 1);
        next = last + 1;
    }
    if (next <= kLastCodePoint) others.emplace_back(next, kLastCodePoint);
    return others;
}

CodePoints without_surrogates(const CodePoints& set) {
    constexpr uint32_t kFirst = 0xd800, kLast = 0xdfff;
    CodePoints rest;
    for (const auto& [first, last] : set) {
        if (first < kFirst) rest.emplace_back(first, std::min(last, kFirst - 1));
        if (last > kLast) rest.emplace_back(std::max(first, kLast + 1), last);
    }
    return rest;
}

Bytes first_bytes(const CodePoints& set) {
    // Code points of as many bytes, and the first of these: a mark and the highest bits.
    struct Length {
        uint32_t first, last, mark;
        int shift;
    };
    constexpr Length kLengths[] = {
        {0, 0x7f, 0, 0}, {0x80, 0x7ff, 0xc0, 6}, {0x800, 0xffff, 0xe0, 12}, {0x10000, kLastCodePoint, 0xf0, 18}};
    Bytes bytes;
    for (const auto& [first, last] : set) {
        for (const Length& length : kLengths) {
            const uint32_t from = std::max(first, length.first), to = std::min(last, length.last);
            if (from > to) continue;
            for (uint32_t bits = from >> length.shift; bits <= to >> length.shift; ++bits)
                bytes.set(length.mark | bits);
        }
    }
    return bytes;
}

bool meet(const CodePoints& a, const CodePoints& b) noexcept {
    for (auto x = a.begin(), y = b.begin(); x != a.end() && y != b.end();) {
        if (x->second < y->first) {
            ++x;
        } else if (y->second < x->first) {
            ++y;
        } else {
            return true;
        }
    }
    return false;
}

}  // namespace tessera::structure
