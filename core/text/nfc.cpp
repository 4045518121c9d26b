#include "core/text/nfc.hpp"

#include "core/base/error.hpp"
#include "core/text/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera::text {
namespace {

// Characters that neither change nor join what is before them. Only frequent ones, for speed: others go through the
// tables. Unicode promises that this stays so.
bool is_inert(uint32_t c) {
    struct Range {
        uint32_t first, last;
    };
    constexpr std::array<Range, 13> ranges = {{{0x0, 0x2FF},
                                               {0x388, 0x3FF},
                                               {0x400, 0x482},
                                               {0x48A, 0x52F},
                                               {0x5D0, 0x5EA},
                                               {0x620, 0x64A},
                                               {0x2010, 0x2027},
                                               {0x3001, 0x3029},
                                               {0x3041, 0x3096},
                                               {0x30A0, 0x30FF},
                                               {0x3400, 0x9FFF},
                                               {0xAC00, 0xD7A3},
                                               {0xFF00, 0xFFEF}}};
    if (c <= ranges[0].last) return true;
    return std::ranges::any_of(ranges, [&](const Range& range) { return range.first <= c && c <= range.last; });
}

constexpr auto kCanonical = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

// utf8proc's own function for whole texts sorts marks by exchanging neighbours, which takes the square of their number.
class Part {
  public:
    void normalize(std::string_view text, std::string& out) {
        characters_.clear();
        for (size_t at = 0; at < text.size();) {
            const Utf8Step step = utf8_step(text.substr(at));
            decompose(static_cast<utf8proc_int32_t>(utf8_decode(text.substr(at), step.length)));
            at += step.length;
        }
        sort_marks();
        const auto length = static_cast<utf8proc_ssize_t>(characters_.size());
        const auto left = utf8proc_normalize_utf32(characters_.data(), length, kCanonical);
        if (left < 0) fail(TSR_INTERNAL, "a text cannot be normalized: {}", utf8proc_errmsg(left));
        for (utf8proc_ssize_t i = 0; i < left; ++i)
            utf8_append(out, static_cast<uint32_t>(characters_[static_cast<size_t>(i)]));
    }

  private:
    void decompose(utf8proc_int32_t c) {
        std::array<utf8proc_int32_t, 8> parts{};  // at most 4 are needed
        int boundary = 0;
        const auto count = utf8proc_decompose_char(c, parts.data(), parts.size(), kCanonical, &boundary);
        if (count < 0 || count > static_cast<utf8proc_ssize_t>(parts.size()))
            fail(TSR_INTERNAL, "U+{:04X} cannot be decomposed", c);
        characters_.insert(characters_.end(), parts.begin(), parts.begin() + count);
    }

    static int rank(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

    // Marks in a row by their class, those of one class as they were.
    void sort_marks() {
        for (size_t begin = 0; begin < characters_.size();) {
            marks_.clear();
            size_t end = begin;
            for (; end < characters_.size(); ++end) {
                const int own = rank(characters_[end]);
                if (own == 0) break;
                marks_.emplace_back(own, characters_[end]);
            }
            const auto by_rank = [](const auto& mark) { return mark.first; };
            if (!std::ranges::is_sorted(marks_, {}, by_rank)) {
                std::ranges::stable_sort(marks_, {}, by_rank);
                std::ranges::transform(marks_, characters_.begin() + static_cast<std::ptrdiff_t>(begin),
                                       [](const auto& mark) { return mark.second; });
            }
            begin = end + 1;
        }
    }

    std::vector<utf8proc_int32_t> characters_;
    std::vector<std::pair<int, utf8proc_int32_t>> marks_;
};

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& buffer) {
    buffer.clear();
    Part part;
    size_t kept = 0;   // text before it is in `buffer`, if anything is
    size_t begin = 0;  // the last inert character, with which what follows may join
    const auto normalize = [&](size_t end) {
        buffer += text.substr(kept, begin - kept);
        part.normalize(text.substr(begin, end - begin), buffer);
        kept = end;
    };
    bool changes = false;  // whether a character since `begin` may change
    for (size_t at = 0; at < text.size();) {
        const auto byte = static_cast<uint8_t>(text[at]);
        const size_t length = byte < 0x80 ? 1 : utf8_step(text.substr(at)).length;
        if (byte < 0x80 || is_inert(utf8_decode(text.substr(at), length))) {
            if (changes) normalize(at);
            changes = false;
            begin = at;
        } else {
            changes = true;
        }
        at += length;
    }
    if (changes) normalize(text.size());
    if (kept == 0) return text;
    buffer += text.substr(kept);
    return buffer;
}

}  // namespace tessera::text
