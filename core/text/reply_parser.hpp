// A generated answer split into reasoning, content and tool calls, while it is generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::text {

enum class ReplyKind : uint8_t { kReasoning, kContent, kToolCall, kToolArguments };

struct ReplyEvent {
    ReplyKind kind;
    std::string text;   // kToolCall: the name of the function; kToolArguments: a delta of its arguments (JSON text)
    uint32_t call = 0;  // of a tool call and its arguments, from 0 in each answer

    bool operator==(const ReplyEvent&) const = default;
};

// How a model writes calls. docs/chat-formats.md shows each.
enum class ToolSyntax : uint8_t {
    kNone,
    kDeepSeekV3,
    kDeepSeekV31,
    kDeepSeekV32,
    kHermes,
    kLlama3,
    kDeepSeekV4,
    kKimi,
    kGlm,
    kQwenXml,
    kSeedXml,
    kMiniMax,
    kFunctionary,
    kMistral,
    kMistralNamed,
    kGranite,
    kGemma,
    kLfm2,
    kNemotron,
    kApriel,
    kCommandR,
    kGigaChat,
    kFireFunction,
    kActions,
    kChannels,  // gpt-oss: with ReplyFraming::kChannels
    kLast = kChannels
};

// Parameters whose schema says that they are texts, so that a syntax without quotes does not take a text for a number:
// names of functions and their parameters.
using TextParameters = std::set<std::pair<std::string, std::string>>;

// kMarkers: reasoning between two markers, then content and calls. kChannels: messages of gpt-oss, each with a header
// that says what it is: <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
enum class ReplyFraming : uint8_t { kMarkers, kChannels };

struct ReplySyntax {
    ReplyFraming framing = ReplyFraming::kMarkers;
    bool reasoning = false;            // whether an answer may start with reasoning
    bool begins_in_reasoning = false;  // the prompt ends with reasoning_begin
    bool content_begun = false;        // the prompt ends with a part of the content: a call cannot be all of it
    bool content_or_calls = false;     // an answer whose content has begun has no calls (ReplyFraming::kMarkers)
    std::string reasoning_begin = "<think>";
    std::string reasoning_end = "</think>";
    ToolSyntax tools = ToolSyntax::kNone;
    std::shared_ptr<const TextParameters> texts = {};  // null: none are known

    bool operator==(const ReplySyntax&) const = default;
};

class JsonQuotes;
class ToolReader;

// One answer. What cannot be parsed is content, byte for byte. Newlines next to the reasoning markers, white space
// between and after calls and the line breaks by which a format separates content from calls are not passed on. How the
// text is cut when it is given changes where events are cut, never their concatenation. Time is linear in the text;
// what is held back is at most what may be a marker, or a call that is not decided yet. One thread at a time.
class ReplyParser {
  public:
    explicit ReplyParser(ReplySyntax syntax);
    ~ReplyParser();
    ReplyParser(ReplyParser&&) noexcept;
    ReplyParser& operator=(ReplyParser&&) noexcept;

    // Takes the next part of the text, whole UTF-8 characters, control tokens spelt out, and appends events. Throws
    // nothing but std::bad_alloc.
    void push(std::string_view text, std::vector<ReplyEvent>& events);
    // The text is over. What was begun and cannot be parsed is content; arguments of a call that was not closed stay as
    // they are.
    void finish(std::vector<ReplyEvent>& events);

  private:
    class Output;
    enum class State : uint8_t {
        kStart,
        kReasoningStart,
        kReasoning,
        kAfterReasoning,
        kContent,
        kCalls,
        kHeader,
        kMessage
    };

    void run(bool over, std::vector<ReplyEvent>& events);
    bool step(bool over, Output& output);
    bool step_start(bool over);
    bool step_reasoning_start(bool over);
    bool step_reasoning(bool over, Output& output);
    bool step_content(bool over, Output& output);
    bool step_calls(bool over, Output& output);
    bool step_header(bool over, Output& output);
    bool step_message(bool over, Output& output);
    void begin_calls(State outer, size_t marker, size_t length);
    void write(State state, std::string_view text, Output& output);
    std::string_view rest() const { return std::string_view(input_).substr(at_); }

    ReplySyntax syntax_;
    std::unique_ptr<ToolReader> tools_;  // none: calls are not recognised
    State state_;
    std::string input_;              // from the first byte that is not decided yet
    size_t begin_ = 0;               // of what is not decided in input_
    size_t at_ = 0;                  // next byte to read, at least begin_
    size_t newlines_ = 0;            // at the end of the reasoning so far; dropped if it ends there
    bool content_started_;           // a character of the content that is not white space was seen
    bool calls_excluded_ = false;    // since content was (ReplySyntax::content_or_calls)
    State outer_ = State::kContent;  // what the calls being read are part of until the first of them is certain
    size_t marker_length_ = 0;       // of what began them
    bool certain_ = false;           // whether one of them was
    uint32_t calls_ = 0;
    ReplyKind message_ = ReplyKind::kContent;  // what the message being read is (ReplyFraming::kChannels)
    bool arguments_begun_ = false;
    std::unique_ptr<JsonQuotes> quotes_;  // of the arguments being read (ReplyFraming::kChannels)
};

}  // namespace tessera::text
