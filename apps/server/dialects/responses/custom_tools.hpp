// Tools of type custom, which are called with a text: the model knows each as a function with one argument.
#pragma once

#include "apps/server/conversation.hpp"

#include <string>
#include <string_view>

namespace tessera::server::responses {

// A tool that stands at `path`. `form`: what stands before its name and description. Throws ApiError(400).
text::ChatTool read_custom_tool(const boost::json::object& object, const std::string& path, const ToolForm& form);

// The arguments of a call with this text, as JSON, and back: the text of the arguments that the model wrote, or these
// themselves where they have none.
std::string arguments_of_input(std::string_view input);
std::string input_of_arguments(const std::string& arguments);

}  // namespace tessera::server::responses
