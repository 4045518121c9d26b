// A program as tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::text::jinja {

struct Lexeme {
    enum class Kind : uint8_t {
        kText,        // text between tags, after trimming
        kPrintBegin,  // {{
        kPrintEnd,
        kBlockBegin,  // {%
        kBlockEnd,
        kName,
        kInteger,   // its digits, in decimal
        kFraction,  // as it is written, without underscores
        kString,    // its characters
        kSymbol,    // an operator or a bracket
        kEnd
    };

    Kind kind = Kind::kEnd;
    std::string text;
    uint32_t line = 1;
    size_t begin = 0, end = 0;  // of the program
};

// Jinja reads every line break as "\n", and drops one at the end.
std::string with_plain_lines(std::string_view program);

// With trim_blocks and lstrip_blocks, as transformers sets Jinja up. `program` has plain lines. Ends with kEnd. Throws
// Error(TSR_UNSUPPORTED), with the line, for what is not Jinja.
std::vector<Lexeme> lex(std::string_view program);

}  // namespace tessera::text::jinja
