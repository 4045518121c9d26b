// Conversations written as the text that a model was trained on.
//
// A model file holds its chat template as a Jinja program. The forms of known families are data here, each tested
// against Jinja's output for the published program, and say which part of a text is the template's own. A program
// is recognised by the literals and conditions that decide its output, and then run beside the form: a conversation of
// which both do not make the same text is an error, never a guess.
#pragma once

#include "core/text/reply_parser.hpp"
#include "core/text/tokenizer.hpp"

#include <ctime>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

namespace jinja {
class Program;
}

// A call that an assistant made.
struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments;  // JSON text
};

struct ChatMessage {
    std::string role;  // system, developer (the same), user, assistant or tool
    std::string content;
    std::string reasoning = {};             // of an assistant
    std::vector<ToolCall> tool_calls = {};  // of an assistant
    std::string tool_call_id = {};          // of a tool: the call that it answers
    std::string name = {};                  // of the author, of a tool: the function
};

// A function that the model may call.
struct ChatTool {
    std::string name;
    std::string description;
    std::string parameters;  // JSON schema as text
    std::string whole;       // JSON text of the whole object, {"type": "function", "function": {...}}
};

struct ChatOptions {
    std::string bos;  // texts of these tokens in the vocabulary (Tokenizer::spelling)
    std::string eos;
    bool add_generation_prompt = true;  // end with what makes the model answer
    // For models with a switch for thinking before the answer; nothing: the default of the model's own program.
    std::optional<bool> thinking;
    std::vector<ChatTool> tools = {};
    std::optional<std::time_t> now = {};  // for programs that write the date; nothing: the clock's
};

// A conversation as text.
struct WrittenChat {
    std::string text;
    // Parts that people or the model wrote (contents, reasoning, descriptions and schemas of tools, names, arguments
    // and results of calls), in rising order; the rest is the template's own. Control tokens in them are text.
    std::vector<TextRange> contents;
    // How the model answers this conversation: ChatTemplate::reply_syntax(), and whether this text ends in reasoning,
    // which also depends on the last message.
    ReplySyntax reply;
};

// How one family writes conversations.
struct ChatFormat {
    struct Wrap {
        std::string before;
        std::string after;
        bool operator==(const Wrap&) const = default;
    };
    enum class System {
        kInPlace,      // each at its position
        kLast,         // the last one alone, before everything else
        kJoined,       // all, with an empty line between, before everything else
        kFirstInBlock  // a block that is always written holds the first message if it is a system message;
                       // others in place
    };
    enum class Thoughts { kKeep, kDropToLastEnd, kDropToFirstEnd };  // what goes before "</think>" in an answer
    enum class When { kAlways, kAfterUser, kNotAfterUser, kNotAfterResults };

    // How tools are described, and calls and their results are written.
    struct Tools {
        enum class Describe { kNot, kWhole, kFunction, kParts };

        // What published programs of this form write of tools: all that this says; calls and results, but no
        // descriptions; or nothing that this form keeps, which is then written whatever the program does.
        enum class Program { kAll, kCalls, kNothing };

        ToolSyntax syntax = ToolSyntax::kNone;  // none: tools, calls and results are refused
        Program program = Program::kAll;
        // What is written of each tool: its JSON, that of its "function", or name, description and parameters. kNot:
        // the form says nothing of tools, which are refused; calls and results in a conversation are written.
        Describe describe = Describe::kNot;
        Wrap all;  // around the descriptions, which follow the system message after an empty line
        Wrap each;
        uint32_t indent = 0;        // of the JSON
        bool in_question = false;   // the descriptions precede the first message's content, which is the user's
        std::string system_before;  // written before the system message if there are tools
        Wrap calls;                 // around all calls of a message
        Wrap call;
        std::string name_after;  // between the name of a function and its arguments
        std::string call_separator;
        std::string content_after;        // between content and calls
        bool arguments_as_given = false;  // else as Python writes their JSON, where it is valid
        bool one_call = false;            // a message has one call at most, and then no content
        Wrap results;                     // around results that follow one another
        Wrap result;
        std::string result_separator;
        bool result_as_json = false;  // as the JSON of a text
        // What opens the answer after results in place of ChatFormat::generation; empty: the model goes on at once.
        std::optional<std::string> generation_after;
        bool thoughts_beside = true;  // ChatFormat::thoughts also holds beside calls and after results

        bool operator==(const Tools&) const = default;
    };

    std::string name;
    bool bos = false;
    System system_place = System::kInPlace;
    Wrap system;
    Wrap user;
    Wrap assistant;
    // Written as a system message where the first message is none; the coder's: where there is none at all.
    std::optional<std::string> default_system;
    bool default_system_only_without_any = false;
    std::string dated;  // the part of default_system that becomes the day, as "26 Jul 2024"; empty: none
    std::optional<std::string> default_system_after;  // instead of system.after
    bool trim = false;                                // contents lose white space at both ends
    Thoughts thoughts = Thoughts::kKeep;
    bool qwen3_thoughts = false;  // thoughts stay in answers after the last question
    // The same when thinking; the form opens every answer to a question or results with "<think>" or "</think>".
    bool deepseek32_thoughts = false;
    bool eos_after_assistant = false;
    // Where a message's name stands in the place of its role: what follows it. Empty: names are not written.
    std::string name_end;
    When assistant_before = When::kAlways;  // whether Wrap::before of an answer is written
    std::string generation;
    When generation_when = When::kAlways;
    bool generation_always = false;   // even when it is not asked for
    bool can_think = false;           // ChatOptions::thinking chooses
    std::string generation_thinking;  // appended to `generation` when thinking
    std::string generation_direct;    // appended when not
    bool thinks_by_default = false;
    Tools tools;

    bool operator==(const ChatFormat&) const = default;
};

// Immutable; any thread.
class ChatTemplate {
  public:
    // A known name or alias: "deepseek2", "deepseek3", "chatml", ... Throws Error(TSR_NOT_FOUND) that lists the names.
    static ChatTemplate by_name(std::string_view name);

    // From the program in a file (tokenizer.chat_template). Throws Error(TSR_UNSUPPORTED) that lists the names for one
    // that is not known, and names the known form for one that writes something else than it.
    static ChatTemplate recognize(std::string_view program);

    // Names that by_name() takes, without aliases.
    static std::vector<std::string> names();

    explicit ChatTemplate(ChatFormat format) : format_(std::move(format)) {}

    const std::string& name() const noexcept { return format_.name; }
    // Whether ChatOptions::thinking changes anything.
    bool can_think() const noexcept { return format_.can_think; }

    // The text, with BOS where the model's program writes it: encode it with parse_special and without add_special.
    // Throws Error: TSR_INVALID_ARGUMENT without messages, for a role that is not known, and for calls, results and
    // tools that are not well formed, and with the words of a program that refuses the conversation; TSR_UNSUPPORTED
    // for tools, calls or results that this form cannot write, and where the program of the file makes another text.
    std::string render(std::span<const ChatMessage> messages, const ChatOptions& options) const {
        return write(messages, options).text;
    }
    // The same with the places of the contents, for EncodeOptions::plain.
    WrittenChat write(std::span<const ChatMessage> messages, const ChatOptions& options) const;

    // The same, with the last message, which is the assistant's, as an answer that has been begun: what makes the model
    // answer the messages before it, then its reasoning and content without an end. Throws Error as write() does;
    // TSR_INVALID_ARGUMENT also for a last message that cannot be continued.
    WrittenChat write_continued(std::span<const ChatMessage> messages, const ChatOptions& options) const;

    // Bytes that the text of either has at least: in one pass over the messages, with no copy of them.
    uint64_t fewest_bytes(std::span<const ChatMessage> messages, const ChatOptions& options) const;

    // How the model answers a conversation that ends with a user's message.
    ReplySyntax reply_syntax(const ChatOptions& options) const;

    // All that the template may write around contents, one piece after the other.
    std::string markers() const;

  private:
    // Throws Error(TSR_UNSUPPORTED) if the program makes another text of this conversation than `written`.
    void check_program(std::span<const ChatMessage> messages, const ChatOptions& options,
                       std::string_view written) const;

    // The first known form that makes the same text as the program of a few conversations.
    static std::optional<ChatTemplate> find_equal(std::string_view program);

    ChatFormat format_;
    std::shared_ptr<const jinja::Program> program_;  // null: chosen by name
};

// Whether a token of this spelling acts as a control token even if its vocabulary does not call it one: <|...|>, the
// tags of thoughts and tools, and the mark of DeepSeek's calls.
bool acts_as_control(std::string_view spelling) noexcept;

// What recognize() rests on; `program` as in the file. Nothing if it is not known.
std::optional<ChatFormat> recognize_chat_format(std::string_view program);

// Leaves no tools in a form whose tools are not all written by its programs, if this one has its own way with them.
void keep_known_tools(ChatFormat& format, std::string_view program);

// The data behind by_name(). First of each: its name.
struct NamedChatFormat {
    std::vector<std::string_view> names;
    ChatFormat format;
};
const std::vector<NamedChatFormat>& known_chat_formats();

}  // namespace tessera::text
