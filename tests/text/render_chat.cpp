// Answers requests on standard input, a JSON object a line, for chat_templates_test.py: {"program": TEXT or null,
// "name": NAME, "run": bool, "form": bool, "texts": bool, "messages": [...], "tools": [...], "prompt": bool,
// "thinking": bool or null, "bos", "eos"}. "run": what the program makes of it, with arguments as texts or not; "form":
// what the form that it resembles makes of it, else what ChatTemplate writes. Answers are {"text": ...} or {"error":
// ...}.
#include "core/base/error.hpp"
#include "core/text/chat_program.hpp"

#include <boost/json.hpp>

#include <iostream>
#include <map>

namespace tessera::text {
namespace {

namespace json = boost::json;

std::string member(const json::value& object, const char* key) {
    const json::value* found = object.as_object().if_contains(key);
    return found && found->is_string() ? json::value_to<std::string>(*found) : "";
}

ChatMessage message_of(const json::value& one) {
    ChatMessage message{.role = member(one, "role"), .content = member(one, "content")};
    message.reasoning = member(one, "reasoning_content");
    message.tool_call_id = member(one, "tool_call_id");
    message.name = member(one, "name");
    if (const json::value* calls = one.as_object().if_contains("tool_calls"))
        for (const json::value& call : calls->as_array())
            message.tool_calls.push_back(
                {member(call, "id"), member(call.at("function"), "name"), member(call.at("function"), "arguments")});
    return message;
}

std::string answer(const json::value& asked) {
    std::vector<ChatMessage> messages;
    for (const json::value& one : asked.at("messages").as_array()) messages.push_back(message_of(one));
    ChatOptions options{.bos = member(asked, "bos"), .eos = member(asked, "eos")};
    options.add_generation_prompt = asked.at("prompt").as_bool();
    if (asked.at("thinking").is_bool()) options.thinking = asked.at("thinking").as_bool();
    for (const json::value& tool : asked.at("tools").as_array()) {
        const json::value& function = tool.at("function");
        options.tools.push_back({member(function, "name"), member(function, "description"),
                                 json::serialize(function.at("parameters")), json::serialize(tool)});
    }
    const std::string program = member(asked, "program");
    if (asked.at("run").as_bool())
        return run_chat_program(jinja::Program(program), messages, options, asked.at("texts").as_bool());
    if (asked.at("form").as_bool()) {
        const auto form = recognize_chat_format(program);
        if (!form) throw std::runtime_error("not recognised");
        return ChatTemplate(*form).render(messages, options);
    }
    static std::map<std::string, ChatTemplate> known;
    if (!program.empty()) {
        auto found = known.find(program);
        if (found == known.end()) found = known.emplace(program, ChatTemplate::recognize(program)).first;
        return found->second.render(messages, options);
    }
    return ChatTemplate::by_name(member(asked, "name")).render(messages, options);
}

void answer_all() {
    for (std::string line; std::getline(std::cin, line);) {
        json::object out;
        try {
            out["text"] = answer(json::parse(line));
        } catch (const std::exception& error) {
            out["error"] = error.what();
        }
        std::cout << json::serialize(out) << '\n' << std::flush;
    }
}

}  // namespace
}  // namespace tessera::text

int main() {
    tessera::text::answer_all();
}
