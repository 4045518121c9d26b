// Operators, members and slices, as Python has them.
#include "core/base/error.hpp"
#include "core/text/jinja/functions.hpp"
#include "core/text/python_text.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::text::jinja {
namespace {

[[noreturn]] void refuse_both(const char* what, const Value& left, const Value& right) {
    if (left.is_undefined()) refuse(what, left);
    if (right.is_undefined()) refuse(what, right);
    fail(TSR_UNSUPPORTED, "{} of {} and {}", what, left.kind(), right.kind());
}

bool is_small(const Value& value) {
    return value.is_number() && !value.get<BigInteger>();
}

int64_t calculate_integers(Arithmetic operation, int64_t left, int64_t right) {
    int64_t result = 0;
    bool fails = false;
    switch (operation) {
        case Arithmetic::kAdd:
            fails = __builtin_add_overflow(left, right, &result);
            break;
        case Arithmetic::kSubtract:
            fails = __builtin_sub_overflow(left, right, &result);
            break;
        case Arithmetic::kMultiply:
            fails = __builtin_mul_overflow(left, right, &result);
            break;
        case Arithmetic::kPower:
            result = 1;
            for (; right > 0 && !fails; right >>= 1) {
                if (right & 1) fails = __builtin_mul_overflow(result, left, &result);
                if (right > 1 && !fails) fails = __builtin_mul_overflow(left, left, &left);
            }
            break;
        default: {
            if (right == 0) fail(TSR_UNSUPPORTED, "division by zero");
            // Python rounds down, and the rest has the sign of the divisor. Division by -1 is negation, which the
            // processor's division of the least number is not.
            if (right == -1) {
                if (operation != Arithmetic::kModulo) fails = __builtin_sub_overflow(0, left, &result);
                break;
            }
            const int64_t rest = left % right;
            const bool down = rest != 0 && (rest < 0) != (right < 0);
            result = operation == Arithmetic::kModulo ? rest + (down ? right : 0) : left / right - (down ? 1 : 0);
        }
    }
    if (fails) fail(TSR_UNSUPPORTED, "arithmetic that leaves 64 bits");
    return result;
}

double calculate_fractions(Arithmetic operation, double left, double right) {
    switch (operation) {
        case Arithmetic::kAdd:
            return left + right;
        case Arithmetic::kSubtract:
            return left - right;
        case Arithmetic::kMultiply:
            return left * right;
        case Arithmetic::kPower:
            if (left == 0 && right < 0) fail(TSR_UNSUPPORTED, "zero to a negative power");
            if (left < 0 && right != std::floor(right)) fail(TSR_UNSUPPORTED, "a root of a negative number");
            left = std::pow(left, right);
            if (std::isinf(left)) fail(TSR_UNSUPPORTED, "a power that is too large");
            return left;
        default:
            break;
    }
    if (right == 0) fail(TSR_UNSUPPORTED, "division by zero");
    if (operation == Arithmetic::kDivide) return left / right;
    double rest = std::fmod(left, right), whole = (left - rest) / right;
    if (rest != 0) {
        if ((right < 0) != (rest < 0)) {
            rest += right;
            whole -= 1;
        }
    } else {
        rest = std::copysign(0.0, right);
    }
    if (operation == Arithmetic::kModulo) return rest;
    if (whole == 0) return std::copysign(0.0, left / right);
    const double down = std::floor(whole);
    return whole - down > 0.5 ? down + 1 : down;
}

Value repeated(const Value& value, int64_t count, Budget& budget) {
    const auto times = static_cast<uint64_t>(std::max<int64_t>(count, 0));
    if (const Text* text = value.get<Text>()) {
        Marked made;
        for (uint64_t i = 0; i < times && text->size() > 0; ++i) {
            budget.bytes(text->size());
            made.add(*text);
        }
        Text out(std::move(made));
        out.markup = text->markup;
        return out;
    }
    const List* list = value.list();
    std::vector<Value> items;
    for (uint64_t i = 0; i < times && !list->items.empty(); ++i) {
        budget.items(list->items.size());
        items.insert(items.end(), list->items.begin(), list->items.end());
    }
    budget.container(0);
    return Value::list(std::move(items), list->is_tuple() ? List::Kind::kTuple : List::Kind::kList);
}

bool can_repeat(const Value& value) {
    return value.is_text() || (value.list() && (value.list()->kind == List::Kind::kList || value.list()->is_tuple()));
}

Value joined_lists(const List& left, const List& right, Budget& budget) {
    budget.container(left.items.size() + right.items.size());
    std::vector<Value> items = left.items;
    items.insert(items.end(), right.items.begin(), right.items.end());
    return Value::list(std::move(items), left.is_tuple() ? List::Kind::kTuple : List::Kind::kList);
}

std::optional<Value> loop_member(const Loop& loop, std::string_view name) {
    const size_t count = loop.items.size();
    if (name == "index") return Value(static_cast<int64_t>(loop.index + 1));
    if (name == "index0") return Value(static_cast<int64_t>(loop.index));
    if (name == "revindex") return Value(static_cast<int64_t>(count - loop.index));
    if (name == "revindex0") return Value(static_cast<int64_t>(count - loop.index - 1));
    if (name == "length") return Value(static_cast<int64_t>(count));
    if (name == "first") return Value(loop.index == 0);
    if (name == "last") return Value(loop.index + 1 == count);
    if (name == "depth") return Value(static_cast<int64_t>(loop.depth) + 1);
    if (name == "depth0") return Value(static_cast<int64_t>(loop.depth));
    if (name == "previtem") return loop.index > 0 ? loop.items[loop.index - 1] : Value();
    if (name == "nextitem") return loop.index + 1 < count ? loop.items[loop.index + 1] : Value();
    return {};
}

Value bound(const Value& self, std::string_view name) {
    auto made = std::make_shared<Callable>(Callable{Callable::Kind::kMethod, std::make_shared<Value>(self)});
    made->name = name;
    return made;
}

// What getattr() finds of a value but its items; nothing if there is none.
std::optional<Value> own_attribute(const Value& value, std::string_view name, const std::string* kept,
                                   const Budget& budget) {
    if (name.starts_with("__") && name.ends_with("__")) return Undefined{kept, true};
    switch (method_of(value, name)) {
        case Method::kPure:
            return bound(value, name);
        case Method::kChanges:
            return budget.may_change ? bound(value, name) : Value(Undefined{kept, true});
        case Method::kNone:
            break;
    }
    if (const auto* space = value.get<std::shared_ptr<Namespace>>()) {
        const auto& members = (*space)->members;
        const auto found = std::ranges::find(members, name, &std::pair<std::string, Value>::first);
        if (found != members.end()) return found->second;
    } else if (const auto* loop = value.get<std::shared_ptr<Loop>>()) {
        if (auto member = loop_member(**loop, name)) return member;
    } else if (const Closure* closure = value.get<Closure>()) {
        if (name == "name") return Value::text(macro_name(*closure));
    } else if (const List* list = value.list(); list && list->kind == List::Kind::kGroup) {
        if (name == "grouper") return list->items[0];
        if (name == "list") return list->items[1];
    } else if (const auto* cycler = value.get<std::shared_ptr<Cycler>>()) {
        if (name == "current") return (*cycler)->items[(*cycler)->at];
    }
    return {};
}

}  // namespace

Value calculate(Arithmetic operation, Value left, const Value& right, Budget& budget) {
    if (operation == Arithmetic::kAdd) {
        if (left.is_text() && right.is_text()) return concatenated(std::move(left), right, budget);
        if (can_repeat(left) && can_repeat(right) && !left.is_text() && !right.is_text() &&
            left.list()->is_tuple() == right.list()->is_tuple())
            return joined_lists(*left.list(), *right.list(), budget);
    }
    if (operation == Arithmetic::kMultiply) {
        if (can_repeat(left) && right.is_integer()) return repeated(left, right.integer(), budget);
        if (can_repeat(right) && left.is_integer()) return repeated(right, left.integer(), budget);
    }
    if (operation == Arithmetic::kModulo && left.is_text())
        return formatted_by_percent(*left.get<Text>(), right, budget);
    if (!is_small(left) || !is_small(right)) refuse_both("arithmetic", left, right);
    const bool whole = left.is_integer() && right.is_integer() && operation != Arithmetic::kDivide &&
                       !(operation == Arithmetic::kPower && right.integer() < 0);
    if (whole) return calculate_integers(operation, left.integer(), right.integer());
    return calculate_fractions(operation, left.number(), right.number());
}

Value negated(const Value& value) {
    if (const double* fraction = value.get<double>()) return -*fraction;
    if (const BigInteger* big = value.get<BigInteger>()) {
        const std::string_view digits = big->digits.view();
        if (digits.starts_with('-')) return BigInteger{big->digits.part(digits.substr(1))};
        if (digits == "9223372036854775808") return std::numeric_limits<int64_t>::min();
        Text negative(std::string("-"));
        negative.append(big->digits);
        return BigInteger{std::move(negative)};
    }
    if (!value.is_integer()) refuse("the negative", value);
    int64_t result = 0;
    if (__builtin_sub_overflow(int64_t{0}, value.integer(), &result))
        return BigInteger{Text(std::string("9223372036854775808"))};
    return result;
}

std::partial_ordering compare(const Value& left, const Value& right) {
    if (left.is_text() && right.is_text()) return left.view() <=> right.view();
    if (is_small(left) && is_small(right)) {
        if (left.is_integer() && right.is_integer()) return left.integer() <=> right.integer();
        const auto exact = [](const Value& value) {
            return value.is_integer() ? static_cast<long double>(value.integer())
                                      : static_cast<long double>(value.number());
        };
        return exact(left) <=> exact(right);
    }
    const List *one = left.list(), *other = right.list();
    if (one && other && one->is_tuple() == other->is_tuple() && can_repeat(left) && can_repeat(right)) {
        for (size_t i = 0; i < std::min(one->items.size(), other->items.size()); ++i)
            if (!are_equal(one->items[i], other->items[i])) return compare(one->items[i], other->items[i]);
        return one->items.size() <=> other->items.size();
    }
    refuse_both("order", left, right);
}

bool are_equal(const Value& left, const Value& right) {
    if (left.is_number() && right.is_number()) {
        const BigInteger *one = left.get<BigInteger>(), *other = right.get<BigInteger>();
        if (one && other) return one->digits.view() == other->digits.view();
        if (one || other) {
            if (left.get<double>() || right.get<double>())
                fail(TSR_UNSUPPORTED, "a comparison of an integer beyond 64 bits with a fraction");
            return false;
        }
        return compare(left, right) == 0;
    }
    if (left.is_text() && right.is_text()) return left.view() == right.view();
    if (left.is_undefined() || left.is_none()) return left.is_undefined() ? right.is_undefined() : right.is_none();
    const List *one = left.list(), *other = right.list();
    if (one && other) {
        if (one == other) return true;
        if (one->is_view() || other->is_view()) {
            if (one->kind == other->kind && one->kind == List::Kind::kValues) return false;
            fail(TSR_UNSUPPORTED, "a comparison of views of dictionaries");
        }
        if (one->is_tuple() != other->is_tuple() ||
            (one->kind == List::Kind::kRange) != (other->kind == List::Kind::kRange))
            return false;
        return std::ranges::equal(one->items, other->items,
                                  [](const Value& a, const Value& b) { return are_equal(a, b); });
    }
    const Dictionary *these = left.dictionary(), *those = right.dictionary();
    if (these && those) {
        if (these == those) return true;
        return these->members.size() == those->members.size() &&
               std::ranges::all_of(these->members, [&](const auto& member) {
                   const Value* found = those->find(member.first);
                   return found && are_equal(member.second, *found);
               });
    }
    return left.is_same(right);
}

bool are_equal(const Value& left, const Value& right, Budget& budget) {
    if (left.is_text() && right.is_text()) {
        if (left.view().size() == right.view().size()) budget.scan(left.view());
        return left.view() == right.view();
    }
    if (!left.is_plain() && !right.is_plain()) {
        // Each value is looked at as often as it is held.
        budget.step(extent(left, budget));
    }
    return are_equal(left, right);
}

uint64_t extent(const Value& value, Budget& budget) {
    budget.step();
    uint64_t sum = 1 + value.view().size() / 64;
    if (const List* list = value.list()) {
        for (const Value& item : list->items) sum += extent(item, budget);
    } else if (const Dictionary* dictionary = value.dictionary()) {
        for (const auto& [key, member] : dictionary->members) sum += 1 + extent(member, budget);
    }
    return sum;
}

bool holds(const Value& whole, const Value& part, Budget& budget) {
    if (const List* list = whole.list()) {
        return std::ranges::any_of(list->items, [&](const Value& item) {
            budget.step();
            return are_equal(item, part, budget);
        });
    }
    if (Iterator* iterator = whole.iterator()) {
        while (iterator->next < iterator->items.size()) {
            budget.step();
            if (are_equal(iterator->items[iterator->next++], part, budget)) return true;
        }
        return false;
    }
    if (const Dictionary* dictionary = whole.dictionary()) {
        if (!part.is_plain()) refuse("a key", part);
        budget.step(dictionary->members.size() / 16);
        return dictionary->find(part) != nullptr;
    }
    if (whole.is_text()) {
        if (!part.is_text()) refuse("what may be in a text", part);
        budget.scan(whole.view(), part.view());
        return whole.view().find(part.view()) != std::string_view::npos;
    }
    if (whole.is_undefined()) return false;
    refuse("what is in it", whole);
}

Value item_of(const Value& value, const Value& index, const std::string* name, Budget& budget) {
    if (value.is_undefined()) refuse("a member", value);
    if (const Dictionary* dictionary = value.dictionary(); dictionary && index.is_plain()) {
        if (!index.is_text()) budget.step(dictionary->members.size());
        if (const Value* found = dictionary->find(index)) return *found;
    }
    const List* list = value.list() && !value.list()->is_view() ? value.list() : nullptr;
    if (index.is_integer() && (list || value.is_text())) {
        budget.scan(value.view());
        const auto count =
            static_cast<int64_t>(list ? list->items.size() : static_cast<size_t>(character_count(value.view())));
        int64_t at = index.integer();
        if (at < -count || at >= count) return Undefined{name};
        if (at < 0) at += count;
        if (list) return list->items[static_cast<size_t>(at)];
        const std::string_view rest = value.view().substr(character_place(value.view(), static_cast<size_t>(at)));
        return value.get<Text>()->part(rest.substr(0, character_place(rest, 1)));
    }
    if (index.is_text())
        if (auto found = own_attribute(value, index.view(), name, budget)) return *found;
    return Undefined{name};
}

Value attribute_of(const Value& value, const std::string& name, Budget& budget) {
    if (value.is_undefined()) refuse(fmt::format("the member '{}'", name), value);
    if (auto found = own_attribute(value, name, &name, budget)) return *found;
    if (const Dictionary* dictionary = value.dictionary())
        if (const Value* found = dictionary->find(name)) return *found;
    return Undefined{&name};
}

Value slice_of(const Value& value, const Value& begin, const Value& end, const Value& step, Budget& budget) {
    if (value.is_undefined()) refuse("a slice", value);
    constexpr int64_t kLongest = 1'000'000;
    const List* list = value.list() && !value.list()->is_view() ? value.list() : nullptr;
    for (const Value* bound : {&begin, &end, &step})
        if (!bound->is_none() && !bound->is_integer()) refuse("a bound of a slice", *bound);
    if (!list && !value.is_text()) refuse("a slice", value);
    const int64_t by = step.is_none() ? 1 : step.integer();
    if (by == 0) fail(TSR_UNSUPPORTED, "a slice with steps of zero");
    budget.scan(value.view());
    const auto count =
        static_cast<int64_t>(list ? list->items.size() : static_cast<size_t>(character_count(value.view())));
    const auto place = [&](const Value& at, int64_t otherwise) {
        if (at.is_none()) return otherwise;
        const int64_t least = by < 0 ? -1 : 0, most = by < 0 ? count - 1 : count;
        int64_t given = at.integer();
        if (given < 0) given = given < -count ? least : given + count;
        return std::clamp(given, least, std::max(most, least));
    };
    const int64_t first = place(begin, by < 0 ? count - 1 : 0), last = place(end, by < 0 ? -1 : count);
    if (value.is_text() && by == 1) {
        const std::string_view rest = value.view().substr(character_place(value.view(), static_cast<size_t>(first)));
        return value.get<Text>()->part(
            rest.substr(0, character_place(rest, static_cast<size_t>(std::max(last - first, int64_t{0})))));
    }
    const std::vector<Value> characters = list ? std::vector<Value>() : items_of(value, budget);
    const std::vector<Value>& items = list ? list->items : characters;
    std::vector<Value> part;
    for (int64_t at = first; by > 0 ? at < last : at > last;) {
        budget.items(1);
        part.push_back(items[static_cast<size_t>(at)]);
        if (__builtin_add_overflow(at, by, &at)) break;
    }
    budget.container(0);
    if (list) {
        Value made = Value::list(std::move(part), list->is_tuple() ? List::Kind::kTuple : list->kind);
        const auto& [start, stop, stride] = list->range;
        // Within 64 bits: a range has at most 100,000 numbers, all of which fit.
        if (list->kind == List::Kind::kRange)
            made.list()->range = {start + first * stride, start + last * stride,
                                  by > kLongest || by < -kLongest ? stride : stride * by};
        return made;
    }
    Marked made;
    for (const Value& one : part) made.add(*one.get<Text>());
    return Text(std::move(made));
}

std::vector<Value> items_of(const Value& value, Budget& budget) {
    if (value.is_undefined()) return {};
    if (const List* list = value.list()) {
        budget.items(list->items.size());
        return list->items;
    }
    if (Iterator* iterator = value.iterator()) {
        std::vector<Value> rest(iterator->items.begin() + static_cast<std::ptrdiff_t>(iterator->next),
                                iterator->items.end());
        iterator->next = iterator->items.size();
        budget.items(rest.size());
        return rest;
    }
    std::vector<Value> items;
    if (const Dictionary* dictionary = value.dictionary()) {
        budget.items(dictionary->members.size());
        for (const auto& member : dictionary->members) items.push_back(member.first);
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

int64_t length_of(const Value& value, Budget& budget) {
    budget.scan(value.view());
    if (value.is_undefined()) return 0;
    if (const List* list = value.list()) return static_cast<int64_t>(list->items.size());
    if (const Dictionary* dictionary = value.dictionary()) return static_cast<int64_t>(dictionary->members.size());
    if (value.is_text()) return static_cast<int64_t>(character_count(value.view()));
    if (const auto* loop = value.get<std::shared_ptr<Loop>>()) return static_cast<int64_t>((*loop)->items.size());
    refuse("the length", value);
}

Text escaped(const Text& text, Budget& budget) {
    Marked made;
    budget.text(text.size());
    text.runs([&](std::string_view run, bool content) {
        for (const char& c : run) {
            const std::string_view to = c == '&'    ? "&amp;"
                                        : c == '<'  ? "&lt;"
                                        : c == '>'  ? "&gt;"
                                        : c == '\'' ? "&#39;"
                                        : c == '"'  ? "&#34;"
                                                    : std::string_view(&c, 1);
            budget.bytes(to.size() - 1);
            made.add(to, content);
        }
    });
    Text out(std::move(made));
    out.markup = true;
    return out;
}

Value concatenated(Value left, const Value& right, Budget& budget) {
    Text* to = left.text_to_change();
    const Text& more = *right.get<Text>();
    if (to->markup == more.markup) {
        budget.bytes(to->append(more));
        return left;
    }
    Text made = to->markup ? *to : escaped(*to, budget);
    budget.bytes(made.append(more.markup ? more : escaped(more, budget)));
    made.markup = true;
    return made;
}

}  // namespace tessera::text::jinja
