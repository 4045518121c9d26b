// Grammars in llguidance's Lark: texts, terminals, and tokens that are no text.
#pragma once

#include "core/text/tokenizer.hpp"

#include <span>
#include <string>
#include <string_view>

namespace tessera::structure {

// A text.
std::string lark_text(std::string_view text);
// Texts between which tokens stand that are no text, as "a <tool_call> b".
std::string lark_markers(std::string_view text, const text::Tokenizer& tokenizer);
// What of it stands before the first of them, which alone can be part of a terminal.
std::string_view plain_begin(std::string_view text, const text::Tokenizer& tokenizer);

struct Expression {
    std::string text, rules;  // that it needs
};
// What `terminal`, an expression of terminals, has, and then `marker`: one terminal as far as that can be, so that it
// does not take the beginning of the marker for itself. `upper`: a name for it.
Expression lark_until(const std::string& terminal, std::string_view marker, const std::string& upper,
                      const text::Tokenizer& tokenizer);

// A terminal: "/.../".
std::string lark_regex(std::string_view pattern);
// The text as part of a pattern.
std::string quoted_for_regex(std::string_view text);
// Any text in which none of these stands.
std::string lark_without(std::span<const std::string> texts);

}  // namespace tessera::structure
