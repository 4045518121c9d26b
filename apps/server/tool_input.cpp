#include "apps/server/tool_input.hpp"

#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kInputMember = "input", kSpaces = " \t\r\n";

}  // namespace

std::string arguments_of_input(std::string_view input) {
    std::string out;
    text::JsonWriter(out).begin_object().member(kInputMember, input).end_object();
    return out;
}

std::string input_of_arguments(std::string_view arguments) {
    InputReader reader;
    std::string input = reader.push(arguments);
    return input += reader.finish();
}

std::string InputReader::push(std::string_view arguments) {
    arguments_ += arguments;
    std::string input;
    if (state_ == State::kBefore) find_input();
    while (state_ == State::kInside && step(input)) {
    }
    return input;
}

// Reads what stands before the text, or nothing.
void InputReader::find_input() {
    size_t at = 0;
    for (const std::string_view part : {"{", "\"input\"", ":", "\""}) {
        at = std::min(arguments_.find_first_not_of(kSpaces, at), arguments_.size());
        const std::string_view rest = std::string_view(arguments_).substr(at);
        if (!rest.starts_with(part)) {
            if (!part.starts_with(rest)) state_ = State::kOther;
            return;
        }
        at += part.size();
    }
    at_ = at;
    state_ = State::kInside;
}

// The next character of the text, or those up to the next escape. False: more has to come first.
bool InputReader::step(std::string& input) {
    const std::string_view rest = std::string_view(arguments_).substr(at_);
    if (rest.empty()) return false;
    if (rest[0] == '"') {
        state_ = State::kBehind;
        return false;
    }
    if (rest[0] != '\\') {
        const std::string_view plain = rest.substr(0, rest.find_first_of("\"\\"));
        input += plain;
        at_ += plain.size();
        return true;
    }
    if (rest.size() < 2) return false;
    constexpr size_t kUnicode = 6;  // \uXXXX, of which some characters take two
    size_t length = 2;
    if (rest[1] == 'u') {
        if (rest.size() < kUnicode) return false;
        length = kUnicode;
        const bool half =
            (rest[2] == 'd' || rest[2] == 'D') && std::string_view("89abAB").find(rest[3]) != std::string_view::npos;
        if (half) {
            const std::string_view other = rest.substr(kUnicode);
            if (other.size() < kUnicode && (other.empty() || other.starts_with("\\u") || other == "\\")) return false;
            if (other.starts_with("\\u")) length += kUnicode;
        }
    }
    boost::system::error_code error;
    const std::string_view escape = rest.substr(0, length);
    const json::value read = json::parse(fmt::format("\"{}\"", escape), error);
    // What is no escape of JSON stands as it was written.
    input += error ? escape : std::string_view(read.get_string().data(), read.get_string().size());
    at_ += length;
    return true;
}

std::string InputReader::finish() const {
    if (state_ == State::kBefore || state_ == State::kInside) return {};
    boost::system::error_code error;
    const json::value read = json::parse(arguments_, error);
    const json::object* const object = error ? nullptr : read.if_object();
    const json::value* const input = object ? object->if_contains(kInputMember) : nullptr;
    if (state_ == State::kOther) return input && input->is_string() ? std::string(input->get_string()) : arguments_;
    if (object) return {};
    // A quotation mark that ends the text, or one of those that the model wrote within it.
    const std::string_view behind = std::string_view(arguments_).substr(at_ + 1);
    const size_t more = behind.find_first_not_of(kSpaces);
    const bool ends =
        more == behind.npos || (behind[more] == '}' && behind.find_first_not_of(kSpaces, more + 1) == behind.npos);
    return ends ? std::string() : arguments_.substr(at_);
}

}  // namespace tessera::server
