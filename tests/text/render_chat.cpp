// Answers requests on standard input, a JSON object a line, for chat_templates_test.py and jinja_test.py:
//   {"program": TEXT} takes a program for the requests that follow, {"name": NAME} a built-in template;
//   {"names": true} lists the built-in templates;
//   {"variables": JSON TEXT, "may_change": bool} runs the program;
//   {"messages": [...], "tools": [...], "prompt": bool, "thinking": bool or null, "bos", "eos", "continued": bool,
//   "rewrite": bool} writes a conversation; with "parse": TEXT also reads that text as its answer, whole and byte by
//   byte.
// Answers are {"text": ..., "contents": [[begin, end], ...], "syntax": number} or {"error": ...}; of a text that was
// read also "reasoning", "content" and "calls": [{"name", "arguments"}].
#include "core/base/error.hpp"
#include "core/text/chat_template.hpp"
#include "core/text/jinja/program.hpp"

#include <boost/json.hpp>

#include <algorithm>
#include <iostream>
#include <optional>

namespace tessera::text {
namespace {

namespace json = boost::json;

std::string member(const json::value& object, const char* key) {
    const json::value* found = object.as_object().if_contains(key);
    return found && found->is_string() ? json::value_to<std::string>(*found) : "";
}
bool truth(const json::value& object, const char* key) {
    const json::value* found = object.as_object().if_contains(key);
    return found && found->is_bool() && found->as_bool();
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

json::object written(const std::string& text, const std::vector<TextRange>& contents) {
    json::array ranges;
    for (const TextRange& range : contents) ranges.push_back(json::array{range.begin, range.end});
    return {{"text", text}, {"contents", std::move(ranges)}};
}

class Renderer {
  public:
    json::object answer(const json::value& asked) {
        const json::object& object = asked.as_object();
        if (object.contains("program") || object.contains("name")) {
            program_.reset();
            chat_.reset();
            text_ = member(asked, "program");
            name_ = member(asked, "name");
            if (name_.empty()) program_.emplace(text_);
            return {{"text", ""}};
        }
        if (object.contains("names")) {
            json::array names;
            for (const std::string& name : ChatTemplate::names()) names.emplace_back(name);
            return {{"names", std::move(names)}};
        }
        if (object.contains("variables")) return run(asked);
        if (!chat_) chat_ = name_.empty() ? ChatTemplate::of_program(text_) : ChatTemplate::by_name(name_);
        return write(asked);
    }

  private:
    json::object run(const json::value& asked) const {
        if (!program_) return {{"error", "no program"}};
        jinja::Program::Variables variables;
        const auto given = parse_python_json(member(asked, "variables"));
        for (const auto& [name, value] : given.value().members) variables.emplace_back(name, jinja::Value::json(value));
        const jinja::Marked made =
            program_->run(variables, {.now = std::time(nullptr), .may_change_lists = truth(asked, "may_change")});
        return written(made.bytes, made.contents);
    }

    json::object write(const json::value& asked) const {
        std::vector<ChatMessage> messages;
        for (const json::value& one : asked.at("messages").as_array()) messages.push_back(message_of(one));
        ChatOptions options{.bos = member(asked, "bos"), .eos = member(asked, "eos")};
        options.add_generation_prompt = truth(asked, "prompt");
        options.rewrite = truth(asked, "rewrite");
        if (asked.at("thinking").is_bool()) options.thinking = asked.at("thinking").as_bool();
        for (const json::value& tool : asked.at("tools").as_array()) {
            const json::value& function = tool.at("function");
            const json::value* const parameters = function.as_object().if_contains("parameters");
            options.tools.push_back({member(function, "name"), member(function, "description"),
                                     parameters ? json::serialize(*parameters) : "", json::serialize(tool)});
        }
        const WrittenChat chat =
            truth(asked, "continued") ? chat_->write_continued(messages, options) : chat_->write(messages, options);
        json::object out = written(chat.text, chat.contents);
        out["syntax"] = static_cast<int>(chat.reply.tools);
        out["syntax_name"] = name_of(chat.reply.tools);
        out["reasoning"] = chat.reply.reasoning;
        out["begins_in_reasoning"] = chat.reply.begins_in_reasoning;
        if (const json::value* text = asked.as_object().if_contains("parse")) {
            out["read"] = read(chat.reply, std::string(text->as_string()), std::string::npos);
            if (out["read"] != read(chat.reply, std::string(text->as_string()), 1))
                throw std::runtime_error("a text byte by byte is read as another one");
        }
        return out;
    }

    static json::object read(const ReplySyntax& syntax, const std::string& text, size_t step) {
        ReplyParser parser(syntax);
        std::vector<ReplyEvent> events;
        for (size_t at = 0; at < text.size(); at += std::min(step, text.size() - at))
            parser.push(std::string_view(text).substr(at, step), events);
        parser.finish(events);
        std::string reasoning, content;
        std::vector<std::pair<std::string, std::string>> calls;
        for (const ReplyEvent& event : events) {
            if (event.kind == ReplyKind::kReasoning) reasoning += event.text;
            if (event.kind == ReplyKind::kContent) content += event.text;
            if (event.kind == ReplyKind::kToolCall) calls.emplace_back(event.text, "");
            if (event.kind == ReplyKind::kToolArguments) calls.at(event.call).second += event.text;
        }
        json::array list;
        for (const auto& [name, arguments] : calls) list.push_back({{"name", name}, {"arguments", arguments}});
        return {{"reasoning", reasoning}, {"content", content}, {"calls", std::move(list)}};
    }

    std::string text_, name_;
    std::optional<jinja::Program> program_;
    std::optional<ChatTemplate> chat_;
};

void answer_all() {
    Renderer renderer;
    for (std::string line; std::getline(std::cin, line);) {
        json::object out;
        try {
            out = renderer.answer(json::parse(line));
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
