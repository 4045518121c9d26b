// A metadata value of a GGUF file. Type numbers: the public GGUF specification.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tessera::gguf {

enum class ValueType : uint32_t {
    kU8 = 0,
    kI8 = 1,
    kU16 = 2,
    kI16 = 3,
    kU32 = 4,
    kI32 = 5,
    kF32 = 6,
    kBool = 7,
    kString = 8,
    kArray = 9,
    kU64 = 10,
    kI64 = 11,
    kF64 = 12,
};
inline constexpr uint32_t kValueTypes = 13;

// "u32", "string", ...
std::string_view type_name(ValueType type) noexcept;

// Many strings in one block of memory: a vocabulary of 130,000 is two allocations. The strings may hold any bytes.
class StringArray {
  public:
    class Iterator;

    size_t size() const noexcept { return ends_.size(); }
    bool empty() const noexcept { return ends_.empty(); }

    // Valid while the array lives and is not appended to.
    std::string_view operator[](size_t i) const noexcept {
        const size_t begin = i == 0 ? 0 : ends_[i - 1];
        return std::string_view(bytes_).substr(begin, ends_[i] - begin);
    }
    Iterator begin() const noexcept;
    Iterator end() const noexcept;

    void reserve(size_t strings) { ends_.reserve(strings); }
    void push_back(std::string_view text) {
        bytes_ += text;
        ends_.push_back(bytes_.size());
    }

    bool operator==(const StringArray&) const = default;

  private:
    std::string bytes_;
    std::vector<size_t> ends_;
};

class StringArray::Iterator {
  public:
    using difference_type = std::ptrdiff_t;
    using value_type = std::string_view;
    using iterator_category = std::input_iterator_tag;
    using pointer = void;
    using reference = std::string_view;

    Iterator() = default;
    Iterator(const StringArray* array, size_t at) noexcept : array_(array), at_(at) {}
    std::string_view operator*() const noexcept { return (*array_)[at_]; }
    Iterator& operator++() noexcept {
        ++at_;
        return *this;
    }
    Iterator operator++(int) noexcept {
        const Iterator old = *this;
        ++at_;
        return old;
    }
    bool operator==(const Iterator&) const = default;

  private:
    const StringArray* array_ = nullptr;
    size_t at_ = 0;
};

inline StringArray::Iterator StringArray::begin() const noexcept {
    return {this, 0};
}
inline StringArray::Iterator StringArray::end() const noexcept {
    return {this, size()};
}

// The alternatives are in the order of ValueType, so that index() is the type number. Arrays do not nest: the ninth
// alternative is never used.
struct NoNesting {
    bool operator==(const NoNesting&) const = default;
};
using AnyArray = std::variant<std::vector<uint8_t>, std::vector<int8_t>, std::vector<uint16_t>, std::vector<int16_t>,
                              std::vector<uint32_t>, std::vector<int32_t>, std::vector<float>, std::vector<bool>,
                              StringArray, NoNesting, std::vector<uint64_t>, std::vector<int64_t>, std::vector<double>>;

// The variants' own copying and destroying is compiled once, in value.cpp: it is long, and most files of the project
// include this one.
struct Array : AnyArray {
    using AnyArray::AnyArray;
    Array();
    Array(const Array&);
    Array(Array&&) noexcept;
    Array& operator=(const Array&);
    Array& operator=(Array&&) noexcept;
    ~Array();
};

using AnyValue = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool, std::string, Array,
                              uint64_t, int64_t, double>;
struct Value : AnyValue {
    using AnyValue::AnyValue;
    Value();
    Value(const Value&);
    Value(Value&&) noexcept;
    Value& operator=(const Value&);
    Value& operator=(Value&&) noexcept;
    ~Value();
};
static_assert(std::variant_size_v<AnyArray> == kValueTypes && std::variant_size_v<AnyValue> == kValueTypes);

inline ValueType type_of(const Value& value) noexcept {
    return static_cast<ValueType>(value.index());
}
inline ValueType element_type(const Array& array) noexcept {
    return static_cast<ValueType>(array.index());
}
size_t array_size(const Array& array) noexcept;

// "u32", "array of 102400 string", ... for messages.
std::string describe_type(const Value& value);

// The value as one line: text quoted and escaped, of an array the first `elements`.
std::string to_text(const Value& value, size_t elements = 8);

}  // namespace tessera::gguf
