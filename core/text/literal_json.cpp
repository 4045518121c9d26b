#include "core/text/literal_json.hpp"

#include "core/text/json_text.hpp"
#include "core/text/python_json.hpp"
#include "core/text/tool_reader.hpp"
#include "core/text/utf8.hpp"

#include <array>
#include <utility>

namespace tessera::text {
namespace {

constexpr std::string_view kGemmaQuote = "<|\"|>";
constexpr size_t kDeepest = 100;

bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
           c == '-';
}

std::string_view take(std::string_view& rest, size_t bytes) {
    const std::string_view taken = rest.substr(0, bytes);
    rest.remove_prefix(taken.size());
    return taken;
}

void skip(std::string_view& rest) {
    rest.remove_prefix(json_spaces(rest));
}

std::optional<uint32_t> hexadecimal(std::string_view digits) {
    uint32_t code = 0;
    for (const char c : digits) {
        const char letter = static_cast<char>(c | 0x20);
        const bool decimal = c >= '0' && c <= '9';
        if (!decimal && (letter < 'a' || letter > 'f')) return {};
        code = code * 16 + static_cast<uint32_t>(decimal ? c - '0' : letter - 'a' + 10);
    }
    return code;
}

}  // namespace

void LiteralJson::begin_value() {
    closes_.clear();
    state_ = State::kValue;
}

void LiteralJson::begin_arguments() {
    closes_.clear();
    state_ = State::kOpen;
}

LiteralJson::Progress LiteralJson::read(std::string_view text, bool over, std::string& json) {
    std::string_view rest = text;
    while (state_ != State::kClosed) {
        const Step made = step(rest, over, json);
        const size_t bytes = text.size() - rest.size();
        if (made == Step::kBad) return {Status::kBad, bytes};
        if (made == Step::kWait) return {Status::kOpen, bytes};
    }
    return {Status::kClosed, text.size() - rest.size()};
}

LiteralJson::Step LiteralJson::step(std::string_view& rest, bool over, std::string& json) {
    if (state_ != State::kText && state_ != State::kWord && state_ != State::kOpen) {
        skip(rest);
        if (rest.empty()) return Step::kWait;
    }
    switch (state_) {
        case State::kOpen:
            return open(syntax_ == LiteralSyntax::kGemma ? '}' : kArguments, json);
        case State::kItem:
            return item(rest, json);
        case State::kKey:
            return key(rest, json);
        case State::kBareKey:
            return bare_key(rest, json);
        case State::kSeparator:
            // Gemma writes now and then what Python does.
            if (rest.front() != (closes_.back() == kArguments ? '=' : ':') &&
                (syntax_ != LiteralSyntax::kGemma || rest.front() != '='))
                return Step::kBad;
            rest.remove_prefix(1);
            state_ = State::kValue;
            return Step::kGoOn;
        case State::kValue:
            return value(rest, over, json);
        case State::kWord:
            return word(rest, over, json);
        case State::kText:
            return text(rest, over, json);
        case State::kAfter:
            return after(rest, json);
        case State::kClosed:
            break;
    }
    return Step::kBad;
}

LiteralJson::Step LiteralJson::open(char close, std::string& json) {
    closes_.push_back(close);
    json += in_list() ? '[' : '{';
    state_ = in_list() ? State::kItem : State::kKey;
    first_ = true;
    return Step::kGoOn;
}

LiteralJson::Step LiteralJson::close(std::string& json) {
    json += in_list() ? ']' : '}';
    closes_.pop_back();
    end_value();
    return Step::kGoOn;
}

void LiteralJson::end_value() {
    first_ = false;
    state_ = closes_.empty() ? State::kClosed : State::kAfter;
}

LiteralJson::Step LiteralJson::item(std::string_view& rest, std::string& json) {
    if (rest.front() == closing_bracket()) {
        rest.remove_prefix(1);
        return close(json);
    }
    if (!first_) json += ", ";
    state_ = State::kValue;
    return Step::kGoOn;
}

LiteralJson::Step LiteralJson::key(std::string_view& rest, std::string& json) {
    if (rest.front() == closing_bracket()) {
        rest.remove_prefix(1);
        return close(json);
    }
    if (syntax_ == LiteralSyntax::kGemma && match(rest, kGemmaQuote, false) == Match::kMaybe) return Step::kWait;
    if (!first_) json += ", ";
    is_key_ = true;
    if (closes_.back() != kArguments && begin_text(rest, json)) return Step::kGoOn;
    if (!has_bare_keys()) return Step::kBad;
    word_.clear();
    state_ = State::kBareKey;
    return Step::kGoOn;
}

LiteralJson::Step LiteralJson::bare_key(std::string_view& rest, std::string& json) {
    size_t length = 0;
    if (syntax_ == LiteralSyntax::kGemma) {
        length = std::min(rest.find_first_of(":={}[],<\"\n"), rest.size());
    } else {
        while (length < rest.size() && is_name(rest[length])) ++length;
    }
    word_ += take(rest, length);
    if (rest.empty()) return Step::kWait;
    const std::string_view key = without_space(word_);
    if (key.empty()) return Step::kBad;
    json += '"';
    append_json_characters(json, key);
    json += "\": ";
    state_ = State::kSeparator;
    return Step::kGoOn;
}

bool LiteralJson::begin_text(std::string_view& rest, std::string& json) {
    if (syntax_ == LiteralSyntax::kGemma && rest.starts_with(kGemmaQuote)) {
        quote_ = '\0';
        rest.remove_prefix(kGemmaQuote.size());
    } else if (rest.starts_with('\'') || rest.starts_with('"')) {
        quote_ = take(rest, 1).front();
    } else {
        return false;
    }
    json += '"';
    state_ = State::kText;
    return true;
}

void LiteralJson::end_text(std::string& json) {
    json += '"';
    if (!is_key_) return end_value();
    json += ": ";
    state_ = State::kSeparator;
}

LiteralJson::Step LiteralJson::value(std::string_view& rest, bool over, std::string& json) {
    if (syntax_ == LiteralSyntax::kGemma && match(rest, kGemmaQuote, over) == Match::kMaybe) return Step::kWait;
    is_key_ = false;
    if (begin_text(rest, json)) return Step::kGoOn;
    const char c = rest.front();
    if (c == '[' || c == '(' || c == '{') {
        if (closes_.size() == kDeepest) return Step::kBad;
        rest.remove_prefix(1);
        return open(c == '[' ? ']' : c == '(' ? kTuple : '}', json);
    }
    word_.clear();
    state_ = State::kWord;
    return Step::kGoOn;
}

LiteralJson::Step LiteralJson::word(std::string_view& rest, bool over, std::string& json) {
    // A text that has no quotes may have spaces in it.
    const char* const stops = syntax_ == LiteralSyntax::kGemma ? ",]}\n<" : ",]}) \n\r\t<\"'";
    word_ += take(rest, std::min(rest.find_first_of(stops), rest.size()));
    if (rest.empty() && !(over && closes_.empty())) {
        if (over) json += std::exchange(word_, {});  // cut, as it is
        return Step::kWait;
    }
    constexpr std::array<std::pair<std::string_view, std::string_view>, 6> words = {{{"True", "true"},
                                                                                     {"true", "true"},
                                                                                     {"False", "false"},
                                                                                     {"false", "false"},
                                                                                     {"None", "null"},
                                                                                     {"null", "null"}}};
    const std::string_view word = without_space(word_);
    std::string found;
    for (const auto& [name, as_json] : words)
        if (word == name) found = as_json;
    if (found.empty()) {
        if (word.empty()) return Step::kBad;
        const auto number = parse_python_json(word);
        if (number && number->kind == PythonJson::Kind::kPlain) {
            found = word;
        } else {
            found = "\"";
            append_json_characters(found, word);
            found += '"';
        }
    }
    json += found;
    end_value();
    return Step::kGoOn;
}

LiteralJson::Step LiteralJson::text(std::string_view& rest, bool over, std::string& json) {
    if (quote_ == '\0') {
        const std::array<std::string_view, 1> ends = {kGemmaQuote};
        const MarkerPlace place = find_marker(rest, ends, over);
        append_json_characters(json, take(rest, place.before));
        if (!place.found) return Step::kWait;
        rest.remove_prefix(kGemmaQuote.size());
        end_text(json);
        return Step::kGoOn;
    }
    const std::array<char, 3> stops = {quote_, '\\', '\0'};
    append_json_characters(json, take(rest, std::min(rest.find_first_of(stops.data()), rest.size())));
    if (rest.empty()) return Step::kWait;
    if (rest.front() == '\\') return escape(rest, over, json);
    rest.remove_prefix(1);
    end_text(json);
    return Step::kGoOn;
}

LiteralJson::Step LiteralJson::escape(std::string_view& rest, bool over, std::string& json) {
    if (rest.size() < 2) return Step::kWait;
    const char c = rest[1];
    constexpr std::string_view names = "ntrbfav0\\'\"\n", letters("\n\t\r\b\f\a\v\0\\'\"\0", 12);
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (digits > 0) {
        if (rest.size() < 2 + digits) return over ? Step::kBad : Step::kWait;
        const std::string_view hex = rest.substr(2, digits);
        const auto code = hexadecimal(hex);
        if (!code || *code > 0x10FFFF) return Step::kBad;
        if (*code >= 0xD800 && *code < 0xE000) {
            // Half of a character, as JSON escapes it.
            if (digits != 4) return Step::kBad;
            (json += "\\u") += hex;
        } else {
            std::string character;
            utf8_append(character, *code);
            append_json_characters(json, character);
        }
    } else if (const size_t found = names.find(c); found != names.npos) {
        if (c != '\n') append_json_characters(json, letters.substr(found, 1));
    } else {
        append_json_characters(json, rest.substr(0, 1));
        rest.remove_prefix(1);
        return Step::kGoOn;
    }
    rest.remove_prefix(2 + digits);
    return Step::kGoOn;
}

LiteralJson::Step LiteralJson::after(std::string_view& rest, std::string& json) {
    if (rest.front() == ',') {
        rest.remove_prefix(1);
        state_ = in_list() ? State::kItem : State::kKey;
        return Step::kGoOn;
    }
    if (rest.front() == closing_bracket()) {
        rest.remove_prefix(1);
        return close(json);
    }
    // A model may forget a comma between arguments.
    if (closes_.back() != kArguments || !is_name(rest.front())) return Step::kBad;
    state_ = State::kKey;
    return Step::kGoOn;
}

std::optional<std::string> python_literal_as_json(std::string_view text) {
    LiteralJson literal(LiteralSyntax::kPython);
    literal.begin_value();
    std::string json;
    const auto [status, bytes] = literal.read(text, true, json);
    if (status != LiteralJson::Status::kClosed || !without_space(text.substr(bytes)).empty()) return {};
    return json;
}

}  // namespace tessera::text
