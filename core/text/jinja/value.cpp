#include "core/text/jinja/value.hpp"

#include "core/base/error.hpp"
#include "core/text/jinja/functions.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tessera::text::jinja {
namespace {

constexpr size_t kFew = 16;  // members that are found one after the other

uint32_t depth_of(const Value& value) {
    if (value.get<std::shared_ptr<Loop>>()) fail(TSR_UNSUPPORTED, "{} within a list or dictionary", value.kind());
    if (const List* list = value.list()) return list->depth;
    if (const Dictionary* dictionary = value.dictionary()) return dictionary->depth;
    if (const Iterator* iterator = value.iterator()) return iterator->depth;
    if (const auto* cycler = value.get<std::shared_ptr<Cycler>>()) return (*cycler)->depth;
    const auto* callable = value.get<std::shared_ptr<Callable>>();
    if (callable && (*callable)->self) return depth_of(*(*callable)->self) + 1;
    // The members of a namespace change: it counts as 1, and a writer counts them again.
    return value.get<std::shared_ptr<Namespace>>() || callable ? 1 : 0;
}

void raise_depth(uint32_t& depth, const Value& value) {
    depth = std::max(depth, depth_of(value) + 1);
    if (depth > kMaximumDepth) fail(TSR_UNSUPPORTED, "values nested deeper than {}", kMaximumDepth);
}

}  // namespace

size_t Dictionary::place(const Value& key) const {
    if (!texts_.empty()) {
        if (!key.is_text()) {
            for (size_t i = 0; i < members.size(); ++i)
                if (!members[i].first.is_text() && members[i].first.is_number() == key.is_number() &&
                    are_equal(members[i].first, key))
                    return i;
            return members.size();
        }
        const auto found = texts_.find(key.view());
        return found == texts_.end() ? members.size() : found->second;
    }
    for (size_t i = 0; i < members.size(); ++i) {
        const Value& other = members[i].first;
        if (other.is_text() == key.is_text() && (key.is_text() ? other.view() == key.view() : are_equal(other, key)))
            return i;
    }
    return members.size();
}

const Value* Dictionary::find(const Value& key) const {
    const size_t at = place(key);
    return at < members.size() ? &members[at].second : nullptr;
}

const Value* Dictionary::find(std::string_view key) const {
    if (!texts_.empty()) {
        const auto found = texts_.find(key);
        return found == texts_.end() ? nullptr : &members[found->second].second;
    }
    const auto found = std::ranges::find_if(
        members, [&](const auto& member) { return member.first.is_text() && member.first.view() == key; });
    return found == members.end() ? nullptr : &found->second;
}

void Dictionary::set(Value key, Value value) {
    if (!key.is_text() && !key.is_number() && !key.is_none()) fail(TSR_UNSUPPORTED, "{} as a key", key.kind());
    raise_depth(depth, value);
    if (const size_t at = place(key); at < members.size()) {
        members[at].second = std::move(value);
        return;
    }
    members.emplace_back(std::move(key), std::move(value));
    if (members.size() == kFew + 1) {
        for (size_t i = 0; i < members.size(); ++i)
            if (members[i].first.is_text()) texts_.emplace(members[i].first.view(), i);
    } else if (members.size() > kFew && members.back().first.is_text()) {
        texts_.emplace(members.back().first.view(), members.size() - 1);
    }
}

Value Value::list(std::vector<Value> items, List::Kind kind) {
    auto made = std::make_shared<List>();
    for (const Value& item : items) raise_depth(made->depth, item);
    made->items = std::move(items);
    made->kind = kind;
    return made;
}

Value Value::iterator(std::vector<Value> items) {
    auto made = std::make_shared<Iterator>();
    for (const Value& item : items) raise_depth(made->depth, item);
    made->items = std::move(items);
    return made;
}

Value Value::dictionary(std::vector<std::pair<std::string, Value>> members) {
    auto made = std::make_shared<Dictionary>();
    for (auto& [key, member] : members) made->set(text(key), std::move(member));
    return made;
}

Value Value::dictionary(Dictionary members) {
    return std::make_shared<Dictionary>(std::move(members));
}

Value Value::json(const PythonJson& value) {
    switch (value.kind) {
        case PythonJson::Kind::kText:
            return content(value.text);
        case PythonJson::Kind::kList: {
            std::vector<Value> items;
            for (const PythonMember& member : value.members) items.push_back(json(member.value));
            return list(std::move(items));
        }
        case PythonJson::Kind::kObject: {
            Dictionary members;
            for (const auto& [key, member] : value.members) members.set(content(key), json(member));
            return dictionary(std::move(members));
        }
        case PythonJson::Kind::kPlain:
            break;
    }
    const std::string& plain = value.text;
    if (plain == "null") return none();
    if (plain == "true" || plain == "false") return plain == "true";
    if (plain.find_first_of(".eEIN") != plain.npos) return python_double(plain);
    int64_t number = 0;
    const auto read = std::from_chars(plain.data(), plain.data() + plain.size(), number);
    if (read.ec == std::errc() && read.ptr == plain.data() + plain.size()) return number;
    return BigInteger{Text::content(plain)};
}

List* Value::list() const noexcept {
    const auto* held = get<std::shared_ptr<List>>();
    return held ? held->get() : nullptr;
}
Iterator* Value::iterator() const noexcept {
    const auto* held = get<std::shared_ptr<Iterator>>();
    return held ? held->get() : nullptr;
}
Dictionary* Value::dictionary() const noexcept {
    const auto* held = get<std::shared_ptr<Dictionary>>();
    return held ? held->get() : nullptr;
}
std::string_view Value::view() const noexcept {
    const Text* text = get<Text>();
    return text ? text->view() : std::string_view();
}
int64_t Value::integer() const noexcept {
    if (const bool* truth = get<bool>()) return *truth ? 1 : 0;
    const int64_t* number = get<int64_t>();
    return number ? *number : 0;
}
double Value::number() const noexcept {
    const double* fraction = get<double>();
    return fraction ? *fraction : static_cast<double>(integer());
}
bool Value::is_callable() const noexcept {
    return get<std::shared_ptr<Callable>>() || get<Closure>() || get<std::shared_ptr<Loop>>();
}

bool Value::truth() const noexcept {
    if (is_undefined() || is_none()) return false;
    if (is_integer()) return integer() != 0;
    if (const double* value = get<double>()) return *value != 0;
    if (is_text()) return !view().empty();
    if (const List* value = list()) return !value->items.empty();
    if (const Dictionary* value = dictionary()) return !value->members.empty();
    if (const auto* loop = get<std::shared_ptr<Loop>>()) return !(*loop)->items.empty();
    return true;
}

bool Value::is_plain() const noexcept {
    return is_undefined() || is_none() || is_number() || is_text();
}

bool Value::is_same(const Value& other) const noexcept {
    if (storage_.index() != other.storage_.index()) return false;
    if (is_none()) return true;
    if (const bool* truth = get<bool>()) return *truth == *other.get<bool>();
    if (const int64_t* number = get<int64_t>()) return *number == *other.get<int64_t>();
    if (is_text()) return view() == other.view();
    if (list()) return list() == other.list();
    if (dictionary()) return dictionary() == other.dictionary();
    if (iterator()) return iterator() == other.iterator();
    if (const auto* space = get<std::shared_ptr<Namespace>>())
        return *space == *other.get<std::shared_ptr<Namespace>>();
    if (const auto* loop = get<std::shared_ptr<Loop>>()) return *loop == *other.get<std::shared_ptr<Loop>>();
    if (const Closure* closure = get<Closure>())
        return closure->macro == other.get<Closure>()->macro &&
               closure->environment == other.get<Closure>()->environment;
    if (const auto* callable = get<std::shared_ptr<Callable>>())
        return *callable == *other.get<std::shared_ptr<Callable>>();
    return false;
}

const char* Value::kind() const noexcept {
    if (is_undefined()) return "a variable that is not defined";
    if (is_none()) return "none";
    if (get<bool>()) return "a truth value";
    if (is_number()) return "a number";
    if (is_text()) return "a text";
    if (const List* value = list())
        return value->is_tuple() ? "a tuple" : value->is_view() ? "a view of a dictionary" : "a list";
    if (dictionary()) return "a dictionary";
    if (get<std::shared_ptr<Namespace>>()) return "a namespace";
    if (iterator()) return "an iterator";
    if (get<std::shared_ptr<Loop>>()) return "the loop";
    if (get<Closure>()) return "a macro";
    return "a function";
}

}  // namespace tessera::text::jinja
