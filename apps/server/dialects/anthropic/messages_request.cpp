#include "apps/server/dialects/anthropic/messages_request.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/dialects/anthropic/dialect.hpp"
#include "apps/server/dialects/anthropic/documents.hpp"
#include "apps/server/dialects/anthropic/offered_tools.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace tessera::server::anthropic {
namespace {

namespace json = boost::json;

constexpr size_t kMostCounted = 1 << 24;  // tokens

constexpr std::string_view kBlocks = "a text, or a list of blocks";
constexpr std::string_view kBilling = "x-anthropic-billing-header:";

// Claude Code puts it first, with a number that no other request has: nothing behind it would be found in the cache.
std::string_view without_billing(std::string_view text) {
    if (!text.starts_with(kBilling)) return text;
    const size_t end = text.find('\n');
    return end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
}

std::string_view type_of(const json::object& block, const std::string& path) {
    const json::value* const type = block.if_contains("type");
    if (!type || !type->is_string())
        throw ApiError(400, fmt::format("{}.type: expected a text, found {}", path, type ? shown(*type) : "nothing"),
                       path + ".type");
    return {type->get_string().data(), type->get_string().size()};
}

[[noreturn]] void refuse_type(std::string_view type, const std::string& path) {
    throw ApiError(400,
                   fmt::format("{}: blocks of type \"{}\" are not read; this version reads text alone{}", path, type,
                               type == "document" ? ": give it as a source of type text" : ""),
                   path, "not_supported");
}

std::string text_of(const json::object& block, const std::string& path, const FieldTable& table) {
    const Fields fields(block, table, path);
    fields.text("type");
    const auto given = fields.text("text");
    if (!given) fields.reject("text", "a text");
    fields.check_read();
    return std::string(*given);
}

// Calls `read` for each block with its path; for a text alone, with that.
template <typename Text, typename Block>
void each_block(const Fields& fields, std::string_view name, const Text& of_text, const Block& of_block) {
    const json::value* const content = fields.find(name);
    if (!content) return;
    if (content->is_string())
        return of_text(std::string_view(content->get_string().data(), content->get_string().size()));
    if (!content->is_array()) fields.reject(name, kBlocks);
    each_object(fields, name, kMaximumParts, of_block);
}

std::string system_text(const Fields& fields) {
    std::string text;
    each_block(
        fields, "system", [&](std::string_view given) { text = without_billing(given); },
        [&](const json::object& block, const std::string& path) {
            if (const std::string_view type = type_of(block, path); type != "text") refuse_type(type, path);
            append_line(text, without_billing(text_of(block, path, system_part_table())));
        });
    return text;
}

// Of blocks that hold texts in another way; nothing for others.
std::optional<std::string> shown_text(const json::object& block, std::string_view type, const std::string& path,
                                      bool of_result) {
    if (type == "search_result") return search_result_text(block, path);
    return type == "document" ? document_text(block, path, of_result) : std::nullopt;
}

text::ChatMessage result_of(const json::object& block, const std::string& path, OfferedTools& tools) {
    const Fields fields(block, tool_result_table(), path);
    fields.text("type");
    text::ChatMessage message{"tool", {}};
    if (!fields.text("tool_use_id")) fields.reject("tool_use_id", "the id of a call");
    message.tool_call_id = *fields.text("tool_use_id");
    each_block(
        fields, "content", [&](std::string_view given) { message.content = given; },
        [&](const json::object& part, const std::string& where) {
            const std::string_view type = type_of(part, where);
            if (type == "tool_reference")
                append_line(message.content, fmt::format("{} can be called now.", tools.add_found(part, where)));
            else if (type == "text")
                append_line(message.content, text_of(part, where, text_table()));
            else if (const auto document = shown_text(part, type, where, true))
                append_line(message.content, *document);
            else if (type == "image" || type == "document")
                append_line(message.content, unread_text(part, where));
            else
                refuse_type(type, where);
        });
    fields.check_read();
    return message;
}

text::ToolCall call_of(const json::object& block, const std::string& path) {
    const Fields fields(block, tool_use_table(), path);
    fields.text("type");
    const auto id = fields.text("id"), name = fields.text("name");
    if (!name) fields.reject("name", "the name of a function");
    const json::object* const input = fields.object("input");
    fields.check_read();
    return {std::string(id.value_or("")), std::string(*name), input ? json::serialize(*input) : "{}"};
}

// Turns of one role that follow each other are one, as the API has it.
void add(std::vector<text::ChatMessage>& messages, text::ChatMessage message) {
    if (messages.empty() || messages.back().role != message.role || message.role == "tool") {
        messages.push_back(std::move(message));
        return;
    }
    text::ChatMessage& last = messages.back();
    append_line(last.content, message.content);
    append_line(last.reasoning, message.reasoning);
    for (text::ToolCall& call : message.tool_calls) last.tool_calls.push_back(std::move(call));
}

// Of a person, with results of tools, which are messages of their own.
void read_user(const Fields& fields, std::string_view role, std::vector<text::ChatMessage>& messages,
               OfferedTools& tools) {
    text::ChatMessage message{std::string(role), {}};
    bool changes = false;
    each_block(
        fields, "content", [&](std::string_view given) { message.content = given; },
        [&](const json::object& block, const std::string& path) {
            const std::string_view type = type_of(block, path);
            if (type == "text") {
                append_line(message.content, text_of(block, path, text_table()));
            } else if (const auto shown = role == "user" ? shown_text(block, type, path, false) : std::nullopt) {
                append_line(message.content, *shown);
            } else if (type == "tool_result" && role == "user") {
                if (!message.content.empty()) add(messages, std::exchange(message, {std::string(role), {}}));
                messages.push_back(result_of(block, path, tools));
            } else if ((type == "tool_addition" || type == "tool_removal") && role == "system") {
                tools.add_change(block, path);
                changes = true;
            } else {
                refuse_type(type, path);
            }
        });
    // Of messages that say what has become of tools alone nothing is written.
    if (!message.content.empty() || (!changes && (messages.empty() || messages.back().role != "tool")))
        add(messages, message);
}

void read_assistant(const Fields& fields, std::vector<text::ChatMessage>& messages) {
    text::ChatMessage message{"assistant", {}};
    each_block(
        fields, "content", [&](std::string_view given) { message.content = given; },
        [&](const json::object& block, const std::string& path) {
            const std::string_view type = type_of(block, path);
            if (type == "text") {
                // As the model wrote it: a call stood between them.
                message.content += text_of(block, path, text_table());
            } else if (type == "thinking") {
                const Fields thinking(block, thinking_table(), path);
                thinking.text("type");
                const std::string_view given = thinking.text("thinking").value_or(""),
                                       signature = thinking.text("signature").value_or("");
                message.reasoning += given.empty() ? returned_reasoning(signature) : given;
                thinking.check_read();
            } else if (type == "redacted_thinking") {
                const Fields redacted(block, redacted_thinking_table(), path);
                redacted.text("type");
                redacted.check_read();
            } else if (type == "tool_use") {
                message.tool_calls.push_back(call_of(block, path));
            } else {
                refuse_type(type, path);
            }
        });
    add(messages, std::move(message));
}

void read_message(const json::object& object, const std::string& path, std::vector<text::ChatMessage>& messages,
                  OfferedTools& tools) {
    const Fields fields(object, message_table(), path);
    const auto role = fields.text("role");
    if (!role || (*role != "user" && *role != "assistant" && *role != "system"))
        fields.reject("role", "user, assistant or system");
    if (!fields.has("content")) fields.reject("content", kBlocks);
    if (*role == "assistant")
        read_assistant(fields, messages);
    else
        read_user(fields, *role, messages, tools);
    fields.check_read();
}

void read_tool_choice(const Fields& fields, Conversation& conversation) {
    const json::object* const given = fields.object("tool_choice");
    if (!given) return choose_tools({}, fields, conversation);
    const Fields choice(*given, tool_choice_table(), fields.path("tool_choice"));
    const auto type = choice.text("type"), name = choice.text("name");
    ToolChoice asked;
    if (type == "none") {
        asked.kind = ToolChoice::Kind::kNone;
    } else if (type == "any") {
        asked.kind = ToolChoice::Kind::kRequired;
    } else if (type == "tool") {
        if (!name) choice.reject("name", "the name of a tool");
        asked.kind = ToolChoice::Kind::kNamed;
        asked.names = {std::string(*name)};
    } else if (type != "auto") {
        choice.reject("type", "auto, any, tool or none");
    }
    asked.parallel = !choice.boolean("disable_parallel_tool_use").value_or(false);
    choice.check_read();
    choose_tools(asked, fields, conversation);
}

struct Thinking {
    bool asked = false;    // the answer has to have reasoning
    bool omitted = false;  // which is told as a signature alone
};

Thinking read_thinking(const Fields& fields, const ModelText& model, Conversation& conversation) {
    const json::object* const given = fields.object("thinking");
    if (!given) return {};
    const Fields thinking(*given, thinking_option_table(), fields.path("thinking"));
    const auto type = thinking.text("type");
    if (!type || (*type != "enabled" && *type != "disabled" && *type != "adaptive"))
        thinking.reject("type", "enabled, disabled or adaptive");
    const auto display = thinking.text("display");
    if (display && *display != "omitted" && *display != "updates" && *display != "summarized" && *display != "full")
        thinking.reject("display", "omitted, updates, summarized or full");
    const auto budget = thinking.integer("budget_tokens", 0, std::numeric_limits<uint32_t>::max());
    thinking.check_read();
    if (budget && *type == "enabled") {
        conversation.reasoning_budget = *budget;
        conversation.reasoning_budget_field = thinking.path("budget_tokens");
    }
    if (model.writer->can_think()) conversation.options.thinking = *type != "disabled";
    return {*type == "enabled", display == "omitted" || display == "updates"};
}

void read_output(const Fields& fields, const ModelText& model, Conversation& conversation) {
    conversation.allow_unenforced = allows_unenforced(fields);
    const json::object* const given = fields.object("output_config");
    if (!given) return;
    const Fields output(*given, output_config_table(), fields.path("output_config"));
    if (const auto effort = output.text("effort")) {
        if (*effort != "low" && *effort != "medium" && *effort != "high" && *effort != "xhigh" && *effort != "max")
            output.reject("effort", "low, medium, high, xhigh or max");
        tell_effort(*effort, model, conversation.options);
    }
    if (const json::object* const given_format = output.object("format")) {
        const Fields format(*given_format, format_table(), output.path("format"));
        if (format.text("type") != "json_schema") format.reject("type", "json_schema");
        const json::value* const schema = format.find("schema");
        if (!schema) format.reject("schema", "a JSON schema");
        conversation.structure =
            structure_of(format.path("schema"), *schema, {.allow_unenforced = conversation.allow_unenforced});
        format.check_read();
    }
    output.check_read();
}

// A conversation that the server would hold. Clients that understand the details send all of it instead.
void refuse_thread(const Fields& fields) {
    if (!fields.has("thread")) return;
    ApiError error(400, "thread: conversations are not stored; send the whole conversation in messages, without thread",
                   "thread", "not_supported");
    error.details = R"({"error_code":"thread_unsupported_request","unsupported":["thread"]})";
    throw error;
}

struct ReadConversation {
    Conversation conversation;
    Thinking thinking = {};
};

ReadConversation read_conversation(const Fields& fields, const ModelText& model) {
    ReadConversation read{{begin_conversation(model)}};
    Conversation& conversation = read.conversation;
    if (std::string system = system_text(fields); !system.empty())
        conversation.messages.push_back({"system", std::move(system)});
    OfferedTools tools;
    each_message(fields, [&](const json::object& message, const std::string& path) {
        read_message(message, path, conversation.messages, tools);
    });
    conversation.options.tools = tools.read(fields);
    read_tool_choice(fields, conversation);
    read.thinking = read_thinking(fields, model, conversation);
    read_output(fields, model, conversation);
    conversation.continued = ends_begun(conversation.messages);
    return read;
}

void check_thinking(const ReadConversation& asked, const text::ReplySyntax& syntax, const ModelText& model) {
    if (asked.thinking.asked && !syntax.reasoning)
        throw ApiError(400,
                       fmt::format("thinking: {} has no reasoning; leave it out, or say \"adaptive\" or \"disabled\"",
                                   model.writer->title()),
                       "thinking");
}

}  // namespace

ChatRequest read_messages(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, messages_table());
    refuse_thread(fields);
    ChatRequest read{read_delivery(fields), read_request(fields, model), {}};
    read.delivery.dialect = &kAnthropic;
    read.chat.stops = read_stops(fields);
    if (!fields.has("max_tokens"))
        throw ApiError(400, "max_tokens: required; say how many tokens the answer may have", "max_tokens");
    const ReadConversation asked = read_conversation(fields, model);
    read.chat.hides_reasoning = asked.thinking.omitted;
    fields.check_read();
    write_prompt(read, asked.conversation, model);
    check_thinking(asked, read.chat.syntax, model);
    return read;
}

uint64_t count_tokens(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, count_table());
    const ReadConversation asked = read_conversation(fields, model);
    fields.check_read();
    // Of any length: clients ask so that they know what does not fit.
    const text::WrittenChat written = write(asked.conversation, model, [](uint64_t) {});
    check_thinking(asked, written.reply, model);
    const size_t tokens = model.writer->tokens(written, 0, kMostCounted).size();
    if (tokens > kMostCounted)
        throw ApiError(400, fmt::format("messages: more than {} tokens; count them in parts", kMostCounted),
                       "messages");
    return tokens;
}

}  // namespace tessera::server::anthropic
