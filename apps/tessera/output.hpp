// What people see while a command works.
#pragma once

#include "core/run/loader.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::app {

// Results, on standard output at once. Should that fail, tessera_main() ends with an error.
void print(std::string_view text);
// A line for people, on standard error.
void say(std::string_view line);

// Progress of something that takes long: a bar that is drawn over itself on a terminal; elsewhere a line every quarter,
// and none at all if it is over soon. One thread.
class ProgressBar {
  public:
    explicit ProgressBar(std::string what);
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    void update(uint64_t done, uint64_t total);
    // Takes the bar away.
    void finish();

  private:
    using Clock = std::chrono::steady_clock;

    std::string what_;
    bool terminal_;
    bool drawn_ = false;
    uint64_t quarter_ = 0;
    Clock::time_point start_ = Clock::now();
    Clock::time_point last_{};
};

}  // namespace tessera::app
