// Jinja programs as chat templates are written in it, run as transformers runs them: in an immutable sandbox with
// trim_blocks, lstrip_blocks, loop controls, generation blocks, raise_exception, strftime_now and a tojson that writes
// JSON as it is. Nothing but values is reached from a program, and it is bounded in steps, in depth and in the bytes it
// makes. What is not known is refused, never guessed.
#pragma once

#include "core/text/jinja/value.hpp"

#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::text::jinja {

struct RunOptions {
    uint64_t steps = 10'000'000;           // expressions and statements
    uint64_t bytes = uint64_t{256} << 20;  // of texts, lists and dictionaries made on the way
    std::time_t now = 0;                   // of strftime_now(), in local time
    bool may_change_lists = false;         // append() and pop(), which the sandbox of transformers refuses
};

// strftime() in local time and in English, whatever the locale.
std::string time_text(std::string_view format, std::time_t now);

struct Template;

// Immutable; any thread.
class Program {
  public:
    // Throws Error(TSR_UNSUPPORTED), with the line.
    explicit Program(std::string_view text);
    ~Program();
    Program(Program&&) noexcept;
    Program& operator=(Program&&) noexcept;

    using Variables = std::vector<std::pair<std::string, Value>>;

    // What the program writes, and which parts of it are contents. Throws Error, with the line and the expression:
    // TSR_UNSUPPORTED for what is not known, fails in Python too or exceeds a limit; TSR_INVALID_ARGUMENT with the
    // program's own words where it calls raise_exception().
    Marked run(const Variables& variables, const RunOptions& options) const;

    // As it was given, with plain line breaks.
    std::string_view source() const noexcept;

  private:
    std::unique_ptr<const Template> template_;
};

}  // namespace tessera::text::jinja
