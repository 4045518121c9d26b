#include "apps/structure/tool_grammar.hpp"

#include "apps/structure/call_arguments.hpp"
#include "apps/structure/call_format.hpp"
#include "apps/structure/gbnf.hpp"
#include "apps/structure/json_schema.hpp"
#include "apps/structure/lark.hpp"
#include "apps/structure/lark_parser.hpp"
#include "core/base/error.hpp"
#include "core/text/tool_reader.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>

namespace tessera::structure {
namespace {

namespace json = boost::json;

// As a schema of an object; one that says nothing of its type is of one.
ReadSchema parameters_of(const CallableTool& tool) {
    if (!tool.held) return {any_object(), {}};
    json::value schema = parse_schema(tool.parameters);
    if (!schema.is_object()) fail(TSR_INVALID_ARGUMENT, "its parameters are no JSON schema of an object");
    json::value& type = schema.get_object()["type"];
    // Generators write null for what they do not know; arguments are an object in any case.
    const bool object =
        type.is_array() && std::ranges::find(type.get_array(), json::value("object")) != type.get_array().end();
    if (type.is_null() || object) type = "object";
    ReadSchema read = read_schema(schema, {.closed = true, .allow_unenforced = tool.allow_unenforced});
    if (!read.schema.is_object()) fail(TSR_INVALID_ARGUMENT, "its parameters are false, which no arguments are");
    return read;
}

// Names are written without quotes, and end where the format goes on.
void check_name(const std::string& name) {
    if (name.find_first_of(" \t\r\n\a\b\v\f<>{}[](),=:\"'`\\") != name.npos)
        fail(TSR_INVALID_ARGUMENT, "its name has a character that ends names in the model's format of calls");
}

// Empty: no id stands there.
std::string maybe_id(const CallId& id, CallId::Place place, const text::Tokenizer& tokenizer) {
    if (id.place != place) return {};
    return fmt::format("({} /[A-Za-z0-9]{{1,9}}/ {})? ", lark_markers(id.begin, tokenizer),
                       lark_markers(id.end, tokenizer));
}

// What follows the opening of a call: the name, the arguments, the end. `unenforced`: gets places of the schema.
std::string held_call_rules(const CallFormat& format, const CallableTool& tool, size_t number,
                            const text::ReplySyntax& reply, const text::Tokenizer& tokenizer,
                            std::vector<std::string>& unenforced) {
    ReadSchema parameters = parameters_of(tool);
    unenforced = std::move(parameters.unenforced);
    const std::string end = format_text(format.call_end, tokenizer);
    const auto id = [&](CallId::Place place) { return maybe_id(format.id, place, tokenizer); };
    if (format.arguments == ArgumentsSyntax::kJson) {
        std::string begin, close;
        if (format.after_name.empty()) {
            begin = fmt::format("\"{{\" {}{}", id(CallId::Place::kBeforeName),
                                lark_text(fmt::format("\"{}\": {}, \"{}\": ", format.name_key, lark_text(tool.name),
                                                      format.arguments_key)));
            close = id(CallId::Place::kAfterArguments) + "\"}\" ";
        } else {
            check_name(tool.name);
            begin = fmt::format("{} {}{}", lark_text(tool.name), id(CallId::Place::kAfterName),
                                format_text(format.after_name, tokenizer));
        }
        if (!tool.input_grammar.empty() && tool.held) {
            Gbnf input = parse_lark(tool.input_grammar);
            write_in_json(input);
            const std::string root = fmt::format("c{}input", number);
            return fmt::format("call{}: {} {} {} {} {}{}\n{}", number, begin, lark_text("{\"input\": \""), root,
                               lark_text("\"}"), close, end,
                               write_gbnf(std::move(input), root, tokenizer, fmt::format("c{}", number)));
        }
        return fmt::format("call{}: {} %json {} {}{}\n", number, begin, schema_rule(parameters.schema), close, end);
    }
    if (!tool.input_grammar.empty() && tool.held)
        fail(TSR_INVALID_ARGUMENT, "its Lark grammar can be enforced only where the model writes arguments as JSON");
    check_name(tool.name);
    const std::string name =
        format.name_again.empty() ? tool.name : tool.name + std::string(format.name_again) + tool.name;
    const CallArguments arguments =
        call_arguments(format, tool, parameters.schema, fmt::format("c{}", number), reply, tokenizer, unenforced);
    return fmt::format("call{}: {} {} {}\n{}", number, format_text(name + std::string(format.after_name), tokenizer),
                       arguments.expression, end, arguments.rules);
}

// The same; arguments are any object where the schema cannot be held to and the tool allows that.
std::string call_rules(const CallFormat& format, const CallableTool& tool, size_t number,
                       const text::ReplySyntax& reply, const text::Tokenizer& tokenizer,
                       std::vector<std::string>& unenforced) {
    std::vector<std::string> places;
    std::string rules;
    try {
        try {
            rules = held_call_rules(format, tool, number, reply, tokenizer, places);
        } catch (const Error& error) {
            if (!tool.allow_unenforced || !tool.held || error.code() != TSR_INVALID_ARGUMENT) throw;
            CallableTool free = tool;
            const bool by_grammar = !tool.input_grammar.empty();
            if (by_grammar)
                free.input_grammar.clear();
            else
                free.held = false;
            rules = held_call_rules(format, free, number, reply, tokenizer, places);
            places = {by_grammar ? "format/definition" : ""};
        }
    } catch (const Error& error) {
        throw prefixed(fmt::format("the tool '{}'", tool.name), error);
    }
    for (const std::string& place : places)
        unenforced.push_back(place.empty() ? tool.name : fmt::format("{}/{}", tool.name, place));
    return rules;
}

// `calls`: what follows `opening`.
std::string any_body(const text::ReplySyntax& reply, const std::string& opening, const std::string& calls,
                     const text::Tokenizer& tokenizer) {
    const std::string whole = format_text(opening, tokenizer) + " " + calls;
    // Text in which nothing begins that the reader would take for a call.
    const std::vector<std::string> never = call_markers(reply);
    const std::string free = lark_without(never);
    if (reply.framing != text::ReplyFraming::kMarkers) {
        const MessageMarks marks = message_marks(reply.framing);
        return fmt::format("body: {} FREE | ({} FREE {})? {}\nFREE: {}\n", lark_markers(marks.content, tokenizer),
                           lark_markers(marks.words_before_call, tokenizer), lark_markers(marks.next, tokenizer), whole,
                           free);
    }
    const auto marker = std::ranges::find_if(never, [&](const std::string& one) { return opening.starts_with(one); });
    if (marker == never.end()) {
        // A call is all of the answer.
        std::string other;
        const auto reader = text::make_tool_reader(reply);  // holds the texts
        for (const std::string_view begin : reader->begins_at_start())
            other += fmt::format(" & ~/[ \\t\\r\\n]*{}(?s:.*)/", quoted_for_regex(begin));
        return fmt::format("body: FREE | {}\nFREE: {}\n", whole, free + other);
    }
    const Expression begun = lark_until(free, *marker, "BEGUN", tokenizer);
    return fmt::format("body: FREE | {} {} {}\nFREE: {}\n{}", begun.text,
                       format_text(std::string_view(opening).substr(marker->size()), tokenizer), calls, free,
                       begun.rules);
}

// The same, where an answer without calls is `otherwise`, whose rules have other names but for the first.
std::string either_body(const text::ReplySyntax& reply, const Body& otherwise, const std::string& opening,
                        const std::string& calls, const text::Tokenizer& tokenizer) {
    constexpr std::string_view kFirst = "body";
    return fmt::format("body: {} other | {} {}\nother{}",
                       otherwise.has_header ? std::string() : content_header(reply, tokenizer),
                       format_text(opening, tokenizer), calls, otherwise.rules.substr(kFirst.size()));
}

}  // namespace

std::vector<std::string> call_markers(const text::ReplySyntax& reply) {
    if (reply.framing == text::ReplyFraming::kChannels) return {"<|end|>", "<|return|>", "<|call|>", "<|start|>"};
    if (reply.framing == text::ReplyFraming::kRecipients) return {"<|eom|>", "<|eot|>", "<|start|>"};
    std::vector<std::string> found;
    const auto reader = text::make_tool_reader(reply);
    if (!reader) return found;
    const auto begins = reader->begins();
    for (const std::string_view one : begins) {
        const bool shortest = std::ranges::none_of(
            begins, [&](std::string_view other) { return other != one && one.find(other) != one.npos; });
        if (shortest) found.emplace_back(one);
    }
    return found;
}

bool calls_stand_in_text(const text::ReplySyntax& reply) {
    const CallFormat* const format = call_format(reply.tools);
    if (!format || reply.framing != text::ReplyFraming::kMarkers || !reply.content_marks.empty()) return false;
    const std::string opening = std::string(format->section) + std::string(format->call);
    const std::vector<std::string> marks = call_markers(reply);
    return std::ranges::any_of(marks, [&](const std::string& mark) { return opening.starts_with(mark); });
}

Body calls_body(const text::ReplySyntax& reply, std::span<const CallableTool> tools, CallCount count,
                const text::Tokenizer& tokenizer, const Body* otherwise) {
    const CallFormat* const format = call_format(reply.tools);
    if (!format) fail(TSR_UNSUPPORTED, "the model's chat template has no calls of tools");
    const std::string opening = std::string(format->section) + std::string(format->call);
    std::string calls = "one";
    if (count.several && !format->one_alone)
        calls +=
            fmt::format(" ({} {} one)*", format_text(format->between, tokenizer), format_text(format->call, tokenizer));
    calls += " " + format_text(format->section_end, tokenizer);
    Body body{.rules = "", .has_header = true};
    std::string before;
    for (const std::string_view mark : {format->maybe_before, format->maybe_before_2})
        if (!mark.empty()) before += fmt::format("({})? ", lark_markers(mark, tokenizer));
    if (!count.any)
        body.rules = fmt::format("body: {}{} {}\n", before, format_text(opening, tokenizer), calls);
    else if (otherwise)
        body.rules = either_body(reply, *otherwise, opening, calls, tokenizer);
    else
        body.rules = any_body(reply, opening, calls, tokenizer);
    std::string names;
    for (size_t i = 0; i < tools.size(); ++i) {
        names += fmt::format("{}call{}", names.empty() ? "" : " | ", i);
        body.rules += call_rules(*format, tools[i], i, reply, tokenizer, body.unenforced);
    }
    body.rules += "one: " + names + "\n";
    return body;
}

}  // namespace tessera::structure
