// Output for people: results, messages, progress.
#pragma once

#include "core/base/text.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::app {

// Prints results on standard output at once. If that fails, tessera_main() ends with an error.
void print(std::string_view text);
// The reason why standard output could not be written; empty: all of it was.
std::string print_failure();
// Prints a message, a line on standard error.
void say(std::string_view line);
// The same for errors that end the command, which are printed even if messages are disabled.
void say_error(std::string_view line);
// From now on only errors are printed.
void silence_messages() noexcept;
// From now on messages are written to this file, too. Throws Error(TSR_IO_ERROR).
void copy_messages_to(const std::string& file);

// How amounts of progress are written: "1.2 GiB", "4,096 tokens".
using AmountText = std::function<std::string(uint64_t amount)>;

// Progress of something that takes long: a bar that is drawn over itself on a terminal; elsewhere a line every quarter,
// and none at all if it is over soon. One thread.
class ProgressBar {
  public:
    explicit ProgressBar(std::string what, AmountText amount = size_text);
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    void update(uint64_t done, uint64_t total);
    // Removes the bar.
    void finish();

  private:
    using Clock = std::chrono::steady_clock;

    std::string what_;
    AmountText amount_;
    bool terminal_;
    bool drawn_ = false;
    uint64_t quarter_ = 0;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_{};
};

}  // namespace tessera::app
