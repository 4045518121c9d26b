// Arguments of a call, made JSON while they arrive.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::text {

// Passes JSON on byte for byte, and mends everything else where it stands, so that what it has appended is always the
// beginning of a JSON text, and one JSON text after finish():
//   - control characters in strings and backslashes that escape nothing are escaped;
//   - a quote in a string is escaped unless what follows may follow a string;
//   - strings in single quotes, keys and values without quotes, and Python's True, False and None become JSON;
//   - missing commas, colons, values, quotes and brackets are added, superfluous commas and brackets are dropped;
//   - a string that holds a JSON object is that object; null, "" and nothing are {}.
// Holds back at most a key, a word, an escape, and spaces: a key without a value is dropped at the end. Time is linear.
// One thread at a time.
class JsonMender {
  public:
    void begin() { *this = JsonMender(); }
    // Appends to `json`.
    void read(std::string_view text, std::string& json);
    // Whether the value is complete, so that nothing but spaces may follow; never for one in a string.
    bool complete() const noexcept { return state_ == State::kDone && !decoded_; }
    // Nothing follows: closes what is open.
    void finish(std::string& json);

  private:
    enum class State : uint8_t {
        kStart,       // before the first value
        kFirstQuote,  // after the quote that begins it
        kValue,
        kItem,  // a value, or the end of the list
        kKey,
        kColon,
        kString,
        kEscape,
        kQuote,  // after a quote that may end the string
        kWord,
        kAfter,
        kDone
    };

    void feed(char c, std::string& json);
    void feed_decoded(char c, std::string& json);
    void value(char c, std::string& json);
    void key(char c, std::string& json);
    void string(char c, std::string& json);
    void escape(char c, std::string& json);
    void end_escape(std::string_view raw, std::string& json);
    void quote(char c, std::string& json);
    void after(char c, std::string& json);
    void begin_string(char quote, bool is_key, std::string& json);
    void begin_word(char c, bool is_key);
    void end_string(std::string& json);
    void end_word(std::string& json);
    void end_value();
    void open(char bracket, std::string& json);
    void close(char bracket, std::string& json);
    void close_one(std::string& json);
    void write_held(std::string& json);
    void write_null(std::string& json);
    std::string& text_of(std::string& json) { return is_key_ ? held_ : json; }

    State state_ = State::kStart;
    std::string closes_;    // of the open brackets
    std::string held_;      // what comes before the next value: a comma, a key, a colon and spaces
    std::string spaces_;    // after a quote that may end a string
    std::string word_;      // a value or key without quotes, or an escape
    char quote_ = '"';      // that ends the string being read
    bool is_key_ = false;   // whether the string or word is one
    bool decoded_ = false;  // the text is a string that holds JSON
    std::string escape_;    // of that string
};

}  // namespace tessera::text
