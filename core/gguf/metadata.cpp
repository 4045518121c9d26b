#include "core/gguf/metadata.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <charconv>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

namespace tessera::gguf {
namespace {

template <typename T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// `from` as a T if that loses nothing of its meaning.
template <typename T, typename From>
std::optional<T> convert(const From& from) {
    if constexpr (kIsInteger<T> && kIsInteger<From>) {
        if (std::in_range<T>(from)) return static_cast<T>(from);
    } else if constexpr (std::is_floating_point_v<T> && std::is_floating_point_v<From>) {
        // A finite number that a float cannot hold would become infinite.
        if (!std::isfinite(from) || std::abs(from) <= std::numeric_limits<T>::max()) return static_cast<T>(from);
    } else if constexpr (std::is_same_v<T, bool> && std::is_same_v<From, bool>) {
        return from;
    } else if constexpr (std::is_same_v<T, std::string_view> && std::is_same_v<From, std::string>) {
        if (is_utf8(from)) return std::string_view(from);
    }
    return std::nullopt;
}

template <typename T>
std::string expected_name() {
    if constexpr (std::is_same_v<T, std::string_view>) {
        return "a string of valid UTF-8";
    } else if constexpr (std::is_same_v<T, bool>) {
        return "bool";
    } else if constexpr (std::is_floating_point_v<T>) {
        return fmt::format("a number that fits f{}", 8 * sizeof(T));
    } else {
        return fmt::format("an integer that fits {}{}", std::is_signed_v<T> ? 'i' : 'u', 8 * sizeof(T));
    }
}

template <typename T, typename Elements>
std::optional<std::vector<T>> convert_elements(const Elements& elements) {
    if constexpr (std::is_same_v<Elements, StringArray> || std::is_same_v<Elements, NoNesting>) {
        return std::nullopt;
    } else {
        std::vector<T> out;
        out.reserve(elements.size());
        for (const typename Elements::value_type element : elements) {
            const auto converted = convert<T>(element);
            if (!converted) return std::nullopt;
            out.push_back(*converted);
        }
        return out;
    }
}

}  // namespace

const Value* Metadata::find(std::string_view key) const {
    const auto at = places_.find(key);
    return at == places_.end() ? nullptr : &entries_[at->second].value;
}

void Metadata::add(std::string key, Value value) {
    if (!places_.emplace(key, entries_.size()).second) {
        fail(TSR_CORRUPT_DATA, "{}: key '{}' occurs twice", source_, printable(key));
    }
    entries_.push_back({std::move(key), std::move(value)});
}

void Metadata::set(std::string key, Value value) {
    if (const auto at = places_.find(key); at != places_.end()) {
        entries_[at->second].value = std::move(value);
    } else {
        add(std::move(key), std::move(value));
    }
}

void Metadata::fail_missing(std::string_view key) const {
    fail(TSR_NOT_FOUND, "{}: key '{}' is missing", source_, key);
}

void Metadata::fail_type(std::string_view key, std::string_view expected, const Value& found) const {
    fail(TSR_CORRUPT_DATA, "{}: key '{}': expected {}, found {} {}", source_, key, expected, describe_type(found),
         to_text(found));
}

const StringArray* Metadata::find_strings(std::string_view key) const {
    const Value* const value = find(key);
    if (!value) return nullptr;
    const Array* const array = std::get_if<Array>(value);
    const StringArray* const strings = array ? std::get_if<StringArray>(array) : nullptr;
    if (!strings) fail_type(key, "an array of strings", *value);
    return strings;
}

const StringArray& Metadata::get_strings(std::string_view key) const {
    if (const StringArray* strings = find_strings(key)) return *strings;
    fail_missing(key);
}

template <typename T>
std::optional<T> Metadata::find_as(std::string_view key) const {
    const Value* const value = find(key);
    if (!value) return std::nullopt;
    const auto converted = std::visit([](const auto& one) { return convert<T>(one); }, *value);
    if (!converted) fail_type(key, expected_name<T>(), *value);
    return converted;
}

template <typename T>
std::optional<std::vector<T>> Metadata::find_array(std::string_view key) const {
    const Value* const value = find(key);
    if (!value) return std::nullopt;
    std::optional<std::vector<T>> converted;
    if (const Array* array = std::get_if<Array>(value)) {
        converted = std::visit([](const auto& elements) { return convert_elements<T>(elements); }, *array);
    }
    if (!converted) fail_type(key, fmt::format("an array, each element {}", expected_name<T>()), *value);
    return converted;
}

template std::optional<uint32_t> Metadata::find_as(std::string_view) const;
template std::optional<int32_t> Metadata::find_as(std::string_view) const;
template std::optional<uint64_t> Metadata::find_as(std::string_view) const;
template std::optional<int64_t> Metadata::find_as(std::string_view) const;
template std::optional<float> Metadata::find_as(std::string_view) const;
template std::optional<double> Metadata::find_as(std::string_view) const;
template std::optional<bool> Metadata::find_as(std::string_view) const;
template std::optional<std::string_view> Metadata::find_as(std::string_view) const;
template std::optional<std::vector<uint32_t>> Metadata::find_array(std::string_view) const;
template std::optional<std::vector<int32_t>> Metadata::find_array(std::string_view) const;
template std::optional<std::vector<uint64_t>> Metadata::find_array(std::string_view) const;
template std::optional<std::vector<float>> Metadata::find_array(std::string_view) const;
template std::optional<std::vector<bool>> Metadata::find_array(std::string_view) const;

namespace {

template <typename T>
std::optional<T> parse_number(std::string_view text) {
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return number;
}

std::optional<Value> parse_value(std::string_view type, std::string_view text) {
    if (type == "int") {
        if (const auto number = parse_number<int64_t>(text)) return *number;
        if (const auto number = parse_number<uint64_t>(text)) return *number;
    } else if (type == "float") {
        if (const auto number = parse_number<float>(text); number && std::isfinite(*number)) return *number;
    } else if (type == "bool") {
        if (text == "true") return true;
        if (text == "false") return false;
    } else if (type == "str") {
        return std::string(text);
    }
    return std::nullopt;
}

}  // namespace

Override parse_override(std::string_view text) {
    const size_t equals = text.find('=');
    const size_t colon = equals == text.npos ? text.npos : text.find(':', equals);
    const auto expect = [&](std::string_view what) {
        fail(TSR_INVALID_ARGUMENT, "'{}': expected {} (KEY=TYPE:VALUE, TYPE one of int, float, bool, str)",
             printable(text), what);
    };
    if (equals == text.npos || equals == 0) expect("a key before '='");
    if (colon == text.npos) expect("a type and ':' after '='");
    const std::string_view key = text.substr(0, equals);
    const std::string_view type = text.substr(equals + 1, colon - equals - 1);
    if (!is_utf8(text)) expect("valid UTF-8");
    if (type != "int" && type != "float" && type != "bool" && type != "str") expect("a known type");
    auto value = parse_value(type, text.substr(colon + 1));
    if (!value) expect(fmt::format("a value of type {} after ':'", type));
    return {std::string(key), *std::move(value)};
}

}  // namespace tessera::gguf
