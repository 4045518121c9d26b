#include "apps/server/dialects/responses/input_items.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/conversation.hpp"
#include "apps/server/dialects/responses/dialect.hpp"
#include "apps/server/dialects/responses/grouped_tools.hpp"
#include "apps/server/tool_input.hpp"

#include <spdlog/fmt/fmt.h>

#include <string>
#include <utility>

namespace tessera::server::responses {
namespace {

namespace json = boost::json;

constexpr std::string_view kTexts = "a text, or a list of parts that are texts";

// Of an object of which the type says what other fields it has; "nothing" if there is none.
std::string type_of(const json::object& object) {
    const json::value* const type = object.if_contains("type");
    if (!type || type->is_null()) return "nothing";
    return type->is_string() ? std::string(type->get_string()) : shown(*type);
}

// Texts of parts, which are of one of these types. `of_tool`: what a tool has given, of which some may be no text.
std::string texts_of(const Fields& fields, std::string_view name, const FieldTable& table,
                     std::initializer_list<std::string_view> types, bool of_tool = false) {
    const json::value* const given = fields.find(name);
    if (!given) return {};
    if (given->is_string()) return std::string(given->get_string());
    if (!given->is_array()) fields.reject(name, kTexts);
    std::string text;
    each_object(fields, name, kMaximumParts, [&](const json::object& object, const std::string& path) {
        const std::string type = type_of(object);
        if (of_tool && (type == "input_image" || type == "input_file")) {
            const Fields unread(object, unread_table(), path);
            unread.text("type");
            unread.check_read();
            append_line(text, unread_part(type == "input_image" ? "image" : "file"));
            return;
        }
        if (std::ranges::find(types, type) == types.end())
            throw ApiError(400,
                           fmt::format("{}: parts of type {} are not read here; this version reads text alone: {}",
                                       path, type, fmt::join(types, ", ")),
                           path, "not_supported");
        const Fields part(object, table, path);
        part.text("type");
        const auto part_text = part.text("text");
        if (!part_text) part.reject("text", "a text");
        text += *part_text;
        part.check_read();
    });
    return text;
}

std::string content_of(const Fields& fields, std::string_view name, bool of_tool = false) {
    return texts_of(fields, name, part_table(), {"input_text", "output_text", "text"}, of_tool);
}

// Makes messages of items, one after the other.
class Messages {
  public:
    explicit Messages(std::string_view instructions) {
        if (!instructions.empty()) all_.push_back({"system", std::string(instructions)});
    }

    void add(const json::object& object, const std::string& path) {
        const std::string type = type_of(object);
        if (type == "message" || (type == "nothing" && object.contains("role"))) return add_message(object, path);
        if (type == "function_call" || type == "custom_tool_call") return add_call(object, path, type);
        if (type == "function_call_output") return add_output(object, path, call_output_table());
        if (type == "custom_tool_call_output") return add_output(object, path, custom_call_output_table());
        if (type == "reasoning") return add_reasoning(object, path);
        throw ApiError(400,
                       fmt::format("{}: items of type {} are not read; this version reads message, function_call, "
                                   "function_call_output, custom_tool_call, custom_tool_call_output and reasoning",
                                   path, type),
                       path, "not_supported");
    }

    std::vector<text::ChatMessage> take() { return std::move(all_); }

  private:
    // The message of the assistant's that is being put together.
    text::ChatMessage& assistant() {
        if (all_.empty() || all_.back().role != "assistant") all_.push_back({"assistant", {}});
        return all_.back();
    }

    void add_message(const json::object& object, const std::string& path) {
        const Fields item(object, message_table(), path);
        item.text("type");
        const auto role = item.text("role");
        if (!role || (*role != "system" && *role != "developer" && *role != "user" && *role != "assistant"))
            item.reject("role", "system, developer, user or assistant");
        if (!item.has("content")) item.reject("content", kTexts);
        std::string content = content_of(item, "content");
        item.check_read();
        const bool begins = all_.size() == 1 && all_.back().role == "system";
        if (*role == "assistant") {
            append_line(assistant().content, content);
        } else if (*role != "user" && begins) {
            // Many templates have room for one, at the beginning.
            append_line(all_.back().content, content);
        } else {
            all_.push_back({*role == "user" ? "user" : "system", std::move(content)});
        }
    }

    void add_call(const json::object& object, const std::string& path, std::string_view type) {
        const bool custom = type == "custom_tool_call";
        const Fields item(object, custom ? custom_call_table() : call_table(), path);
        item.text("type");
        const auto id = item.text("call_id"), name = item.text("name");
        const auto given = item.text(custom ? "input" : "arguments");
        if (!name) item.reject("name", "the name of a tool");
        std::string whole = whole_name(item.text("namespace").value_or(""), *name);
        item.check_read();
        text::ChatMessage& message = assistant();
        if (message.tool_calls.size() >= kMaximumCalls)
            throw ApiError(400, fmt::format("{}: more than {} calls that follow each other", path, kMaximumCalls),
                           path);
        std::string arguments = custom ? arguments_of_input(given.value_or("")) : std::string(given.value_or("{}"));
        message.tool_calls.push_back({std::string(id.value_or("")), std::move(whole), std::move(arguments)});
    }

    void add_output(const json::object& object, const std::string& path, const FieldTable& table) {
        const Fields item(object, table, path);
        item.text("type");
        const auto id = item.text("call_id");
        if (!id) item.reject("call_id", "the call_id of a call");
        if (!item.has("output")) item.reject("output", kTexts);
        text::ChatMessage message{"tool", content_of(item, "output", true)};
        message.tool_call_id = *id;
        item.check_read();
        all_.push_back(std::move(message));
    }

    void add_reasoning(const json::object& object, const std::string& path) {
        const Fields item(object, reasoning_item_table(), path);
        item.text("type");
        std::string reasoning = texts_of(item, "content", reasoning_part_table(), {"reasoning_text", "text"});
        const std::string_view returned = item.text("encrypted_content").value_or("");
        if (reasoning.empty()) reasoning = returned_reasoning(returned);
        item.check_read();
        if (!reasoning.empty()) append_line(assistant().reasoning, reasoning);
    }

    std::vector<text::ChatMessage> all_;
};

}  // namespace

std::vector<text::ChatMessage> read_input(const Fields& fields, std::string_view instructions) {
    Messages messages(instructions);
    const json::value* const input = fields.find("input");
    if (!input) fields.reject("input", "a text, or a list of items");
    if (input->is_string()) {
        std::vector<text::ChatMessage> all = messages.take();
        all.push_back({"user", std::string(input->get_string())});
        return all;
    }
    if (!input->is_array()) fields.reject("input", "a text, or a list of items");
    each_object(fields, "input", kMaximumMessages,
                [&](const json::object& item, const std::string& path) { messages.add(item, path); });
    std::vector<text::ChatMessage> all = messages.take();
    if (all.empty()) fields.reject("input", "at least one message");
    return all;
}

}  // namespace tessera::server::responses
