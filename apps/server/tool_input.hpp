// Input of custom tools. The client reads and writes a string; the model reads and writes a JSON object with the member
// "input".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::server {

// Returns the arguments of a call with this input: {"input": ...}.
std::string arguments_of_input(std::string_view input);

// Reads the input from the arguments that a model writes. Where arguments are cut off, the input is cut off, too; where
// they have no input, the arguments themselves are returned. One thread at a time.
class InputReader {
  public:
    // Takes the next part of the arguments, whole characters. Returns what it adds to the input.
    std::string push(std::string_view arguments);
    // Returns the rest of the input. Call once, after the last part.
    std::string finish() const;

  private:
    // kOther: the arguments do not begin with the input.
    enum class State : uint8_t { kBefore, kInside, kBehind, kOther };

    void find_input();
    bool step(std::string& input);

    std::string arguments_;
    size_t at_ = 0;  // position after the input that was returned, from kInside on
    State state_ = State::kBefore;
};

// Returns the input of a call whose arguments are complete.
std::string input_of_arguments(std::string_view arguments);

}  // namespace tessera::server
