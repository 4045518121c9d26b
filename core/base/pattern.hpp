// Regular expressions from outside, matched in bounded time and memory.
#pragma once

#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;

namespace tessera {

// A regular expression in the syntax of PCRE2, with the escapes of ECMAScript (\uhhhh, \xhh) where the two differ. The
// subject is a sequence of bytes. Immutable; any thread may search.
class Pattern {
  public:
    // Throws Error(TSR_INVALID_ARGUMENT) that says what is wrong with the expression and where.
    explicit Pattern(std::string_view expression);

    // Whether the expression matches any part of `subject`. Throws Error(TSR_UNSUPPORTED) if that takes more steps or
    // more memory than any sensible expression needs: backtracking can take time exponential in the subject's length.
    bool found_in(std::string_view subject) const;

  private:
    struct Free {
        void operator()(pcre2_real_code_8* code) const noexcept;
    };

    std::string expression_;
    std::unique_ptr<pcre2_real_code_8, Free> code_;
};

}  // namespace tessera
