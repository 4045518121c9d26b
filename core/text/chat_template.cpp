#include "core/text/chat_template.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/text/chat_builtin.hpp"
#include "core/text/chat_history.hpp"
#include "core/text/chat_probe.hpp"
#include "core/text/json_text.hpp"
#include "core/text/late_system.hpp"
#include "core/text/python_text.hpp"

#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

namespace tessera::text {
namespace {

void check_messages(std::span<const ChatMessage> messages) {
    if (messages.empty()) fail(TSR_INVALID_ARGUMENT, "a conversation needs at least one message");
    for (size_t i = 0; i < messages.size(); ++i) {
        const ChatMessage& message = messages[i];
        const bool known =
            is_system(message) || message.role == "user" || message.role == "assistant" || message.role == "tool";
        if (!known)
            fail(TSR_INVALID_ARGUMENT,
                 "message {}: expected the role system, developer, user, assistant or tool, found '{}'", i,
                 printable(message.role, 40));
        if (message.role != "assistant" && !message.tool_calls.empty())
            fail(TSR_INVALID_ARGUMENT, "message {}: only an assistant calls tools", i);
    }
}

// Syntaxes whose values have no quotes, and Hermes, whose models write them so now and then (EitherBody).
bool takes_texts(ToolSyntax syntax) {
    return syntax == ToolSyntax::kGlm || syntax == ToolSyntax::kHermes || syntax == ToolSyntax::kQwenXml ||
           syntax == ToolSyntax::kSeedXml || syntax == ToolSyntax::kMiniMax || syntax == ToolSyntax::kMiniMaxM3 ||
           syntax == ToolSyntax::kMuse || syntax == ToolSyntax::kMiniCpm || syntax == ToolSyntax::kHunyuan ||
           syntax == ToolSyntax::kHunyuanOpen;
}

// A conversation that is refused in every way may not cost many times what one attempt may: each rewriting has this
// part of the limits, which are far beyond what conversations take.
constexpr uint64_t kAttemptParts = 8;

// What `make` makes of the first of the conversation's rewritings that it does not refuse.
template <typename Make>
std::optional<jinja::Marked> first_rewritten(const ChatHistory& given, const Make& make) {
    const auto attempt = [&](const ChatHistory& history) -> std::optional<jinja::Marked> {
        try {
            return make(history, kAttemptParts);
        } catch (const Error&) {
            return std::nullopt;
        }
    };
    for (const Rewriting rewrite : rewritings()) {
        ChatHistory history = given;
        if (!rewrite(history)) continue;
        if (auto made = attempt(history)) return made;
    }
    ChatHistory history = given;
    size_t changes = 0;
    for (const Rewriting rewrite : rewritings()) {
        if (!rewrite(history) || ++changes < 2) continue;
        if (auto made = attempt(history)) return made;
    }
    return std::nullopt;
}

// JSON is written anew, without its blanks, and an escape of six bytes may become one.
uint64_t fewest_bytes_of_json(std::string_view json) {
    return static_cast<uint64_t>(std::ranges::count_if(json, [](char c) { return !is_json_space(c); })) / 6;
}

}  // namespace

std::shared_ptr<const TextParameters> text_parameters(ToolSyntax syntax, std::span<const ChatTool> tools) {
    if (!takes_texts(syntax)) return nullptr;
    auto texts = std::make_shared<TextParameters>();
    for (const ChatTool& tool : tools) {
        const auto schema = parse_python_json(tool.parameters);
        const PythonJson* properties = schema ? schema->find("properties") : nullptr;
        if (!properties) continue;
        for (const auto& [name, property] : properties->members) {
            const PythonJson* type = property.find("type");
            if (type && type->kind == PythonJson::Kind::kText && type->text == "string")
                texts->insert({tool.name, name});
        }
    }
    return texts;
}

ChatTemplate::ChatTemplate(std::string name, std::string_view program)
    : name_(std::move(name)), program_(std::make_shared<const jinja::Program>(program)) {
    traits_ = std::make_shared<const ChatTraits>(probe_chat(*program_));
}

ChatTemplate ChatTemplate::by_name(std::string_view name) {
    for (const BuiltinTemplate& one : builtin_templates())
        if (std::ranges::find(one.names, name) != one.names.end())
            return ChatTemplate(std::string(one.names.front()), one.program);
    fail(TSR_NOT_FOUND, "chat template: expected one of {}, found '{}'", fmt::join(names(), ", "), printable(name, 60));
}

ChatTemplate ChatTemplate::of_program(std::string_view program) {
    try {
        ChatTemplate made("", program);
        if (made.traits_->writes_calls || made.traits_->describes_tools) return made;
        // The first templates of DeepSeek's models know no tools, and the models do.
        for (const char* name : {"deepseek-v3", "deepseek-r1", "deepseek-r1-distill"}) {
            auto known = std::make_shared<const ChatTemplate>(by_name(name));
            if (!made.equals(*known)) continue;
            made.with_tools_ = std::move(known);
            break;
        }
        return made;
    } catch (const Error& error) {
        fail(TSR_UNSUPPORTED, Notice(fmt::format("the chat template cannot be run: {}", error.what()),
                                     {{AdviceCode::kNameTemplate, fmt::format("{}", fmt::join(names(), ", "))}}));
    }
}

const std::string& ChatTemplate::describing_names() {
    static const std::string names = [] {
        std::vector<std::string> all;
        for (const std::string& name : ChatTemplate::names())
            if (by_name(name).traits_->describes_tools) all.push_back(name);
        return fmt::format("{}", fmt::join(all, ", "));
    }();
    return names;
}

bool ChatTemplate::equals(const ChatTemplate& other) const {
    const std::array<std::vector<ChatMessage>, 3> conversations = {
        std::vector<ChatMessage>{{"user", "a"}}, std::vector<ChatMessage>{{"system", "s"}, {"user", "a"}},
        std::vector<ChatMessage>{{"system", "s"}, {"user", "a"}, {"assistant", "b"}, {"system", "t"}, {"user", "c"}}};
    const ChatOptions options{.bos = "<bos>", .eos = "<eos>"};
    try {
        return std::ranges::all_of(conversations, [&](const std::vector<ChatMessage>& messages) {
            return render(messages, options) == other.render(messages, options);
        });
    } catch (const Error&) {
        return false;
    }
}

std::vector<std::string> ChatTemplate::names() {
    std::vector<std::string> names;
    for (const BuiltinTemplate& one : builtin_templates()) names.emplace_back(one.names.front());
    return names;
}

std::string ChatTemplate::title() const {
    return name_.empty() ? "the file's chat template" : "the chat template " + name_;
}
ToolSyntax ChatTemplate::tool_syntax() const noexcept {
    return with_tools_ ? with_tools_->tool_syntax() : traits_->reply.tools;
}
bool ChatTemplate::has_unread_calls() const noexcept {
    return traits_->describes_tools && tool_syntax() == ToolSyntax::kNone;
}
bool ChatTemplate::can_think() const noexcept {
    return traits_->has_switch;
}
bool ChatTemplate::has_efforts() const noexcept {
    return traits_->has_efforts;
}
bool ChatTemplate::reads(std::string_view variable) const noexcept {
    const std::string_view source = program_->source();
    const auto is_word = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    };
    for (size_t at = 0; !variable.empty() && (at = source.find(variable, at)) != source.npos; ++at) {
        const size_t end = at + variable.size();
        if ((at == 0 || !is_word(source[at - 1])) && (end == source.size() || !is_word(source[end]))) return true;
    }
    return false;
}
const std::string& ChatTemplate::markers() const noexcept {
    return traits_->markers;
}

jinja::Marked ChatTemplate::run(std::span<const ChatMessage> messages, const ChatOptions& options,
                                std::string_view description) const {
    const std::vector<Rewriting>& always = traits_->shape.rewritings;
    const auto make = [&](const ChatHistory& history, uint64_t budget_parts) {
        ChatOptions changed = options;
        changed.tools = history.tools;
        return run_chat_program(*program_, traits_->shape, history.messages, changed, description, budget_parts);
    };
    const auto given = [&] {
        ChatHistory history{{messages.begin(), messages.end()}, options.tools};
        if (options.rewrite) {
            for (const Rewriting rewrite : always) rewrite(history);
        }
        return history;
    };
    try {
        if (always.empty()) return run_chat_program(*program_, traits_->shape, messages, options, description);
        return make(given(), 1);
    } catch (const Error&) {
        if (options.rewrite) {
            if (auto made = first_rewritten(given(), make)) return std::move(*made);
        }
        throw;
    }
}

WrittenChat ChatTemplate::write(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    const ChatTraits& traits = *traits_;
    check_messages(messages);
    const auto has_tools = [](const ChatMessage& message) {
        return message.role == "tool" || !message.tool_calls.empty();
    };
    if (with_tools_ && (!options.tools.empty() || std::ranges::any_of(messages, has_tools)))
        return with_tools_->write(messages, options);
    std::string_view description;
    if (!options.tools.empty() && !traits.describes_tools) {
        description = missing_description(traits.reply.tools);
        if (description.empty())
            fail(TSR_UNSUPPORTED,
                 Notice(fmt::format("{} does not say how tools are described to the model, so that only requests "
                                    "without tools can be written",
                                    title()),
                        {{AdviceCode::kNameTemplate, describing_names()}}));
    }
    for (size_t i = 0; i < messages.size(); ++i) {
        if (!messages[i].tool_calls.empty() && !traits.writes_calls)
            fail(TSR_UNSUPPORTED, "message {}: {} cannot write tool calls", i, title());
        if (messages[i].role == "tool" && !traits.writes_results)
            fail(TSR_UNSUPPORTED, "message {}: {} cannot write messages of the role tool", i, title());
    }
    std::vector<ChatMessage> folded;
    if (!traits.late_system && has_late_system(messages)) messages = folded = fold_late_system(messages);
    jinja::Marked made;
    try {
        made = run(messages, options, description);
    } catch (const Error& error) {
        if (error.code() == TSR_INVALID_ARGUMENT)
            fail(TSR_INVALID_ARGUMENT, "{} refuses this conversation: {}", title(), error.what());
        fail(error.code(), "{} cannot be run on this conversation: {}", title(), error.what());
    }
    WrittenChat chat{std::move(made.bytes), std::move(made.contents), traits.reply};
    ReplySyntax& reply = chat.reply;
    if (options.tools.empty()) {
        reply.tools = ToolSyntax::kNone;
    } else {
        reply.texts = text_parameters(reply.tools, options.tools);
        ToolNames names;
        for (const ChatTool& tool : options.tools) names.insert(tool.name);
        reply.names = std::make_shared<const ToolNames>(std::move(names));
    }
    // By the template's own text alone: a message that ends so is not the model's reasoning.
    const std::string_view text = chat.text;
    const size_t end = text.find_last_not_of('\n') + 1;
    reply.begins_in_reasoning =
        reply.framing == ReplyFraming::kMarkers && traits.reasons &&
        text.substr(0, end).ends_with(reply.reasoning_begin) &&
        (chat.contents.empty() || chat.contents.back().end + reply.reasoning_begin.size() <= end);
    // A template with a switch that is off closes the reasoning itself.
    reply.reasoning = traits.reasons &&
                      (reply.begins_in_reasoning || traits.always_reasons || reply.framing != ReplyFraming::kMarkers ||
                       !traits.has_switch || options.thinking.value_or(traits.thinks_by_default));
    return chat;
}

WrittenChat ChatTemplate::write_continued(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    if (messages.size() < 2 || messages.back().role != "assistant" || !messages.back().tool_calls.empty()) {
        fail(
            TSR_INVALID_ARGUMENT,
            "message {}: expected an answer of the assistant without tool calls, which can be continued, after another "
            "message",
            messages.size() - std::min<size_t>(messages.size(), 1));
    }
    const ChatMessage& last = messages.back();
    if (!last.name.empty())
        fail(TSR_INVALID_ARGUMENT, "message {}: an answer whose author has a name cannot be continued",
             messages.size() - 1);
    ChatOptions opening = options;
    opening.add_generation_prompt = true;
    WrittenChat chat = write(messages.first(messages.size() - 1), opening);
    ReplySyntax& reply = chat.reply;
    jinja::Marked out{std::move(chat.text), std::move(chat.contents)};
    if (reply.framing == ReplyFraming::kChannels) {
        if (!last.reasoning.empty()) {
            out.own("<|channel|>analysis<|message|>");
            out.add(last.reasoning, true);
            if (!last.content.empty()) out.own("<|end|><|start|>assistant");
            reply.begins_in_reasoning = last.content.empty();
        }
        if (!last.content.empty()) {
            out.own("<|channel|>final<|message|>");
            out.add(last.content, true);
            reply.content_begun = true;
        }
        chat.text = std::move(out.bytes);
        chat.contents = std::move(out.contents);
        return chat;
    }
    if (reply.framing == ReplyFraming::kRecipients) {
        if (!last.reasoning.empty()) {
            out.own(reply.reasoning_begin);
            out.add(last.reasoning, true);
            if (!last.content.empty()) out.own(reply.reasoning_end + "<|start|>assistant");
            reply.begins_in_reasoning = last.content.empty();
        }
        if (!last.content.empty()) {
            out.own(" to=user<|message|>");
            out.add(last.content, true);
            reply.content_begun = true;
        }
        chat.text = std::move(out.bytes);
        chat.contents = std::move(out.contents);
        return chat;
    }
    // Some formats write the tags on lines of their own.
    const bool lines = !out.bytes.ends_with(reply.reasoning_begin);
    if (!last.reasoning.empty()) {
        if (!reply.reasoning)
            fail(TSR_INVALID_ARGUMENT, "message {}: {} has no reasoning that could be continued", messages.size() - 1,
                 title());
        if (!reply.begins_in_reasoning) out.own(reply.reasoning_begin + (reply.content_marks.empty() ? "\n" : ""));
        out.add(last.reasoning, true);
        reply.begins_in_reasoning = true;
    }
    if (!last.content.empty()) {
        const bool parts = !reply.content_marks.empty();
        if (reply.begins_in_reasoning)
            out.own(lines && !parts ? "\n" + reply.reasoning_end + "\n\n" : reply.reasoning_end);
        const std::string& mark = reply.begins_in_reasoning ? reply.content_open : reply.content_begin;
        if (!out.bytes.ends_with(mark)) out.own(mark);
        out.add(answer_text(last.content, traits_->shape));
        // Reasoning that is part of the content may be open still.
        const size_t open = traits_->shape.reasoning_begin.empty() ? std::string::npos
                                                                   : last.content.rfind(reply.reasoning_begin),
                     closed = last.content.rfind(reply.reasoning_end);
        reply.begins_in_reasoning =
            reply.reasoning && open != std::string::npos && (closed == std::string::npos || closed < open);
        reply.reasoning = reply.begins_in_reasoning;
        reply.content_begun = !reply.begins_in_reasoning && !std::ranges::all_of(last.content, is_json_space);
    }
    chat.text = std::move(out.bytes);
    chat.contents = std::move(out.contents);
    return chat;
}

uint64_t ChatTemplate::fewest_bytes(std::span<const ChatMessage> messages, const ChatOptions& options) const {
    const ChatTraits& traits = *traits_;
    uint64_t bytes = 0;
    // Templates strip contents, and take thoughts out of answers.
    const auto stripped = [](std::string_view text) -> uint64_t { return python_strip(text, true, true).size(); };
    size_t last_system = messages.size();
    for (size_t i = 0; i < messages.size(); ++i)
        if (is_system(messages[i])) last_system = i;
    for (size_t i = 0; i < messages.size(); ++i) {
        const ChatMessage& message = messages[i];
        std::string_view content = message.content;
        if (is_system(message)) {
            // Some write one of them alone.
            if (traits.writes_system && i == last_system)
                bytes += messages.size() == 1 || i == 0 ? stripped(content) : 0;
        } else if (message.role == "user") {
            if (traits.writes_turns || i + 1 == messages.size()) bytes += stripped(content);
        } else if (message.role == "assistant" && traits.writes_turns && message.tool_calls.empty()) {
            const std::string_view end = traits.shape.reasoning_end;
            if (const size_t at = content.rfind(end); at != content.npos) content.remove_prefix(at + end.size());
            bytes += stripped(content);
        } else if (message.role == "assistant" && traits.writes_turns && traits.writes_calls) {
            for (const ToolCall& call : message.tool_calls) bytes += fewest_bytes_of_json(call.arguments);
        } else if (message.role == "tool" && traits.writes_results && traits.writes_turns) {
            bytes += stripped(content);
        }
    }
    if (traits.describes_tools)
        for (const ChatTool& tool : options.tools) bytes += fewest_bytes_of_json(tool.whole);
    return bytes;
}

bool is_free_variable(std::string_view name) noexcept {
    constexpr std::array<std::string_view, 5> own = {"messages", "tools", "add_generation_prompt", "bos_token",
                                                     "eos_token"};
    return !name.empty() && std::ranges::find(own, name) == own.end();
}

bool acts_as_control(std::string_view spelling) noexcept {
    constexpr std::array<std::string_view, 10> tags = {
        "<think>",          "</think>", "<tool_call>", "</tool_call>", "<tool_response>",
        "</tool_response>", "<tools>",  "</tools>",    "<dsml:",       "</dsml:"};
    constexpr std::string_view bar = "\uff5c";
    if (spelling.size() > 2 * bar.size() && spelling.starts_with(bar) && spelling.ends_with(bar)) return true;
    return spelling.starts_with('<') && (spelling.find('|') != spelling.npos || spelling.find(bar) != spelling.npos ||
                                         std::ranges::find(tags, spelling) != tags.end());
}

}  // namespace tessera::text
