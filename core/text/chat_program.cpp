#include "core/text/chat_program.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>

namespace tessera::text {
namespace {

using jinja::Value;
using Members = std::vector<std::pair<std::string, Value>>;

// Limits grow with what is to be written. A program that joins many system messages one by one takes the square.
constexpr uint64_t kSteps = 10'000'000, kStepsOfMessage = 5000;
constexpr uint64_t kBytes = uint64_t{256} << 20, kBytesOfByte = 32;

Value call_of(const ToolCall& call, bool arguments_as_given) {
    const std::string& given = call.arguments.empty() ? std::string("{}") : call.arguments;
    Value arguments = Value::text(given);
    if (!arguments_as_given)
        if (const auto json = parse_python_json(given)) arguments = Value::json(*json);
    Members members;
    if (!call.id.empty()) members.emplace_back("id", Value::text(call.id));
    members.emplace_back("type", Value::text("function"));
    members.emplace_back("function",
                         Value::dictionary({{"name", Value::text(call.name)}, {"arguments", std::move(arguments)}}));
    return Value::dictionary(std::move(members));
}

Value message_of(const ChatMessage& message, bool arguments_as_given) {
    Members members;
    members.emplace_back("role", Value::text(message.role == "developer" ? "system" : message.role));
    members.emplace_back("content", Value::text(message.content));
    if (!message.reasoning.empty()) members.emplace_back("reasoning_content", Value::text(message.reasoning));
    if (!message.tool_calls.empty()) {
        std::vector<Value> calls;
        for (const ToolCall& call : message.tool_calls) calls.push_back(call_of(call, arguments_as_given));
        members.emplace_back("tool_calls", Value::list(std::move(calls)));
    }
    if (!message.tool_call_id.empty()) members.emplace_back("tool_call_id", Value::text(message.tool_call_id));
    if (!message.name.empty()) members.emplace_back("name", Value::text(message.name));
    return Value::dictionary(std::move(members));
}

uint64_t bytes_of(std::span<const ChatMessage> messages, const ChatOptions& options) {
    uint64_t bytes = 0;
    for (const ChatMessage& message : messages) {
        bytes += message.content.size() + message.reasoning.size() + message.tool_call_id.size() + message.name.size();
        for (const ToolCall& call : message.tool_calls) bytes += call.name.size() + call.arguments.size();
    }
    for (const ChatTool& tool : options.tools)
        bytes += tool.whole.size() + tool.description.size() + tool.parameters.size();
    return bytes;
}

}  // namespace

PythonJson tool_object(const ChatTool& tool, size_t index) {
    using Kind = PythonJson::Kind;
    const auto parse = [&](const std::string& text, const char* what) {
        auto value = parse_python_json(text);
        if (!value || value->kind != Kind::kObject)
            fail(TSR_INVALID_ARGUMENT, "tool {}: expected {} that is a JSON object, found '{}'", index, what,
                 printable(text, 60));
        return std::move(*value);
    };
    if (!tool.whole.empty()) return parse(tool.whole, "a definition");
    PythonJson function{Kind::kObject, {}, {{"name", PythonJson::of_text(tool.name)}}};
    if (!tool.description.empty()) function.members.push_back({"description", PythonJson::of_text(tool.description)});
    if (!tool.parameters.empty())
        function.members.push_back({"parameters", parse(tool.parameters, "a schema of parameters")});
    PythonJson whole{Kind::kObject, {}, {{"type", PythonJson::of_text("function")}}};
    whole.members.push_back({"function", std::move(function)});
    return whole;
}

std::string run_chat_program(const jinja::Program& program, std::span<const ChatMessage> messages,
                             const ChatOptions& options, bool arguments_as_given) {
    std::vector<Value> list;
    uint64_t count = messages.size() + options.tools.size();
    for (const ChatMessage& message : messages) {
        list.push_back(message_of(message, arguments_as_given));
        count += message.tool_calls.size();
    }
    Value tools = Value::none();
    if (!options.tools.empty()) {
        std::vector<Value> objects;
        for (size_t i = 0; i < options.tools.size(); ++i)
            objects.push_back(Value::json(tool_object(options.tools[i], i)));
        tools = Value::list(std::move(objects));
    }
    jinja::Program::Variables variables;
    variables.emplace_back("messages", Value::list(std::move(list)));
    variables.emplace_back("tools", std::move(tools));
    variables.emplace_back("add_generation_prompt", options.add_generation_prompt);
    variables.emplace_back("bos_token", Value::text(options.bos));
    variables.emplace_back("eos_token", Value::text(options.eos));
    if (options.thinking) {
        variables.emplace_back("thinking", *options.thinking);
        variables.emplace_back("enable_thinking", *options.thinking);
    }
    const uint64_t bytes = bytes_of(messages, options);
    return program.run(variables, {.steps = kSteps + kStepsOfMessage * count + bytes,
                                   .bytes = kBytes + kBytesOfByte * bytes,
                                   .now = options.now.value_or(std::time(nullptr))});
}

}  // namespace tessera::text
