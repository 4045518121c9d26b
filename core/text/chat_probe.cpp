#include "core/text/chat_probe.hpp"

#include "core/base/error.hpp"
#include "core/text/chat_builtin.hpp"
#include "core/text/chat_history.hpp"
#include "core/text/json_text.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace tessera::text {
namespace {

// Words that no template has.
constexpr std::string_view kQuestion = "Tsrquestion", kAgain = "Tsrquestionagain", kSystem = "Tsrsystem",
                           kLate = "Tsrlate", kAnswer = "Tsranswer", kThought = "Tsrthought", kName = "tsrlookup",
                           kKey = "tsrkey", kValue = "tsrvalue", kResult = "Tsrresult", kSecondValue = "tsrsecond",
                           kLongId = "call_tsr0123456789abcdef";

using Messages = std::vector<ChatMessage>;

class Prober {
  public:
    explicit Prober(const jinja::Program& program) : program_(program) {}

    ChatTraits run() {
        find_content();
        find_calls();
        find_descriptions();
        find_rewritings();
        find_switches();
        find_reasoning();
        find_developer();
        find_lengths();
        find_late_system();
        traits_.markers += program_.source();
        return std::move(traits_);
    }

  private:
    static ChatMessage said(const char* role, std::string_view content) { return {role, std::string(content)}; }
    static ChatMessage question() { return said("user", kQuestion); }
    static ChatMessage call(std::string_view content = "") {
        ChatMessage made = said("assistant", content);
        // Some want an id of nine letters.
        made.tool_calls.push_back({"tsrcall01", std::string(kName),
                                   "{\"" + std::string(kKey) + "\": \"" + std::string(kValue) + "\", \"number\": 7}"});
        return made;
    }
    static ChatMessage result() {
        ChatMessage made = said("tool", kResult);
        made.tool_call_id = "tsrcall01";
        made.name = kName;
        return made;
    }
    static ChatOptions options(bool prompt = true) {
        return {.bos = "<bos>", .eos = "<eos>", .add_generation_prompt = prompt, .thinking = {}};
    }
    static ChatOptions with_tool(bool prompt = true) {
        ChatOptions made = options(prompt);
        made.tools.push_back(
            {std::string(kName), "Tsrdescription",
             R"({"type": "object", "properties": {"tsrkey": {"type": "string", "description": "d"}}, "required": ["tsrkey"]})",
             ""});
        return made;
    }

    std::string write(const ChatShape& shape, const Messages& messages, const ChatOptions& options) {
        jinja::Marked made = run_chat_program(program_, shape, messages, options);
        // Once: there is much of it.
        if (traits_.markers.size() < kMostMarkers) {
            size_t at = 0;
            for (const TextRange& range : made.contents) {
                traits_.markers.append(made.bytes, at, range.begin - at) += '\n';
                at = range.end;
            }
            traits_.markers.append(made.bytes, at) += '\n';
        }
        return std::move(made.bytes);
    }
    // Empty if the program refuses or fails.
    std::string try_write(const ChatShape& shape, const Messages& messages, const ChatOptions& options) {
        try {
            return write(shape, messages, options);
        } catch (const Error&) {
            return {};
        }
    }
    std::string try_write(const Messages& messages, const ChatOptions& options) {
        return try_write(traits_.shape, messages, options);
    }

    void find_content() {
        std::string text;
        try {
            text = write(traits_.shape, {question()}, options());
        } catch (const Error& error) {
            // One that asks for other messages, or a list of tools, may still write those.
            if (error.code() == TSR_INVALID_ARGUMENT) {
                text = try_write({said("system", kSystem), question()}, options());
            } else {
                // One that reads tools unasked, or under another name.
                const ChatShape plain = traits_.shape;
                traits_.shape.empty_tools = true;
                text = try_write({question()}, options());
                if (text.empty()) {
                    traits_.shape = plain;
                    traits_.shape.functions_as_text = true;
                    text = try_write({question()}, options());
                }
                if (text.empty()) throw;
            }
        }
        if (text.find(kQuestion) != text.npos) return;
        ChatShape parts = traits_.shape;
        parts.content_as_parts = true;
        if (try_write(parts, {question()}, options()).find(kQuestion) != text.npos) traits_.shape = parts;
    }

    // Whether the arguments of the call are there, and neither as Python shows them nor as a text in a text.
    static bool is_call(std::string_view text, bool as_text) {
        if (text.find(kName) == text.npos || text.find(kKey) == text.npos || text.find(kValue) == text.npos)
            return false;
        if (as_text) return text.find("\\\"" + std::string(kKey)) == text.npos;
        return text.find("'" + std::string(kKey) + "'") == text.npos;
    }

    void find_calls() {
        for (const bool may_change : {false, true}) {
            for (const bool as_text : {false, true}) {
                for (const bool no_content : {false, true}) {
                    ChatShape shape = traits_.shape;
                    shape.may_change_lists = may_change;
                    shape.arguments_as_text = as_text;
                    shape.null_content = no_content;
                    for (const bool answered : {true, false}) {
                        Messages messages = {question(), call()};
                        if (answered) messages.push_back(result());
                        std::string text = try_write(shape, messages, options(false));
                        if (text.find("None") != text.npos || !is_call(text, as_text)) continue;
                        // As the model wrote them, where the template takes them either way.
                        if (!as_text) {
                            ChatShape given = shape;
                            given.arguments_as_text = true;
                            if (try_write(given, messages, options(false)) == text) shape = given;
                        }
                        traits_.shape = shape;
                        traits_.writes_calls = true;
                        traits_.writes_results = answered && text.find(kResult) != text.npos;
                        find_syntax(answered);
                        return;
                    }
                }
            }
        }
    }

    void find_syntax(bool answered) {
        for (const bool described : {true, false}) {
            const ChatOptions asked = described ? with_tool(false) : options(false);
            Messages messages = {question(), call()};
            std::string text = try_write(messages, asked);
            if (text.empty() && answered) {
                messages.push_back(result());
                text = try_write(messages, asked);
            }
            // What is said of tools stands before the call, but for formats that describe them with the question.
            const size_t at = text.find(kQuestion);
            size_t begin = at == text.npos ? 0 : at + kQuestion.size();
            if (text.find(kValue, begin) == text.npos) begin = 0;
            traits_.reply.tools = tool_syntax_of(std::string_view(text).substr(begin), kName);
            if (traits_.reply.tools != ToolSyntax::kNone) return;
        }
    }

    void find_descriptions() {
        for (const bool system : {false, true}) {
            Messages messages = {question()};
            if (system) messages.insert(messages.begin(), said("system", kSystem));
            const std::string text = try_write(messages, with_tool());
            traits_.describes_tools |= text.find(kName) != text.npos;
        }
        // One that describes tools and writes no calls says which marks it was trained on.
        if (traits_.describes_tools && traits_.reply.tools == ToolSyntax::kNone)
            traits_.reply.tools = syntax_of_source();
        find_missing_calls();
        if (!traits_.writes_results && traits_.describes_tools)
            traits_.writes_results =
                try_write({question(), call(), result()}, with_tool()).find(kResult) != std::string::npos;
    }

    // One that describes tools and writes contents as they are is given calls as contents.
    void find_missing_calls() {
        if (traits_.writes_calls || !traits_.describes_tools) return;
        ChatShape shape = traits_.shape;
        shape.calls_program = missing_calls(traits_.reply.tools);
        if (shape.calls_program.empty()) return;
        const std::string text = try_write(shape, {question(), call(), result()}, with_tool());
        if (text.find(kName, text.find(kQuestion)) == text.npos || text.find(kValue) == text.npos) return;
        traits_.shape = shape;
        traits_.writes_calls = true;
    }

    ToolSyntax syntax_of_source() const {
        const std::string_view source = program_.source();
        const auto has = [&](std::string_view part) { return source.find(part) != source.npos; };
        if (has("<|tool_list_start|>") || has("List of tools: [")) return ToolSyntax::kLfm2;
        if (has("<|tool_call|>")) return ToolSyntax::kGranite;
        if (has("<tool_call>")) return ToolSyntax::kHermes;
        return tool_syntax_of(source, "");
    }

    // What calls need in every conversation.
    void find_rewritings() {
        if (!traits_.writes_calls) return;
        std::vector<Rewriting>& rewritings = traits_.shape.rewritings;
        const auto writes = [&](const ChatHistory& history, std::initializer_list<std::string_view> words) {
            const std::string text = try_write(history.messages, options(false));
            return std::ranges::all_of(words, [&](std::string_view word) { return text.find(word) != text.npos; });
        };
        ChatHistory history{{question(), call()}, {}};
        if (traits_.writes_results) history.messages.push_back(result());
        for (ChatMessage& message : history.messages) {
            if (!message.tool_call_id.empty()) message.tool_call_id = kLongId;
            for (ToolCall& one : message.tool_calls) one.id = kLongId;
        }
        if (traits_.reply.tools == ToolSyntax::kKimi) {
            rewritings.push_back(use_kimi_call_ids);
        } else if (!writes(history, {kValue})) {
            ChatHistory shortened = history;
            if (shorten_call_ids(shortened) && writes(shortened, {kValue})) {
                rewritings.push_back(shorten_call_ids);
                history = std::move(shortened);
            }
        }
        // A second call, and its result.
        ToolCall second = history.messages[1].tool_calls.front();
        second.arguments = "{\"" + std::string(kKey) + "\": \"" + std::string(kSecondValue) + "\"}";
        second.id.back() = '2';
        if (traits_.writes_results) {
            history.messages.push_back(history.messages.back());
            history.messages.back().tool_call_id = second.id;
        }
        history.messages[1].tool_calls.push_back(std::move(second));
        if (writes(history, {kValue, kSecondValue})) return;
        if (split_calls(history) && writes(history, {kValue, kSecondValue})) rewritings.push_back(split_calls);
    }

    void find_switches() {
        const auto with_thinking = [&](std::optional<bool> thinking) {
            std::string all;
            for (const bool prompt : {true, false}) {
                ChatOptions asked = options(prompt);
                asked.thinking = thinking;
                all += try_write({question()}, asked) + '\0';
                all += try_write({question(), said("assistant", kAnswer), question()}, asked) + '\0';
            }
            return all;
        };
        const std::string on = with_thinking(true);
        traits_.has_switch = on != with_thinking(false);
        traits_.thinks_by_default = traits_.has_switch && with_thinking({}) == on;
        const auto with_effort = [&](const char* effort) {
            ChatOptions asked = options();
            asked.variables.push_back({"reasoning_effort", PythonJson::of_text(effort)});
            return try_write({question()}, asked);
        };
        traits_.has_efforts = with_effort("low") != with_effort("high");
    }

    // The marker that ends at `end`: <tag>, [TAG], <tag>word.
    static std::string marker_before(std::string_view text) {
        while (!text.empty() && is_json_space(text.back())) text.remove_suffix(1);
        size_t word = text.size();
        while (word > 0 && text[word - 1] >= 'a' && text[word - 1] <= 'z') --word;
        const std::string_view head = text.substr(0, word);
        if (head.ends_with('>')) {
            const size_t begin = head.rfind('<');
            return begin == head.npos ? "" : std::string(text.substr(begin));
        }
        if (text.ends_with(']')) {
            const size_t begin = text.rfind('[');
            return begin == text.npos ? "" : std::string(text.substr(begin));
        }
        return {};
    }
    static std::string marker_after(std::string_view text) {
        text.remove_prefix(json_spaces(text));
        const char close = text.starts_with('<') ? '>' : text.starts_with('[') ? ']' : '\0';
        const size_t end = close == '\0' ? text.npos : text.find(close);
        constexpr size_t kLongest = 40;
        return end == text.npos || end > kLongest ? "" : std::string(text.substr(0, end + 1));
    }

    static bool names_thoughts(std::string marker) {
        for (char& c : marker) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
        constexpr std::array<std::string_view, 4> words = {"think", "thought", "reason", "channel"};
        return std::ranges::any_of(words, [&](std::string_view word) { return marker.find(word) != marker.npos; });
    }

    bool take_markers(std::string_view text) {
        const size_t at = text.rfind(kThought);
        if (at == text.npos) return false;
        std::string begin = marker_before(text.substr(0, at)), end = marker_after(text.substr(at + kThought.size()));
        // What ends a turn is none: the marks of reasoning stay marks in contents.
        if (!names_thoughts(begin) || !names_thoughts(end)) return false;
        set_markers(std::move(begin), std::move(end));
        return true;
    }
    void set_markers(std::string begin, std::string end) {
        traits_.reasons = true;
        traits_.shape.reasoning_begin = traits_.reply.reasoning_begin = std::move(begin);
        traits_.shape.reasoning_end = traits_.reply.reasoning_end = std::move(end);
    }

    // Answers that consist of parts, each between marks that no probe shows.
    bool find_parts() {
        const std::string_view source = program_.source();
        const auto has = [&](std::string_view part) { return source.find(part) != source.npos; };
        ReplySyntax& reply = traits_.reply;
        if (has("<|open|>") && has("<|close|>") && has("<|sep|>")) {
            reply.content_open = "<|open|>response<|sep|>";
            reply.content_marks = {reply.content_open, "<|close|>response<|sep|>", "<|close|>message<|sep|>",
                                   "<|end_of_msg|>"};
            set_part_markers("<|open|>think<|sep|>", "<|close|>think<|sep|>");
            return true;
        }
        if (has("<|begin|>assistant") && has("<|content|>") && has("<|think|>")) {
            reply.content_begin = "<|content|>";
            reply.content_open = "<|begin|>assistant<|content|>";
            reply.content_marks = {reply.content_open, reply.content_begin, "<|end|>"};
            set_part_markers("<|think|>", "<|end|>");
            return true;
        }
        if (has("<atem:") && has("<|eom|>")) {
            set_part_markers(" to=self<|message|>", "<|eom|>");
            reply.framing = ReplyFraming::kRecipients;
            return true;
        }
        if (has("<|START_RESPONSE|>") || has("<|START_TEXT|>")) {
            reply.content_begin = reply.content_open = "<|START_RESPONSE|>";
            reply.content_marks = {"<|START_RESPONSE|>", "<|END_RESPONSE|>"};
            if (has("<|START_TEXT|>")) {
                reply.content_begin = reply.content_open = "<|START_TEXT|>";
                reply.content_marks.insert(reply.content_marks.end(), {"<|START_TEXT|>", "<|END_TEXT|>"});
            }
            if (!has("<|START_THINKING|>")) return true;
            set_part_markers("<|START_THINKING|>", "<|END_THINKING|>");
            return true;
        }
        if (has("<|inner_prefix|>")) {
            set_part_markers("<|inner_prefix|>", "<|inner_suffix|>");
            return true;
        }
        if (try_write({question()}, options()).ends_with(">>>")) reply.content_begin = "all\n";
        return false;
    }
    // Marks that are text in the contents of messages.
    void set_part_markers(std::string begin, std::string end) {
        find_reasoning_key();
        set_markers(std::move(begin), std::move(end));
        traits_.always_reasons = true;
        traits_.shape.reasoning_begin.clear();
        traits_.shape.reasoning_end.clear();
    }

    void find_reasoning() {
        if (find_parts()) return;
        if (program_.source().find("<|channel|>") != std::string_view::npos &&
            program_.source().find("analysis") != std::string_view::npos) {
            find_reasoning_key();
            traits_.reasons = true;
            traits_.reply.framing = ReplyFraming::kChannels;
            return;
        }
        if (find_reasoning_key()) return;
        // A template that takes thoughts out of contents.
        constexpr std::array<std::pair<const char*, const char*>, 4> known = {
            {{"<think>", "</think>"},
             {"[THINK]", "[/THINK]"},
             {"<seed:think>", "</seed:think>"},
             {"<|START_THINKING|>", "<|END_THINKING|>"}}};
        for (const auto& [begin, end] : known) {
            const std::string thoughtful = begin + std::string(kThought) + end + std::string(kAnswer);
            const std::string text = try_write({question(), said("assistant", thoughtful), question()}, options());
            const bool drops = text.find(kAnswer) != text.npos && text.find(kThought) == text.npos;
            ChatOptions asked = options();
            asked.thinking = true;
            const std::string opened = try_write({question()}, asked);
            const bool mentions = opened.find(begin) != opened.npos || opened.find(end) != opened.npos;
            if (drops || mentions) return set_markers(begin, end);
        }
        const std::string opened = try_write({question()}, options());
        if (opened.ends_with("<think>") || opened.ends_with("<think>\n")) set_markers("<think>", "</think>");
    }

    // The key under which messages have reasoning, where the template writes it.
    bool find_reasoning_key() {
        for (const char* key : {"reasoning_content", "reasoning", "thinking", "thought", "tool_plan"}) {
            ChatShape shape = traits_.shape;
            shape.reasoning_key = key;
            for (const bool calls : {false, true}) {
                if (calls && !traits_.writes_calls) continue;
                ChatMessage answer = calls ? call() : said("assistant", kAnswer);
                answer.reasoning = kThought;
                Messages messages = {question(), answer};
                if (calls && traits_.writes_results) messages.push_back(result());
                for (const bool thinking : {true, false}) {
                    ChatOptions asked = options(false);
                    if (thinking) asked.thinking = true;
                    const std::string text = try_write(shape, messages, asked);
                    if (text.find(kThought) == text.npos) continue;
                    traits_.shape.reasoning_key = key;
                    return take_markers(text);
                }
            }
        }
        return false;
    }

    // Whether the program itself knows the role developer.
    void find_developer() {
        const std::string_view source = program_.source();
        if (source.find("'developer'") == source.npos && source.find("\"developer\"") == source.npos) return;
        ChatShape shape = traits_.shape;
        shape.writes_developer = true;
        const Messages messages = {said("developer", kSystem), question()};
        const std::string text = try_write(shape, messages, options());
        if (text.find(kSystem) != text.npos && text.find(kQuestion) != text.npos) traits_.shape = shape;
    }

    void find_lengths() {
        const std::string text = try_write({question(), said("assistant", kAnswer), said("user", kAgain)}, options());
        traits_.writes_turns = text.find(std::string(kAnswer)) != text.npos && text.find(kAgain) != text.npos &&
                               text.find(kQuestion) < text.find(kAgain);
        traits_.writes_system = try_write({said("system", kSystem), question()}, options()).find(kSystem) != text.npos;
    }

    void find_late_system() {
        const auto writes = [&](const Messages& messages, std::initializer_list<std::string_view> words) {
            const std::string text = try_write(messages, options());
            return std::ranges::all_of(words, [&](std::string_view word) { return text.find(word) != text.npos; });
        };
        traits_.late_system = writes({question(), said("system", kLate)}, {kQuestion, kLate}) &&
                              writes({said("system", kSystem), question(), said("assistant", kAnswer),
                                      said("user", kAgain), said("system", kLate)},
                                     {kSystem, kAgain, kLate});
    }

    static constexpr size_t kMostMarkers = 1 << 16;
    const jinja::Program& program_;
    ChatTraits traits_;
};

}  // namespace

ChatTraits probe_chat(const jinja::Program& program) {
    return Prober(program).run();
}

ToolSyntax tool_syntax_of(std::string_view text, std::string_view name) {
    const auto has = [&](std::string_view part) { return text.find(part) != text.npos; };
    const size_t at = text.find(name);
    if (at == text.npos) return ToolSyntax::kNone;
    const std::string_view before = text.substr(0, at);
    const bool json =
        name.empty() ? has("\"name\"") : before.ends_with("\"name\": \"") || before.ends_with("\"name\":\"");
    constexpr std::array<std::pair<std::string_view, ToolSyntax>, 8> first = {
        {{"<|tool_call:begin|>", ToolSyntax::kSolar},
         {"]<]minimax[>[<tool_call>", ToolSyntax::kMiniMaxM3},
         {"<|open|>call tool=\"", ToolSyntax::kKimiK3},
         {"<atem:function_calls>", ToolSyntax::kMuse},
         {"<tool_sep:opensource>", ToolSyntax::kHunyuanOpen},
         {"<tool_sep>", ToolSyntax::kHunyuan},
         {"<|tools_prefix|>", ToolSyntax::kApertus},
         {"<function name=\"", ToolSyntax::kMiniCpm}}};
    for (const auto& [mark, syntax] : first)
        if (has(mark)) return syntax;
    if (before.ends_with(">>>")) return ToolSyntax::kRecipient;
    if (has("\uff5cDSML\uff5ctool_calls>")) return ToolSyntax::kDeepSeekV4;
    if (has("\uff5cDSML\uff5cinvoke name=\"")) return ToolSyntax::kDeepSeekV32;
    if (has("<\uff5ctool\u2581sep\uff5c>"))
        return has("function<\uff5ctool\u2581sep\uff5c>") ? ToolSyntax::kDeepSeekV3 : ToolSyntax::kDeepSeekV31;
    constexpr std::array<std::pair<std::string_view, ToolSyntax>, 12> marks = {
        {{"<|tool_call_argument_begin|>", ToolSyntax::kKimi},
         {"Action:\n```json\n", ToolSyntax::kActions},
         {"<arg_key>", ToolSyntax::kGlm},
         {"<seed:tool_call>", ToolSyntax::kSeedXml},
         {"<minimax:tool_call>", ToolSyntax::kMiniMax},
         {"<parameter=", ToolSyntax::kQwenXml},
         {"[ARGS]", ToolSyntax::kMistralNamed},
         {"[TOOL_CALLS]", ToolSyntax::kMistral},
         {"<|tool_call>", ToolSyntax::kGemma},
         {"<|tool_call_start|>", ToolSyntax::kLfm2},
         {"<TOOLCALL>", ToolSyntax::kNemotron},
         {"<|START_ACTION|>", ToolSyntax::kCommandR}}};
    for (const auto& [mark, syntax] : marks)
        if (has(mark)) return syntax;
    if (has("to=functions.")) return ToolSyntax::kChannels;
    if (before.ends_with("<function=")) return ToolSyntax::kFunctionary;
    // JSON, told apart by what is around it.
    if (!json) return ToolSyntax::kNone;
    if (has("<tool_calls>[")) return ToolSyntax::kApriel;
    if (has("<tool_calls>")) return ToolSyntax::kMiniMaxM1;
    if (has("<|function_call|>")) return ToolSyntax::kGigaChat31;
    if (has("<|tool_call|>")) return ToolSyntax::kGranite;
    if (has("function call<|role_sep|>")) return ToolSyntax::kGigaChat;
    if (has("functools[")) return ToolSyntax::kFireFunction;
    if (has("<tool_call>")) return ToolSyntax::kHermes;
    return name.empty() ? ToolSyntax::kNone : ToolSyntax::kLlama3;
}

}  // namespace tessera::text
