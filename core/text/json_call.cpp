#include "core/text/json_call.hpp"

#include "core/text/python_json.hpp"

#include <utility>

namespace tessera::text {
namespace {

// Bytes of the characters of a string up to an escape that is cut. Two escapes may make one character.
size_t whole_escapes(std::string_view raw) {
    size_t end = 0;
    while (end < raw.size()) {
        size_t length = 1;
        if (raw[end] == '\\') {
            const std::string_view code = raw.substr(end + 1, 3);
            length = code.starts_with('u') ? 6 : 2;
            const bool high_half = code.size() == 3 && (code[1] | 0x20) == 'd' &&
                                   std::string_view("89abAB").find(code[2]) != std::string_view::npos;
            if (length == 6 && high_half) length = 12;
        }
        if (length > raw.size() - end) break;
        end += length;
    }
    return end;
}

}  // namespace

JsonCall::Progress JsonCall::read(std::string_view text) {
    size_t i = 0;
    while (i < text.size() && state_ != State::kClosed) {
        if (!feed(text[i])) {
            state_ = State::kBad;
            return {Status::kBad, i};
        }
        ++i;
    }
    return {state_ == State::kClosed ? Status::kClosed : Status::kOpen, i};
}

std::string JsonCall::take_arguments() {
    if (closed_ && !has_arguments_) {
        has_arguments_ = true;
        return "{}";
    }
    if (!decoded_) return std::exchange(arguments_, {});
    const size_t end = state_ == State::kInValue ? whole_escapes(arguments_) : arguments_.size();
    const std::string raw = arguments_.substr(0, end);
    arguments_.erase(0, end);
    auto text = json_characters(raw);
    return text ? *std::move(text) : raw;
}

bool JsonCall::feed(char c) {
    switch (state_) {
        case State::kObject:
            if (c == '{') state_ = State::kFirstKey;
            return c == '{' || is_json_space(c);
        case State::kFirstKey:
        case State::kKey:
            if (is_json_space(c)) return true;
            if (c == '}' && state_ == State::kFirstKey) return false;  // an empty object calls nothing
            if (c != '"') return false;
            key_.clear();
            state_ = State::kKeyText;
            return true;
        case State::kKeyText:
            if (c == '"' && !escaped_) return end_key();
            escaped_ = c == '\\' && !escaped_;
            key_ += c;
            return true;
        case State::kColon:
            if (c == ':') state_ = State::kValue;
            return c == ':' || is_json_space(c);
        case State::kValue:
            return is_json_space(c) || begin_value(c);
        case State::kInValue:
            return in_value(c);
        case State::kAfterValue:
            if (is_json_space(c)) return true;
            if (c == ',') {
                state_ = State::kKey;
                return true;
            }
            if (c != '}' || !has_name_ || (strict_ && !has_arguments_)) return false;
            if (nested_) {
                nested_ = false;
                return true;
            }
            state_ = State::kClosed;
            closed_ = true;
            return true;
        case State::kClosed:
        case State::kBad:
            return false;
    }
    return false;
}

bool JsonCall::end_key() {
    const auto key = json_characters(key_);
    if (!key) return false;
    if ((*key == "name" || (*key == "tool_name" && !strict_)) && !has_name_) {
        member_ = Member::kName;
    } else if ((*key == "arguments" || *key == "parameters") && !has_arguments_) {
        member_ = Member::kArguments;
    } else {
        if (strict_ && !certain() && *key != "type" && *key != "id") return false;
        member_ = *key == "function" && !strict_ && !has_name_ && !nested_ ? Member::kFunction : Member::kOther;
    }
    state_ = State::kColon;
    return true;
}

bool JsonCall::begin_value(char c) {
    if (member_ == Member::kName && c != '"') return false;
    if (member_ == Member::kArguments && strict_ && c != '{' && c != 'n' && !(names_ && c == '"')) return false;
    if (member_ == Member::kFunction && c == '{') {
        nested_ = true;
        state_ = State::kFirstKey;
        return true;
    }
    state_ = State::kInValue;
    quoted_ = escaped_ = false;
    depth_ = 0;
    key_.clear();
    if (c == '"') {
        value_ = Value::kText;
        quoted_ = true;
    } else if (c == '{' || c == '[') {
        value_ = Value::kNested;
        depth_ = 1;
    } else if (c == '-' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        value_ = Value::kPlain;
    } else {
        return false;
    }
    if (member_ == Member::kArguments) {
        // Whether a word is a value is known at its end.
        has_arguments_ = value_ != Value::kPlain;
        begins_text_ = c == '"';
        if (!begins_text_) arguments_ += c;
    }
    return true;
}

bool JsonCall::in_value(char c) {
    if (value_ == Value::kPlain && (is_json_space(c) || c == ',' || c == '}')) {
        state_ = State::kAfterValue;
        return (member_ != Member::kArguments || end_plain_arguments()) && feed(c);
    }
    // Until it is certain: what is no JSON may be the mark of another call.
    if (value_ == Value::kNested && !quoted_ && c == '<' && !certain()) return false;
    if (value_ == Value::kPlain && (c == '"' || c == '{' || c == '[' || c == ']' || c == ':' || c == '<')) return false;
    if (member_ == Member::kArguments) {
        const bool empty_text = begins_text_ && c == '"';
        if (begins_text_ && !(decoded_ = c == '{')) arguments_ += empty_text ? "{}" : "\"";
        if (std::exchange(begins_text_, false) && empty_text) {
            quoted_ = false;
            return end_value();
        }
        // The quote that ends JSON text is not part of it.
        if (!decoded_ || c != '"' || escaped_) arguments_ += c;
    }
    if (quoted_) {
        if (c == '"' && !escaped_) {
            quoted_ = false;
            if (value_ == Value::kText) return end_value();
        } else if (member_ == Member::kName) {
            key_ += c;
        }
        escaped_ = c == '\\' && !escaped_;
    } else if (c == '"') {
        quoted_ = true;
        escaped_ = false;
    } else if (c == '{' || c == '[') {
        ++depth_;
    } else if ((c == '}' || c == ']') && --depth_ == 0) {
        state_ = State::kAfterValue;
    }
    return true;
}

bool JsonCall::end_plain_arguments() {
    if (arguments_ == "null" || arguments_ == "None") arguments_ = "{}";
    has_arguments_ = parse_python_json(arguments_).has_value();
    return has_arguments_;
}

bool JsonCall::end_value() {
    state_ = State::kAfterValue;
    if (member_ != Member::kName) return true;
    auto name = json_characters(key_);
    if (!name || without_space(*name).empty()) return false;
    name_ = without_space(*name);
    if (names_ && !names_->contains(name_)) return false;
    has_name_ = true;
    return true;
}

}  // namespace tessera::text
