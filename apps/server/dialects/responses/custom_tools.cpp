#include "apps/server/dialects/responses/custom_tools.hpp"

#include "apps/server/dialects/responses/dialect.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>
#include <spdlog/fmt/fmt.h>

#include <utility>

namespace tessera::server::responses {
namespace {

namespace json = boost::json;

constexpr std::string_view kInput = "input";

// What the text has to be like.
struct InputForm {
    std::string advice = {};   // for the model to read
    std::string pattern = {};  // that it is held to
};

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
        if (syntax == "regex") read.pattern = fmt::format("^(?:{})$", *definition);
    } else if (type != "text") {
        format.reject("type", "text or grammar");
    } else if (syntax || definition) {
        format.refuse(syntax ? "syntax" : "definition", "belongs to the type grammar");
    }
    format.check_read();
    return read;
}

}  // namespace

text::ChatTool read_custom_tool(const json::object& object, const std::string& path, const ToolForm& form) {
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
    tool.strict = !input.pattern.empty();
    return tool;
}

std::string arguments_of_input(std::string_view input) {
    std::string out;
    text::JsonWriter(out).begin_object().member(kInput, input).end_object();
    return out;
}

std::string input_of_arguments(const std::string& arguments) {
    boost::system::error_code error;
    const json::value read = json::parse(arguments, error);
    if (error || !read.is_object()) return arguments;
    const json::value* const input = read.get_object().if_contains(kInput);
    return input && input->is_string() ? std::string(input->get_string()) : arguments;
}

}  // namespace tessera::server::responses
