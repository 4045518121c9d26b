// The metadata of a model: keys and values in the order of the file, with checked access.
#pragma once

#include "core/gguf/value.hpp"

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tessera::gguf {

// Getters convert between integer types where the value fits, and between f32 and f64; nothing else. get_* throws
// Error(TSR_NOT_FOUND) if the key is missing, find_* returns nothing then; both throw Error(TSR_CORRUPT_DATA), naming
// file, key, expected and found type, if the value is of the wrong kind. Reading is safe from any thread.
class Metadata {
  public:
    struct Entry {
        std::string key;
        Value value;
    };

    // `source` names the file in messages.
    explicit Metadata(std::string source = "metadata") : source_(std::move(source)) {}

    const std::string& source() const noexcept { return source_; }
    std::span<const Entry> entries() const noexcept { return entries_; }
    bool contains(std::string_view key) const { return find(key) != nullptr; }
    const Value* find(std::string_view key) const;

    // Appends; throws Error(TSR_CORRUPT_DATA) if the key exists.
    void add(std::string key, Value value);
    // Replaces or appends.
    void set(std::string key, Value value);

    uint32_t get_u32(std::string_view key) const { return get<uint32_t>(key); }
    int32_t get_i32(std::string_view key) const { return get<int32_t>(key); }
    uint64_t get_u64(std::string_view key) const { return get<uint64_t>(key); }
    float get_f32(std::string_view key) const { return get<float>(key); }
    bool get_bool(std::string_view key) const { return get<bool>(key); }
    // Must be UTF-8. Valid while the entry is not replaced; the same holds for the arrays below.
    std::string_view get_string(std::string_view key) const { return get<std::string_view>(key); }
    const StringArray& get_strings(std::string_view key) const;

    std::optional<uint32_t> find_u32(std::string_view key) const { return find_as<uint32_t>(key); }
    std::optional<int32_t> find_i32(std::string_view key) const { return find_as<int32_t>(key); }
    std::optional<uint64_t> find_u64(std::string_view key) const { return find_as<uint64_t>(key); }
    std::optional<float> find_f32(std::string_view key) const { return find_as<float>(key); }
    std::optional<bool> find_bool(std::string_view key) const { return find_as<bool>(key); }
    std::optional<std::string_view> find_string(std::string_view key) const { return find_as<std::string_view>(key); }
    const StringArray* find_strings(std::string_view key) const;

    // T: uint32_t, int32_t, uint64_t, int64_t, float, double, bool or std::string_view.
    template <typename T>
    std::optional<T> find_as(std::string_view key) const;
    template <typename T>
    T get(std::string_view key) const {
        if (auto value = find_as<T>(key)) return *value;
        fail_missing(key);
    }

    // The elements of an array, converted like the scalars. T: uint32_t, int32_t, uint64_t, float or bool.
    template <typename T>
    std::optional<std::vector<T>> find_array(std::string_view key) const;
    template <typename T>
    std::vector<T> get_array(std::string_view key) const {
        if (auto value = find_array<T>(key)) return *std::move(value);
        fail_missing(key);
    }

  private:
    struct Hash {
        using is_transparent = void;
        size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>()(text); }
    };

    [[noreturn]] void fail_missing(std::string_view key) const;
    [[noreturn]] void fail_type(std::string_view key, std::string_view expected, const Value& found) const;

    std::string source_;
    std::vector<Entry> entries_;
    std::unordered_map<std::string, size_t, Hash, std::equal_to<>> places_;
};

// A value of the user's that replaces the file's (--override-kv).
struct Override {
    std::string key;
    Value value;  // i64 (u64 past its range), f32, bool or string
};

// Reads KEY=TYPE:VALUE, TYPE being int, float, bool or str. Throws Error(TSR_INVALID_ARGUMENT) that quotes the text.
Override parse_override(std::string_view text);

}  // namespace tessera::gguf
