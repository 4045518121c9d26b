// A call written as one JSON object, read while it arrives.
#pragma once

#include "core/text/json_text.hpp"

#include <cstdint>
#include <functional>
#include <set>
#include <string>

namespace tessera::text {

// {"name": NAME, "arguments": VALUE}, also with "parameters" for "arguments", in any order. Of the value only where
// it ends is checked: brackets are counted, not matched. A text that begins with a brace is taken for the JSON text of
// the arguments; null and an empty text are {}, and a word that is not JSON makes it no call. Unless strict,
// "tool_name" is a name, too, and both may be members of an object "function".
class JsonCall {
  public:
    // strict: until it is certain(), no members but these, "type" and "id"; the arguments must be there and an object.
    // names: if not null, a call of another function is none.
    explicit JsonCall(bool strict, const std::set<std::string, std::less<>>* names = nullptr)
        : strict_(strict), names_(names) {}

    enum class Status : uint8_t { kOpen, kClosed, kBad };
    struct Progress {
        Status status;
        size_t bytes = 0;  // read; kBad: the next byte is the one that does not fit
    };
    // Reads until the text is over or the object is closed. kBad ends it: whatever is read later is bad, too.
    Progress read(std::string_view text);

    // Whether it is known to be a call: it has a name and arguments that have begun, or that end without any.
    bool certain() const noexcept { return has_name_ && (has_arguments_ || closed_); }
    const std::string& name() const noexcept { return name_; }
    // What was read of the arguments since the last call of this.
    std::string take_arguments();
    // Whether the next byte is part of a key or of a string in a value.
    bool in_string() const noexcept { return state_ == State::kKeyText || (state_ == State::kInValue && quoted_); }

  private:
    enum class State : uint8_t {
        kObject,
        kFirstKey,
        kKey,
        kKeyText,
        kColon,
        kValue,
        kInValue,
        kAfterValue,
        kClosed,
        kBad
    };
    enum class Value : uint8_t { kText, kNested, kPlain };
    enum class Member : uint8_t { kName, kArguments, kFunction, kOther };

    bool feed(char c);  // false: it does not fit
    bool begin_value(char c);
    bool in_value(char c);
    bool end_key();
    bool end_plain_arguments();
    bool end_value();

    bool strict_;
    const std::set<std::string, std::less<>>* names_;
    State state_ = State::kObject;
    Value value_ = Value::kPlain;
    Member member_ = Member::kOther;
    bool quoted_ = false;   // inside a string of the value
    bool escaped_ = false;  // after a backslash in a string
    size_t depth_ = 0;      // of brackets in the value
    std::string key_;       // raw: the key, or the value of the name
    std::string name_;
    std::string arguments_;
    bool begins_text_ = false;  // the quote of arguments that are a text was read
    bool decoded_ = false;      // they are JSON text in a text
    bool nested_ = false;       // inside of "function"
    bool has_name_ = false;
    bool has_arguments_ = false;
    bool closed_ = false;
};

}  // namespace tessera::text
