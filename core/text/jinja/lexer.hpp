// A program as tokens.
#pragma once

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
        kInteger,
        kFraction,
        kString,  // its characters
        kSymbol,  // an operator or a bracket
        kEnd
    };

    Kind kind = Kind::kEnd;
    std::string text;
    uint32_t line = 1;
};

// With trim_blocks and lstrip_blocks and without the last line break, as transformers sets Jinja up. Ends with kEnd.
// Throws Error(TSR_UNSUPPORTED), with the line, for what is not Jinja.
std::vector<Lexeme> lex(std::string_view program);

}  // namespace tessera::text::jinja
