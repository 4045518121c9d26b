// The templates that --chat-template names.
#pragma once

#include "core/text/reply_parser.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tessera::text {

struct BuiltinTemplate {
    std::vector<std::string_view> names;  // first its name, then aliases
    std::string program;                  // Jinja
};

const std::vector<BuiltinTemplate>& builtin_templates();

// A program that describes `tools`, for models whose own template writes calls and says nothing of tools; empty: there
// is none for this syntax.
std::string_view missing_description(ToolSyntax syntax);

// A program that writes an answer of `content` and `calls`, each with a name and arguments, as its model does, for
// models whose own template describes tools and writes no calls; empty: there is none for this syntax.
std::string_view missing_calls(ToolSyntax syntax);

}  // namespace tessera::text
