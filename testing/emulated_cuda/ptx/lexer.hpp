// Tokens of PTX (PTX ISA manual, "Syntax").
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace tessera::cuda::ptx {

// What is wrong with PTX, and in which line of it.
class Error : public std::runtime_error {
  public:
    Error(uint32_t line, const std::string& what)
        : std::runtime_error("line " + std::to_string(line) + " of the PTX: " + what) {}
};

// Names, directives and numbers as a whole, strings with their quotes, other characters one by one; no comments.
class Tokens {
  public:
    // `text` must live as long as the tokens do; a zero byte ends it. `line`: number of its first line.
    explicit Tokens(std::string_view text, uint32_t line = 1);

    // Empty at the end.
    std::string_view next();
    std::string_view peek();
    // Takes the next token if it is `wanted`.
    bool accept(std::string_view wanted);
    // Takes the next token, which must be `wanted`.
    void expect(std::string_view wanted);
    // Of the last token that was taken.
    uint32_t line() const noexcept { return line_; }
    // Where the next token is looked for.
    size_t position() const noexcept { return at_; }
    // Goes on behind the '}' that matches a '{' which has been taken.
    void skip_block();

  private:
    void skip();
    void skip_comment();

    std::string_view text_;
    size_t at_ = 0;
    uint32_t line_;       // of the last token
    uint32_t line_here_;  // at `at_`
};

// An integer as PTX writes them: 12, 0x1F, 017, 0b101, with or without U behind it. False if it is none.
bool read_integer(std::string_view text, uint64_t& value);

}  // namespace tessera::cuda::ptx
