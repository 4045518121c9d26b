// How each model writes calls of tools, as docs/chat-formats.md shows it. What core/text/tool_reader_*.cpp reads is
// more.
#pragma once

#include "core/text/reply_parser.hpp"

#include <cstdint>
#include <string_view>

namespace tessera::structure {

enum class ArgumentsSyntax : uint8_t { kJson, kTags, kPython, kGemma };

// In the texts below: a line break that templates of some models write, blanks that some models write, the number of a
// call, its id, and the type of a value that is no text.
inline constexpr char kOptionalBreak = '\v', kOptionalBlanks = '\f', kIndexNumber = '\a', kAnyId = '\b',
                      kJsonType = '\r';
inline constexpr std::string_view kStandIns = "\v\f\a\b\r";

// What a parameter stands in.

struct TagFormat {
    std::string_view key_begin;
    // Between a key and its value, of texts and of JSON; where both are the same, the value alone says what it is.
    std::string_view text_begin, json_begin;
    std::string_view value_end;  // the text begins with it, or with a line break before it
    std::string_view after_value;
    std::string_view forbidden;  // what the reader takes for the end of a value
    bool drops_breaks = false;   // the reader takes a line break at the beginning and the end of a text for none of it
    bool named_end = false;      // the key and ">" follow value_end
};

// An id that the model may write of a call; it is read and not kept.
struct CallId {
    enum class Place : uint8_t { kNone, kBeforeName, kAfterName, kAfterArguments };
    Place place = Place::kNone;
    std::string_view begin = {}, end = {};
};

struct CallFormat {
    text::ToolSyntax syntax;
    // What calls stand in.
    std::string_view section, call;
    // Between a name and its arguments; empty: a call is an object with both.
    std::string_view after_name;
    std::string_view call_end, between, section_end;
    std::string_view name_key = "name", arguments_key = "arguments";
    bool one_alone = false;  // the format has no several
    ArgumentsSyntax arguments = ArgumentsSyntax::kJson;
    const TagFormat* tags = nullptr;  // of kTags
    // Not empty: the name is written twice, with this between.
    std::string_view name_again = {};
    // Marks that may stand before the section, each or none.
    std::string_view maybe_before = {}, maybe_before_2 = {};
    CallId id = {};
};

// Null: the syntax has no calls.
const CallFormat* call_format(text::ToolSyntax syntax);

}  // namespace tessera::structure
