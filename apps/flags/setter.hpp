// How the text of a flag's value becomes a member of a structure of settings.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tessera::app {

// Thrown where a value is not of the kind that a setter takes; what() is what was expected: "a whole number from 1 to
// 8".
class WrongValue : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// The same where more is to be said: what() follows the flag and a colon.
class RefusedValue : public std::runtime_error {
  public:
    using std::runtime_error::runtime_error;
};

// Its address stands for a type.
template <typename T>
inline constexpr char kTypeTag = 0;

struct Setter {
    const void* owner = nullptr;  // kTypeTag of the structure; nullptr: there is no setter
    // `object`: of that type. `choices`: the flag's placeholder. Throws WrongValue and RefusedValue.
    void (*set)(void* object, std::string_view text, std::string_view choices) = nullptr;
    // The default, for help texts; nullptr: the help text says it, or there is none.
    std::string (*initial)() = nullptr;

    consteval Setter unsaid() const { return {owner, set, nullptr}; }
};

// Whether all of the text is a number, which may have a sign.
bool parse_whole(std::string_view text, int64_t& value);
bool parse_whole(std::string_view text, double& value);
// On, off, auto (which is on), 1, 0, true, false.
bool parse_switch(std::string_view text);
int64_t parse_integer(std::string_view text, int64_t minimum, int64_t maximum);
double parse_number(std::string_view text, double minimum, double maximum);
std::string parse_choice(std::string_view text, std::string_view choices);
// Parts between separators; at least one.
std::vector<std::string> split(std::string_view text, char separator);

template <typename>
struct MemberOf;
template <typename Owner, typename Value>
struct MemberOf<Value Owner::*> {
    using Structure = Owner;
    using Type = Value;
};

template <auto Member>
using StructureOf = typename MemberOf<decltype(Member)>::Structure;
template <auto Member>
using TypeOf = typename MemberOf<decltype(Member)>::Type;

template <auto Member>
TypeOf<Member>& member(void* object) {
    return static_cast<StructureOf<Member>*>(object)->*Member;
}

template <typename T>
struct Plain {
    using Type = T;
};
template <typename T>
struct Plain<std::optional<T>> {
    using Type = T;
};

// The flag given, or its value as a switch, is `Value`.
template <auto Member, bool Value = true>
consteval Setter sets() {
    return {&kTypeTag<StructureOf<Member>>, [](void* object, std::string_view text, std::string_view) {
                member<Member>(object) = parse_switch(text) == Value;
            }};
}
template <auto Member>
consteval Setter clears() {
    return sets<Member, false>();
}

// A whole number of `Unit`s.
template <auto Member, int64_t Minimum, int64_t Maximum, int64_t Unit = 1>
consteval Setter whole() {
    using Type = typename Plain<TypeOf<Member>>::Type;
    return {&kTypeTag<StructureOf<Member>>,
            [](void* object, std::string_view text, std::string_view) {
                member<Member>(object) = static_cast<Type>(parse_integer(text, Minimum, Maximum) * Unit);
            },
            []() -> std::string {
                if constexpr (std::integral<TypeOf<Member>>) {
                    const auto value = static_cast<int64_t>(StructureOf<Member>().*Member);
                    return value == 0 ? "" : std::to_string(value / Unit);
                } else if constexpr (std::same_as<TypeOf<Member>, std::chrono::seconds>) {
                    return std::to_string((StructureOf<Member>().*Member).count());
                } else {
                    return "";
                }
            }};
}

// A number, of which the member is `1 / Per`.
template <auto Member, int64_t Minimum, int64_t Maximum, int64_t Per = 1>
consteval Setter number() {
    using Type = typename Plain<TypeOf<Member>>::Type;
    return {&kTypeTag<StructureOf<Member>>,
            [](void* object, std::string_view text, std::string_view) {
                member<Member>(object) = static_cast<Type>(
                    parse_number(text, static_cast<double>(Minimum), static_cast<double>(Maximum)) / Per);
            },
            nullptr};
}

// As it is: a text or a path.
template <auto Member>
consteval Setter verbatim() {
    return {&kTypeTag<StructureOf<Member>>,
            [](void* object, std::string_view text, std::string_view) { member<Member>(object) = std::string(text); },
            []() -> std::string {
                if constexpr (std::same_as<TypeOf<Member>, std::string>)
                    return StructureOf<Member>().*Member;
                else
                    return "";
            }};
}

// One of the words in the flag's placeholder, "none|linear|yarn".
template <auto Member>
consteval Setter choice() {
    return {&kTypeTag<StructureOf<Member>>, [](void* object, std::string_view text, std::string_view choices) {
                member<Member>(object) = parse_choice(text, choices);
            }};
}

// The parts between commas, but for empty ones, are appended.
template <auto Member>
consteval Setter list() {
    return {&kTypeTag<StructureOf<Member>>, [](void* object, std::string_view text, std::string_view) {
                size_t count = 0;
                for (std::string& part : split(text, ',')) {
                    if (part.empty()) continue;
                    member<Member>(object).push_back(std::move(part));
                    ++count;
                }
                if (count == 0) throw WrongValue("at least one, separated by commas");
            }};
}

// `Parse` of the text, which throws WrongValue.
template <auto Member, auto Parse>
consteval Setter parsed() {
    return {&kTypeTag<StructureOf<Member>>,
            [](void* object, std::string_view text, std::string_view) { member<Member>(object) = Parse(text); }};
}

// `Function` changes the structure, and throws WrongValue.
template <typename Structure, void (*Function)(Structure&, std::string_view)>
consteval Setter changed_by() {
    return {&kTypeTag<Structure>, [](void* object, std::string_view text, std::string_view) {
                Function(*static_cast<Structure*>(object), text);
            }};
}

}  // namespace tessera::app
