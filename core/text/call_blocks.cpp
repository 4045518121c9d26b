#include "core/text/call_blocks.hpp"

#include "core/text/json_text.hpp"
#include "core/text/python_json.hpp"
#include "core/text/utf8.hpp"

#include <algorithm>
#include <array>

namespace tessera::text {
namespace {

using Kind = PythonJson::Kind;

// A value as Python or Gemma writes it, as JSON.
class LiteralReader {
  public:
    // gemma: keys without quotes, and texts between <|"|>.
    LiteralReader(std::string_view text, bool gemma) : rest_(text), gemma_(gemma) {}

    std::string_view rest() const { return rest_; }
    bool take(std::string_view word) {
        skip();
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    std::string_view name() {
        skip();
        size_t length = 0;
        while (length < rest_.size() && is_name(rest_[length])) ++length;
        const std::string_view found = rest_.substr(0, length);
        rest_.remove_prefix(length);
        return found;
    }

    std::optional<PythonJson> value(int depth = 0) {
        constexpr int kDeepest = 100;
        if (depth > kDeepest) return {};
        skip();
        if (gemma_ && take(kQuote)) {
            const size_t end = rest_.find(kQuote);
            if (end == rest_.npos) return {};
            const std::string_view text = rest_.substr(0, end);
            rest_.remove_prefix(end + kQuote.size());
            return PythonJson::of_text(text);
        }
        if (rest_.starts_with('\'') || rest_.starts_with('"')) return quoted();
        if (take("[") || take("(")) {
            PythonJson list{Kind::kList, {}, {}};
            while (!take("]") && !take(")")) {
                auto one = value(depth + 1);
                if (!one) return {};
                list.members.push_back({"", std::move(*one)});
                if (!take(",") && !rest_.starts_with(']') && !rest_.starts_with(')')) return {};
            }
            return list;
        }
        if (take("{")) return members(depth);
        const size_t end = std::min(rest_.find_first_of(",]}) \n\t"), rest_.size());
        const std::string_view word = rest_.substr(0, end);
        rest_.remove_prefix(end);
        if (word == "True" || word == "true") return PythonJson{Kind::kPlain, "true", {}};
        if (word == "False" || word == "false") return PythonJson{Kind::kPlain, "false", {}};
        if (word == "None" || word == "null") return PythonJson{Kind::kPlain, "null", {}};
        auto number = parse_python_json(word);
        if (number && number->kind == Kind::kPlain) return number;
        return {};
    }

    // After the brace.
    std::optional<PythonJson> members(int depth) {
        PythonJson object{Kind::kObject, {}, {}};
        while (!take("}")) {
            skip();
            std::string key;
            if (rest_.starts_with('\'') || rest_.starts_with('"') || (gemma_ && rest_.starts_with(kQuote))) {
                auto text = value(depth + 1);
                if (!text || text->kind != Kind::kText) return {};
                key = text->text;
            } else if (gemma_) {
                const size_t colon = rest_.find(':');
                if (colon == rest_.npos) return {};
                key = without_space(rest_.substr(0, colon));
                rest_.remove_prefix(colon);
            }
            if (!take(":")) return {};
            auto one = value(depth + 1);
            if (!one) return {};
            object.members.push_back({std::move(key), std::move(*one)});
            if (!take(",") && !rest_.starts_with('}')) return {};
        }
        return object;
    }

  private:
    static constexpr std::string_view kQuote = "<|\"|>";
    static bool is_name(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
               c == '-';
    }
    void skip() { rest_.remove_prefix(json_spaces(rest_)); }

    std::optional<PythonJson> quoted() {
        const char quote = rest_.front();
        std::string text;
        for (size_t i = 1; i < rest_.size(); ++i) {
            char c = rest_[i];
            if (c == quote) {
                rest_.remove_prefix(i + 1);
                return PythonJson::of_text(text);
            }
            if (c != '\\') {
                text += c;
                continue;
            }
            if (++i == rest_.size()) return {};
            c = rest_[i];
            constexpr std::string_view names = "ntrbfav0\\'\"\n", letters("\n\t\r\b\f\a\v\0\\'\"\0", 12);
            const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
            if (digits > 0) {
                uint32_t code = 0;
                if (i + digits >= rest_.size()) return {};
                for (size_t d = 1; d <= digits; ++d) {
                    const char digit = static_cast<char>(rest_[i + d] | 0x20);
                    const bool decimal = rest_[i + d] >= '0' && rest_[i + d] <= '9';
                    if (!decimal && (digit < 'a' || digit > 'f')) return {};
                    code = code * 16 + static_cast<uint32_t>(decimal ? rest_[i + d] - '0' : digit - 'a' + 10);
                }
                if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return {};
                utf8_append(text, code);
                i += digits;
            } else if (const size_t found = names.find(c); found != names.npos) {
                if (c != '\n') text += letters[found];
            } else {
                text += '\\';
                text += c;
            }
        }
        return {};
    }

    std::string_view rest_;
    const bool gemma_;
};

std::optional<std::string> literal_as_json(std::string_view text) {
    LiteralReader reader(text, false);
    auto value = reader.value();
    if (!value || !without_space(reader.rest()).empty()) return {};
    return value->dumps();
}

// The members of an object, written one after the other.
class Arguments {
  public:
    void add(std::string_view key, std::string_view json) {
        text_ += text_.empty() ? "{\"" : ", \"";
        append_json_characters(text_, key);
        (text_ += "\": ") += json;
    }
    void add_text(std::string_view key, std::string_view text) {
        std::string quoted = "\"";
        append_json_characters(quoted, text);
        add(key, quoted + "\"");
    }
    // What is written without quotes: a text where the schema says so, or where it is no value.
    void add_raw(std::string_view function, std::string_view key, std::string_view raw, const TextParameters* texts) {
        if (texts && texts->contains({std::string(function), std::string(key)})) return add_text(key, raw);
        if (const auto value = parse_python_json(raw); value && value->kind != Kind::kText)
            return add(key, without_space(raw));
        if (!raw.empty() &&
            (raw.front() == '[' || raw.front() == '{' || raw == "True" || raw == "False" || raw == "None"))
            if (const auto json = literal_as_json(raw)) return add(key, *json);
        add_text(key, raw);
    }
    std::string take() { return text_.empty() ? "{}" : std::move(text_) + "}"; }

  private:
    std::string text_;
};

bool add_call(std::string_view name, std::string_view arguments, std::vector<ReadCall>& calls) {
    name = without_space(name);
    arguments = without_space(arguments);
    if (name.empty() || name.find_first_of(" \n\t<>{}\"") != name.npos) return false;
    if (arguments.empty()) arguments = "{}";
    if (!parse_python_json(arguments)) return false;
    calls.push_back({std::string(name), std::string(arguments)});
    return true;
}

// What stands between `begin` and `end` at the start of `text`, which then begins behind it.
std::optional<std::string_view> take_between(std::string_view& text, std::string_view begin, std::string_view end) {
    text.remove_prefix(json_spaces(text));
    if (!text.starts_with(begin)) return {};
    const size_t stop = text.find(end, begin.size());
    if (stop == text.npos) return {};
    const std::string_view inner = text.substr(begin.size(), stop - begin.size());
    text.remove_prefix(stop + end.size());
    return inner;
}

// A value with a line break of its own at both ends.
std::string_view without_breaks(std::string_view value) {
    if (value.starts_with('\n')) value.remove_prefix(1);
    if (value.ends_with('\n')) value.remove_suffix(1);
    return value;
}

bool read_tags(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls,
               std::string_view function, std::string_view function_end, std::string_view parameter,
               std::string_view name_end, std::string_view parameter_end, bool breaks) {
    const size_t before = calls.size();
    while (json_spaces(text) < text.size()) {
        const auto name = take_between(text, function, name_end);
        if (!name || without_space(*name).empty()) return false;
        Arguments arguments;
        while (true) {
            text.remove_prefix(json_spaces(text));
            if (text.starts_with(function_end)) {
                text.remove_prefix(function_end.size());
                break;
            }
            const auto key = take_between(text, parameter, name_end);
            if (!key) {
                // A model may forget the end of the function.
                if (text.empty()) break;
                return false;
            }
            const size_t end = text.find(parameter_end);
            if (end == text.npos) return false;
            const std::string_view raw = text.substr(0, end);
            arguments.add_raw(without_space(*name), without_space(*key), breaks ? without_breaks(raw) : raw, texts);
            text.remove_prefix(end + parameter_end.size());
        }
        calls.push_back({std::string(without_space(*name)), arguments.take()});
    }
    return calls.size() > before;
}

}  // namespace

bool read_json_calls(std::string_view text, const TextParameters*, std::vector<ReadCall>& calls) {
    auto whole = parse_python_json(without_space(text));
    if (!whole) return false;
    std::vector<PythonMember> list;
    if (whole->kind == Kind::kList)
        list = std::move(whole->members);
    else
        list.push_back({"", std::move(*whole)});
    for (const auto& [none, one] : list) {
        const PythonJson* call = one.find("function");
        if (!call || call->kind != Kind::kObject) call = &one;
        const PythonJson* name = call->find("name");
        if (!name) name = call->find("tool_name");
        const PythonJson* arguments = call->find("arguments");
        if (!arguments) arguments = call->find("parameters");
        if (!name || name->kind != Kind::kText || without_space(name->text).empty()) return false;
        if (arguments && arguments->kind == Kind::kText && !parse_python_json(arguments->text)) return false;
        calls.push_back({std::string(without_space(name->text)), !arguments ? "{}"
                                                                 : arguments->kind == Kind::kText
                                                                     ? arguments->text
                                                                     : arguments->dumps()});
    }
    return !list.empty();
}

bool read_kimi_call(std::string_view text, const TextParameters*, std::vector<ReadCall>& calls) {
    constexpr std::string_view mark = "<|tool_call_argument_begin|>";
    const size_t at = text.find(mark);
    if (at == text.npos) return false;
    std::string_view name = without_space(text.substr(0, at));
    if (name.starts_with("functions.")) name.remove_prefix(10);
    const size_t colon = name.rfind(':');
    if (colon != name.npos && colon + 1 < name.size() && name.find_first_not_of("0123456789", colon + 1) == name.npos)
        name = name.substr(0, colon);
    return add_call(name, text.substr(at + mark.size()), calls);
}

bool read_functionary_call(std::string_view text, const TextParameters*, std::vector<ReadCall>& calls) {
    const size_t at = text.find('>');
    return at != text.npos && add_call(text.substr(0, at), text.substr(at + 1), calls);
}

bool read_mistral_call(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls) {
    // The older way, which models of the newer one write now and then.
    if (without_space(text).starts_with('[')) return read_json_calls(text, texts, calls);
    constexpr std::string_view mark = "[ARGS]";
    size_t begin = text.find(mark);
    const size_t behind = begin == text.npos ? text.find('{') : begin + mark.size();
    if (behind == text.npos) return false;
    begin = std::min({begin, behind, text.find("[CALL_ID]")});
    return add_call(text.substr(0, begin), text.substr(behind), calls);
}

bool read_glm_call(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls) {
    const size_t end = std::min(text.find("<arg_key>"), text.size());
    const std::string_view name = without_space(text.substr(0, end));
    if (name.empty() || name.find_first_of("\n<{\"") != name.npos) return false;
    text.remove_prefix(end);
    Arguments arguments;
    while (json_spaces(text) < text.size()) {
        const auto key = take_between(text, "<arg_key>", "</arg_key>");
        const auto value = key ? take_between(text, "<arg_value>", "</arg_value>") : std::nullopt;
        if (!value) return false;
        arguments.add_raw(name, without_space(*key), *value, texts);
    }
    calls.push_back({std::string(name), arguments.take()});
    return true;
}

bool read_function_tags(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls) {
    return read_tags(text, texts, calls, "<function=", "</function>", "<parameter=", ">", "</parameter>", true);
}

bool read_invoke_tags(std::string_view text, const TextParameters* texts, std::vector<ReadCall>& calls) {
    return read_tags(text, texts, calls, "<invoke name=\"", "</invoke>", "<parameter name=\"", "\">", "</parameter>",
                     false);
}

bool read_gemma_call(std::string_view text, const TextParameters*, std::vector<ReadCall>& calls) {
    LiteralReader reader(text, true);
    if (!reader.take("call:")) return false;
    const std::string name(reader.name());
    if (name.empty() || !reader.take("{")) return false;
    const auto arguments = reader.members(0);
    if (!arguments || !without_space(reader.rest()).empty()) return false;
    calls.push_back({name, arguments->dumps()});
    return true;
}

bool read_python_calls(std::string_view text, const TextParameters*, std::vector<ReadCall>& calls) {
    LiteralReader reader(text, false);
    if (!reader.take("[")) return false;
    while (!reader.take("]")) {
        const std::string name(reader.name());
        if (name.empty() || !reader.take("(")) return false;
        PythonJson arguments{Kind::kObject, {}, {}};
        while (!reader.take(")")) {
            const std::string key(reader.name());
            if (key.empty() || !reader.take("=")) return false;
            auto value = reader.value();
            if (!value) return false;
            arguments.members.push_back({key, std::move(*value)});
            reader.take(",");
        }
        calls.push_back({name, arguments.dumps()});
        reader.take(",");
        if (reader.rest().empty()) return false;
    }
    return without_space(reader.rest()).empty();
}

std::optional<size_t> JsonEnd::find(std::string_view text) {
    for (; at_ < text.size(); ++at_) {
        const char c = text[at_];
        if (quoted_) {
            if (c == '"' && !escaped_) quoted_ = false;
            escaped_ = c == '\\' && !escaped_;
        } else if (depth_ > 0 && c == '"') {
            quoted_ = true;
            escaped_ = false;
        } else if (c == '{' ||
                   (c == '[' && (depth_ > 0 || text.substr(0, at_).find_first_not_of(" \n\r\t") == text.npos))) {
            // Before the value there may be a name and markers in brackets.
            ++depth_;
        } else if (depth_ > 0 && (c == '}' || c == ']') && --depth_ == 0) {
            return ++at_;
        }
    }
    return {};
}

}  // namespace tessera::text
