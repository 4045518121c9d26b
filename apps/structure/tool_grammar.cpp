#include "apps/structure/tool_grammar.hpp"

#include "apps/structure/json_schema.hpp"

#include <boost/json/parse.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

namespace tessera::structure {
namespace {

namespace json = boost::json;
using enum text::ToolSyntax;

// What calls stand in; docs/chat-formats.md shows each.
struct CallFrame {
    text::ToolSyntax syntax;
    std::string_view section, call;
    // Between a name and its arguments; empty: a call is an object with both.
    std::string_view after_name;
    std::string_view call_end, between, section_end;
    std::string_view name_key = "name", arguments_key = "arguments";
    bool one_alone = false;  // the format has no several
};

constexpr CallFrame kFrames[] = {
    {kHermes, "", "<tool_call>\n", "", "\n</tool_call>", "\n", ""},
    {kLlama3, "", "", "", "", "; ", "", "name", "parameters"},
    {kDeepSeekV3, "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", "\n```json\n",
     "\n```<｜tool▁call▁end｜>", "\n", "<｜tool▁calls▁end｜>"},
    {kDeepSeekV31, "<｜tool▁calls▁begin｜>", "<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>", "",
     "<｜tool▁calls▁end｜>"},
    {kKimi, "<|tool_calls_section_begin|>", "<|tool_call_begin|>functions.", ":0<|tool_call_argument_begin|>",
     "<|tool_call_end|>", "", "<|tool_calls_section_end|>", "name", "arguments", true},
    {kFunctionary, "", "<function=", ">", "</function>", "", ""},
    {kMistral, "[TOOL_CALLS][", "", "", "", ", ", "]"},
    {kMistralNamed, "", "[TOOL_CALLS]", "[ARGS]", "", "", ""},
    {kGranite, "<|tool_call|>[", "", "", "", ", ", "]"},
    {kNemotron, "<TOOLCALL>[", "", "", "", ", ", "]</TOOLCALL>"},
    {kApriel, "<tool_calls>[", "", "", "", ", ", "]</tool_calls>"},
    {kCommandR, "<|START_ACTION|>[", "", "", "", ", ", "]<|END_ACTION|>", "tool_name", "parameters"},
    {kGigaChat, "<|message_sep|>\n\nfunction call<|role_sep|>\n", "", "", "", "", "", "name", "arguments", true},
    {kFireFunction, "functools[", "", "", "", ", ", "]"},
    {kChannels, "", "<|channel|>commentary to=functions.", " <|constrain|>json<|message|>", "", "", "", "name",
     "arguments", true},
};

// As a schema of an object; one that says nothing of its type is of one.
json::value parameters_of(const CallableTool& tool) {
    json::parse_options options;
    options.max_depth = 200;
    json::error_code error;
    json::value schema = json::parse(tool.parameters, error, {}, options);
    if (error || !schema.is_object())
        fail(TSR_INVALID_ARGUMENT, "the tool '{}': its parameters are no JSON schema of an object", tool.name);
    schema.get_object().emplace("type", "object");
    return schema;
}

std::string call_rule(const CallFrame& frame, const CallableTool& tool, const text::Tokenizer& tokenizer) {
    try {
        const json::value parameters = parameters_of(tool);
        std::string rule = lark_markers(frame.call, tokenizer);
        if (frame.after_name.empty()) {
            // References within the parameters begin at the whole schema.
            if (parameters.get_object().contains("$defs") || parameters.get_object().contains("definitions")) {
                rule += fmt::format(" {} %json {} \"}}\"",
                                    lark_text(fmt::format("{{\"{}\": {}, \"{}\": ", frame.name_key,
                                                          lark_text(tool.name), frame.arguments_key)),
                                    schema_rule(parameters));
            } else {
                json::object call;
                call["type"] = "object";
                call["properties"] = json::object{
                    {json::string_view(frame.name_key.data(), frame.name_key.size()), {{"const", tool.name}}},
                    {json::string_view(frame.arguments_key.data(), frame.arguments_key.size()), parameters}};
                call["required"] =
                    json::array{json::string_view(frame.name_key.data(), frame.name_key.size()),
                                json::string_view(frame.arguments_key.data(), frame.arguments_key.size())};
                call["additionalProperties"] = false;
                rule += " %json " + schema_rule(call);
            }
        } else {
            rule += fmt::format(" {} {} %json {}", lark_text(tool.name), lark_markers(frame.after_name, tokenizer),
                                schema_rule(parameters));
        }
        return rule + " " + lark_markers(frame.call_end, tokenizer);
    } catch (const Error& error) {
        throw prefixed(fmt::format("the tool '{}'", tool.name), error);
    }
}

}  // namespace

Body calls_body(text::ToolSyntax syntax, std::span<const CallableTool> tools, bool several,
                const text::Tokenizer& tokenizer) {
    const auto frame = std::ranges::find(kFrames, syntax, &CallFrame::syntax);
    if (frame == std::end(kFrames))
        fail(TSR_UNSUPPORTED,
             "the model's format of calls has arguments that are not JSON, to which it cannot be held");
    Body body{.rules = "", .has_header = syntax == kChannels};
    const bool repeats = several && !frame->one_alone;
    body.rules = fmt::format("body: {} call{} {}\n", lark_markers(frame->section, tokenizer),
                             repeats ? fmt::format(" ({} call)*", lark_markers(frame->between, tokenizer)) : "",
                             lark_markers(frame->section_end, tokenizer));
    std::string names;
    for (size_t i = 0; i < tools.size(); ++i) {
        names += fmt::format("{}call{}", names.empty() ? "" : " | ", i);
        body.rules += fmt::format("call{}: {}\n", i, call_rule(*frame, tools[i], tokenizer));
    }
    body.rules += "call: " + names + "\n";
    return body;
}

}  // namespace tessera::structure
