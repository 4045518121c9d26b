#include "core/text/chat_program.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/late_system.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tessera::text {
namespace {

using jinja::Text;
using jinja::Value;
using Members = std::vector<std::pair<std::string, Value>>;

// Limits grow with what is to be written. A program that joins many system messages one by one takes the square.
constexpr uint64_t kSteps = 10'000'000, kStepsOfMessage = 5000;
constexpr uint64_t kBytes = uint64_t{256} << 20, kBytesOfByte = 32;

// Its name and arguments.
Value function_of(const ToolCall& call, bool arguments_as_text) {
    const std::string given = call.arguments.empty() ? std::string("{}") : call.arguments;
    Value arguments = Value::content(given);
    if (!arguments_as_text)
        if (const auto json = parse_python_json(given)) arguments = Value::json(*json);
    return Value::dictionary({{"name", Value::content(call.name)}, {"arguments", std::move(arguments)}});
}

Value call_of(const ToolCall& call, const ChatShape& shape) {
    Members members;
    if (!call.id.empty()) members.emplace_back("id", Value::content(call.id));
    members.emplace_back("type", Value::text("function"));
    members.emplace_back("function", function_of(call, shape.arguments_as_text));
    return Value::dictionary(std::move(members));
}

// Writes answers with calls as contents, for a program that writes none.
class CallWriter {
  public:
    CallWriter(const ChatShape& shape, const jinja::RunOptions& limits) : shape_(shape), limits_(limits) {
        if (!shape.calls_program.empty()) program_.emplace(shape.calls_program);
    }

    bool writes(const ChatMessage& message) const { return program_ && !message.tool_calls.empty(); }
    Text content(const ChatMessage& message) const {
        std::vector<Value> calls;
        for (const ToolCall& call : message.tool_calls) calls.push_back(function_of(call, false));
        return Text(program_->run(
            {{"content", answer_text(message.content, shape_)}, {"calls", Value::list(std::move(calls))}}, limits_));
    }

  private:
    const ChatShape& shape_;
    const jinja::RunOptions& limits_;
    std::optional<jinja::Program> program_;
};

Value content_of(const ChatMessage& message, const ChatShape& shape, const CallWriter& calls) {
    const bool calls_alone = message.role == "assistant" && !message.tool_calls.empty() && message.content.empty();
    if (shape.null_content && calls_alone && !calls.writes(message)) return Value::none();
    const Text text = calls.writes(message)         ? calls.content(message)
                      : message.role == "assistant" ? answer_text(message.content, shape)
                                                    : Text::content(message.content);
    if (!shape.content_as_parts) return text;
    return Value::list({Value::dictionary({{"type", Value::text("text")}, {"text", text}})});
}

Value message_of(const ChatMessage& message, const ChatShape& shape, const CallWriter& written_calls) {
    Members members;
    const bool renamed = message.role == "developer" && !shape.writes_developer;
    members.emplace_back("role", Value::text(renamed ? "system" : message.role));
    members.emplace_back("content", content_of(message, shape, written_calls));
    if (!message.reasoning.empty()) members.emplace_back(shape.reasoning_key, Value::content(message.reasoning));
    if (!message.tool_calls.empty() && !written_calls.writes(message)) {
        std::vector<Value> calls;
        for (const ToolCall& call : message.tool_calls) calls.push_back(call_of(call, shape));
        members.emplace_back("tool_calls", Value::list(std::move(calls)));
    }
    if (!message.tool_call_id.empty()) members.emplace_back("tool_call_id", Value::content(message.tool_call_id));
    if (!message.name.empty()) members.emplace_back("name", Value::content(message.name));
    return Value::dictionary(std::move(members));
}

// The tool's object as given, else made of its parts.
Value tool_of(const ChatTool& tool, size_t index) {
    const auto parse = [&](const std::string& text, const char* what) {
        auto value = parse_python_json(text);
        if (!value || value->kind != PythonJson::Kind::kObject)
            fail(TSR_INVALID_ARGUMENT, "tool {}: expected {} that is a JSON object, found '{}'", index, what,
                 printable(text, 60));
        return std::move(*value);
    };
    const auto made = [](const PythonJson& whole) {
        // "function" is the API's own word.
        jinja::Dictionary members;
        for (const auto& [key, member] : whole.members)
            members.set(Value::content(key),
                        key == "type" && member.text == "function" ? Value::text("function") : Value::json(member));
        return Value::dictionary(std::move(members));
    };
    if (!tool.whole.empty()) return made(parse(tool.whole, "a definition"));
    PythonJson function{PythonJson::Kind::kObject, {}, {{"name", PythonJson::of_text(tool.name)}}};
    if (!tool.description.empty()) function.members.push_back({"description", PythonJson::of_text(tool.description)});
    if (!tool.parameters.empty())
        function.members.push_back({"parameters", parse(tool.parameters, "a schema of parameters")});
    PythonJson whole{PythonJson::Kind::kObject, {}, {{"type", PythonJson::of_text("function")}}};
    whole.members.push_back({"function", std::move(function)});
    return made(whole);
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

// Adds to the system message, which is made if there is none.
void add_description(std::vector<Value>& messages, std::span<const ChatMessage> given, const ChatShape& shape,
                     const Text& description) {
    size_t last = given.size();
    for (size_t i = 0; i < given.size(); ++i)
        if (is_system(given[i])) last = i;
    const auto content = [&](Text text) -> Value {
        if (!shape.content_as_parts) return text;
        return Value::list({Value::dictionary({{"type", Value::text("text")}, {"text", std::move(text)}})});
    };
    if (last == given.size()) {
        messages.insert(messages.begin(),
                        Value::dictionary({{"role", Value::text("system")}, {"content", content(description)}}));
        return;
    }
    const bool developer = given[last].role == "developer" && shape.writes_developer;
    Text text = Text::content(given[last].content);
    if (text.size() > 0) text.append(Text(std::string("\n\n")));
    text.append(description);
    messages[last] = Value::dictionary(
        {{"role", Value::text(developer ? "developer" : "system")}, {"content", content(std::move(text))}});
}

}  // namespace

Text answer_text(std::string_view text, const ChatShape& shape) {
    jinja::Marked made;
    while (!text.empty()) {
        size_t at = text.size(), length = 0;
        for (const std::string_view mark :
             {std::string_view(shape.reasoning_begin), std::string_view(shape.reasoning_end)}) {
            if (const size_t found = text.find(mark); !mark.empty() && found < at) {
                at = found;
                length = mark.size();
            }
        }
        made.add(text.substr(0, at), true);
        made.own(text.substr(at, length));
        text.remove_prefix(at + length);
    }
    return Text(std::move(made));
}

jinja::Marked run_chat_program(const jinja::Program& program, const ChatShape& shape,
                               std::span<const ChatMessage> messages, const ChatOptions& options,
                               std::string_view description, uint64_t budget_parts) {
    uint64_t count = messages.size() + options.tools.size();
    for (const ChatMessage& message : messages) count += message.tool_calls.size();
    const uint64_t bytes = bytes_of(messages, options);
    const jinja::RunOptions limits{.steps = (kSteps + kStepsOfMessage * count + bytes) / budget_parts,
                                   .bytes = (kBytes + kBytesOfByte * bytes) / budget_parts,
                                   .now = options.now.value_or(std::time(nullptr)),
                                   .may_change_lists = shape.may_change_lists};
    const CallWriter calls(shape, limits);
    std::vector<Value> list;
    for (const ChatMessage& message : messages) list.push_back(message_of(message, shape, calls));
    Value tools = shape.empty_tools ? Value::list({}) : Value::none();
    if (!options.tools.empty()) {
        std::vector<Value> objects;
        for (size_t i = 0; i < options.tools.size(); ++i) objects.push_back(tool_of(options.tools[i], i));
        Value given = Value::list(std::move(objects));
        // A program that does not describe them may fail on them.
        if (description.empty()) {
            tools = std::move(given);
        } else {
            add_description(list, messages, shape, Text(jinja::Program(description).run({{"tools", given}}, limits)));
        }
    }
    jinja::Program::Variables variables;
    const auto add = [&](const char* name, Value value) {
        const bool given =
            std::ranges::any_of(options.variables, [&](const PythonMember& one) { return one.key == name; });
        if (!given) variables.emplace_back(name, std::move(value));
    };
    add("messages", Value::list(std::move(list)));
    if (shape.functions_as_text) {
        constexpr std::string_view functions =
            "{{ tools | map(attribute='function') | list | tojson(indent=4) if tools else '[]' }}";
        add("functions", Text(jinja::Program(functions).run({{"tools", tools}}, limits)));
        add("datetime", Value::text(jinja::time_text("%b %d %Y %H:%M:%S", limits.now)));
    }
    add("tools", std::move(tools));
    add("add_generation_prompt", options.add_generation_prompt);
    add("bos_token", Value::text(options.bos));
    add("eos_token", Value::text(options.eos));
    if (options.thinking) {
        add("thinking", *options.thinking);
        add("enable_thinking", *options.thinking);
    }
    for (const auto& [name, value] : options.variables) variables.emplace_back(name, Value::json(value));
    return program.run(variables, limits);
}

}  // namespace tessera::text
