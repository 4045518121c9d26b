// Letters in the other case, as Python's str has them.
#include "core/text/jinja/functions.hpp"
#include "core/text/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace tessera::text::jinja {
namespace {

// Those that become several letters (Unicode 14, SpecialCasing.txt).
struct Several {
    uint32_t code;
    std::string_view upper;
    std::string_view title;  // empty: one letter
};
constexpr std::array<Several, 102> kSeveral = {{
    // clang-format off
    {0xdf, "SS", "Ss"}, {0x149, "\u02bcN", "\u02bcN"}, {0x1f0, "J\u030c", "J\u030c"},
    {0x390, "\u0399\u0308\u0301", "\u0399\u0308\u0301"}, {0x3b0, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"}, {0x587, "\u0535\u0552", "\u0535\u0582"},
    {0x1e96, "H\u0331", "H\u0331"}, {0x1e97, "T\u0308", "T\u0308"}, {0x1e98, "W\u030a", "W\u030a"},
    {0x1e99, "Y\u030a", "Y\u030a"}, {0x1e9a, "A\u02be", "A\u02be"}, {0x1f50, "\u03a5\u0313", "\u03a5\u0313"},
    {0x1f52, "\u03a5\u0313\u0300", "\u03a5\u0313\u0300"}, {0x1f54, "\u03a5\u0313\u0301", "\u03a5\u0313\u0301"}, {0x1f56, "\u03a5\u0313\u0342", "\u03a5\u0313\u0342"},
    {0x1f80, "\u1f08\u0399", ""}, {0x1f81, "\u1f09\u0399", ""}, {0x1f82, "\u1f0a\u0399", ""},
    {0x1f83, "\u1f0b\u0399", ""}, {0x1f84, "\u1f0c\u0399", ""}, {0x1f85, "\u1f0d\u0399", ""},
    {0x1f86, "\u1f0e\u0399", ""}, {0x1f87, "\u1f0f\u0399", ""}, {0x1f88, "\u1f08\u0399", ""},
    {0x1f89, "\u1f09\u0399", ""}, {0x1f8a, "\u1f0a\u0399", ""}, {0x1f8b, "\u1f0b\u0399", ""},
    {0x1f8c, "\u1f0c\u0399", ""}, {0x1f8d, "\u1f0d\u0399", ""}, {0x1f8e, "\u1f0e\u0399", ""},
    {0x1f8f, "\u1f0f\u0399", ""}, {0x1f90, "\u1f28\u0399", ""}, {0x1f91, "\u1f29\u0399", ""},
    {0x1f92, "\u1f2a\u0399", ""}, {0x1f93, "\u1f2b\u0399", ""}, {0x1f94, "\u1f2c\u0399", ""},
    {0x1f95, "\u1f2d\u0399", ""}, {0x1f96, "\u1f2e\u0399", ""}, {0x1f97, "\u1f2f\u0399", ""},
    {0x1f98, "\u1f28\u0399", ""}, {0x1f99, "\u1f29\u0399", ""}, {0x1f9a, "\u1f2a\u0399", ""},
    {0x1f9b, "\u1f2b\u0399", ""}, {0x1f9c, "\u1f2c\u0399", ""}, {0x1f9d, "\u1f2d\u0399", ""},
    {0x1f9e, "\u1f2e\u0399", ""}, {0x1f9f, "\u1f2f\u0399", ""}, {0x1fa0, "\u1f68\u0399", ""},
    {0x1fa1, "\u1f69\u0399", ""}, {0x1fa2, "\u1f6a\u0399", ""}, {0x1fa3, "\u1f6b\u0399", ""},
    {0x1fa4, "\u1f6c\u0399", ""}, {0x1fa5, "\u1f6d\u0399", ""}, {0x1fa6, "\u1f6e\u0399", ""},
    {0x1fa7, "\u1f6f\u0399", ""}, {0x1fa8, "\u1f68\u0399", ""}, {0x1fa9, "\u1f69\u0399", ""},
    {0x1faa, "\u1f6a\u0399", ""}, {0x1fab, "\u1f6b\u0399", ""}, {0x1fac, "\u1f6c\u0399", ""},
    {0x1fad, "\u1f6d\u0399", ""}, {0x1fae, "\u1f6e\u0399", ""}, {0x1faf, "\u1f6f\u0399", ""},
    {0x1fb2, "\u1fba\u0399", "\u1fba\u0345"}, {0x1fb3, "\u0391\u0399", ""}, {0x1fb4, "\u0386\u0399", "\u0386\u0345"},
    {0x1fb6, "\u0391\u0342", "\u0391\u0342"}, {0x1fb7, "\u0391\u0342\u0399", "\u0391\u0342\u0345"}, {0x1fbc, "\u0391\u0399", ""},
    {0x1fc2, "\u1fca\u0399", "\u1fca\u0345"}, {0x1fc3, "\u0397\u0399", ""}, {0x1fc4, "\u0389\u0399", "\u0389\u0345"},
    {0x1fc6, "\u0397\u0342", "\u0397\u0342"}, {0x1fc7, "\u0397\u0342\u0399", "\u0397\u0342\u0345"}, {0x1fcc, "\u0397\u0399", ""},
    {0x1fd2, "\u0399\u0308\u0300", "\u0399\u0308\u0300"}, {0x1fd3, "\u0399\u0308\u0301", "\u0399\u0308\u0301"}, {0x1fd6, "\u0399\u0342", "\u0399\u0342"},
    {0x1fd7, "\u0399\u0308\u0342", "\u0399\u0308\u0342"}, {0x1fe2, "\u03a5\u0308\u0300", "\u03a5\u0308\u0300"}, {0x1fe3, "\u03a5\u0308\u0301", "\u03a5\u0308\u0301"},
    {0x1fe4, "\u03a1\u0313", "\u03a1\u0313"}, {0x1fe6, "\u03a5\u0342", "\u03a5\u0342"}, {0x1fe7, "\u03a5\u0308\u0342", "\u03a5\u0308\u0342"},
    {0x1ff2, "\u1ffa\u0399", "\u1ffa\u0345"}, {0x1ff3, "\u03a9\u0399", ""}, {0x1ff4, "\u038f\u0399", "\u038f\u0345"},
    {0x1ff6, "\u03a9\u0342", "\u03a9\u0342"}, {0x1ff7, "\u03a9\u0342\u0399", "\u03a9\u0342\u0345"}, {0x1ffc, "\u03a9\u0399", ""},
    {0xfb00, "FF", "Ff"}, {0xfb01, "FI", "Fi"}, {0xfb02, "FL", "Fl"},
    {0xfb03, "FFI", "Ffi"}, {0xfb04, "FFL", "Ffl"}, {0xfb05, "ST", "St"},
    {0xfb06, "ST", "St"}, {0xfb13, "\u0544\u0546", "\u0544\u0576"}, {0xfb14, "\u0544\u0535", "\u0544\u0565"},
    {0xfb15, "\u0544\u053b", "\u0544\u056b"}, {0xfb16, "\u054e\u0546", "\u054e\u0576"}, {0xfb17, "\u0544\u053d", "\u0544\u056d"}
    // clang-format on
}};

const Several* several(uint32_t code) {
    const auto found = std::ranges::lower_bound(kSeveral, code, {}, &Several::code);
    return found != kSeveral.end() && found->code == code ? &*found : nullptr;
}

enum class Case : uint8_t { kUpper, kLower, kTitle };

bool is_cased(uint32_t code) {
    const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
    return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}
// What stands beside letters without parting them: marks, modifiers, and some punctuation.
bool is_ignored(uint32_t code) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_CF:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_SK:
            return true;
        default:
            return code == '\'' || code == '.' || code == ':' || code == 0xB7 || code == 0x2019;
    }
}

struct Letter {
    uint32_t code = 0;
    size_t length = 1;
    bool valid = false;
};
Letter letter_at(std::string_view text, size_t at) {
    const Utf8Step step = utf8_step(text.substr(at));
    if (step.kind != Utf8Kind::kValid) return {static_cast<uint8_t>(text[at]), 1, false};
    return {utf8_decode(text.substr(at), step.length), step.length, true};
}

// Greek has another small sigma at the end of a word.
bool ends_word(std::string_view text, size_t at, size_t length) {
    bool before = false;
    for (size_t i = at; i > 0;) {
        do --i;
        while (i > 0 && (static_cast<uint8_t>(text[i]) & 0xC0) == 0x80);
        const Letter letter = letter_at(text, i);
        if (is_ignored(letter.code)) continue;
        before = is_cased(letter.code);
        break;
    }
    if (!before) return false;
    for (size_t i = at + length; i < text.size();) {
        const Letter letter = letter_at(text, i);
        i += letter.length;
        if (!is_ignored(letter.code)) return !is_cased(letter.code);
    }
    return true;
}

void append(std::string& out, std::string_view text, size_t at, const Letter& letter, Case wanted) {
    if (!letter.valid) {
        out += text[at];
        return;
    }
    const auto code = static_cast<utf8proc_int32_t>(letter.code);
    if (wanted == Case::kLower) {
        if (letter.code == 0x130) {
            out += "i\u0307";
        } else if (letter.code == 0x3A3) {
            utf8_append(out, ends_word(text, at, letter.length) ? 0x3C2 : 0x3C3);
        } else {
            utf8_append(out, static_cast<uint32_t>(utf8proc_tolower(code)));
        }
        return;
    }
    if (const Several* found = several(letter.code)) {
        const std::string_view letters = wanted == Case::kUpper ? found->upper : found->title;
        if (!letters.empty()) {
            out += letters;
            return;
        }
    }
    utf8_append(out, static_cast<uint32_t>(wanted == Case::kUpper ? utf8proc_toupper(code) : utf8proc_totitle(code)));
}

// case_of(Letter, first): the case of each letter, in order.
template <typename CaseOf>
Text mapped(const Text& text, Budget& budget, const CaseOf& case_of) {
    const std::string_view all = text.view();
    budget.text(all.size());
    budget.step(all.size() / 16);
    Marked made;
    std::string one;
    for (size_t at = 0; at < all.size();) {
        const Letter letter = letter_at(all, at);
        one.clear();
        append(one, all, at, letter, case_of(letter, at));
        made.add(one, text.is_content(at));
        at += letter.length;
    }
    budget.bytes(made.bytes.size());
    Text out(std::move(made));
    out.markup = text.markup;
    return out;
}

std::string mapped(std::string_view text, Case wanted) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
        const Letter letter = letter_at(text, at);
        append(out, text, at, letter, wanted);
        at += letter.length;
    }
    return out;
}

}  // namespace

std::string upper(std::string_view text) {
    return mapped(text, Case::kUpper);
}
std::string lower(std::string_view text) {
    return mapped(text, Case::kLower);
}

Text with_case(const Text& text, bool upper, Budget& budget) {
    return mapped(text, budget, [&](const Letter&, size_t) { return upper ? Case::kUpper : Case::kLower; });
}

Text capitalized(const Text& text, Budget& budget) {
    return mapped(text, budget, [](const Letter&, size_t at) { return at == 0 ? Case::kTitle : Case::kLower; });
}

Text titled(const Text& text, Budget& budget) {
    bool inside = false;
    return mapped(text, budget, [&](const Letter& letter, size_t) {
        const bool was = std::exchange(inside, is_cased(letter.code));
        return was ? Case::kLower : Case::kTitle;
    });
}

Text titled_words(const Text& text, Budget& budget) {
    bool inside = false;
    return mapped(text, budget, [&](const Letter& letter, size_t) {
        const bool parts = letter.code == '-' || letter.code == '(' || letter.code == '{' || letter.code == '[' ||
                           letter.code == '<' || is_space(letter.code);
        const bool first = !std::exchange(inside, !parts);
        return first ? Case::kUpper : Case::kLower;
    });
}

Text swapped(const Text& text, Budget& budget) {
    return mapped(text, budget, [](const Letter& letter, size_t) {
        const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(letter.code));
        return category == UTF8PROC_CATEGORY_LL ? Case::kUpper : Case::kLower;
    });
}

}  // namespace tessera::text::jinja
