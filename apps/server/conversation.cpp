#include "apps/server/conversation.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/tool_constraint.hpp"
#include "apps/structure/reasoning_limit.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

namespace tessera::server {
namespace {

// What begins otherwise another server has encrypted.
constexpr std::string_view kReturnedReasoning = "tessera-reasoning:";

bool any_strict(std::span<const text::ChatTool> tools) {
    return std::ranges::any_of(tools, &text::ChatTool::strict);
}

std::string input_grammar(const Conversation& conversation, const std::string& tool) {
    const auto found = conversation.custom_tools.find(tool);
    return found == conversation.custom_tools.end() ? std::string() : found->second;
}

// Calls that the model may choose.
AskedCalls free_calls(const Conversation& conversation, std::string field) {
    const bool optional = !any_strict(conversation.options.tools);
    AskedCalls asked{{}, {.any = true, .several = !conversation.one_call}, std::move(field), optional};
    for (const text::ChatTool& tool : conversation.options.tools) {
        const std::string grammar = input_grammar(conversation, tool.name);
        // The model chooses, and its description says what the grammar is.
        const bool allow = conversation.allow_unenforced || !tool.strict || !grammar.empty();
        asked.tools.push_back({tool.name, tool.parameters, true, allow, grammar});
    }
    return asked;
}

}  // namespace

text::ChatOptions begin_conversation(const ModelText& model) {
    if (!model.writer) throw ApiError(400, model.writer_fault, "messages");
    return model.writer->options();
}

void each_message(const Fields& fields,
                  const std::function<void(const boost::json::object& message, const std::string& path)>& read) {
    const boost::json::array* const given = fields.array("messages", kMaximumMessages);
    if (!given || given->empty()) throw ApiError(400, "messages: expected a list of at least one message", "messages");
    each_object(fields, "messages", kMaximumMessages, read);
}

void check_reasoning(const text::ChatMessage& message, const std::string& path) {
    if (!message.reasoning.empty() && message.role != "assistant")
        throw ApiError(400, fmt::format("{}: only an assistant's message has reasoning", path), path);
}

void set_thinking(bool thinking, std::string_view field, const ModelText& model, text::ChatOptions& options) {
    if (thinking && !model.writer->can_think())
        throw ApiError(400, fmt::format("{}: {} has no switch for thinking", field, model.writer->title()),
                       std::string(field));
    options.thinking = thinking;
}

void set_effort(std::string_view effort, const Fields& fields, std::string_view name, const ModelText& model,
                text::ChatOptions& options) {
    static constexpr std::string_view kEfforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    if (std::ranges::find(kEfforts, effort) == std::end(kEfforts))
        fields.reject(name, R"("none", "minimal", "low", "medium", "high", "xhigh" or "max")");
    if (effort == "none") {
        options.thinking = false;
        return;
    }
    if (!model.writer->can_think() && !model.writer->has_efforts())
        throw ApiError(400, fmt::format("{}: {} has no switch for thinking", fields.path(name), model.writer->title()),
                       fields.path(name));
    if (model.writer->can_think()) options.thinking = true;
    tell_effort(effort, model, options);
}

void set_reasoning_budget(int64_t tokens, std::string_view field, const ModelText& model, Conversation& conversation) {
    conversation.reasoning_budget = tokens;
    conversation.reasoning_budget_field = field;
    if (tokens == 0 && model.writer->can_think()) conversation.options.thinking = false;
}

void tell_effort(std::string_view effort, const ModelText& model, text::ChatOptions& options) {
    if (!model.writer->has_efforts()) return;
    // Templates that tell efforts apart know none above.
    set_variable(options, "reasoning_effort", text::PythonJson::of_text(effort == "max" ? "xhigh" : effort));
}

text::ChatTool function_tool(std::string_view name, std::string_view description,
                             const boost::json::object& parameters) {
    text::ChatTool tool{std::string(name), std::string(description), boost::json::serialize(parameters), {}};
    text::JsonWriter json(tool.whole);
    json.begin_object().member("type", "function").key("function").begin_object().member("name", name);
    if (!description.empty()) json.member("description", description);
    json.key("parameters").json(tool.parameters).end_object().end_object();
    return tool;
}

text::ChatTool read_own_tool(const boost::json::object& object, const std::string& path, const ToolForm& form,
                             const std::function<void(const Fields& tool)>& read_more) {
    // Before other fields are looked at, which tools of other types have of their own.
    const boost::json::value* const given = object.if_contains("type");
    const bool missing = !given || given->is_null();
    if (missing ? form.needs_type : *given != boost::json::string_view(form.type.data(), form.type.size()))
        throw ApiError(400,
                       fmt::format("{}: tools of type {} are not offered: neither server nor model knows what they "
                                   "take; describe a function that the client runs",
                                   path, given ? shown(*given) : "nothing"),
                       path, "not_supported");
    const Fields fields(object, form.table, path);
    fields.text("type");
    const auto name = fields.text("name");
    if (!name || name->empty()) fields.reject("name", "the name of a function");
    const boost::json::object* const parameters = fields.object(form.schema);
    std::string whole_name(form.name_before), description(form.description_before);
    whole_name += *name;
    append_line(description, fields.text("description").value_or(""));
    text::ChatTool tool = function_tool(whole_name, description, parameters ? *parameters : boost::json::object());
    tool.strict = fields.boolean("strict").value_or(false);
    if (read_more) read_more(fields);
    fields.check_read();
    return tool;
}

std::string reasoning_to_return(std::string_view reasoning) {
    return std::string(kReturnedReasoning) += reasoning;
}

std::string_view returned_reasoning(std::string_view told) noexcept {
    return told.starts_with(kReturnedReasoning) ? told.substr(kReturnedReasoning.size()) : std::string_view();
}

std::string unread_part(std::string_view type) {
    return fmt::format("[{}, which cannot be shown: text alone is read here]", type);
}

void append_line(std::string& to, std::string_view text) {
    if (!to.empty() && !text.empty()) to += '\n';
    to += text;
}

ToolChoice read_allowed_tools(
    const Fields& allowed,
    const std::function<std::string(const boost::json::object& tool, const std::string& path)>& name_of) {
    const auto mode = allowed.text("mode");
    if (mode != "auto" && mode != "required") allowed.reject("mode", "auto or required");
    ToolChoice made{mode == "auto" ? ToolChoice::Kind::kAuto : ToolChoice::Kind::kNamed};
    each_object(allowed, "tools", kMaximumTools, [&](const boost::json::object& tool, const std::string& where) {
        made.names.push_back(name_of(tool, where));
    });
    if (made.names.empty()) allowed.reject("tools", "a list of at least one function");
    allowed.check_read();
    return made;
}

void choose_tools(const ToolChoice& choice, const Fields& fields, Conversation& conversation) {
    using enum ToolChoice::Kind;
    std::vector<text::ChatTool>& tools = conversation.options.tools;
    if (choice.kind == kNone) tools.clear();
    const bool required = choice.kind == kRequired || choice.kind == kNamed;
    const auto chooses = [&](const text::ChatTool& tool) {
        return choice.names.empty() || std::ranges::find(choice.names, tool.name) != choice.names.end();
    };
    for (const std::string& name : choice.names) {
        if (std::ranges::find(tools, name, &text::ChatTool::name) == tools.end())
            throw ApiError(400, fmt::format("tool_choice: tools have no function '{}'", printable(name, 60)),
                           "tool_choice");
    }
    // Of tools that may be called the model is told of the allowed ones only.
    if (!required) std::erase_if(tools, [&](const text::ChatTool& tool) { return !chooses(tool); });
    conversation.one_call = !choice.parallel;
    if (!required) {
        conversation.calls = free_calls(conversation, "tools");
        return;
    }
    std::vector<structure::CallableTool> chosen;
    for (const text::ChatTool& tool : tools) {
        if (chooses(tool))
            chosen.push_back({tool.name, tool.parameters, true, !tool.strict, input_grammar(conversation, tool.name)});
    }
    if (chosen.empty()) fields.refuse("tool_choice", "there are no tools that could be called");
    // A function that is named is called once.
    conversation.calls = {
        std::move(chosen), {.any = false, .several = choice.parallel && choice.names.size() != 1}, "tool_choice"};
}

void set_variable(text::ChatOptions& options, std::string_view name, text::PythonJson value) {
    const auto found = std::ranges::find(options.variables, name, &text::PythonMember::key);
    if (found == options.variables.end())
        options.variables.push_back({std::string(name), std::move(value)});
    else
        found->value = std::move(value);
}

bool ends_begun(std::span<const text::ChatMessage> messages, std::string_view advice) {
    if (messages.empty() || messages.back().role != "assistant") return false;
    const std::string path = fmt::format("messages[{}]", messages.size() - 1);
    if (!messages.back().tool_calls.empty())
        throw ApiError(
            400,
            fmt::format("{}: the last message calls tools and cannot be continued: send their results{}", path, advice),
            path);
    // As llama-server has it: templates do not say which of them the model would go on with.
    if (messages.size() > 1 && messages[messages.size() - 2].role == "assistant") {
        throw ApiError(400, fmt::format("{}: the last two messages are the assistant's: make them one{}", path, advice),
                       path);
    }
    return true;
}

text::WrittenChat write(const Conversation& conversation, const ModelText& model,
                        const std::function<void(uint64_t fewest_bytes)>& check) {
    const text::ChatOptions& options = conversation.options;
    const std::vector<text::ChatMessage>& messages = conversation.messages;
    check(model.writer->fewest_bytes(messages, options));
    return conversation.continued ? model.writer->write_continued(messages, options)
                                  : model.writer->write(messages, options);
}

namespace {

// Holds the answer to the structure and the calls that the conversation asks for. True: to such alone.
bool hold_answer(ChatRequest& read, const Conversation& conversation, const ModelText& model);

void limit_reasoning(ChatRequest& read, const Conversation& conversation, bool demanded, const ModelText& model) {
    const text::ReplySyntax& syntax = read.chat.syntax;
    if (!syntax.reasoning) return;
    if (!structure::can_end_reasoning(syntax, *model.tokenizer)) {
        const std::string& field = conversation.reasoning_budget_field;
        // Without thinking there is nothing to end.
        const bool off = conversation.reasoning_budget == 0 && model.writer->can_think();
        if (conversation.reasoning_budget.value_or(-1) >= 0 && !off)
            throw ApiError(
                400,
                fmt::format("{}: a reasoning budget cannot be enforced with this model: its vocabulary cannot "
                            "spell {}, which ends reasoning; leave the field out",
                            field, syntax.reasoning_end),
                field, "not_supported");
        return;
    }
    session::Request& request = read.request;
    const uint64_t context = model.context_of_request(), prompt = request.prompt.size();
    const uint64_t answer = std::min<uint64_t>(request.max_new_tokens, context > prompt ? context - prompt : 0);
    const std::optional<int64_t> budget =
        conversation.reasoning_budget ? conversation.reasoning_budget : model.reasoning_budget;
    read.chat.end_reasoning = std::make_shared<std::atomic<bool>>(false);
    const structure::ReasoningLimit limit{structure::reasoning_tokens(budget, answer, demanded),
                                          read.chat.end_reasoning};
    request.make_constraint = [inner = std::move(request.make_constraint), syntax, tokenizer = model.tokenizer.get(),
                               limit] {
        return structure::limit_reasoning(inner ? inner() : nullptr, syntax, *tokenizer, limit);
    };
}

}  // namespace

void write_prompt(ChatRequest& read, const Conversation& conversation, const ModelText& model) {
    text::WrittenChat written = write(conversation, model, [&](uint64_t bytes) { check_length(bytes, model); });
    check_length(written.text.size(), model);
    // An answer that may be free may have calls in the forms that models write instead of theirs.
    const AskedCalls& calls = conversation.calls;
    written.reply.exact = conversation.structure || (!calls.tools.empty() && !calls.optional);
    written.reply.whole = !read.delivery.stream;
    session::Request& request = read.request;
    request.prompt = model.writer->tokens(written, 0, most_prompt_tokens(model));
    check_prompt_tokens(request.prompt.size(), model);
    read.chat.syntax = written.reply;
    read.chat.one_call = conversation.one_call;
    for (const auto& [name, grammar] : conversation.custom_tools) read.chat.custom_tools.insert(name);
    // What separates reasoning, content and calls may be control tokens.
    request.show_control = written.reply.reasoning || written.reply.tools != text::ToolSyntax::kNone ||
                           !written.reply.content_marks.empty();
    request.show_end = false;
    const bool demanded = hold_answer(read, conversation, model);
    limit_reasoning(read, conversation, demanded, model);
}

namespace {

bool hold_answer(ChatRequest& read, const Conversation& conversation, const ModelText& model) {
    session::Request& request = read.request;
    const text::ReplySyntax reply = read.chat.syntax;
    const std::optional<AskedStructure>& structure = conversation.structure;
    AskedCalls calls = conversation.calls;
    for (structure::CallableTool& tool : calls.tools) tool.allow_unenforced |= conversation.allow_unenforced;
    // Of an answer that is calls alone a structure says nothing.
    if (!calls.tools.empty() && (!structure || !calls.count.any)) {
        hold_to_calls(read, calls, nullptr, model);
        return !calls.count.any;
    }
    if (!structure) return false;
    report_unenforced(*structure, read.delivery);
    if (reply.content_begun)
        throw ApiError(400, fmt::format("{}: the message to be continued is not held to it", structure->field),
                       structure->field);
    // A text of the structure may spell what begins a call.
    read.chat.syntax.content_or_calls = true;
    if (reply.tools != text::ToolSyntax::kNone) {
        const std::string field = any_strict(conversation.options.tools) ? "tools" : structure->field;
        hold_to_calls(read, free_calls(conversation, field), &structure->body, model);
        return true;
    }
    hold_to(request, structure::answer_grammar(structure->body, reply, *model.tokenizer), model, structure->field,
            read.delivery);
    return true;
}

}  // namespace

}  // namespace tessera::server
