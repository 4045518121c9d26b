#include "core/text/json_writer.hpp"

#include "core/text/json_text.hpp"
#include "core/text/utf8.hpp"

#include <charconv>
#include <cmath>
#include <system_error>

namespace tessera::text {
namespace {

void append_string(std::string& out, std::string_view text) {
    out += '"';
    while (!text.empty()) {
        // Up to what is not UTF-8 at once.
        size_t valid = 0;
        Utf8Step step{};
        while (valid < text.size()) {
            step = utf8_step(text.substr(valid));
            if (step.kind != Utf8Kind::kValid) break;
            valid += step.length;
        }
        append_json_characters(out, text.substr(0, valid));
        if (valid < text.size()) {
            out += kReplacementCharacter;
            valid += step.length;
        }
        text.remove_prefix(valid);
    }
    out += '"';
}

template <typename Number>
void append_number(std::string& out, Number number) {
    char digits[40];
    const auto [end, error] = std::to_chars(digits, digits + sizeof digits, number);
    out.append(digits, error == std::errc() ? end : digits);
}

}  // namespace

std::string json_string(std::string_view text) {
    std::string out;
    append_string(out, text);
    return out;
}

void JsonWriter::separate() {
    if (comma_) out_ += ',';
    comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
    separate();
    out_ += bracket;
    comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
    out_ += bracket;
    comma_ = true;
    return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
    separate();
    append_string(out_, name);
    out_ += ':';
    comma_ = false;
    return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
    separate();
    append_string(out_, text);
    return *this;
}

JsonWriter& JsonWriter::value(double number) {
    if (!std::isfinite(number)) return null();
    separate();
    append_number(out_, number);
    return *this;
}

JsonWriter& JsonWriter::value(float number) {
    if (!std::isfinite(number)) return null();
    separate();
    append_number(out_, number);
    return *this;
}

JsonWriter& JsonWriter::fixed(double number, int digits) {
    if (!std::isfinite(number)) return null();
    separate();
    char text[400];  // the largest number has 309 digits before the point
    const auto [end, error] = std::to_chars(text, text + sizeof text, number, std::chars_format::fixed, digits);
    out_.append(text, error == std::errc() ? end : text);
    return *this;
}

JsonWriter& JsonWriter::integer(int64_t number) {
    separate();
    append_number(out_, number);
    return *this;
}

JsonWriter& JsonWriter::integer(uint64_t number) {
    separate();
    append_number(out_, number);
    return *this;
}

JsonWriter& JsonWriter::json(std::string_view written) {
    separate();
    out_ += written;
    return *this;
}

}  // namespace tessera::text
