// Values of a template: what Python has for them, as far as chat templates use it.
#pragma once

#include "core/text/jinja/text.hpp"
#include "core/text/python_json.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace tessera::text::jinja {

class Budget;
class Value;
struct Environment;
struct Macro;

// An integer that does not fit 64 bits: its digits. It is written and compared, not calculated with.
struct BigInteger {
    Text digits;
};

// What is in a list or a dictionary has a depth, at most kMaximumDepth, that is known when it is made; only plain
// values are put into one later. So none of them holds itself.
struct List {
    enum class Kind : uint8_t { kList, kTuple, kGroup, kRange, kKeys, kValues, kItems };  // kGroup: a tuple of groupby
    std::vector<Value> items;
    uint32_t depth = 1;
    Kind kind = Kind::kList;
    std::array<int64_t, 3> range = {};  // of kRange: begin, end and step

    bool is_view() const noexcept { return kind >= Kind::kKeys; }
    bool is_tuple() const noexcept { return kind == Kind::kTuple || kind == Kind::kGroup; }
};

class Dictionary {
  public:
    // Keys are different, and hashable.
    std::vector<std::pair<Value, Value>> members;
    uint32_t depth = 1;

    const Value* find(const Value& key) const;
    const Value* find(std::string_view key) const;
    // Replaces what has this key. Throws Error(TSR_UNSUPPORTED) for a key that Python does not hash.
    void set(Value key, Value value);

  private:
    size_t place(const Value& key) const;
    std::unordered_map<std::string_view, size_t> texts_;  // places of keys that are texts, once there are many
};

// namespace(): the only thing whose members a template sets. Lists, dictionaries and other namespaces may hold it, so
// it may hold itself: the run clears the members of all namespaces at its end (Runner).
struct Namespace {
    std::vector<std::pair<std::string, Value>> members;
};

// What Python makes as it goes: each item is taken once.
struct Iterator {
    std::vector<Value> items;
    size_t next = 0;
    uint32_t depth = 1;  // as of a list of them
};

// The variable "loop".
struct Loop;

// What can be called but a macro: a function, or a method of `self`.
struct Callable {
    enum class Kind : uint8_t {
        kRange,
        kNamespace,
        kDictionary,
        kCycler,
        kJoiner,
        kLipsum,
        kRaise,
        kTime,
        kMethod,
        kJoinOnce
    };
    Kind kind;
    std::shared_ptr<Value> self;  // of a method; of kJoinOnce: the separator
    std::string name = {};
    size_t calls = 0;  // of kJoinOnce
};
struct Cycler {
    std::vector<Value> items;
    size_t at = 0;
    uint32_t depth = 1;  // as of a list of them
};
// A macro with the variables that it sees; of a call block: its body, which has no name.
struct Closure {
    const Macro* macro;
    Environment* environment;
};

struct Undefined {
    const std::string* name = nullptr;  // what was looked for, a part of the program
    // Whether a sandbox hides it: it may be written and tested, but nothing else.
    bool hidden = false;
};
struct None {};

inline constexpr uint32_t kMaximumDepth = 300;

// Whether T is one of a variant's types. std::constructible_from would ask whether a Value can be made of T.
template <typename T, typename Variant>
struct IsAlternative : std::false_type {};
template <typename T, typename... Types>
struct IsAlternative<T, std::variant<Types...>> : std::disjunction<std::is_same<T, Types>...> {};

class Value {
  public:
    using Storage = std::variant<Undefined, None, bool, int64_t, double, BigInteger, Text, std::shared_ptr<List>,
                                 std::shared_ptr<Dictionary>, std::shared_ptr<Namespace>, std::shared_ptr<Iterator>,
                                 std::shared_ptr<Loop>, std::shared_ptr<Callable>, std::shared_ptr<Cycler>, Closure>;

    Value() = default;  // undefined
    template <typename T>
    requires IsAlternative<T, Storage>::value Value(T value)
        : storage_(std::in_place_type<T>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
    // A text of the template's own.
    static Value text(std::string_view text) { return Text(std::string(text)); }
    static Value content(std::string_view text) { return Text::content(std::string(text)); }
    static Value none() { return None(); }
    // Throw Error(TSR_UNSUPPORTED) for what is nested too deeply, or holds a loop.
    static Value list(std::vector<Value> items, List::Kind kind = List::Kind::kList);
    static Value iterator(std::vector<Value> items);
    static Value dictionary(std::vector<std::pair<std::string, Value>> members);  // with keys of the template's own
    static Value dictionary(Dictionary members);
    // All texts in it are contents.
    static Value json(const PythonJson& value);

    template <typename T>
    const T* get() const noexcept {
        return std::get_if<T>(&storage_);
    }
    Text* text_to_change() noexcept { return std::get_if<Text>(&storage_); }
    List* list() const noexcept;
    Iterator* iterator() const noexcept;
    Dictionary* dictionary() const noexcept;
    bool is_undefined() const noexcept { return get<Undefined>() != nullptr; }
    bool is_none() const noexcept { return get<None>() != nullptr; }
    bool is_text() const noexcept { return get<Text>() != nullptr; }
    bool is_integer() const noexcept { return get<int64_t>() || get<bool>(); }
    bool is_number() const noexcept { return is_integer() || get<double>() || get<BigInteger>(); }
    bool is_callable() const noexcept;
    std::string_view view() const noexcept;  // of a text, else nothing
    int64_t integer() const noexcept;        // of an integer or truth value, else 0
    double number() const noexcept;          // of a number but a BigInteger, else 0

    bool truth() const noexcept;
    // Neither a list, a dictionary, nor anything that may hold one.
    bool is_plain() const noexcept;
    // "a text", "a list", ...
    const char* kind() const noexcept;
    bool is_same(const Value& other) const noexcept;  // "is" of Python

  private:
    Storage storage_;
};

struct Loop {
    std::vector<Value> items;
    size_t index = 0;
    uint32_t depth = 0;          // of a loop that calls itself, from 0
    const void* body = nullptr;  // the statement, where it may call itself
    Environment* environment = nullptr;
    std::vector<Value> changed = {};  // what changed() was called with
    bool was_asked = false;           // whether it was
};

}  // namespace tessera::text::jinja
