#include "core/text/jinja/value.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

namespace tessera::text::jinja {
namespace {

uint32_t depth_of(const Value& value) {
    if (value.get<std::shared_ptr<Namespace>>()) fail(TSR_UNSUPPORTED, "a namespace within a list or dictionary");
    if (const List* list = value.list()) return list->depth;
    if (const Dictionary* dictionary = value.dictionary()) return dictionary->depth;
    return 0;
}

void raise_depth(uint32_t& depth, const Value& value) {
    depth = std::max(depth, depth_of(value) + 1);
    if (depth > kMaximumDepth) fail(TSR_UNSUPPORTED, "values nested deeper than {}", kMaximumDepth);
}

uint64_t saturating_sum(uint64_t a, uint64_t b) {
    return a > std::numeric_limits<uint64_t>::max() - b ? std::numeric_limits<uint64_t>::max() : a + b;
}

}  // namespace

Text Text::part(std::string_view part) const {
    Text one = *this;
    one.begin_ = part.empty() ? begin_ : static_cast<size_t>(part.data() - owner_->data());
    one.length_ = part.size();
    return one;
}

size_t Text::append(std::string_view more) {
    size_t copied = more.size();
    if (owner_.use_count() == 1 && begin_ == 0 && length_ == owner_->size()) {
        owner_->append(more);
    } else {
        auto made = std::make_shared<std::string>();
        made->reserve(length_ + more.size());
        made->append(view()).append(more);
        copied += length_;
        owner_ = std::move(made);
        begin_ = 0;
    }
    length_ += more.size();
    return copied;
}

const Value* Dictionary::find(std::string_view key) const noexcept {
    const auto key_of = [](const auto& member) -> std::string_view { return member.first; };
    if (!order.empty()) {
        const auto by_key = [&](uint32_t index) { return key_of(members[index]); };
        const auto found = std::ranges::lower_bound(order, key, {}, by_key);
        return found == order.end() || by_key(*found) != key ? nullptr : &members[*found].second;
    }
    const auto found = std::ranges::find(members, key, key_of);
    return found == members.end() ? nullptr : &found->second;
}

Value Value::list(std::vector<Value> items, List::Kind kind) {
    auto made = std::make_shared<List>();
    made->extent = kExtent;
    for (const Value& item : items) {
        raise_depth(made->depth, item);
        made->extent = saturating_sum(made->extent, item.extent());
    }
    made->items = std::move(items);
    made->kind = kind;
    return std::shared_ptr<const List>(std::move(made));
}

void Value::refuse_iterator() const {
    if (list() && list()->kind == List::Kind::kIterator)
        fail(TSR_UNSUPPORTED, "an iterator, which needs the filter list first");
}

Value Value::dictionary(std::vector<std::pair<std::string, Value>> members) {
    auto made = std::make_shared<Dictionary>();
    made->extent = kExtent;
    for (const auto& [key, member] : members) {
        raise_depth(made->depth, member);
        made->extent = saturating_sum(made->extent, saturating_sum(kExtent + key.size(), member.extent()));
    }
    made->members = std::move(members);
    if (constexpr size_t few = 16; made->members.size() > few) {
        made->order.resize(made->members.size());
        std::iota(made->order.begin(), made->order.end(), 0u);
        std::ranges::sort(made->order, {}, [&](uint32_t i) -> std::string_view { return made->members[i].first; });
    }
    return std::shared_ptr<const Dictionary>(std::move(made));
}

Value Value::json(const PythonJson& value) {
    switch (value.kind) {
        case PythonJson::Kind::kText:
            return text(value.text);
        case PythonJson::Kind::kList: {
            std::vector<Value> items;
            for (const PythonMember& member : value.members) items.push_back(json(member.value));
            return list(std::move(items));
        }
        case PythonJson::Kind::kObject: {
            std::vector<std::pair<std::string, Value>> members;
            for (const auto& [key, member] : value.members) members.emplace_back(key, json(member));
            return dictionary(std::move(members));
        }
        case PythonJson::Kind::kPlain:
            break;
    }
    const std::string& plain = value.text;
    if (plain == "null") return none();
    if (plain == "true" || plain == "false") return plain == "true";
    int64_t number = 0;
    const auto read = std::from_chars(plain.data(), plain.data() + plain.size(), number);
    if (read.ec == std::errc() && read.ptr == plain.data() + plain.size()) return number;
    return OtherNumber{Text(plain)};
}

const List* Value::list() const noexcept {
    const auto* held = get<std::shared_ptr<const List>>();
    return held ? held->get() : nullptr;
}

const Dictionary* Value::dictionary() const noexcept {
    const auto* held = get<std::shared_ptr<const Dictionary>>();
    return held ? held->get() : nullptr;
}

std::string_view Value::view() const noexcept {
    const Text* text = get<Text>();
    return text ? text->view() : std::string_view();
}

uint64_t Value::extent() const noexcept {
    if (const List* items = list()) return items->extent;
    if (const Dictionary* members = dictionary()) return members->extent;
    if (const OtherNumber* number = get<OtherNumber>()) return kExtent + number->text.view().size();
    return kExtent + view().size();
}

bool Value::truth() const {
    refuse_iterator();
    if (is_undefined() || is_none()) return false;
    if (const bool* value = get<bool>()) return *value;
    if (const int64_t* value = get<int64_t>()) return *value != 0;
    if (const OtherNumber* value = get<OtherNumber>())
        return value->text.view().find_first_of("123456789IN") != std::string::npos;
    if (is_text()) return !view().empty();
    if (const List* value = list()) return !value->items.empty();
    if (const Dictionary* value = dictionary()) return !value->members.empty();
    return true;
}

std::string Value::written() const {
    if (is_undefined()) return {};
    if (is_text()) return std::string(view());
    refuse_iterator();
    std::string out;
    write_repr(out);
    return out;
}

void Value::write_repr(std::string& out) const {
    refuse_iterator();
    if (is_none()) {
        out += "None";
    } else if (const bool* value = get<bool>()) {
        out += *value ? "True" : "False";
    } else if (const int64_t* number = get<int64_t>()) {
        out += std::to_string(*number);
    } else if (const OtherNumber* other = get<OtherNumber>()) {
        out += other->text.view();
    } else if (is_text()) {
        const std::string_view text = view();
        const char quote = text.find('\'') != text.npos && text.find('"') == text.npos ? '"' : '\'';
        out += quote;
        for (const char c : text) {
            if (c == quote || c == '\\') {
                (out += '\\') += c;
            } else if (c == '\n' || c == '\r' || c == '\t') {
                (out += '\\') += c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
            } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F) {
                // Which characters Python shows as they are depends on its tables.
                fail(TSR_UNSUPPORTED, "a list or dictionary as Python shows it, with other characters than ASCII");
            } else {
                out += c;
            }
        }
        out += quote;
    } else if (const List* items = list()) {
        const bool tuple = items->kind == List::Kind::kTuple;
        out += tuple ? '(' : '[';
        for (size_t i = 0; i < items->items.size(); ++i) {
            if (i > 0) out += ", ";
            items->items[i].write_repr(out);
        }
        out += tuple && items->items.size() == 1 ? ",)" : tuple ? ")" : "]";
    } else if (const Dictionary* members = dictionary()) {
        out += '{';
        for (size_t i = 0; i < members->members.size(); ++i) {
            if (i > 0) out += ", ";
            text(members->members[i].first).write_repr(out);
            out += ": ";
            members->members[i].second.write_repr(out);
        }
        out += '}';
    } else {
        fail(TSR_UNSUPPORTED, "{} written out", kind());
    }
}

PythonJson Value::to_json() const {
    refuse_iterator();
    if (is_text()) return PythonJson::of_text(view());
    PythonJson made;
    if (const List* items = list()) {
        made.kind = PythonJson::Kind::kList;
        for (const Value& item : items->items) made.members.push_back({"", item.to_json()});
        return made;
    }
    if (const Dictionary* members = dictionary()) {
        made.kind = PythonJson::Kind::kObject;
        for (const auto& [key, member] : members->members) made.members.push_back({key, member.to_json()});
        return made;
    }
    if (is_none()) {
        made.text = "null";
    } else if (const bool* value = get<bool>()) {
        made.text = *value ? "true" : "false";
    } else if (get<int64_t>() || get<OtherNumber>()) {
        made.text = written();
    } else {
        fail(TSR_UNSUPPORTED, "{} as JSON", kind());
    }
    return made;
}

std::string Value::dumps(uint32_t indent) const {
    return to_json().dumps(indent);
}

bool Value::equals(const Value& other) const {
    refuse_iterator();
    other.refuse_iterator();
    const auto number = [](const Value& value) -> std::pair<bool, int64_t> {
        if (const bool* truth = value.get<bool>()) return {true, *truth ? 1 : 0};
        if (const int64_t* integer = value.get<int64_t>()) return {true, *integer};
        return {false, 0};
    };
    if (number(*this).first || number(other).first) {
        if (get<OtherNumber>() || other.get<OtherNumber>())
            fail(TSR_UNSUPPORTED, "an integer compared with a fraction");
        return number(*this) == number(other);
    }
    if (storage_.index() != other.storage_.index()) return false;
    if (is_text()) return view() == other.view();
    if (const OtherNumber* value = get<OtherNumber>())
        return value->text.view() == other.get<OtherNumber>()->text.view();
    if (const List* value = list()) {
        if (value->kind != other.list()->kind) return false;
        if (value->items.empty() || other.list()->items.empty())
            return value->items.size() == other.list()->items.size();
    }
    if (const Dictionary* value = dictionary()) {
        const size_t size = other.dictionary()->members.size();
        if (value->members.empty() || size == 0) return value->members.size() == size;
    }
    if (is_undefined() || is_none()) return true;
    fail(TSR_UNSUPPORTED, "{} compared", kind());
}

const char* Value::kind() const noexcept {
    if (is_undefined()) return "a variable that is not defined";
    if (is_none()) return "none";
    if (get<bool>()) return "a truth value";
    if (get<int64_t>() || get<OtherNumber>()) return "a number";
    if (is_text()) return "a text";
    if (list()) return "a list";
    if (dictionary()) return "a dictionary";
    if (get<std::shared_ptr<Namespace>>()) return "a namespace";
    return "a function";
}

}  // namespace tessera::text::jinja
