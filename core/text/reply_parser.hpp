// A generated answer split into reasoning, content and tool calls, while it is generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <span>
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
    kApertus,
    kGigaChat31,
    kRecipient,  // functionary 3.2
    kKimiK3,
    kMiniMaxM1,
    kMiniMaxM3,
    kMuse,  // with ReplyFraming::kRecipients
    kMiniCpm,
    kHunyuan,
    kHunyuanOpen,  // the same, each mark with ":opensource"
    kSolar,
    kLast = kSolar
};

// "hermes", "qwen-xml", ...: for messages and /props; "none".
const char* name_of(ToolSyntax syntax) noexcept;

// Parameters whose schema says that they are texts, so that a syntax without quotes does not take a text for a number:
// names of functions and their parameters.
using TextParameters = std::set<std::pair<std::string, std::string>>;

// Functions that a request offers.
using ToolNames = std::set<std::string, std::less<>>;

// kMarkers: reasoning between two markers, then content and calls. kChannels: messages of gpt-oss, each with a header
// that says what it is: <|channel|>analysis<|message|>...<|end|><|start|>assistant<|channel|>final<|message|>...
// kRecipients: messages of Muse Glimmer, whose headers name who is addressed: the model itself, the user, or a tool:
//  to=self<|message|>...<|eom|><|start|>assistant to=user<|message|>...
enum class ReplyFraming : uint8_t { kMarkers, kChannels, kRecipients };

struct ReplySyntax {
    ReplyFraming framing = ReplyFraming::kMarkers;
    bool reasoning = false;            // whether an answer may start with reasoning
    bool begins_in_reasoning = false;  // the prompt ends with reasoning_begin
    bool content_begun = false;        // the prompt ends with a part of the content: a call cannot be all of it
    bool content_or_calls = false;     // an answer whose content has begun has no calls (ReplyFraming::kMarkers)
    std::string reasoning_begin = "<think>";
    std::string reasoning_end = "</think>";
    // Marks before the content, where the answer begins with it and where it follows reasoning. Empty: none.
    std::string content_begin = {}, content_open = {};
    std::vector<std::string> content_marks = {};  // around content, and no part of it
    ToolSyntax tools = ToolSyntax::kNone;
    std::shared_ptr<const TextParameters> texts = {};  // null: none are known
    std::shared_ptr<const ToolNames> names = {};       // null: not known
    // A grammar holds the answer to the syntax: nothing that only resembles a call is read as one.
    bool exact = false;
    // The answer is passed on when it is complete, so that all before reasoning_end may be held back until it is known
    // whether it comes: a model may forget reasoning_begin.
    bool whole = false;

    bool operator==(const ReplySyntax&) const = default;
};

class AfterArguments;
class JsonMender;
class JsonQuotes;
class ToolReader;

// One answer. What cannot be parsed is content, byte for byte. Newlines next to the reasoning markers, white space
// between and after calls and the line breaks by which a format separates content from calls are not passed on. How the
// text is cut when it is given changes where events are cut, never their concatenation. Time is linear in the text;
// what is held back is at most what may be a marker, a call that is not decided yet, or a call within reasoning that is
// still open. The arguments of each call are one JSON text (json_mender.hpp). One thread at a time.
class ReplyParser {
  public:
    explicit ReplyParser(ReplySyntax syntax);
    ~ReplyParser();
    ReplyParser(ReplyParser&&) noexcept;
    ReplyParser& operator=(ReplyParser&&) noexcept;

    // Takes the next part of the text, whole UTF-8 characters, control tokens spelt out, and appends events. Throws
    // nothing but std::bad_alloc.
    void push(std::string_view text, std::vector<ReplyEvent>& events);
    // The text is over. What was begun and cannot be parsed is content; arguments that were not closed are closed.
    void finish(std::vector<ReplyEvent>& events);

  private:
    class Output;
    enum class State : uint8_t {
        kStart,
        kMaybeReasoning,
        kReasoningStart,
        kReasoning,
        kMaybeCalls,
        kAfterReasoning,
        kContent,
        kCalls,
        kHeader,
        kMessage
    };

    void run(bool over, std::vector<ReplyEvent>& events);
    bool step(bool over, Output& output);
    bool step_start(bool over);
    bool step_maybe_reasoning(bool over);
    bool step_maybe_calls(bool over, Output& output);
    bool all_calls(std::string_view text, size_t marker) const;
    bool step_reasoning_start(bool over);
    bool step_reasoning(bool over, Output& output);
    bool step_content(bool over, Output& output);
    bool step_calls(bool over, Output& output);
    bool step_header(bool over, Output& output);
    void take_header(std::string_view header);
    bool step_message(bool over, Output& output);
    bool decide_call(bool over, Output& output);
    bool find_call_at_start(State outer, bool over, Output& output, bool& wait);
    bool find_message_end(bool over);
    void begin_calls(State outer, size_t marker, size_t length);
    std::span<const std::string_view> markers_in_message() const;
    void write(State state, std::string_view text, Output& output);
    std::string_view rest() const { return std::string_view(input_).substr(at_); }

    ReplySyntax syntax_;
    std::unique_ptr<ToolReader> tools_;              // none: calls are not recognised
    std::vector<std::string_view> content_markers_;  // syntax_.content_marks, then those of calls
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
    size_t scanned_ = 0;                       // bytes of what is held back in which nothing was found
    bool at_begin_ = true;                     // nothing of the content was read, not even white space
    ReplyKind message_ = ReplyKind::kContent;  // what the message being read is, unless framing is kMarkers
    bool calls_in_message_ = false;            // whether it may have calls (ReplyFraming::kRecipients)
    bool message_begun_ = false;               // whether anything but white space of it was read (the same)
    size_t searched_ = 0;                      // bytes of input_ without a mark that ends the message (the same)
    std::vector<std::string> switches_;        // headers that also end reasoning (ReplyFraming::kRecipients)
    std::string called_;                       // the function whose arguments a message is to be
    std::unique_ptr<JsonQuotes> quotes_;       // of the arguments being read (ReplyFraming::kChannels)
    std::unique_ptr<JsonMender> mender_;       // of the arguments of the last call
    bool call_open_ = false;                   // whether there is one that may go on
    std::string call_name_;                    // of the last call
    std::unique_ptr<AfterArguments> after_arguments_;
    bool rest_is_content_ = false;  // all that follows the arguments of the last call up to their end
};

}  // namespace tessera::text
