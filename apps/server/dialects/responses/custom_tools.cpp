#include "apps/server/dialects/responses/custom_tools.hpp"

#include "apps/server/dialects/responses/dialect.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace tessera::server::responses {
namespace {

namespace json = boost::json;

constexpr std::string_view kInput = "input", kBlanks = " \t\r\n";

// What the text has to be like.
struct InputForm {
    std::string advice = {};   // for the model to read
    std::string pattern = {};  // that it is held to
    std::string grammar = {};  // the same, in Lark
};

// For a text all of which matches: what begins and ends the pattern says no more, which may not stand within a group.
std::string_view without_ends(std::string_view pattern) {
    if (pattern.starts_with('^')) pattern.remove_prefix(1);
    if (!pattern.ends_with('$')) return pattern;
    const size_t before = pattern.size() - 1, last = pattern.find_last_not_of('\\', before - 1);
    const size_t escapes = before == 0 ? 0 : last == pattern.npos ? before : before - 1 - last;
    if (escapes % 2 == 0) pattern.remove_suffix(1);
    return pattern;
}

InputForm read_form(const Fields& tool) {
    const json::object* const given = tool.object("format");
    if (!given) return {};
    const Fields format(*given, custom_format_table(), tool.path("format"));
    const auto type = format.text("type"), syntax = format.text("syntax"), definition = format.text("definition");
    InputForm read;
    if (type == "grammar") {
        if (syntax != "lark" && syntax != "regex") format.reject("syntax", "lark or regex");
        if (!definition || definition->empty()) format.reject("definition", "a grammar");
        read.advice = syntax == "regex" ? fmt::format("The input matches this regular expression: {}", *definition)
                                        : fmt::format("The input is what this Lark grammar says:\n{}", *definition);
        if (syntax == "lark") read.grammar = *definition;
        if (syntax == "regex") read.pattern = fmt::format("^(?:{})$", without_ends(*definition));
    } else if (type != "text") {
        format.reject("type", "text or grammar");
    } else if (syntax || definition) {
        format.refuse(syntax ? "syntax" : "definition", "belongs to the type grammar");
    }
    format.check_read();
    return read;
}

}  // namespace

text::ChatTool read_custom_tool(const json::object& object, const std::string& path, const ToolForm& form,
                                std::string& grammar) {
    const Fields fields(object, custom_tool_table(), path);
    fields.text("type");
    const auto name = fields.text("name");
    if (!name || name->empty()) fields.reject("name", "the name of a tool");
    const InputForm input = read_form(fields);
    std::string whole_name(form.name_before), description(form.description_before);
    whole_name += *name;
    append_line(description, fields.text("description").value_or(""));
    append_line(description, input.advice);
    fields.check_read();
    json::object text{{"type", "string"}};
    if (!input.pattern.empty()) text["pattern"] = input.pattern;
    const json::object parameters{{"type", "object"},
                                  {"properties", json::object{{kInput, std::move(text)}}},
                                  {"required", json::array{kInput}},
                                  {"additionalProperties", false}};
    text::ChatTool tool = function_tool(whole_name, description, parameters);
    tool.strict = !input.pattern.empty() || !input.grammar.empty();
    grammar = input.grammar;
    return tool;
}

std::string arguments_of_input(std::string_view input) {
    std::string out;
    text::JsonWriter(out).begin_object().member(kInput, input).end_object();
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
        at = std::min(arguments_.find_first_not_of(kBlanks, at), arguments_.size());
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
    const json::value* const input = object ? object->if_contains(kInput) : nullptr;
    if (state_ == State::kOther) return input && input->is_string() ? std::string(input->get_string()) : arguments_;
    if (object) return {};
    // A quotation mark that ends the text, or one of those that the model wrote within it.
    const std::string_view behind = std::string_view(arguments_).substr(at_ + 1);
    const size_t more = behind.find_first_not_of(kBlanks);
    const bool ends =
        more == behind.npos || (behind[more] == '}' && behind.find_first_not_of(kBlanks, more + 1) == behind.npos);
    return ends ? std::string() : arguments_.substr(at_);
}

}  // namespace tessera::server::responses
