#include "core/text/jinja/functions.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/jinja/syntax.hpp"
#include "core/text/python_text.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace tessera::text::jinja {
namespace {

[[noreturn]] void refuse(std::string_view what, const Value& value) {
    fail(TSR_UNSUPPORTED, "{} of {}", what, value.kind());
}

std::string changed_case(std::string_view text, bool upper) {
    std::string out(text);
    for (char& c : out) {
        // Other letters need tables, and some become several.
        if (static_cast<unsigned char>(c) >= 0x80)
            fail(TSR_UNSUPPORTED, "upper or lower case of other letters than ASCII");
        if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z') c = static_cast<char>(c ^ 0x20);
    }
    return out;
}

Value replaced(std::string_view text, std::string_view from, std::string_view to, Budget& budget) {
    budget.scan(text, from);
    if (from.empty()) fail(TSR_UNSUPPORTED, "replace of an empty text");
    std::string out;
    for (size_t hit; (hit = text.find(from)) != std::string_view::npos; text.remove_prefix(hit + from.size())) {
        budget.bytes(hit + to.size());
        out += text.substr(0, hit);
        out += to;
    }
    budget.text(text.size());
    out += text;
    return Text(std::move(out));
}

Value joined(std::string_view separator, const std::vector<Value>& items, bool texts_alone, Budget& budget) {
    std::string out;
    for (size_t i = 0; i < items.size(); ++i) {
        if (texts_alone && !items[i].is_text()) refuse("join", items[i]);
        const std::string one = written(items[i], budget);
        budget.bytes(one.size() + separator.size());
        if (i > 0) out += separator;
        out += one;
    }
    return Text(std::move(out));
}

Value split(const Text& text, const std::optional<Text>& separator, int64_t limit, Budget& budget) {
    std::vector<Value> parts;
    std::string_view rest = text.view();
    budget.scan(rest, separator ? separator->view() : std::string_view());
    budget.container(0);
    const auto add = [&](std::string_view part) {
        budget.items(1);
        parts.emplace_back(text.part(part));
    };
    const auto more = [&] { return limit < 0 || parts.size() < static_cast<size_t>(limit); };
    if (separator) {
        const std::string_view mark = separator->view();
        if (mark.empty()) fail(TSR_UNSUPPORTED, "split at an empty text");
        for (size_t hit; more() && (hit = rest.find(mark)) != std::string_view::npos;
             rest.remove_prefix(hit + mark.size()))
            add(rest.substr(0, hit));
        add(rest);
        return Value::list(std::move(parts));
    }
    fail(TSR_UNSUPPORTED, "split at white space");
}

const Text& text_of(std::string_view what, const Value& value) {
    const Text* text = value.get<Text>();
    if (!text) refuse(what, value);
    return *text;
}

Value pairs_of(const Dictionary& dictionary, bool keys, bool values, Budget& budget) {
    budget.container(dictionary.members.size());
    std::vector<Value> items;
    for (const auto& [key, member] : dictionary.members) {
        if (keys && values) budget.container(2);
        if (keys) budget.text(key.size());
        if (keys && values)
            items.push_back(Value::list({Value::text(key), member}, List::Kind::kTuple));
        else
            items.push_back(keys ? Value::text(key) : member);
    }
    return Value::list(std::move(items), List::Kind::kIterator);
}

Value integer_of(const Value& value) {
    if (value.get<int64_t>()) return value;
    refuse("the filter int", value);
}

Value length_of(const Value& value, Budget& budget) {
    budget.scan(value.view());
    value.refuse_iterator();
    if (const List* list = value.list()) return static_cast<int64_t>(list->items.size());
    if (const Dictionary* dictionary = value.dictionary()) return static_cast<int64_t>(dictionary->members.size());
    if (value.is_text()) return static_cast<int64_t>(character_count(value.view()));
    if (value.is_undefined()) return int64_t{0};
    refuse("the length", value);
}

Value json_of(const Value& value, Arguments& arguments, Budget& budget) {
    const Value indent = arguments.take(0, "indent");
    const Value ascii = arguments.take(9, "ensure_ascii");
    if (!ascii.is_undefined() && ascii.truth()) fail(TSR_UNSUPPORTED, "tojson with ensure_ascii");
    budget.bytes(value.extent());
    // The extent is of values; what is written has escapes too, of at most six bytes for one.
    const auto dumped = [&](uint32_t width) {
        std::string json = value.dumps(width);
        budget.text(json.size());
        return Text(std::move(json));
    };
    if (indent.is_undefined() || indent.is_none()) return dumped(0);
    const int64_t* width = indent.get<int64_t>();
    constexpr int64_t kWidest = 16;
    if (!width || *width < 1 || *width > kWidest) fail(TSR_UNSUPPORTED, "tojson with this indent");
    // Lines of values may be mostly indentation; the extent is within the budget, so the product is small enough.
    const uint64_t deepest = value.list() ? value.list()->depth : value.dictionary() ? value.dictionary()->depth : 0;
    budget.bytes(value.extent() / kExtent * deepest * static_cast<uint64_t>(*width));
    return dumped(static_cast<uint32_t>(*width));
}

// A member by a path with dots.
Value attribute_of(const Value& value, std::string_view path, Budget& budget) {
    Value found = value;
    while (true) {
        const size_t dot = path.find('.');
        found = item_of(found, Value::text(path.substr(0, dot)), budget);
        if (dot == std::string_view::npos) return found;
        path.remove_prefix(dot + 1);
    }
}

// The items for which a test holds, by default that of truth; or by a member of theirs.
Value selected(const Value& value, bool wanted, bool by_attribute, Arguments& arguments, Budget& budget) {
    const size_t first = by_attribute ? 1 : 0;
    const auto attribute = by_attribute ? arguments.take_text(0, "") : std::nullopt;
    if (by_attribute && !attribute) fail(TSR_UNSUPPORTED, "selectattr without a name");
    const auto test = arguments.take_text(first, "");
    Arguments others;
    for (size_t i = first + 1; i < arguments.positional.size(); ++i) others.positional.push_back(arguments.take(i, ""));
    arguments.finish();
    std::vector<Value> kept;
    for (Value& item : items_of(value, budget)) {
        const Value tested = attribute ? attribute_of(item, attribute->view(), budget) : item;
        Arguments own = others;
        if ((test ? call_test(test->view(), tested, own, budget) : tested.truth()) == wanted)
            kept.push_back(std::move(item));
    }
    budget.container(kept.size());
    return Value::list(std::move(kept), List::Kind::kIterator);
}

// A member of each item, or each item through a filter.
Value mapped(const Value& value, Arguments& arguments, Budget& budget) {
    std::vector<Value> items = items_of(value, budget);
    if (arguments.positional.empty()) {
        const auto attribute = arguments.take_text(0, "attribute");
        arguments.finish();
        if (!attribute) fail(TSR_UNSUPPORTED, "map without a name");
        for (Value& item : items) item = attribute_of(item, attribute->view(), budget);
        return Value::list(std::move(items), List::Kind::kIterator);
    }
    const auto filter = arguments.take_text(0, "");
    Arguments others;
    for (size_t i = 1; i < arguments.positional.size(); ++i) others.positional.push_back(arguments.take(i, ""));
    arguments.finish();
    for (Value& item : items) {
        Arguments own = others;
        item = call_filter(filter ? filter->view() : "", std::move(item), own, budget);
    }
    return Value::list(std::move(items), List::Kind::kIterator);
}

// Pairs by key, letters of both cases alike, as Python's dictsort.
Value sorted(const Value& value, Budget& budget) {
    const Dictionary* dictionary = value.dictionary();
    if (!dictionary) refuse("dictsort", value);
    budget.container(2 * dictionary->members.size());
    std::vector<std::pair<std::string, const std::pair<std::string, Value>*>> order;
    for (const auto& member : dictionary->members) {
        budget.container(2);
        budget.text(2 * member.first.size());
        order.emplace_back(changed_case(member.first, false), &member);
    }
    std::ranges::stable_sort(order, {}, [](const auto& one) -> const std::string& { return one.first; });
    std::vector<Value> items;
    for (const auto& [key, member] : order)
        items.push_back(Value::list({Value::text(member->first), member->second}, List::Kind::kTuple));
    return Value::list(std::move(items));
}

}  // namespace

void Budget::step(uint64_t count) {
    if (count > steps_) fail(TSR_UNSUPPORTED, "more steps than a template may take");
    steps_ -= count;
}

void Budget::items(uint64_t count) {
    step(count);
    bytes(count * sizeof(Value));
}

void Budget::container(uint64_t count) {
    constexpr uint64_t kOwn = 96;  // at least a list's or dictionary's own, with its counts of owners
    static_assert(kOwn >= sizeof(List) + 2 * sizeof(uint64_t));
    static_assert(kOwn >= sizeof(Dictionary) + 2 * sizeof(uint64_t));
    items(count);
    bytes(kOwn);
}

void Budget::text(uint64_t size) {
    constexpr uint64_t kOwn = sizeof(std::string) + 2 * sizeof(uint64_t);
    bytes(kOwn);
    bytes(size);
}

void Budget::bytes(uint64_t count) {
    if (count > bytes_) fail(TSR_UNSUPPORTED, "more bytes than a template may write");
    bytes_ -= count;
}

std::string written(const Value& value, Budget& budget) {
    budget.bytes(value.extent());
    return value.written();
}

Value Arguments::take(size_t position, std::string_view name) {
    if (position < positional.size()) {
        taken_ |= uint64_t{1} << std::min<size_t>(position, 63);
        return positional[position];
    }
    for (size_t i = 0; i < named.size(); ++i) {
        if (named[i].first != name) continue;
        named_taken_ |= uint64_t{1} << std::min<size_t>(i, 63);
        return named[i].second;
    }
    return {};
}

std::optional<Text> Arguments::take_text(size_t position, std::string_view name) {
    const Value value = take(position, name);
    if (value.is_undefined() || value.is_none()) return {};
    return text_of(name, value);
}

std::optional<int64_t> Arguments::take_integer(size_t position, std::string_view name) {
    const Value value = take(position, name);
    if (value.is_undefined() || value.is_none()) return {};
    const int64_t* number = value.get<int64_t>();
    if (!number) refuse(name, value);
    return *number;
}

void Arguments::finish() const {
    const auto all = [](size_t count) { return count >= 63 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; };
    if (taken_ != all(positional.size()) || named_taken_ != all(named.size()))
        fail(TSR_UNSUPPORTED, "an argument that is not known");
}

Value call_filter(std::string_view name, Value value, Arguments& arguments, Budget& budget) {
    if (name == "tojson") {
        Value json = json_of(value, arguments, budget);
        arguments.finish();
        return json;
    }
    if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
        return selected(value, name.starts_with("select"), name.ends_with("attr"), arguments, budget);
    if (name == "map") return mapped(value, arguments, budget);
    if (name == "dictsort") {
        arguments.finish();
        return sorted(value, budget);
    }
    if (name == "default" || name == "d") {
        Value fallback = arguments.take(0, "default_value");
        const bool also_false = arguments.take(1, "boolean").truth();
        arguments.finish();
        if (fallback.is_undefined()) fallback = Text();
        return value.is_undefined() || (also_false && !value.truth()) ? fallback : value;
    }
    if (name == "trim") {
        const auto characters = arguments.take_text(0, "chars");
        arguments.finish();
        const Text text = value.is_text() ? *value.get<Text>() : Text(written(value, budget));
        budget.scan(text.view(), characters ? characters->view() : std::string_view());
        return text.part(
            python_strip(text.view(), true, true, characters ? std::optional(characters->view()) : std::nullopt));
    }
    if (name == "join") {
        const auto separator = arguments.take_text(0, "d");
        arguments.finish();
        return joined(separator ? separator->view() : "", items_of(value, budget), false, budget);
    }
    if (name == "replace") {
        const auto from = arguments.take_text(0, "old"), to = arguments.take_text(1, "new");
        arguments.finish();
        if (!from || !to) fail(TSR_UNSUPPORTED, "replace without two texts");
        return replaced(text_of("replace", value).view(), from->view(), to->view(), budget);
    }
    arguments.finish();
    if (name == "int") return integer_of(value);
    if (name == "length" || name == "count") return length_of(value, budget);
    if (name == "string") return value.is_text() ? value : Value(Text(written(value, budget)));
    budget.bytes(value.view().size());
    if (name == "upper" || name == "lower") return Text(changed_case(written(value, budget), name == "upper"));
    if (name == "capitalize") {
        std::string text = changed_case(written(value, budget), false);
        if (!text.empty()) text.front() = changed_case(text.substr(0, 1), true).front();
        return Text(std::move(text));
    }
    if (name == "items" && value.is_undefined()) return Value::list({});
    if (name == "items" || name == "keys" || name == "values") {
        const Dictionary* dictionary = value.dictionary();
        if (!dictionary) refuse(name, value);
        return pairs_of(*dictionary, name != "values", name != "keys", budget);
    }
    if (name != "list" && name != "reverse" && name != "first" && name != "last")
        fail(TSR_UNSUPPORTED, "the filter '{}' is not known", printable(name));
    std::vector<Value> items = items_of(value, budget);
    if (name == "list") return Value::list(std::move(items));
    if (name == "reverse" && value.list()) {
        std::ranges::reverse(items);
        return Value::list(std::move(items), List::Kind::kIterator);
    }
    if (name == "first") return items.empty() ? Value() : items.front();
    if (name == "last") return items.empty() ? Value() : items.back();
    refuse(name, value);
}

bool call_test(std::string_view name, const Value& value, Arguments& arguments, Budget& budget) {
    if (name == "in" || name == "eq" || name == "equalto" || name == "ne") {
        const Value other = arguments.take(0, "");
        arguments.finish();
        if (name == "in") return holds(other, value, budget);
        return are_equal(value, other, budget) == (name != "ne");
    }
    arguments.finish();
    if (name == "defined") return !value.is_undefined();
    if (name == "undefined") return value.is_undefined();
    if (name == "none") return value.is_none();
    if (name == "string") return value.is_text();
    if (name == "boolean") return value.get<bool>() != nullptr;
    if (name == "true") return value.get<bool>() && *value.get<bool>();
    if (name == "false") return value.get<bool>() && !*value.get<bool>();
    if (name == "integer") return value.get<int64_t>() != nullptr;
    if (name == "number") return value.get<int64_t>() || value.get<OtherNumber>() || value.get<bool>();
    if (name == "mapping") return value.dictionary() != nullptr;
    if (name == "iterable" || name == "sequence")
        return value.is_text() ||
               (value.list() && !(value.list()->kind == List::Kind::kIterator && name == "sequence")) ||
               value.dictionary() || value.is_undefined();
    if (name == "odd" || name == "even") {
        const int64_t* number = value.get<int64_t>();
        if (!number) refuse(name, value);
        return (*number % 2 != 0) == (name == "odd");
    }
    fail(TSR_UNSUPPORTED, "the test '{}' is not known", printable(name));
}

Value call_method(std::string_view name, const Value& value, Arguments& arguments, Budget& budget) {
    if (const Dictionary* dictionary = value.dictionary()) {
        if (name == "get") {
            const Value key = arguments.take(0, "");
            Value fallback = arguments.take(1, "");
            arguments.finish();
            const Value* found = key.is_text() ? dictionary->find(key.view()) : nullptr;
            return found ? *found : fallback.is_undefined() ? Value::none() : fallback;
        }
        arguments.finish();
        if (name == "items" || name == "keys" || name == "values")
            return pairs_of(*dictionary, name != "values", name != "keys", budget);
    }
    const Text* text = value.get<Text>();
    if (!text) fail(TSR_UNSUPPORTED, "{} has no method '{}' that is known", value.kind(), name);
    const std::string_view view = text->view();
    budget.scan(view);
    if (name == "strip" || name == "lstrip" || name == "rstrip") {
        const auto characters = arguments.take_text(0, "");
        arguments.finish();
        if (characters) budget.scan(view, characters->view());
        return text->part(python_strip(view, name != "rstrip", name != "lstrip",
                                       characters ? std::optional(characters->view()) : std::nullopt));
    }
    if (name == "split") {
        const auto separator = arguments.take_text(0, "sep");
        const int64_t limit = arguments.take_integer(1, "maxsplit").value_or(-1);
        arguments.finish();
        return split(*text, separator, limit, budget);
    }
    if (name == "startswith" || name == "endswith") {
        const auto part = arguments.take_text(0, "");
        arguments.finish();
        if (!part) fail(TSR_UNSUPPORTED, "{} without a text", name);
        return name == "startswith" ? view.starts_with(part->view()) : view.ends_with(part->view());
    }
    if (name == "replace") {
        const auto from = arguments.take_text(0, ""), to = arguments.take_text(1, "");
        arguments.finish();
        if (!from || !to) fail(TSR_UNSUPPORTED, "replace without two texts");
        return replaced(view, from->view(), to->view(), budget);
    }
    if (name == "join") {
        const Value list = arguments.take(0, "");
        arguments.finish();
        return joined(view, items_of(list, budget), true, budget);
    }
    arguments.finish();
    budget.bytes(view.size());
    if (name == "upper" || name == "lower") return Text(changed_case(view, name == "upper"));
    fail(TSR_UNSUPPORTED, "{} has no method '{}' that is known", value.kind(), name);
}

Value item_of(const Value& value, const Value& index, Budget& budget) {
    if (value.is_undefined()) fail(TSR_UNSUPPORTED, "a member of a variable that is not defined");
    if (const Dictionary* dictionary = value.dictionary()) {
        const Value* found = index.is_text() ? dictionary->find(index.view()) : nullptr;
        return found ? *found : Value();
    }
    value.refuse_iterator();
    const bool* truth = index.get<bool>();  // which Python takes for a number
    const int64_t as_number = truth && *truth ? 1 : 0;
    const int64_t* number = truth ? &as_number : index.get<int64_t>();
    if (!number || !(value.list() || value.is_text())) return {};
    const auto place = [&](size_t size) -> std::optional<size_t> {
        const auto count = static_cast<int64_t>(size);
        if (*number < -count || *number >= count) return {};
        return static_cast<size_t>(*number < 0 ? *number + count : *number);
    };
    if (const List* list = value.list()) {
        const auto found = place(list->items.size());
        return found ? list->items[*found] : Value();
    }
    budget.scan(value.view());
    const auto found = place(character_count(value.view()));
    if (!found) return {};
    const std::string_view rest = value.view().substr(character_place(value.view(), *found));
    return value.get<Text>()->part(rest.substr(0, character_place(rest, 1)));
}

Value slice_of(const Value& value, std::optional<int64_t> begin, std::optional<int64_t> end, int64_t step,
               Budget& budget) {
    value.refuse_iterator();
    budget.scan(value.view());
    if (!value.list() && !value.is_text()) refuse("a slice", value);
    const auto count = static_cast<int64_t>(value.list() ? value.list()->items.size() : character_count(value.view()));
    if (step != 1 && !(step == -1 && !begin && !end && value.list())) fail(TSR_UNSUPPORTED, "a slice with steps");
    const auto place = [&](std::optional<int64_t> at, int64_t otherwise) {
        if (!at) return otherwise;
        return std::clamp<int64_t>(*at < 0 ? std::max(*at, -count) + count : *at, 0, count);
    };
    const int64_t first = place(begin, 0), last = std::max(first, place(end, count));
    if (value.is_text()) {
        const std::string_view rest = value.view().substr(character_place(value.view(), static_cast<size_t>(first)));
        return value.get<Text>()->part(rest.substr(0, character_place(rest, static_cast<size_t>(last - first))));
    }
    const auto& items = value.list()->items;
    budget.container(static_cast<uint64_t>(last - first));
    std::vector<Value> part(items.begin() + first, items.begin() + last);
    if (step == -1) std::ranges::reverse(part);
    return Value::list(std::move(part), value.list()->kind);
}

std::vector<Value> items_of(const Value& value, Budget& budget) {
    std::vector<Value> items;
    if (value.is_undefined()) return items;
    if (const List* list = value.list()) {
        budget.items(list->items.size());
        return list->items;
    }
    if (const Dictionary* dictionary = value.dictionary()) {
        budget.items(dictionary->members.size());
        for (const auto& member : dictionary->members) {
            budget.text(member.first.size());
            items.push_back(Value::text(member.first));
        }
        return items;
    }
    if (!value.is_text()) refuse("the items", value);
    budget.scan(value.view());
    budget.container(character_count(value.view()));
    for (std::string_view rest = value.view(); !rest.empty();) {
        const size_t length = character_place(rest, 1);
        items.emplace_back(value.get<Text>()->part(rest.substr(0, length)));
        rest.remove_prefix(length);
    }
    return items;
}

bool holds(const Value& whole, const Value& part, Budget& budget) {
    budget.scan(whole.view(), part.view());
    if (const List* list = whole.list()) {
        budget.step(list->items.size());
        return std::ranges::any_of(list->items, [&](const Value& item) { return are_equal(item, part, budget); });
    }
    if (const Dictionary* dictionary = whole.dictionary()) return part.is_text() && dictionary->find(part.view());
    if (whole.is_text()) return whole.view().find(text_of("in", part).view()) != std::string_view::npos;
    if (whole.is_undefined()) return false;
    refuse("in", whole);
}

bool are_equal(const Value& left, const Value& right, Budget& budget) {
    if (left.is_text() && right.is_text() && left.view().size() == right.view().size()) budget.scan(left.view());
    return left.equals(right);
}

}  // namespace tessera::text::jinja
