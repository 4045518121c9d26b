// Methods of texts.
#include "core/base/error.hpp"
#include "core/text/jinja/functions.hpp"
#include "core/text/python_text.hpp"
#include "core/text/utf8.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace tessera::text::jinja {
namespace {

// Like the text that it is made of.
Text like(const Text& text, Marked made) {
    Text out(std::move(made));
    out.markup = text.markup;
    return out;
}

// Places of `from` in `text`, from the left; for an empty one, before each character and at the end.
template <typename At>
void for_each_match(std::string_view text, std::string_view from, int64_t most, const At& at) {
    size_t place = 0;
    for (int64_t count = 0; most < 0 || count < most; ++count) {
        if (from.empty()) {
            at(place);
            if (place == text.size()) return;
            place += character_place(text.substr(place), 1);
        } else {
            const size_t hit = text.find(from, place);
            if (hit == text.npos) return;
            at(hit);
            place = hit + from.size();
        }
    }
}

Value split(const Text& text, const std::optional<Text>& separator, int64_t most, bool right, Budget& budget) {
    std::vector<Value> parts;
    std::string_view rest = text.view();
    budget.scan(rest, separator ? separator->view() : std::string_view());
    budget.container(0);
    const auto add = [&](std::string_view part) {
        budget.items(1);
        parts.emplace_back(text.part(part));
    };
    const auto more = [&] { return most < 0 || parts.size() < static_cast<size_t>(most); };
    if (separator) {
        const std::string_view mark = separator->view();
        if (mark.empty()) fail(TSR_UNSUPPORTED, "a split at an empty text");
        while (more()) {
            const size_t hit = right ? rest.rfind(mark) : rest.find(mark);
            if (hit == rest.npos) break;
            add(right ? rest.substr(hit + mark.size()) : rest.substr(0, hit));
            rest = right ? rest.substr(0, hit) : rest.substr(hit + mark.size());
        }
        add(rest);
    } else {
        // At white space; what is left in the end keeps that at its other side.
        rest = python_strip(rest, !right, right);
        while (!rest.empty() && more()) {
            size_t begin = rest.size(), end = rest.size();  // of the space
            for (size_t at = 0, in_space = 0; at < rest.size();) {
                const size_t length = character_place(rest.substr(at), 1);
                const bool space = python_strip(rest.substr(at, length), true, false).empty();
                if (space && in_space == 0) begin = at;
                if (!space && in_space > 0) {
                    end = at;
                    if (!right) break;
                }
                in_space = space ? in_space + 1 : 0;
                at += length;
            }
            budget.step(rest.size() / 16);
            if (right && python_strip(rest.substr(begin, end - begin), true, false).empty() && begin < rest.size()) {
                add(rest.substr(end));
                rest = python_strip(rest.substr(0, begin), false, true);
            } else if (!right && begin < rest.size()) {
                add(rest.substr(0, begin));
                rest = python_strip(rest.substr(begin), true, false);
            } else {
                add(rest);
                rest = {};
            }
        }
        if (!rest.empty()) add(rest);
    }
    if (right) std::ranges::reverse(parts);
    return Value::list(std::move(parts));
}

bool is_alphabetic(uint32_t code) {
    switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
            return true;
        default:
            return false;
    }
}

bool all_of(std::string_view text, bool (*property)(uint32_t)) {
    if (text.empty()) return false;
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        if (step.kind != Utf8Kind::kValid || !property(utf8_decode(text, step.length))) return false;
        text.remove_prefix(step.length);
    }
    return true;
}

// isupper() or islower(): it has letters with a case, and all of them are of this one.
bool is_of_case(std::string_view text, utf8proc_category_t wanted) {
    bool any = false;
    while (!text.empty()) {
        const Utf8Step step = utf8_step(text);
        if (step.kind == Utf8Kind::kValid) {
            const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(utf8_decode(text, step.length)));
            const bool cased = category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
                               category == UTF8PROC_CATEGORY_LT;
            if (cased && category != wanted) return false;
            any |= cased;
        }
        text.remove_prefix(step.length);
    }
    return any;
}

bool is_digit_of_text(uint32_t code) {
    return utf8proc_category(static_cast<utf8proc_int32_t>(code)) == UTF8PROC_CATEGORY_ND;
}
bool is_alphanumeric(uint32_t code) {
    return is_alphabetic(code) || is_digit_of_text(code);
}
bool is_ascii(uint32_t code) {
    return code < 0x80;
}

// The part of the text that start and end of a method say; characters.
std::string_view range_of(const Text& text, Arguments& arguments, Budget& budget) {
    const auto begin = arguments.take_integer(1, ""), end = arguments.take_integer(2, "");
    if (!begin && !end) return text.view();
    const auto bound = [](std::optional<int64_t> at) { return at ? Value(*at) : Value::none(); };
    const Value part = slice_of(text, bound(begin), bound(end), Value::none(), budget);
    return part.view();
}

Value affix(std::string_view name, const Text& text, Arguments& arguments, Budget& budget) {
    const bool start = name == "startswith";
    const Value given = arguments.take(0, "");
    const std::string_view view = range_of(text, arguments, budget);
    arguments.finish();
    const auto fits = [&](const Value& part) {
        if (!part.is_text()) refuse(name, part);
        return start ? view.starts_with(part.view()) : view.ends_with(part.view());
    };
    if (const List* list = given.list(); list && list->is_tuple()) return std::ranges::any_of(list->items, fits);
    return fits(given);
}

Value found(std::string_view name, const Text& text, Arguments& arguments, Budget& budget) {
    const auto part = arguments.take_text(0, "");
    const std::string_view view = range_of(text, arguments, budget);
    arguments.finish();
    if (!part) fail(TSR_UNSUPPORTED, "{} without a text", name);
    budget.scan(view, part->view());
    if (name == "count") {
        int64_t count = 0;
        for_each_match(view, part->view(), -1, [&](size_t) { ++count; });
        return count;
    }
    const size_t at = name.starts_with('r') ? view.rfind(part->view()) : view.find(part->view());
    if (at == view.npos) {
        if (name.ends_with("index")) fail(TSR_UNSUPPORTED, "{} of a text that is not there", name);
        return int64_t{-1};
    }
    const auto before = static_cast<size_t>(view.data() - text.view().data()) + at;
    return static_cast<int64_t>(character_count(text.view().substr(0, before)));
}

Value partitioned(const Text& text, Arguments& arguments, bool right, Budget& budget) {
    const auto mark = arguments.take_text(0, "");
    arguments.finish();
    if (!mark || mark->size() == 0) fail(TSR_UNSUPPORTED, "partition at an empty text");
    const std::string_view view = text.view();
    budget.scan(view, mark->view());
    budget.container(3);
    const size_t at = right ? view.rfind(mark->view()) : view.find(mark->view());
    std::vector<Value> parts;
    if (at == view.npos) {
        parts = right ? std::vector<Value>{Text(), Text(), text} : std::vector<Value>{text, Text(), Text()};
    } else {
        parts = {text.part(view.substr(0, at)), text.part(view.substr(at, mark->size())),
                 text.part(view.substr(at + mark->size()))};
    }
    return Value::list(std::move(parts), List::Kind::kTuple);
}

Value joined(const Text& separator, const Value& list, Budget& budget) {
    Marked made;
    bool first = true;
    for (const Value& item : items_of(list, budget)) {
        if (!item.is_text()) refuse("join", item);
        budget.bytes(item.view().size() + separator.size());
        if (!std::exchange(first, false)) made.add(separator);
        const Text& text = *item.get<Text>();
        made.add(separator.markup && !text.markup ? escaped(text, budget) : text);
    }
    return like(separator, std::move(made));
}

Text expanded(const Text& text, int64_t size, Budget& budget) {
    Marked made;
    int64_t column = 0;
    budget.text(text.size());
    for (std::string_view rest = text.view(); !rest.empty();) {
        const size_t length = character_place(rest, 1);
        const bool content = text.is_content(static_cast<size_t>(rest.data() - text.view().data()));
        if (rest.front() == '\t') {
            const int64_t blanks = size > 0 ? size - column % size : 0;
            budget.bytes(static_cast<uint64_t>(blanks));
            made.add(std::string(static_cast<size_t>(blanks), ' '), content);
            column += blanks;
        } else {
            made.add(rest.substr(0, length), content);
            column = rest.front() == '\n' || rest.front() == '\r' ? 0 : column + 1;
        }
        rest.remove_prefix(length);
    }
    return like(text, std::move(made));
}

constexpr std::array<std::string_view, 42> kMethods = {
    "capitalize", "casefold",  "center",     "count",        "endswith",     "expandtabs", "find",
    "format",     "index",     "isalnum",    "isalpha",      "isascii",      "isdecimal",  "isdigit",
    "islower",    "isnumeric", "isspace",    "istitle",      "isupper",      "join",       "ljust",
    "lower",      "lstrip",    "partition",  "removeprefix", "removesuffix", "replace",    "rfind",
    "rindex",     "rjust",     "rpartition", "rsplit",       "rstrip",       "split",      "splitlines",
    "startswith", "strip",     "swapcase",   "title",        "upper",        "zfill",      "isprintable"};

}  // namespace

bool is_space(uint32_t code) {
    std::string one;
    utf8_append(one, code);
    return python_strip(one, true, false).empty();
}

bool is_text_method(std::string_view name) {
    return std::ranges::find(kMethods, name) != kMethods.end() || name == "encode" || name == "translate" ||
           name == "format_map" || name == "maketrans" || name == "isidentifier";
}

Text replaced(const Text& text, const Text& from, const Text& to, int64_t most, Budget& budget) {
    budget.scan(text.view(), from.view());
    budget.text(text.size());
    const bool escapes = text.markup;
    const Text mark = escapes && !from.markup ? escaped(from, budget) : from;
    const Text other = escapes && !to.markup ? escaped(to, budget) : to;
    Marked made;
    size_t at = 0;
    const std::string_view view = text.view();
    for_each_match(view, mark.view(), most, [&](size_t hit) {
        budget.step();
        budget.bytes(other.size());
        made.add(text.part(view.substr(at, hit - at)));
        made.add(other);
        at = hit + mark.size();
    });
    made.add(text.part(view.substr(at)));
    return like(text, std::move(made));
}

Text padded(const Text& text, int64_t width, char where, std::string_view fill, Budget& budget) {
    const auto length = static_cast<int64_t>(character_count(text.view()));
    if (width <= length) return text;
    const int64_t blanks = width - length;
    // As str.center() rounds.
    const int64_t left = where == '<' ? 0 : where == '>' ? blanks : blanks / 2 + (blanks & width & 1);
    budget.text(text.size());
    budget.bytes(static_cast<uint64_t>(blanks));
    budget.bytes(static_cast<uint64_t>(blanks) * (fill.size() - 1));
    Marked made;
    for (int64_t i = 0; i < left; ++i) made.own(fill);
    made.add(text);
    for (int64_t i = left; i < blanks; ++i) made.own(fill);
    return like(text, std::move(made));
}

std::vector<Value> split_lines(const Text& text, bool keep_ends, Budget& budget) {
    std::vector<Value> lines;
    const std::string_view view = text.view();
    budget.scan(view);
    size_t begin = 0;
    for (size_t at = 0; at < view.size();) {
        const size_t length = character_place(view.substr(at), 1);
        const std::string_view character = view.substr(at, length);
        const uint32_t code = utf8_decode(character, length);
        size_t end = at + length;
        if (character == "\r" && view.substr(end).starts_with('\n')) ++end;
        const bool breaks = (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) ||
                            (length > 1 && (code == 0x85 || code == 0x2028 || code == 0x2029));
        if (breaks) {
            budget.items(1);
            lines.emplace_back(text.part(view.substr(begin, (keep_ends ? end : at) - begin)));
            begin = end;
        }
        at = breaks ? end : at + length;
    }
    if (begin < view.size()) lines.emplace_back(text.part(view.substr(begin)));
    budget.container(lines.size());
    return lines;
}

Value call_text_method(std::string_view name, const Text& text, Arguments& arguments, Budget& budget) {
    const std::string_view view = text.view();
    budget.scan(view);
    if (name == "strip" || name == "lstrip" || name == "rstrip") {
        const auto characters = arguments.take_text(0, "");
        arguments.finish();
        if (characters) budget.scan(view, characters->view());
        return text.part(python_strip(view, name != "rstrip", name != "lstrip",
                                      characters ? std::optional(characters->view()) : std::nullopt));
    }
    if (name == "split" || name == "rsplit") {
        const auto separator = arguments.take_text(0, "sep");
        const int64_t most = arguments.take_integer(1, "maxsplit").value_or(-1);
        arguments.finish();
        return split(text, separator, most, name == "rsplit", budget);
    }
    if (name == "startswith" || name == "endswith") return affix(name, text, arguments, budget);
    if (name == "find" || name == "rfind" || name == "index" || name == "rindex" || name == "count")
        return found(name, text, arguments, budget);
    if (name == "partition" || name == "rpartition") return partitioned(text, arguments, name.front() == 'r', budget);
    if (name == "replace") {
        const auto from = arguments.take_text(0, ""), to = arguments.take_text(1, "");
        const int64_t most = arguments.take_integer(2, "count").value_or(-1);
        arguments.finish();
        if (!from || !to) fail(TSR_UNSUPPORTED, "replace without two texts");
        return replaced(text, *from, *to, most, budget);
    }
    if (name == "join") {
        const Value list = arguments.take(0, "");
        arguments.finish();
        return joined(text, list, budget);
    }
    if (name == "format") return formatted(text, arguments, budget);
    if (name == "removeprefix" || name == "removesuffix") {
        const auto part = arguments.take_text(0, "");
        arguments.finish();
        if (!part) fail(TSR_UNSUPPORTED, "{} without a text", name);
        if (name == "removeprefix") return view.starts_with(part->view()) ? text.part(view.substr(part->size())) : text;
        return view.ends_with(part->view()) ? text.part(view.substr(0, view.size() - part->size())) : text;
    }
    if (name == "center" || name == "ljust" || name == "rjust") {
        const auto width = arguments.take_integer(0, "");
        const auto fill = arguments.take_text(1, "");
        arguments.finish();
        if (!width || (fill && character_count(fill->view()) != 1))
            fail(TSR_UNSUPPORTED, "{} needs a width and at most one character", name);
        return padded(text, *width,
                      name == "center"  ? '^'
                      : name == "ljust" ? '<'
                                        : '>',
                      fill ? fill->view() : " ", budget);
    }
    if (name == "zfill") {
        const auto width = arguments.take_integer(0, "");
        arguments.finish();
        if (!width) fail(TSR_UNSUPPORTED, "zfill without a width");
        const bool sign = view.starts_with('-') || view.starts_with('+');
        const Text digits = text.part(view.substr(sign ? 1 : 0));
        Text made = text.part(view.substr(0, sign ? 1 : 0));
        budget.bytes(made.append(padded(digits, *width - (sign ? 1 : 0), '>', "0", budget)));
        return made;
    }
    if (name == "splitlines") {
        const bool keep = arguments.take_truth(0, "keepends");
        arguments.finish();
        return Value::list(split_lines(text, keep, budget));
    }
    if (name == "expandtabs") {
        const int64_t size = arguments.take_integer(0, "tabsize").value_or(8);
        arguments.finish();
        return expanded(text, size, budget);
    }
    arguments.finish();
    if (name == "upper" || name == "lower") return with_case(text, name == "upper", budget);
    if (name == "capitalize") return capitalized(text, budget);
    if (name == "title") return titled(text, budget);
    if (name == "swapcase") return swapped(text, budget);
    if (name == "isspace") return all_of(view, is_space);
    if (name == "isalpha") return all_of(view, is_alphabetic);
    if (name == "isalnum") return all_of(view, is_alphanumeric);
    if (name == "isdigit" || name == "isdecimal" || name == "isnumeric") {
        if (name != "isdecimal" && !all_of(view, is_ascii) && !view.empty())
            fail(TSR_UNSUPPORTED, "{} of other characters than ASCII", name);
        return all_of(view, is_digit_of_text);
    }
    if (name == "isascii") return view.empty() || all_of(view, is_ascii);
    if (name == "isupper") return is_of_case(view, UTF8PROC_CATEGORY_LU);
    if (name == "islower") return is_of_case(view, UTF8PROC_CATEGORY_LL);
    if (name == "istitle") return titled(text, budget).view() == view && lower(view) != upper(view);
    fail(TSR_UNSUPPORTED, "the method '{}' of texts is not known here", name);
}

}  // namespace tessera::text::jinja
