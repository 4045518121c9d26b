// Filters of Jinja.
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/jinja/functions.hpp"
#include "core/text/python_text.hpp"
#include "core/text/utf8.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iterator>

namespace tessera::text::jinja {
namespace {

using Filter = Value (*)(const Value&, Arguments&, Budget&);

Text soft_text(const Value& value, Budget& budget) {
    return written(value, budget);
}

// A member by a path with dots, of which parts may be numbers.
Value by_path(const Value& value, const Value& path, Budget& budget) {
    if (path.get<int64_t>()) return item_of(value, path, nullptr, budget);
    if (!path.is_text()) refuse("an attribute's name", path);
    Value found = value;
    for (std::string_view rest = path.view();;) {
        const size_t dot = rest.find('.');
        const std::string_view part = rest.substr(0, dot);
        int64_t number = 0;
        const auto read = std::from_chars(part.data(), part.data() + part.size(), number);
        const bool is_number =
            !part.empty() && read.ec == std::errc() && read.ptr == part.data() + part.size() && part.front() != '-';
        found = item_of(found, is_number ? Value(number) : Value::text(part), nullptr, budget);
        if (dot == std::string_view::npos) return found;
        rest.remove_prefix(dot + 1);
    }
}

Value without_case(const Value& value, Budget& budget) {
    return value.is_text() ? Value(with_case(*value.get<Text>(), false, budget)) : value;
}

// What sort, unique, min, max and groupby compare: a member, without case unless it matters.
class Key {
  public:
    Key(const Value& attribute, bool case_sensitive, Budget& budget)
        : attribute_(attribute), case_sensitive_(case_sensitive), budget_(budget) {}
    Value operator()(const Value& item) const {
        const bool whole = attribute_.is_undefined() || attribute_.is_none();
        const Value found = whole ? item : by_path(item, attribute_, budget_);
        return case_sensitive_ ? found : without_case(found, budget_);
    }

  private:
    const Value attribute_;
    const bool case_sensitive_;
    Budget& budget_;
};

// Stable, as Python's sorted(); order(i, j) of items by number: whether i is less.
template <typename Less>
std::vector<Value> sorted(std::vector<Value> items, const Less& less, bool reverse, Budget& budget) {
    std::vector<size_t> order(items.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    budget.items(items.size());
    const auto by = [&](size_t one, size_t other) {
        budget.step();
        return reverse ? less(other, one) : less(one, other);
    };
    std::ranges::stable_sort(order, by);
    std::vector<Value> made;
    for (const size_t i : order) made.push_back(items[i]);
    return made;
}

std::vector<Value> keys_of(const std::vector<Value>& items, const Key& key) {
    std::vector<Value> keys;
    for (const Value& item : items) keys.push_back(key(item));
    return keys;
}

Value filter_sort(const Value& value, Arguments& arguments, Budget& budget) {
    const bool reverse = arguments.take_truth(0, "reverse"), exact = arguments.take_truth(1, "case_sensitive");
    const Value attribute = arguments.take(2, "attribute");
    arguments.finish();
    std::vector<Value> items = items_of(value, budget);
    std::vector<std::vector<Value>> keys;
    if (attribute.is_text()) {
        for (std::string_view rest = attribute.view();;) {
            const size_t comma = rest.find(',');
            keys.push_back(keys_of(items, Key(Value::text(rest.substr(0, comma)), exact, budget)));
            if (comma == rest.npos) break;
            rest.remove_prefix(comma + 1);
        }
    } else {
        keys.push_back(keys_of(items, Key(attribute, exact, budget)));
    }
    const auto less = [&](size_t one, size_t other) {
        for (const auto& key : keys)
            if (const auto order = compare(key[one], key[other]); order != 0) return order < 0;
        return false;
    };
    budget.container(0);
    return Value::list(sorted(std::move(items), less, reverse, budget));
}

Value filter_dictsort(const Value& value, Arguments& arguments, Budget& budget) {
    const bool exact = arguments.take_truth(0, "case_sensitive");
    const auto by = arguments.take_text(1, "by");
    const bool reverse = arguments.take_truth(2, "reverse");
    arguments.finish();
    const Dictionary* dictionary = value.dictionary();
    if (!dictionary) refuse("dictsort", value);
    if (by && by->view() != "key" && by->view() != "value") fail(TSR_UNSUPPORTED, "dictsort by neither key nor value");
    const bool by_value = by && by->view() == "value";
    std::vector<Value> items, keys;
    for (const auto& [key, member] : dictionary->members) {
        budget.container(2);
        items.push_back(Value::list({key, member}, List::Kind::kTuple));
        const Value& one = by_value ? member : key;
        keys.push_back(exact ? one : without_case(one, budget));
    }
    const auto less = [&](size_t one, size_t other) { return compare(keys[one], keys[other]) < 0; };
    return Value::list(sorted(std::move(items), less, reverse, budget));
}

Value filter_unique(const Value& value, Arguments& arguments, Budget& budget) {
    const bool exact = arguments.take_truth(0, "case_sensitive");
    const Key key(arguments.take(1, "attribute"), exact, budget);
    arguments.finish();
    std::vector<Value> kept, seen;
    for (Value& item : items_of(value, budget)) {
        Value one = key(item);
        if (!one.is_plain() && !(one.list() && one.list()->is_tuple())) refuse("unique", one);
        budget.step(seen.size());
        if (std::ranges::any_of(seen, [&](const Value& other) { return are_equal(one, other); })) continue;
        seen.push_back(std::move(one));
        kept.push_back(std::move(item));
    }
    budget.container(kept.size());
    return Value::iterator(std::move(kept));
}

Value extreme(const Value& value, Arguments& arguments, Budget& budget, bool largest) {
    const bool exact = arguments.take_truth(0, "case_sensitive");
    const Key key(arguments.take(1, "attribute"), exact, budget);
    arguments.finish();
    const std::vector<Value> items = items_of(value, budget);
    if (items.empty()) return {};
    size_t best = 0;
    Value kept = key(items[0]);
    for (size_t i = 1; i < items.size(); ++i) {
        Value one = key(items[i]);
        if (largest ? compare(one, kept) > 0 : compare(one, kept) < 0) {
            kept = std::move(one);
            best = i;
        }
    }
    return items[best];
}

Value filter_groupby(const Value& value, Arguments& arguments, Budget& budget) {
    const Value attribute = arguments.take(0, "attribute");
    const Value fallback = arguments.take(1, "default");
    const bool exact = arguments.take_truth(2, "case_sensitive");
    arguments.finish();
    std::vector<Value> items = items_of(value, budget), real, keys;
    for (const Value& item : items) {
        Value found = by_path(item, attribute, budget);
        if (found.is_undefined() && !fallback.is_undefined() && !fallback.is_none()) found = fallback;
        keys.push_back(exact ? found : without_case(found, budget));
        real.push_back(std::move(found));
    }
    std::vector<Value> numbers;
    for (size_t i = 0; i < items.size(); ++i) numbers.emplace_back(static_cast<int64_t>(i));
    const auto less = [&](size_t one, size_t other) { return compare(keys[one], keys[other]) < 0; };
    std::vector<Value> groups, group;
    size_t first = 0;
    const auto close = [&] {
        if (group.empty()) return;
        budget.container(group.size() + 2);
        groups.push_back(Value::list({real[first], Value::list(std::exchange(group, {}))}, List::Kind::kGroup));
    };
    for (const Value& number : sorted(std::move(numbers), less, false, budget)) {
        const auto i = static_cast<size_t>(number.integer());
        if (!group.empty() && !are_equal(keys[first], keys[i])) close();
        if (group.empty()) first = i;
        group.push_back(items[i]);
    }
    close();
    return Value::list(std::move(groups));
}

Value filter_sum(const Value& value, Arguments& arguments, Budget& budget) {
    const Value attribute = arguments.take(0, "attribute");
    Value sum = arguments.take(1, "start");
    arguments.finish();
    if (sum.is_undefined()) sum = int64_t{0};
    if (sum.is_text()) refuse("sum", sum);
    for (const Value& item : items_of(value, budget)) {
        const bool whole = attribute.is_undefined() || attribute.is_none();
        sum = calculate(Arithmetic::kAdd, std::move(sum), whole ? item : by_path(item, attribute, budget), budget);
    }
    return sum;
}

Value filter_join(const Value& value, Arguments& arguments, Budget& budget) {
    const Value separator = arguments.take(0, "d");
    const Value attribute = arguments.take(1, "attribute");
    arguments.finish();
    const Text between = separator.is_undefined() ? Text() : soft_text(separator, budget);
    Marked made;
    bool first = true;
    for (const Value& item : items_of(value, budget)) {
        const bool whole = attribute.is_undefined() || attribute.is_none();
        const Text one = soft_text(whole ? item : by_path(item, attribute, budget), budget);
        budget.bytes(one.size() + between.size());
        if (!std::exchange(first, false)) made.add(between);
        made.add(one);
    }
    return Text(std::move(made));
}

Value filter_replace(const Value& value, Arguments& arguments, Budget& budget) {
    const Value from = arguments.take(0, "old"), to = arguments.take(1, "new");
    const int64_t most = arguments.take_integer(2, "count").value_or(-1);
    arguments.finish();
    if (from.is_undefined() || to.is_undefined()) fail(TSR_UNSUPPORTED, "replace without two texts");
    const auto plain = [&](const Value& one) {
        Text text = soft_text(one, budget);
        text.markup = false;
        return text;
    };
    return replaced(plain(value), plain(from), plain(to), most, budget);
}

Value filter_default(const Value& value, Arguments& arguments, Budget&) {
    Value fallback = arguments.take(0, "default_value");
    const bool given = arguments.has(0, "default_value");
    const bool also_false = arguments.take_truth(1, "boolean");
    arguments.finish();
    if (!given) fallback = Text();
    return value.is_undefined() || (also_false && !value.truth()) ? fallback : value;
}

Value filter_tojson(const Value& value, Arguments& arguments, Budget& budget) {
    JsonStyle style;
    style.ascii = arguments.take_truth(0, "ensure_ascii");
    const Value indent = arguments.take(1, "indent"), separators = arguments.take(2, "separators");
    style.sorted = arguments.take_truth(3, "sort_keys");
    arguments.finish();
    if (indent.is_text()) {
        style.indent = *indent.get<Text>();
    } else if (indent.is_integer()) {
        constexpr int64_t kWidest = 1000;
        if (indent.integer() > kWidest) fail(TSR_UNSUPPORTED, "tojson with an indent wider than {}", kWidest);
        style.indent = Text(std::string(static_cast<size_t>(std::max<int64_t>(indent.integer(), 0)), ' '));
    } else if (!indent.is_undefined() && !indent.is_none()) {
        refuse("an indent", indent);
    }
    if (style.indent) style.separator = Text(std::string(","));
    if (const List* pair = separators.list();
        pair && pair->items.size() == 2 && pair->items[0].is_text() && pair->items[1].is_text()) {
        style.separator = *pair->items[0].get<Text>();
        style.colon = *pair->items[1].get<Text>();
    } else if (!separators.is_undefined() && !separators.is_none()) {
        refuse("separators", separators);
    }
    return json_of(value, style, budget);
}

Value filter_trim(const Value& value, Arguments& arguments, Budget& budget) {
    const auto characters = arguments.take_text(0, "chars");
    arguments.finish();
    const Text text = soft_text(value, budget);
    budget.scan(text.view(), characters ? characters->view() : std::string_view());
    return text.part(
        python_strip(text.view(), true, true, characters ? std::optional(characters->view()) : std::nullopt));
}

// The items for which a test holds, by default that of truth; or by a member of theirs.
Value selected(const Value& value, bool wanted, bool by_attribute, Arguments& arguments, Budget& budget) {
    const size_t first = by_attribute ? 1 : 0;
    const Value attribute = by_attribute ? arguments.take(0, "") : Value();
    if (by_attribute && attribute.is_undefined() && value.truth()) fail(TSR_UNSUPPORTED, "selectattr without a name");
    const auto test = arguments.take_text(first, "");
    Arguments others;
    for (size_t i = first + 1; i < arguments.positional.size(); ++i) others.positional.push_back(arguments.take(i, ""));
    for (const auto& [name, one] : arguments.named)
        others.named.emplace_back(name, arguments.take(Arguments::kNamedOnly, name));
    arguments.finish();
    std::vector<Value> kept;
    if (value.truth()) {
        for (Value& item : items_of(value, budget)) {
            const Value tested = by_attribute ? by_path(item, attribute, budget) : item;
            Arguments own = others;
            if ((test ? call_test(test->view(), tested, own, budget) : tested.truth()) == wanted)
                kept.push_back(std::move(item));
        }
    }
    budget.container(kept.size());
    return Value::iterator(std::move(kept));
}

// A member of each item, or each item through a filter.
Value filter_map(const Value& value, Arguments& arguments, Budget& budget) {
    std::vector<Value> made;
    if (arguments.positional.empty()) {
        const Value attribute = arguments.take(Arguments::kNamedOnly, "attribute");
        const Value fallback = arguments.take(Arguments::kNamedOnly, "default");
        arguments.finish();
        if (attribute.is_undefined()) fail(TSR_UNSUPPORTED, "map without a filter");
        if (value.truth()) {
            for (const Value& item : items_of(value, budget)) {
                Value found = by_path(item, attribute, budget);
                const bool missing = found.is_undefined() && !fallback.is_undefined() && !fallback.is_none();
                made.push_back(missing ? fallback : std::move(found));
            }
        }
    } else {
        const auto filter = arguments.take_text(0, "");
        if (!filter) fail(TSR_UNSUPPORTED, "map without a filter");
        Arguments others;
        for (size_t i = 1; i < arguments.positional.size(); ++i) others.positional.push_back(arguments.take(i, ""));
        for (const auto& [name, one] : arguments.named)
            others.named.emplace_back(name, arguments.take(Arguments::kNamedOnly, name));
        if (value.truth()) {
            for (const Value& item : items_of(value, budget)) {
                Arguments own = others;
                made.push_back(call_filter(filter->view(), item, own, budget));
            }
        }
    }
    budget.container(made.size());
    return Value::iterator(std::move(made));
}

Value filter_indent(const Value& value, Arguments& arguments, Budget& budget) {
    const Value width = arguments.take(0, "width");
    const bool first = arguments.take_truth(1, "first"), blank = arguments.take_truth(2, "blank");
    arguments.finish();
    if (!value.is_text()) refuse("indent", value);
    constexpr int64_t kWidest = 1000;
    Text by;
    if (width.is_text()) {
        by = *width.get<Text>();
    } else if (width.is_undefined() || width.get<int64_t>()) {
        const int64_t blanks = width.is_undefined() ? 4 : width.integer();
        if (blanks > kWidest) fail(TSR_UNSUPPORTED, "an indent wider than {}", kWidest);
        by = Text(std::string(static_cast<size_t>(std::max<int64_t>(blanks, 0)), ' '));
    } else {
        refuse("an indent", width);
    }
    // Python adds a line break and splits at them.
    const std::vector<Value> lines = split_lines(*value.get<Text>(), false, budget);
    const bool broken = !value.view().empty() && !split_lines(*value.get<Text>(), true, budget).empty() &&
                        split_lines(*value.get<Text>(), true, budget).back().view() != lines.back().view();
    Marked made;
    const size_t count = lines.size() + (lines.empty() || broken ? 1 : 0);
    for (size_t i = 0; i < count; ++i) {
        const Text line = i < lines.size() ? *lines[i].get<Text>() : Text();
        if (i > 0) made.own("\n");
        budget.bytes(line.size() + by.size() + 1);
        if (i == 0 ? first : blank || line.size() > 0) made.add(by);
        made.add(line);
    }
    return Text(std::move(made));
}

Value filter_int(const Value& value, Arguments& arguments, Budget& budget) {
    Value fallback = arguments.take(0, "default");
    const int64_t base = arguments.take_integer(1, "base").value_or(10);
    arguments.finish();
    if (fallback.is_undefined()) fallback = int64_t{0};
    if (value.get<BigInteger>()) return value;
    if (value.is_integer()) return value.integer();
    const auto whole = [&](double number) -> Value {
        if (!std::isfinite(number)) return fallback;
        if (std::fabs(number) >= 9.2e18) fail(TSR_UNSUPPORTED, "an integer beyond 64 bits");
        return static_cast<int64_t>(number);
    };
    if (const double* fraction = value.get<double>()) {
        if (std::isinf(*fraction)) return fallback;
        return whole(*fraction);
    }
    if (value.is_undefined()) refuse("int", value);
    if (!value.is_text()) return fallback;
    budget.scan(value.view());
    std::string digits(python_strip(value.view(), true, true));
    const bool negative = digits.starts_with('-');
    if (negative || digits.starts_with('+')) digits.erase(0, 1);
    if (base < 2 || base > 36) fail(TSR_UNSUPPORTED, "int with the base {}", base);
    if (digits.size() > 2 && digits[0] == '0') {
        const char mark = static_cast<char>(digits[1] | 0x20);
        if ((base == 16 && mark == 'x') || (base == 8 && mark == 'o') || (base == 2 && mark == 'b')) digits.erase(0, 2);
    }
    // Underscores stand between digits alone.
    std::string plain;
    bool fits = !digits.empty();
    for (size_t i = 0; i < digits.size(); ++i) {
        if (digits[i] != '_')
            plain += digits[i];
        else
            fits &= i > 0 && i + 1 < digits.size() && digits[i + 1] != '_';
    }
    uint64_t number = 0;
    const auto read = std::from_chars(plain.data(), plain.data() + plain.size(), number, static_cast<int>(base));
    if (fits && read.ptr == plain.data() + plain.size() && plain.front() != '-') {
        if (read.ec != std::errc() || number > (negative ? uint64_t{1} << 63 : (uint64_t{1} << 63) - 1)) {
            if (base != 10) fail(TSR_UNSUPPORTED, "an integer beyond 64 bits");
            const size_t begin = std::min(plain.find_first_not_of('0'), plain.size() - 1);
            return BigInteger{Text((negative ? "-" : "") + plain.substr(begin))};
        }
        return static_cast<int64_t>(negative ? uint64_t{0} - number : number);
    }
    Arguments none;
    const Value fraction = call_filter("float", value, none, budget);
    // float() of what is no number gives 0.0, which is told apart from a zero that is written.
    if (fraction.number() == 0 && value.view().find('0') == std::string_view::npos) return fallback;
    return whole(fraction.number());
}

Value filter_float(const Value& value, Arguments& arguments, Budget& budget) {
    Value fallback = arguments.take(0, "default");
    arguments.finish();
    if (fallback.is_undefined()) fallback = 0.0;
    if (value.get<BigInteger>()) return python_double(value.get<BigInteger>()->digits.view());
    if (value.is_number()) return value.number();
    if (value.is_undefined()) refuse("float", value);
    if (!value.is_text()) return fallback;
    budget.scan(value.view());
    std::string text(python_strip(value.view(), true, true));
    for (size_t i = 1; i + 1 < text.size();) {
        const auto digit = [](char c) { return c >= '0' && c <= '9'; };
        if (text[i] == '_' && digit(text[i - 1]) && digit(text[i + 1]))
            text.erase(i, 1);
        else
            ++i;
    }
    const std::string small = lower(text);
    const std::string_view size =
        std::string_view(small).substr(small.starts_with('-') || small.starts_with('+') ? 1 : 0);
    if (size == "inf" || size == "infinity") return small.starts_with('-') ? -HUGE_VAL : HUGE_VAL;
    if (size == "nan") return std::nan("");
    if (size.empty() || size.find_first_not_of("0123456789.e+-") != size.npos || size.front() == 'e' ||
        size.front() == '+' || size.front() == '-')
        return fallback;
    char* end = nullptr;
    const double number = std::strtod(small.c_str(), &end);
    if (*end != '\0') return fallback;
    return number;
}

Value filter_round(const Value& value, Arguments& arguments, Budget&) {
    const int64_t digits = arguments.take_integer(0, "precision").value_or(0);
    const auto method = arguments.take_text(1, "method");
    arguments.finish();
    if (!value.is_number() || value.get<BigInteger>()) refuse("round", value);
    const std::string_view how = method ? method->view() : "common";
    constexpr int64_t kMost = 300;
    if (std::abs(digits) > kMost) fail(TSR_UNSUPPORTED, "round to so many digits");
    if (how == "ceil" || how == "floor") {
        const double scale = std::pow(10.0, static_cast<double>(digits));
        const double scaled = value.number() * scale;
        return (how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale;
    }
    if (how != "common") fail(TSR_UNSUPPORTED, "round by a method that is not known");
    if (value.is_integer()) {
        if (digits >= 0) return value.integer();
        if (digits < -18) return int64_t{0};
        int64_t unit = 1;
        for (int64_t i = 0; i < -digits; ++i) unit *= 10;
        // To the nearest, and of two to the even one.
        int64_t down = value.integer() / unit;
        int64_t rest = value.integer() % unit;
        if (rest < 0) {
            rest += unit;
            --down;
        }
        const bool up = rest > unit - rest || (rest == unit - rest && down % 2 != 0);
        int64_t result = 0;
        if (__builtin_mul_overflow(down + (up ? 1 : 0), unit, &result))
            fail(TSR_UNSUPPORTED, "arithmetic that leaves 64 bits");
        return result;
    }
    if (digits < 0) fail(TSR_UNSUPPORTED, "round of a fraction to tens");
    if (!std::isfinite(value.number())) return value;
    std::array<char, 1024> buffer;
    std::snprintf(buffer.data(), buffer.size(), "%.*f", static_cast<int>(digits), value.number());
    return std::strtod(buffer.data(), nullptr);
}

Value filter_abs(const Value& value, Arguments& arguments, Budget&) {
    arguments.finish();
    if (const double* fraction = value.get<double>()) return std::fabs(*fraction);
    if (value.is_integer()) return value.integer() < 0 ? negated(value.integer()) : Value(value.integer());
    if (value.get<BigInteger>())
        return value.get<BigInteger>()->digits.view().starts_with('-') ? negated(value) : value;
    refuse("abs", value);
}

Value filter_batch(const Value& value, Arguments& arguments, Budget& budget) {
    const auto count = arguments.take_integer(0, "linecount");
    const Value fill = arguments.take(1, "fill_with");
    arguments.finish();
    if (!count) fail(TSR_UNSUPPORTED, "batch without a count");
    std::vector<Value> batches, batch;
    const auto close = [&] {
        budget.container(batch.size());
        batches.push_back(Value::list(std::exchange(batch, {})));
    };
    for (Value& item : items_of(value, budget)) {
        if (static_cast<int64_t>(batch.size()) == *count) close();
        batch.push_back(std::move(item));
    }
    if (!batch.empty()) {
        if (!fill.is_undefined() && !fill.is_none() && *count > 0)
            while (static_cast<int64_t>(batch.size()) < *count) {
                budget.items(1);
                batch.push_back(fill);
            }
        close();
    }
    return Value::iterator(std::move(batches));
}

Value filter_slice(const Value& value, Arguments& arguments, Budget& budget) {
    const auto slices = arguments.take_integer(0, "slices");
    const Value fill = arguments.take(1, "fill_with");
    arguments.finish();
    if (!slices || *slices == 0) fail(TSR_UNSUPPORTED, "slice without a count");
    const std::vector<Value> items = items_of(value, budget);
    const auto length = static_cast<int64_t>(items.size());
    std::vector<Value> made;
    int64_t at = 0;
    for (int64_t i = 0; i < *slices; ++i) {
        const int64_t size = length / *slices + (i < length % *slices ? 1 : 0);
        budget.container(static_cast<uint64_t>(size) + 1);
        std::vector<Value> part(items.begin() + at, items.begin() + at + size);
        at += size;
        if (!fill.is_undefined() && !fill.is_none() && i >= length % *slices) part.push_back(fill);
        made.push_back(Value::list(std::move(part)));
    }
    return Value::iterator(std::move(made));
}

Value filter_truncate(const Value& value, Arguments& arguments, Budget& budget) {
    const int64_t length = arguments.take_integer(0, "length").value_or(255);
    const bool kill = arguments.take_truth(1, "killwords");
    const Text end = arguments.take_text(2, "end").value_or(Text(std::string("...")));
    const int64_t leeway = arguments.take_integer(3, "leeway").value_or(5);
    arguments.finish();
    if (!value.is_text()) refuse("truncate", value);
    const Text& text = *value.get<Text>();
    const auto ending = static_cast<int64_t>(character_count(end.view()));
    if (length < ending || leeway < 0) fail(TSR_UNSUPPORTED, "truncate to less than its ending");
    if (length_of(value, budget) <= length + leeway) return value;
    std::string_view kept = text.view().substr(0, character_place(text.view(), static_cast<size_t>(length - ending)));
    if (!kill)
        if (const size_t blank = kept.rfind(' '); blank != kept.npos) kept = kept.substr(0, blank);
    Value made = text.part(kept);
    return concatenated(std::move(made), end, budget);
}

Value filter_wordcount(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    int64_t count = 0;
    bool inside = false;
    for (const Value& character : items_of(soft_text(value, budget), budget)) {
        const std::string_view one = character.view();
        Arguments none;
        const bool word =
            one == "_" || (one.size() == 1 ? std::isalnum(static_cast<unsigned char>(one[0])) != 0
                                           : call_text_method("isalpha", *character.get<Text>(), none, budget).truth());
        count += word && !inside ? 1 : 0;
        inside = word;
    }
    return count;
}

Value filter_urlencode(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    if (!value.is_plain()) refuse("urlencode", value);
    const Text text = soft_text(value, budget);
    budget.text(3 * text.size());
    Marked made;
    text.runs([&](std::string_view run, bool content) {
        for (const char c : run) {
            const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                               std::string_view("_.-~/").find(c) != std::string_view::npos;
            made.add(plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c)), content);
        }
    });
    return Text(std::move(made));
}

Value filter_attr(const Value& value, Arguments& arguments, Budget& budget) {
    const auto name = arguments.take_text(0, "name");
    arguments.finish();
    if (!name) fail(TSR_UNSUPPORTED, "attr without a name");
    if (value.dictionary() && method_of(value, name->view()) == Method::kNone) return {};
    Value found = item_of(value, *name, nullptr, budget);
    return found;
}

Value filter_first(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    if (Iterator* iterator = value.iterator())
        return iterator->next < iterator->items.size() ? iterator->items[iterator->next++] : Value();
    const std::vector<Value> items = items_of(value, budget);
    return items.empty() ? Value() : items.front();
}
Value filter_last(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    if (value.iterator()) refuse("last", value);
    const std::vector<Value> items = items_of(value, budget);
    return items.empty() ? Value() : items.back();
}
Value filter_reverse(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    if (value.is_text()) return slice_of(value, Value::none(), Value::none(), int64_t{-1}, budget);
    std::vector<Value> items = items_of(value, budget);
    std::ranges::reverse(items);
    if (value.iterator()) return Value::list(std::move(items));
    return Value::iterator(std::move(items));
}
Value filter_list(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    budget.container(0);
    return Value::list(items_of(value, budget));
}
Value filter_items(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    if (value.is_undefined()) return Value::iterator({});
    if (!value.dictionary()) refuse("items", value);
    Arguments none;
    return Value::iterator(items_of(call_method("items", value, none, budget), budget));
}
Value filter_length(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    return length_of(value, budget);
}
Value filter_string(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    return soft_text(value, budget);
}
Value filter_upper(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    return with_case(soft_text(value, budget), true, budget);
}
Value filter_lower(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    return with_case(soft_text(value, budget), false, budget);
}
Value filter_capitalize(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    return capitalized(soft_text(value, budget), budget);
}
Value filter_title(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    return titled_words(soft_text(value, budget), budget);
}
Value filter_center(const Value& value, Arguments& arguments, Budget& budget) {
    const int64_t width = arguments.take_integer(0, "width").value_or(80);
    arguments.finish();
    return padded(soft_text(value, budget), width, '^', " ", budget);
}
Value filter_safe(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    Text text = soft_text(value, budget);
    text.markup = true;
    return text;
}
Value filter_escape(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    const Text text = soft_text(value, budget);
    return text.markup ? text : escaped(text, budget);
}
Value filter_forceescape(const Value& value, Arguments& arguments, Budget& budget) {
    arguments.finish();
    return escaped(soft_text(value, budget), budget);
}
Value filter_format(const Value& value, Arguments& arguments, Budget& budget) {
    const Text format = soft_text(value, budget);
    if (!arguments.named.empty()) {
        if (!arguments.positional.empty()) fail(TSR_UNSUPPORTED, "format with values both with and without names");
        Dictionary members;
        for (const auto& [name, one] : arguments.named) members.set(Value::text(name), one);
        return formatted_by_percent(format, Value::dictionary(std::move(members)), budget);
    }
    return formatted_by_percent(format, Value::list(arguments.positional, List::Kind::kTuple), budget);
}

constexpr std::array<std::pair<std::string_view, Filter>, 46> kFilters = {{
    {"abs", filter_abs},
    {"attr", filter_attr},
    {"batch", filter_batch},
    {"capitalize", filter_capitalize},
    {"center", filter_center},
    {"count", filter_length},
    {"d", filter_default},
    {"default", filter_default},
    {"dictsort", filter_dictsort},
    {"e", filter_escape},
    {"escape", filter_escape},
    {"first", filter_first},
    {"float", filter_float},
    {"forceescape", filter_forceescape},
    {"format", filter_format},
    {"groupby", filter_groupby},
    {"indent", filter_indent},
    {"int", filter_int},
    {"items", filter_items},
    {"join", filter_join},
    {"last", filter_last},
    {"length", filter_length},
    {"list", filter_list},
    {"lower", filter_lower},
    {"map", filter_map},
    {"max", [](const Value& v, Arguments& a, Budget& b) { return extreme(v, a, b, true); }},
    {"min", [](const Value& v, Arguments& a, Budget& b) { return extreme(v, a, b, false); }},
    {"reject", [](const Value& v, Arguments& a, Budget& b) { return selected(v, false, false, a, b); }},
    {"rejectattr", [](const Value& v, Arguments& a, Budget& b) { return selected(v, false, true, a, b); }},
    {"replace", filter_replace},
    {"reverse", filter_reverse},
    {"round", filter_round},
    {"safe", filter_safe},
    {"select", [](const Value& v, Arguments& a, Budget& b) { return selected(v, true, false, a, b); }},
    {"selectattr", [](const Value& v, Arguments& a, Budget& b) { return selected(v, true, true, a, b); }},
    {"slice", filter_slice},
    {"sort", filter_sort},
    {"string", filter_string},
    {"sum", filter_sum},
    {"title", filter_title},
    {"tojson", filter_tojson},
    {"trim", filter_trim},
    {"truncate", filter_truncate},
    {"unique", filter_unique},
    {"upper", filter_upper},
    {"urlencode", filter_urlencode},
}};
// Jinja has them, and chat templates have no use for them.
constexpr std::array<std::string_view, 8> kNotHere = {"filesizeformat", "pprint",   "random",  "striptags",
                                                      "urlize",         "wordwrap", "xmlattr", "wordcount"};

}  // namespace

bool is_filter(std::string_view name) {
    return std::ranges::find(kFilters, name, &std::pair<std::string_view, Filter>::first) != kFilters.end() ||
           std::ranges::find(kNotHere, name) != kNotHere.end();
}

Value call_filter(std::string_view name, const Value& value, Arguments& arguments, Budget& budget) {
    const auto found = std::ranges::find(kFilters, name, &std::pair<std::string_view, Filter>::first);
    if (found != kFilters.end()) return found->second(value, arguments, budget);
    if (name == "wordcount") return filter_wordcount(value, arguments, budget);
    if (is_filter(name)) fail(TSR_UNSUPPORTED, "the filter '{}' is not supported", name);
    fail(TSR_UNSUPPORTED, "the filter '{}' is not known", printable(name));
}

}  // namespace tessera::text::jinja
