#include "core/gguf/value.hpp"

#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <type_traits>

namespace tessera::gguf {
namespace {

constexpr size_t kTextBytes = 200;  // of a string in to_text

template <typename T>
std::string scalar_text(const T& value) {
    if constexpr (std::is_convertible_v<T, std::string_view>) {
        return '"' + printable(value, kTextBytes) + '"';
    } else {
        return fmt::format("{}", value);
    }
}

}  // namespace

Array::Array() = default;
Array::Array(const Array&) = default;
Array::Array(Array&&) noexcept = default;
Array& Array::operator=(const Array&) = default;
Array& Array::operator=(Array&&) noexcept = default;
Array::~Array() = default;

Value::Value() = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

std::string_view type_name(ValueType type) noexcept {
    static constexpr std::array<std::string_view, kValueTypes> kNames = {
        "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};
    const auto at = static_cast<uint32_t>(type);
    return at < kValueTypes ? kNames[at] : "unknown";
}

size_t array_size(const Array& array) noexcept {
    return std::visit(
        [](const auto& elements) -> size_t {
            if constexpr (std::is_same_v<std::decay_t<decltype(elements)>, NoNesting>) {
                return 0;
            } else {
                return elements.size();
            }
        },
        array);
}

std::string describe_type(const Value& value) {
    if (const Array* array = std::get_if<Array>(&value)) {
        return fmt::format("array of {} {}", array_size(*array), type_name(element_type(*array)));
    }
    return std::string(type_name(type_of(value)));
}

std::string to_text(const Value& value, size_t elements) {
    const auto array_text = [&](const auto& array) {
        std::string out = "[";
        if constexpr (!std::is_same_v<std::decay_t<decltype(array)>, NoNesting>) {
            const size_t shown = std::min(elements, array.size());
            for (size_t i = 0; i < shown; ++i) {
                if (i) out += ", ";
                out += scalar_text(array[i]);
            }
            if (shown < array.size()) out += fmt::format("{}... {} in all", shown ? ", " : "", array.size());
        }
        return out + "]";
    };
    return std::visit(
        [&](const auto& one) {
            if constexpr (std::is_same_v<std::decay_t<decltype(one)>, Array>) {
                return std::visit(array_text, one);
            } else {
                return scalar_text(one);
            }
        },
        value);
}

}  // namespace tessera::gguf
