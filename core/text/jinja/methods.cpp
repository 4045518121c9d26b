// Budgets, arguments, and methods of all that is no text.
#include "core/base/error.hpp"
#include "core/text/jinja/functions.hpp"

#include <algorithm>
#include <array>

namespace tessera::text::jinja {
namespace {

Value view_of(const Dictionary& dictionary, List::Kind kind, Budget& budget) {
    budget.container(dictionary.members.size());
    std::vector<Value> items;
    for (const auto& [key, member] : dictionary.members) {
        if (kind == List::Kind::kItems) {
            budget.container(2);
            items.push_back(Value::list({key, member}, List::Kind::kTuple));
        } else {
            items.push_back(kind == List::Kind::kKeys ? key : member);
        }
    }
    return Value::list(std::move(items), kind);
}

Value call_dictionary(std::string_view name, const Value& value, Arguments& arguments, Budget& budget) {
    Dictionary& dictionary = *value.dictionary();
    if (name == "get") {
        const Value key = arguments.take(0, "");
        const bool given = arguments.has(1, "");
        Value fallback = arguments.take(1, "");
        arguments.finish();
        if (!key.is_plain()) refuse("a key", key);
        budget.step(dictionary.members.size() / 16);
        const Value* found = dictionary.find(key);
        return found ? *found : given ? fallback : Value::none();
    }
    arguments.finish();
    if (name == "items") return view_of(dictionary, List::Kind::kItems, budget);
    if (name == "keys") return view_of(dictionary, List::Kind::kKeys, budget);
    if (name == "values") return view_of(dictionary, List::Kind::kValues, budget);
    if (name == "copy") {
        budget.container(dictionary.members.size());
        return Value::dictionary(Dictionary(dictionary));
    }
    fail(TSR_UNSUPPORTED, "the method '{}' of dictionaries is not known here", name);
}

Value call_list(std::string_view name, const Value& value, Arguments& arguments, Budget& budget) {
    List& list = *value.list();
    if (name == "index" || name == "count") {
        const Value wanted = arguments.take(0, "");
        arguments.finish();
        int64_t count = 0;
        for (size_t i = 0; i < list.items.size(); ++i) {
            budget.step();
            if (!are_equal(list.items[i], wanted, budget)) continue;
            if (name == "index") return static_cast<int64_t>(i);
            ++count;
        }
        if (name == "index") fail(TSR_UNSUPPORTED, "index of what is not in the list");
        return count;
    }
    if (name == "copy") {
        arguments.finish();
        budget.container(list.items.size());
        return Value::list(list.items);
    }
    if (name == "append") {
        Value item = arguments.take(0, "");
        arguments.finish();
        // So that no list holds itself.
        if (!item.is_plain()) refuse("append", item);
        budget.items(1);
        list.items.push_back(std::move(item));
        return Value::none();
    }
    if (name == "pop") {
        const Value place = arguments.take(0, "");
        arguments.finish();
        const auto count = static_cast<int64_t>(list.items.size());
        int64_t at = place.is_undefined() ? -1 : place.integer();
        if (at < 0) at += count;
        if ((!place.is_undefined() && !place.is_integer()) || at < 0 || at >= count)
            fail(TSR_UNSUPPORTED, "pop of what is not in the list");
        budget.step(list.items.size() / 16);
        Value item = list.items[static_cast<size_t>(at)];
        list.items.erase(list.items.begin() + at);
        return item;
    }
    fail(TSR_UNSUPPORTED, "the method '{}' of lists is not known here", name);
}

Value call_loop(std::string_view name, Loop& loop, Arguments& arguments, Budget& budget) {
    std::vector<Value> given;
    for (size_t i = 0; i < arguments.positional.size(); ++i) given.push_back(arguments.take(i, ""));
    arguments.finish();
    if (name == "cycle") {
        if (given.empty()) fail(TSR_UNSUPPORTED, "loop.cycle without values");
        return given[loop.index % given.size()];
    }
    // A loop that holds itself would stay for ever.
    for (const Value& one : given)
        if (!one.is_plain() && !one.list() && !one.dictionary()) refuse("loop.changed", one);
    budget.items(given.size());
    const bool same = loop.was_asked && std::ranges::equal(loop.changed, given, [&](const Value& a, const Value& b) {
                          return are_equal(a, b, budget);
                      });
    loop.was_asked = true;
    loop.changed = std::move(given);
    return !same;
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
    constexpr uint64_t kOwn = 160;  // at least a list's or dictionary's own, with its counts of owners
    static_assert(kOwn >= sizeof(List) + 2 * sizeof(uint64_t));
    static_assert(kOwn >= sizeof(Dictionary) + 2 * sizeof(uint64_t));
    items(count);
    bytes(kOwn);
}

void Budget::text(uint64_t size) {
    constexpr uint64_t kOwn = sizeof(Marked) + 2 * sizeof(uint64_t);
    bytes(kOwn);
    bytes(size);
}

void Budget::bytes(uint64_t count) {
    if (count > bytes_) fail(TSR_UNSUPPORTED, "more bytes than a template may write");
    bytes_ -= count;
}

Value Arguments::take(size_t position, std::string_view name) {
    if (position < positional.size()) {
        taken_ |= uint64_t{1} << std::min<size_t>(position, 63);
        return positional[position];
    }
    for (size_t i = 0; i < named.size(); ++i) {
        if (name.empty() || named[i].first != name) continue;
        named_taken_ |= uint64_t{1} << std::min<size_t>(i, 63);
        return named[i].second;
    }
    return {};
}

bool Arguments::has(size_t position, std::string_view name) const {
    return position < positional.size() ||
           (!name.empty() && std::ranges::any_of(named, [&](const auto& one) { return one.first == name; }));
}

std::optional<Text> Arguments::take_text(size_t position, std::string_view name) {
    const Value value = take(position, name);
    if (value.is_none() || (value.is_undefined() && !has(position, name))) return {};
    if (!value.is_text()) refuse(name.empty() ? "an argument" : name, value);
    return *value.get<Text>();
}

std::optional<int64_t> Arguments::take_integer(size_t position, std::string_view name) {
    const Value value = take(position, name);
    if (value.is_none() || (value.is_undefined() && !has(position, name))) return {};
    if (!value.is_integer()) refuse(name.empty() ? "an argument" : name, value);
    return value.integer();
}

void Arguments::finish() const {
    const auto all = [](size_t count) { return count >= 63 ? ~uint64_t{0} : (uint64_t{1} << count) - 1; };
    const bool many = positional.size() >= 63 || named.size() >= 63;
    if (many || taken_ != all(positional.size()) || named_taken_ != all(named.size()))
        fail(TSR_UNSUPPORTED, "an argument that is not known");
}

Method method_of(const Value& value, std::string_view name) {
    constexpr std::array<std::string_view, 6> kOfDictionaries = {"get", "items", "keys", "values", "copy", "fromkeys"};
    constexpr std::array<std::string_view, 5> kChangeDictionaries = {"clear", "pop", "popitem", "setdefault", "update"};
    constexpr std::array<std::string_view, 3> kOfLists = {"copy", "count", "index"};
    constexpr std::array<std::string_view, 8> kChangeLists = {"append", "clear",  "extend",  "insert",
                                                              "pop",    "remove", "reverse", "sort"};
    const auto is = [&](const auto& names) { return std::ranges::find(names, name) != names.end(); };
    if (value.dictionary())
        return is(kOfDictionaries) ? Method::kPure : is(kChangeDictionaries) ? Method::kChanges : Method::kNone;
    if (const List* list = value.list()) {
        if (list->is_view()) return Method::kNone;
        if (list->kind != List::Kind::kList) return name == "count" || name == "index" ? Method::kPure : Method::kNone;
        return is(kOfLists) ? Method::kPure : is(kChangeLists) ? Method::kChanges : Method::kNone;
    }
    if (value.is_text()) return is_text_method(name) ? Method::kPure : Method::kNone;
    if (value.get<std::shared_ptr<Loop>>()) return name == "cycle" || name == "changed" ? Method::kPure : Method::kNone;
    if (value.get<std::shared_ptr<Cycler>>()) return name == "next" || name == "reset" ? Method::kPure : Method::kNone;
    return Method::kNone;
}

Value call_method(std::string_view name, const Value& value, Arguments& arguments, Budget& budget) {
    if (value.dictionary()) return call_dictionary(name, value, arguments, budget);
    if (value.list()) return call_list(name, value, arguments, budget);
    if (const Text* text = value.get<Text>()) return call_text_method(name, *text, arguments, budget);
    if (const auto* loop = value.get<std::shared_ptr<Loop>>()) return call_loop(name, **loop, arguments, budget);
    if (const auto* cycler = value.get<std::shared_ptr<Cycler>>()) {
        arguments.finish();
        Cycler& one = **cycler;
        if (name == "reset") {
            one.at = 0;
            return Value::none();
        }
        Value item = one.items[one.at];
        one.at = (one.at + 1) % one.items.size();
        return item;
    }
    refuse(name, value);
}

}  // namespace tessera::text::jinja
