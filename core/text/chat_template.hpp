// Conversations written as the text that a model was trained on.
//
// A model file holds its chat template as a Jinja program, which is run; the built-in templates are programs, too. What
// a program wants (arguments as text or values, the key of reasoning), how it describes reasoning and calls, and so how
// replies are read, is seen from what it writes of a few short conversations (chat_probe.hpp).
#pragma once

#include "core/text/python_json.hpp"
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

// A call that an assistant made.
struct ToolCall {
    std::string id;
    std::string name;
    std::string arguments;  // JSON text
};

struct ChatMessage {
    std::string role;  // system, developer (the same where a program does not know it), user, assistant or tool
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
    bool strict = false;     // arguments are to keep to the schema, which whoever runs the model sees to
};

struct ChatOptions {
    std::string bos;  // texts of these tokens in the vocabulary (Tokenizer::spelling)
    std::string eos;
    bool add_generation_prompt = true;  // end with what makes the model answer
    // For models with a switch for thinking before the answer; nothing: the default of the model's own program.
    std::optional<bool> thinking;
    std::vector<ChatTool> tools = {};
    // A conversation that the program refuses, or of which it would leave calls out, is rewritten (chat_history.hpp).
    bool rewrite = true;
    std::optional<std::time_t> now = {};  // for programs that write the date; nothing: the clock's
    // Other variables of the program, by name; they take the place of those above.
    std::vector<PythonMember> variables = {};
};

// A conversation as text.
struct WrittenChat {
    std::string text;
    // Parts that people or the model wrote (contents, reasoning, descriptions and schemas of tools, names, arguments
    // and results of calls), in rising order; the rest is the template's own. Control tokens in them are text.
    std::vector<TextRange> contents;
    // How the model answers this conversation.
    ReplySyntax reply;
};

struct ChatTraits;
namespace jinja {
class Program;
struct Marked;
}  // namespace jinja

// Immutable; any thread.
class ChatTemplate {
  public:
    // A known name or alias: "deepseek2", "deepseek3", "chatml", ... Throws Error(TSR_NOT_FOUND) that lists the names.
    static ChatTemplate by_name(std::string_view name);

    // A Jinja program, as tokenizer.chat_template has it. Throws Error(TSR_UNSUPPORTED), with the line, the expression
    // and what is wrong, for one that is not Jinja or cannot write a question.
    static ChatTemplate of_program(std::string_view program);

    // Names that by_name() takes, without aliases.
    static std::vector<std::string> names();

    // Of a built-in one; empty for a program.
    const std::string& name() const noexcept { return name_; }
    // For messages: "the chat template chatml", "the file's chat template".
    std::string title() const;
    // How its model writes calls, and whether it describes tools to a model whose calls are not read.
    ToolSyntax tool_syntax() const noexcept;
    bool has_unread_calls() const noexcept;
    // Whether ChatOptions::thinking, or the variable reasoning_effort, changes anything.
    bool can_think() const noexcept;
    bool has_efforts() const noexcept;
    // Whether a variable of this name may change anything: the program has the word.
    bool reads(std::string_view variable) const noexcept;

    // The text, with BOS where the model's program writes it: encode it with parse_special and without add_special.
    // Throws Error: TSR_INVALID_ARGUMENT without messages, for a role that is not known, and for calls, results and
    // tools that are not well formed, and with the words of a program that refuses the conversation in every way of
    // writing it; TSR_UNSUPPORTED
    // for tools, calls or results that the program does not write, and where it fails or exceeds a limit.
    std::string render(std::span<const ChatMessage> messages, const ChatOptions& options) const {
        return write(messages, options).text;
    }
    // The same with the places of the contents, for EncodeOptions::plain. System messages behind others that the
    // program refuses or loses are paragraphs of these (late_system.hpp).
    WrittenChat write(std::span<const ChatMessage> messages, const ChatOptions& options) const;

    // The same, with the last message, which is the assistant's, as an answer that has been begun: what makes the model
    // answer the messages before it, then its reasoning and content without an end. Throws Error as write() does;
    // TSR_INVALID_ARGUMENT also for a last message that cannot be continued.
    WrittenChat write_continued(std::span<const ChatMessage> messages, const ChatOptions& options) const;

    // Bytes that the text of either has at least: in one pass over the messages, with no copy of them.
    uint64_t fewest_bytes(std::span<const ChatMessage> messages, const ChatOptions& options) const;

    // Texts in which all control tokens stand that the template may write.
    const std::string& markers() const noexcept;

  private:
    ChatTemplate(std::string name, std::string_view program);
    // Of the built-in ones that describe tools.
    static const std::string& describing_names();
    // What the program makes of the conversation, as it is or rewritten. `description`: as of run_chat_program().
    jinja::Marked run(std::span<const ChatMessage> messages, const ChatOptions& options,
                      std::string_view description) const;
    // Whether both make the same text of a few conversations without tools.
    bool equals(const ChatTemplate& other) const;

    std::string name_;
    std::shared_ptr<const jinja::Program> program_;
    std::shared_ptr<const ChatTraits> traits_;
    // What writes conversations with tools where the program knows none; null: nothing does.
    std::shared_ptr<const ChatTemplate> with_tools_;
};

// Those of the tools, for ReplySyntax::texts; null for a syntax whose texts have quotes.
std::shared_ptr<const TextParameters> text_parameters(ToolSyntax syntax, std::span<const ChatTool> tools);

// Whether a token of this spelling acts as a control token even if its vocabulary does not call it one: <|...|>, the
// tags of thoughts and tools, and the mark of DeepSeek's calls.
bool acts_as_control(std::string_view spelling) noexcept;

// Whether ChatOptions::variables may have this name: others are the conversation's own.
bool is_free_variable(std::string_view name) noexcept;

}  // namespace tessera::text
