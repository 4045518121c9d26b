#include "core/text/json_mender.hpp"

#include "core/text/json_text.hpp"
#include "core/text/python_json.hpp"

#include <algorithm>
#include <utility>

namespace tessera::text {
namespace {

constexpr size_t kEscapeBytes = 6;  // "\u00e4"

bool is_hex(char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}

// Whether an escape of a UTF-16 unit is the first or the second half of a character.
bool is_high_half(std::string_view escape) {
    return escape.size() >= 4 && escape[1] == 'u' && (escape[2] | 0x20) == 'd' &&
           std::string_view("89abAB").find(escape[3]) != std::string_view::npos;
}
bool is_low_half(std::string_view escape) {
    return escape.size() >= 4 && escape[1] == 'u' && (escape[2] | 0x20) == 'd' &&
           std::string_view("cdefCDEF").find(escape[3]) != std::string_view::npos;
}

std::string_view trimmed(std::string_view word) {
    return word.substr(0, word.find_last_not_of(" \t\r") + 1);
}

// A value without quotes.
std::string word_as_json(std::string_view word) {
    if (word == "True") return "true";
    if (word == "False") return "false";
    if (word == "None" || word == "undefined" || word == "NaN" || word == "Infinity" || word == "-Infinity")
        return "null";
    if (const auto value = parse_python_json(word); value && value->kind == PythonJson::Kind::kPlain)
        return std::string(word);
    std::string text = "\"";
    append_json_characters(text, word);
    return text + '"';
}

}  // namespace

void JsonMender::read(std::string_view text, std::string& json) {
    for (const char c : text) {
        if (decoded_) {
            feed_decoded(c, json);
        } else {
            feed(c, json);
        }
    }
}

// Within a string that holds JSON: escapes are taken out first.
void JsonMender::feed_decoded(char c, std::string& json) {
    if (!escape_.empty() || c == '\\') {
        escape_ += c;
        if (escape_.size() == 1) return;
        if (escape_[1] == 'u' && escape_.size() < kEscapeBytes && (escape_.size() == 2 || is_hex(c))) return;
        if (escape_.size() == kEscapeBytes && is_high_half(escape_)) return;
        if (escape_.size() > kEscapeBytes && escape_.size() < 2 * kEscapeBytes && (escape_.size() != 7 || c == '\\') &&
            (escape_.size() != 8 || c == 'u') && (escape_.size() < 9 || is_hex(c)))
            return;
        const std::string raw = std::exchange(escape_, {});
        const auto characters = json_characters(raw);
        for (const char one : characters ? *characters : raw) feed(one, json);
        return;
    }
    // The quote that ends the string; others a model forgot to escape.
    if (c == '"' && state_ == State::kDone) return;
    feed(c, json);
}

void JsonMender::feed(char c, std::string& json) {
    switch (state_) {
        case State::kStart:
            if (is_json_space(c)) {
                json += c;
            } else if (c == '"') {
                state_ = State::kFirstQuote;
            } else if (std::string_view(":,}]").find(c) == std::string_view::npos) {
                value(c, json);
            }
            return;
        case State::kFirstQuote:
            if (is_json_space(c)) {
                spaces_ += c;
            } else if (c == '{') {
                spaces_.clear();
                decoded_ = true;
                open(c, json);
            } else if (c == '"' && spaces_.empty()) {
                json += "{}";
                state_ = State::kDone;
            } else {
                begin_string('"', false, json);
                for (const char one : std::exchange(spaces_, {})) string(one, json);
                string(c, json);
            }
            return;
        case State::kValue:
        case State::kItem:
            return value(c, json);
        case State::kKey:
            return key(c, json);
        case State::kColon:
            if (is_json_space(c)) {
                held_ += c;
            } else {
                held_ += ':';
                state_ = State::kValue;
                if (c != ':') value(c, json);
            }
            return;
        case State::kString:
            return string(c, json);
        case State::kEscape:
            return escape(c, json);
        case State::kQuote:
            return quote(c, json);
        case State::kWord:
            if (c == ',' || c == '}' || c == ']' || c == '\n' || (is_key_ && c == ':')) {
                end_word(json);
                return feed(c, json);
            }
            // The comma before the next key is missing.
            if (c == '"' && !is_key_ && !closes_.empty() && word_as_json(trimmed(word_)).front() != '"') {
                end_word(json);
                return feed(c, json);
            }
            word_ += c;
            return;
        case State::kAfter:
            return after(c, json);
        case State::kDone:
            if (is_json_space(c)) json += c;
            return;
    }
}

void JsonMender::value(char c, std::string& json) {
    if (is_json_space(c)) {
        (held_.empty() ? json : held_) += c;
    } else if (c == '{' || c == '[') {
        open(c, json);
    } else if (c == '"' || c == '\'') {
        begin_string(c, false, json);
    } else if (c == ',' || c == '}' || c == ']') {
        // Of a list nothing is missing: its last comma is superfluous.
        if (state_ == State::kValue) write_null(json);
        if (c == ',' && state_ == State::kItem) return;
        after(c, json);
    } else if (c != ':') {
        begin_word(c, false);
    }
}

void JsonMender::key(char c, std::string& json) {
    if (is_json_space(c)) {
        (held_.empty() ? json : held_) += c;
    } else if (c == '"' || c == '\'') {
        begin_string(c, true, json);
    } else if (c == '}' || c == ']') {
        close(c, json);
    } else if (c != ',' && c != ':' && c != '{' && c != '[') {
        begin_word(c, true);
    }
}

void JsonMender::begin_string(char quote, bool is_key, std::string& json) {
    is_key_ = is_key;
    if (!is_key) write_held(json);
    text_of(json) += '"';
    quote_ = quote;
    state_ = State::kString;
}

void JsonMender::begin_word(char c, bool is_key) {
    word_ = c;
    is_key_ = is_key;
    state_ = State::kWord;
}

void JsonMender::string(char c, std::string& json) {
    if (c == quote_) {
        state_ = State::kQuote;
    } else if (c == '\\') {
        word_ = c;
        state_ = State::kEscape;
    } else {
        append_json_characters(text_of(json), {&c, 1});
    }
}

void JsonMender::escape(char c, std::string& json) {
    const bool second = word_.size() >= kEscapeBytes;  // of two halves of a character
    const size_t at = second ? word_.size() - kEscapeBytes : word_.size();
    const bool fits = at == 0 ? c == '\\' : at == 1 ? !second || c == 'u' : is_hex(c);
    if (!fits) {
        state_ = State::kString;
        const std::string raw = std::exchange(word_, {});
        // The backslash after a first half begins an escape of its own.
        const bool begins = second && at == 1;
        end_escape(begins ? raw.substr(0, kEscapeBytes) : raw, json);
        if (begins) string('\\', json);
        return begins ? escape(c, json) : string(c, json);
    }
    word_ += c;
    if (at == 1 && c != 'u') {
        state_ = State::kString;
        return end_escape(std::exchange(word_, {}), json);
    }
    if (at + 1 < kEscapeBytes || (!second && is_high_half(word_))) return;
    if (second && is_high_half(std::string_view(word_).substr(kEscapeBytes))) {
        // The first one is alone; its second half may yet come.
        end_escape(word_.substr(0, kEscapeBytes), json);
        word_.erase(0, kEscapeBytes);
        return;
    }
    state_ = State::kString;
    end_escape(std::exchange(word_, {}), json);
}

// `raw` is an escape, or what one began with.
void JsonMender::end_escape(std::string_view raw, std::string& json) {
    std::string& out = text_of(json);
    if (raw.size() == 2 && raw[1] != 'u') {
        if (std::string_view("\"\\/bfnrt").find(raw[1]) != std::string_view::npos) {
            out += raw;
        } else if (raw[1] == '\'' || raw[1] == '\n') {
            append_json_characters(out, raw.substr(1));
        } else {
            append_json_characters(out, raw);
        }
        return;
    }
    if (raw.size() < kEscapeBytes) return append_json_characters(out, raw);
    const std::string_view first = raw.substr(0, kEscapeBytes), second = raw.substr(kEscapeBytes);
    if (is_high_half(first) && is_low_half(second) && second.size() == kEscapeBytes) {
        out += raw;
        return;
    }
    out += is_high_half(first) || is_low_half(first) ? std::string_view("\\ufffd") : first;
    if (!second.empty()) end_escape(second, json);
}

// After a quote and spaces: whether it ended the string.
void JsonMender::quote(char c, std::string& json) {
    if (is_json_space(c)) {
        spaces_ += c;
        return;
    }
    const bool ends = is_key_ ? !spaces_.empty() || c == ':' || c == ',' || c == '}' : c == ',' || c == '}' || c == ']';
    // Two strings next to each other lack what separates them; a quote next to another one does not.
    const bool another = (c == '"' || c == '\'') && !spaces_.empty();
    if (ends || another || (closes_.empty() && c == quote_)) {
        end_string(json);
        return feed(c, json);
    }
    append_json_characters(text_of(json), {&quote_, 1});
    for (const char one : std::exchange(spaces_, {})) append_json_characters(text_of(json), {&one, 1});
    state_ = State::kString;
    string(c, json);
}

void JsonMender::end_string(std::string& json) {
    std::string& out = text_of(json);
    out += '"';
    out += std::exchange(spaces_, {});
    if (is_key_) {
        state_ = State::kColon;
    } else {
        end_value();
    }
}

void JsonMender::end_word(std::string& json) {
    std::string_view word = word_;
    const size_t end = word.find_last_not_of(" \t\r") + 1;
    const std::string_view spaces = word.substr(end);
    word = word.substr(0, end);
    if (is_key_) {
        held_ += '"';
        append_json_characters(held_, word);
        held_ += '"';
        state_ = State::kColon;
    } else {
        write_held(json);
        const bool nothing = closes_.empty() && (word == "null" || word == "None");
        json += nothing ? "{}" : word_as_json(word);
        end_value();
    }
    text_of(json) += spaces;
    word_.clear();
}

void JsonMender::end_value() {
    state_ = closes_.empty() ? State::kDone : State::kAfter;
}

void JsonMender::open(char bracket, std::string& json) {
    write_held(json);
    json += bracket;
    closes_ += bracket == '{' ? '}' : ']';
    state_ = bracket == '{' ? State::kKey : State::kItem;
}

void JsonMender::after(char c, std::string& json) {
    if (is_json_space(c)) {
        json += c;
    } else if (c == ',') {
        // It waits for what follows: a comma before a bracket is superfluous.
        held_ = c;
        state_ = closes_.back() == '}' ? State::kKey : State::kItem;
    } else if (c == '}' || c == ']') {
        close(c, json);
    } else if (c != ':') {
        held_ = ",";
        state_ = closes_.back() == '}' ? State::kKey : State::kItem;
        feed(c, json);
    }
}

void JsonMender::close_one(std::string& json) {
    // A superfluous comma goes, and the spaces after it stay; a key without a value goes, too.
    const bool comma_only = held_.find_first_not_of(", \n\r\t") == held_.npos;
    if (!held_.empty() && comma_only) json += std::string_view(held_).substr(held_.front() == ',' ? 1 : 0);
    held_.clear();
    json += closes_.back();
    closes_.pop_back();
    end_value();
}

// Brackets that were not closed before this one are; one that nothing opened is dropped.
void JsonMender::close(char bracket, std::string& json) {
    const size_t at = closes_.rfind(bracket);
    if (at == closes_.npos) return;
    while (closes_.size() > at) close_one(json);
}

void JsonMender::write_held(std::string& json) {
    json += held_;
    held_.clear();
}
void JsonMender::write_null(std::string& json) {
    write_held(json);
    json += "null";
    end_value();
}

void JsonMender::finish(std::string& json) {
    if (decoded_ && !escape_.empty())
        for (const char one : std::exchange(escape_, {})) feed(one, json);
    switch (state_) {
        case State::kStart:
        case State::kFirstQuote:
            json += "{}";
            state_ = State::kDone;
            return;
        case State::kEscape:
            // A cut escape is no text.
            text_of(json) += is_high_half(word_) && word_.size() >= kEscapeBytes ? "\\ufffd" : "";
            word_.clear();
            [[fallthrough]];
        case State::kString:
        case State::kQuote:
            end_string(json);
            break;
        case State::kWord:
            end_word(json);
            break;
        default:
            break;
    }
    while (!closes_.empty()) close_one(json);
    state_ = State::kDone;
}

}  // namespace tessera::text
