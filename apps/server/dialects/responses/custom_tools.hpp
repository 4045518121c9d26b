// Tools of type custom, which are called with a text: the model knows each as a function with one argument.
#pragma once

#include "apps/server/conversation.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::server::responses {

// Reads the tool at `path`. `form`: what stands before its name and description. `grammar`: gets its Lark grammar, if
// it has one. Throws ApiError(400).
text::ChatTool read_custom_tool(const boost::json::object& object, const std::string& path, const ToolForm& form,
                                std::string& grammar);

// The arguments of a call with this text, as JSON.
std::string arguments_of_input(std::string_view input);

// And back: the text of the arguments that a model writes, as far as it goes where they are cut, or these themselves
// where they have none. One thread at a time.
class InputReader {
  public:
    // Takes the next part of the arguments, whole characters. Returns what it adds to the text.
    std::string push(std::string_view arguments);
    // The arguments are over. Returns the rest of the text.
    std::string finish() const;

  private:
    enum class State : uint8_t { kBefore, kInside, kBehind, kOther };  // kOther: they do not begin with the text

    void find_input();
    bool step(std::string& input);

    std::string arguments_;
    size_t at_ = 0;  // of what is not read yet, once the text has begun
    State state_ = State::kBefore;
};

// The text of all that there is of a call's arguments.
std::string input_of_arguments(std::string_view arguments);

}  // namespace tessera::server::responses
