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

}  // namespace tessera::text
