// Values of a template: what Python has for them, as far as chat templates use it.
#pragma once

#include "core/text/python_json.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::text::jinja {

class Value;
struct Macro;

// A text, or a part of one, which it shares.
class Text {
  public:
    Text() = default;
    explicit Text(std::string text) : owner_(std::make_shared<std::string>(std::move(text))), length_(owner_->size()) {}

    std::string_view view() const noexcept {
        return owner_ ? std::string_view(*owner_).substr(begin_, length_) : std::string_view();
    }
    // `part` must be a part of view().
    Text part(std::string_view part) const;
    // Appends, in place if nobody else has the text. Returns how many bytes were copied.
    size_t append(std::string_view more);

  private:
    std::shared_ptr<std::string> owner_;
    size_t begin_ = 0;
    size_t length_ = 0;
};

// A number that is not an integer of 64 bits, as Python writes it. Copies share the text, which a request may make
// long.
struct OtherNumber {
    Text text;
};

// Lists and dictionaries do not change once they are made; `depth` is that of what they hold, at most kMaximumDepth,
// and `extent` is Value::extent().
struct List {
    std::vector<Value> items;
    uint32_t depth = 1;
    uint64_t extent = 0;
    enum class Kind : uint8_t {
        kList,
        kTuple,
        kIterator  // what Python makes as it goes: that it has a length, a truth or JSON is refused
    };
    Kind kind = Kind::kList;
};
struct Dictionary {
    std::vector<std::pair<std::string, Value>> members;  // keys are different
    std::vector<uint32_t> order;                         // of members by key; empty for few
    uint32_t depth = 1;
    uint64_t extent = 0;

    const Value* find(std::string_view key) const noexcept;
};
// namespace(): the one thing whose members a program sets. It is never a member of anything.
struct Namespace {
    std::vector<std::pair<std::string, Value>> members;
};
enum class Function : uint8_t { kRange, kNamespace, kRaise, kTime, kDictionary };

inline constexpr uint32_t kMaximumDepth = 300;
inline constexpr uint64_t kExtent = 64;  // Value::extent() of what is no text

// Whether T is one of a variant's types. std::constructible_from would ask whether a Value can be made of T.
template <typename T, typename Variant>
struct IsAlternative : std::false_type {};
template <typename T, typename... Types>
struct IsAlternative<T, std::variant<Types...>> : std::disjunction<std::is_same<T, Types>...> {};

class Value {
  public:
    struct Undefined {};
    struct None {};
    using Storage = std::variant<Undefined, None, bool, int64_t, OtherNumber, Text, std::shared_ptr<const List>,
                                 std::shared_ptr<const Dictionary>, std::shared_ptr<Namespace>, Function, const Macro*>;

    Value() = default;  // undefined
    template <typename T>
    requires IsAlternative<T, Storage>::value Value(T value)
        : storage_(std::in_place_type<T>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
    static Value text(std::string_view text) { return Text(std::string(text)); }
    static Value none() { return None(); }
    // Throw Error(TSR_UNSUPPORTED) for what is nested too deeply, or holds a namespace.
    static Value list(std::vector<Value> items, List::Kind kind = List::Kind::kList);
    static Value dictionary(std::vector<std::pair<std::string, Value>> members);
    static Value json(const PythonJson& value);

    template <typename T>
    const T* get() const noexcept {
        return std::get_if<T>(&storage_);
    }
    Text* text_to_change() noexcept { return std::get_if<Text>(&storage_); }
    const List* list() const noexcept;  // an iterator too
    // Throws Error(TSR_UNSUPPORTED) for an iterator.
    void refuse_iterator() const;
    const Dictionary* dictionary() const noexcept;
    bool is_undefined() const noexcept { return get<Undefined>() != nullptr; }
    bool is_none() const noexcept { return get<None>() != nullptr; }
    bool is_text() const noexcept { return get<Text>() != nullptr; }
    std::string_view view() const noexcept;  // of a text, else nothing

    // About how many bytes it takes to write the value out. What is shared counts as often as it is held: a few
    // statements make lists that are larger than any memory when they are written.
    uint64_t extent() const noexcept;

    bool truth() const;  // throws Error(TSR_UNSUPPORTED) for an iterator
    // str(); repr() of what is in a list. Throws Error(TSR_UNSUPPORTED) for what a template has no reason to write.
    std::string written() const;
    // json.dumps(value, ensure_ascii=False). Throws Error(TSR_UNSUPPORTED) for what JSON does not have.
    std::string dumps(uint32_t indent) const;
    // As Python: what is of different types differs, but for numbers. Throws Error(TSR_UNSUPPORTED) for two lists or
    // dictionaries that both hold something.
    bool equals(const Value& other) const;
    // "a text", "a list", ...
    const char* kind() const noexcept;

  private:
    void write_repr(std::string& out) const;
    PythonJson to_json() const;

    Storage storage_;
};

}  // namespace tessera::text::jinja
