// Writes JSON as text, without a tree of values.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::text {

// `text`, which is UTF-8, as a JSON string. What is not UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

// Appends values to a text, with the commas between them. Who calls it sees to it that what begins ends, and that
// members of objects have keys. One thread at a time.
class JsonWriter {
  public:
    // `out` outlives this.
    explicit JsonWriter(std::string& out) : out_(out) {}

    JsonWriter& begin_object() { return open('{'); }
    JsonWriter& end_object() { return close('}'); }
    JsonWriter& begin_list() { return open('['); }
    JsonWriter& end_list() { return close(']'); }
    JsonWriter& key(std::string_view name);

    JsonWriter& value(std::string_view text);
    JsonWriter& value(const char* text) { return value(std::string_view(text)); }
    JsonWriter& value(bool truth) { return json(truth ? "true" : "false"); }
    JsonWriter& value(std::integral auto number) {
        if constexpr (std::signed_integral<decltype(number)>)
            return integer(static_cast<int64_t>(number));
        else
            return integer(static_cast<uint64_t>(number));
    }
    // As short as possible, in its own precision; null if it is not finite.
    JsonWriter& value(double number);
    JsonWriter& value(float number);
    JsonWriter& null() { return json("null"); }
    // With so many digits after the point.
    JsonWriter& fixed(double number, int digits);
    // A value that is JSON already.
    JsonWriter& json(std::string_view written);
    // What is written already ends with a value on this level.
    JsonWriter& after_value() {
        comma_ = true;
        return *this;
    }
    // null for an empty text.
    JsonWriter& text_or_null(std::string_view text) { return text.empty() ? null() : value(text); }

    template <typename Value>
    JsonWriter& member(std::string_view name, const Value& what) {
        return key(name).value(what);
    }

  private:
    JsonWriter& open(char bracket);
    JsonWriter& close(char bracket);
    JsonWriter& integer(int64_t number);
    JsonWriter& integer(uint64_t number);
    void separate();

    std::string& out_;
    bool comma_ = false;  // a value stands before on this level
};

}  // namespace tessera::text
