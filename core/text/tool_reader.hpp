// Tool calls in the text of an answer: one reader a format, for ReplyParser.
#pragma once

#include "core/text/json_text.hpp"
#include "core/text/reply_parser.hpp"

#include <span>

namespace tessera::text {

enum class Match : uint8_t { kNo, kMaybe, kYes };

// Whether `text` starts with `marker`; kMaybe if it is shorter and more may come.
inline Match match(std::string_view text, std::string_view marker, bool over) {
    if (text.starts_with(marker)) return Match::kYes;
    return !over && marker.starts_with(text) ? Match::kMaybe : Match::kNo;
}

struct MarkerPlace {
    size_t before = 0;   // bytes that certainly precede any marker
    bool found = false;  // markers[which] follows them
    size_t which = 0;
};
// The first of the markers in `text`. Those that start at the same byte must differ in what follows.
MarkerPlace find_marker(std::string_view text, std::span<const std::string_view> markers, bool over);

// Whether what is read of a JSON text is inside of a string, where no marker ends it.
class JsonQuotes {
  public:
    void begin() { quoted_ = escaped_ = false; }
    bool quoted() const { return quoted_; }
    // Bytes of the text until it is no longer inside, the quote among them; all of it, if it stays so.
    size_t skip(std::string_view text);
    // A quote was read outside.
    void open() { quoted_ = true; }

  private:
    bool quoted_ = false, escaped_ = false;
};

// Takes what calls consist of.
class CallSink {
  public:
    virtual void begin_call(std::string_view name) = 0;
    virtual void arguments(std::string_view text) = 0;

  protected:
    ~CallSink() = default;
};

// Reads from one of the markers in begins() to the end of the calls. Keeps its state from call to call: every byte is
// read once, except those of a marker that is not complete.
class ToolReader {
  public:
    enum class Result : uint8_t {
        kWait,     // needs more text than is there
        kGoOn,     // read something whose meaning is not certain yet
        kCertain,  // all read so far is calls and belongs to the format
        kEnd,      // the same, and the calls are over
        kLeave,    // what was read since the last certain byte is not part of calls
        kDrop,     // what was read is a mark that content follows
    };
    struct Progress {
        Result result;
        size_t bytes = 0;  // read from the start of the text
    };

    virtual ~ToolReader() = default;

    // What calls begin with.
    virtual std::span<const std::string_view> begins() const = 0;
    // The same, where nothing but white space precedes them.
    virtual std::span<const std::string_view> begins_at_start() const { return begins(); }
    // Whether they also end reasoning that was not closed.
    virtual bool in_reasoning() const { return false; }
    // begins_at_start()[marker] was found; begins() are the first of them. Returns how many of its bytes are read by
    // that: the rest is read as what follows.
    virtual size_t start(size_t marker) = 0;
    // `text` is all that is there after what was read. `over`: nothing follows; kWait is then the same as kLeave.
    virtual Progress read(std::string_view text, bool over, CallSink& sink) = 0;
};

// Nothing for kNone and kChannels.
std::unique_ptr<ToolReader> make_tool_reader(const ReplySyntax& syntax);

std::unique_ptr<ToolReader> make_deepseek_reader(bool fenced);  // fenced: V3 and R1; else V3.1
std::unique_ptr<ToolReader> make_llama_reader(const ReplySyntax& syntax);
// NAME\nJSON, one after the other with >>> between them; the name "all" says that content follows.
std::unique_ptr<ToolReader> make_recipient_reader(const ReplySyntax& syntax);
// The others, whose calls stand between marks; nothing for the syntaxes of those above.
std::unique_ptr<ToolReader> make_marked_reader(const ReplySyntax& syntax);

}  // namespace tessera::text
