// What a chat asks for, whatever dialect its request has: each dialect reads its own JSON into this.
#pragma once

#include "apps/server/custom_tools.hpp"
#include "apps/server/model_text.hpp"
#include "apps/server/request_fields.hpp"
#include "apps/server/structure_fields.hpp"
#include "apps/structure/tool_grammar.hpp"
#include "core/text/chat_template.hpp"

#include <boost/json/object.hpp>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::server {

inline constexpr size_t kMaximumMessages = 100'000, kMaximumParts = 10'000, kMaximumTools = 1024, kMaximumCalls = 1024;

// Calls that the answer is held to.
struct AskedCalls {
    std::vector<structure::CallableTool> tools = {};  // empty: to none
    structure::CallCount count = {};
    std::string field = {};  // that asks for it
    // No tool is strict and no call is demanded: where the answer cannot be held to them, it is free, which is
    // reported.
    bool optional = false;
};

struct Conversation {
    text::ChatOptions options;  // with the tools
    std::vector<text::ChatMessage> messages = {};
    bool continued = false;                        // the last message is an answer that has been begun
    std::optional<AskedStructure> structure = {};  // nothing: any text will do
    AskedCalls calls = {};
    bool one_call = false;  // of an answer whose calls are the model's choice
    // Also of strict tools: what their schemas say and cannot be enforced is left out and reported.
    bool allow_unenforced = false;
    CustomTools custom_tools = {};
    std::optional<int64_t> reasoning_budget = {};  // tokens; negative: any number; nothing: the server's
    std::string reasoning_budget_field = {};       // that asks for it, "thinking.budget_tokens"
};

// Which tools are to be called.
struct ToolChoice {
    enum class Kind : uint8_t { kAuto, kNone, kRequired, kNamed };
    Kind kind = Kind::kAuto;
    std::vector<std::string> names = {};  // of kNamed: one of them is to be called; of kAuto: may be, empty: all
    bool parallel = true;                 // several in one answer
};

// Reasoning as a client is told it to send it back, where its API has encrypted texts for that.
std::string reasoning_to_return(std::string_view reasoning);
// What was told so; nothing of what another server has encrypted.
std::string_view returned_reasoning(std::string_view told) noexcept;

// A tool of a group: the model reads and writes one name.
struct GroupedName {
    std::string whole, group, name;
};

// How the answer to a chat is read and told.
struct ChatDelivery {
    text::ReplySyntax syntax;
    std::optional<uint32_t> probabilities;  // each token with so many others
    std::vector<std::string> stops = {};    // that end it, where its dialect tells which of them did
    // Set to true to end the reasoning of an answer that is being generated; null: it has none.
    std::shared_ptr<std::atomic<bool>> end_reasoning = {};
    bool one_call = false;                    // calls behind the first are left out
    bool returns_reasoning = false;           // reasoning is told again as what the client is to send back
    bool hides_reasoning = false;             // it is told as that alone
    std::vector<GroupedName> grouped = {};    // tools that are called by two names
    std::set<std::string> custom_tools = {};  // names for the model
    // Names and JSON of what the answer repeats of its request, where its dialect does.
    using Members = std::vector<std::pair<std::string_view, std::string>>;
    Members repeated = {};
};

struct ChatRequest {
    Delivery delivery;
    session::Request request;
    ChatDelivery chat;
};

// The model's own options, without messages. Throws ApiError(400) for a model that has no template.
text::ChatOptions begin_conversation(const ModelText& model);

// Calls `read` with each message of the field messages and where it lies. Throws ApiError(400) if there is none.
void each_message(const Fields& fields,
                  const std::function<void(const boost::json::object& message, const std::string& path)>& read);

// Throws ApiError(400) that names `path` for reasoning that is not the assistant's.
void check_reasoning(const text::ChatMessage& message, const std::string& path);

// Sets whether the model thinks before it answers. Throws ApiError(400) that names `field` where it has no such switch
// and is to think.
void set_thinking(bool thinking, std::string_view field, const ModelText& model, text::ChatOptions& options);

// Sets how much the model thinks, "none" or "minimal" to "max": a template that knows efforts is given the word; else
// all but "none" ask for thinking. `fields`, `name`: where it stands, for messages. Throws ApiError(400).
void set_effort(std::string_view effort, const Fields& fields, std::string_view name, const ModelText& model,
                text::ChatOptions& options);

// Sets how many tokens of reasoning the answer may have, as `field` asks; 0 switches thinking off where there is a
// switch.
void set_reasoning_budget(int64_t tokens, std::string_view field, const ModelText& model, Conversation& conversation);

// Gives the word, "minimal" to "max", to a template that knows efforts.
void tell_effort(std::string_view effort, const ModelText& model, text::ChatOptions& options);

// A function that the model may call, with the JSON schema of its parameters.
text::ChatTool function_tool(std::string_view name, std::string_view description,
                             const boost::json::object& parameters);

// How an API that offers tools of its own writes those of its clients.
struct ToolForm {
    const FieldTable& table;
    std::string_view type;    // of functions
    bool needs_type;          // false: an object without a type is one, too
    std::string_view schema;  // the field with the JSON schema of the parameters
    // What stands before what an object says: before its name, and on lines of their own before its description.
    std::string_view name_before = {}, description_before = {};
};

// A function that stands at `path`. `read_more` reads fields that only this API has. Throws ApiError(400), for other
// types with what they are: tools that the API's own servers run.
text::ChatTool read_own_tool(const boost::json::object& object, const std::string& path, const ToolForm& form,
                             const std::function<void(const Fields& tool)>& read_more = {});

// What a result of a tool has in place of an image or a document, `type`. Refusing it would end the conversation: its
// client sends it again with all that follows.
std::string unread_part(std::string_view type);

// Puts a text, if there is any, on a line of its own.
void append_line(std::string& to, std::string_view text);

// Reads a choice among `allowed`, an object with a mode, auto or required, and a list of tools, whose names `name_of`
// returns. Throws ApiError(400).
ToolChoice read_allowed_tools(
    const Fields& allowed,
    const std::function<std::string(const boost::json::object& tool, const std::string& path)>& name_of);

// Sets the tools that are described and the calls that are asked for, of the field tool_choice. Throws ApiError(400)
// for a choice of what is not there.
void choose_tools(const ToolChoice& choice, const Fields& fields, Conversation& conversation);

// Sets a variable of the template.
void set_variable(text::ChatOptions& options, std::string_view name, text::PythonJson value);

// Whether the last message is the assistant's: an answer that has been begun. Throws ApiError(400) where it cannot be
// continued: it calls tools, or another of the assistant's stands before it. `advice`: what else can be done.
bool ends_begun(std::span<const text::ChatMessage> messages, std::string_view advice = {});

// As the model's template writes it. `check` is called before, with the bytes that the text has at least: writing takes
// several times as many. Throws what `check` and ChatTemplate::write throw.
text::WrittenChat write(const Conversation& conversation, const ModelText& model,
                        const std::function<void(uint64_t fewest_bytes)>& check);

// Sets the tokens of the request's prompt, how its answer is read, what it is held to and when its reasoning ends.
// Throws ApiError("context_length_exceeded"), ApiError(400) for a reasoning budget that cannot be enforced, what
// hold_to() throws, and Error for what the template refuses.
void write_prompt(ChatRequest& read, const Conversation& conversation, const ModelText& model);

}  // namespace tessera::server
