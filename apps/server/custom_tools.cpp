#include "apps/server/custom_tools.hpp"

#include "apps/server/conversation.hpp"

#include <boost/json/array.hpp>
#include <spdlog/fmt/fmt.h>

#include <utility>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr std::string_view kInput = "input";

// Removes "^" and "$" at the ends of a pattern that has to match all of the input: they change nothing there, and are
// not accepted inside of a group.
std::string_view without_anchors(std::string_view pattern) {
    if (pattern.starts_with('^')) pattern.remove_prefix(1);
    if (!pattern.ends_with('$')) return pattern;
    const size_t before = pattern.size() - 1, last = pattern.find_last_not_of('\\', before - 1);
    const size_t escapes = before == 0 ? 0 : last == pattern.npos ? before : before - 1 - last;
    if (escapes % 2 == 0) pattern.remove_suffix(1);
    return pattern;
}

}  // namespace

InputGrammar read_input_grammar(const Fields& fields) {
    const auto syntax = fields.text("syntax"), definition = fields.text("definition");
    if (syntax != "lark" && syntax != "regex") fields.reject("syntax", "lark or regex");
    if (!definition || definition->empty()) fields.reject("definition", "a grammar");
    return {syntax == "lark" ? InputGrammar::Syntax::kLark : InputGrammar::Syntax::kRegex, *definition};
}

text::ChatTool custom_tool(std::string_view name, std::string_view description, const InputGrammar& grammar,
                           CustomTools& custom) {
    using enum InputGrammar::Syntax;
    const bool lark = grammar.syntax == kLark, regex = grammar.syntax == kRegex;
    std::string described(description);
    if (regex) append_line(described, fmt::format("The input matches this regular expression: {}", grammar.definition));
    if (lark) append_line(described, fmt::format("The input is what this Lark grammar says:\n{}", grammar.definition));
    json::object input{{"type", "string"}};
    if (regex) input["pattern"] = fmt::format("^(?:{})$", without_anchors(grammar.definition));
    const json::object parameters{{"type", "object"},
                                  {"properties", json::object{{kInput, std::move(input)}}},
                                  {"required", json::array{kInput}},
                                  {"additionalProperties", false}};
    text::ChatTool tool = function_tool(name, described, parameters);
    tool.strict = lark || regex;
    custom.emplace(tool.name, lark ? grammar.definition : std::string_view());
    return tool;
}

}  // namespace tessera::server
