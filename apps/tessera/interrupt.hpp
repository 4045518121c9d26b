// Signals: Ctrl-C asks for a clean end first and quits the second time; what ends the process leaves no unfinished
// files.
#pragma once

#include <atomic>
#include <string_view>

namespace tessera::app {

// From now on a signal that ends the process (SIGTERM, SIGHUP, SIGINT and others that are not ignored) first removes
// files that are not finished. The process still ends by that signal. Once, before other threads start.
void remove_unfinished_files_on_signals();

// While it lives, SIGINT sets the flag instead of ending the process. One at a time; blocking reads are interrupted.
class InterruptScope {
  public:
    InterruptScope();
    ~InterruptScope();
    InterruptScope(const InterruptScope&) = delete;
    InterruptScope& operator=(const InterruptScope&) = delete;

    const std::atomic<bool>& flag() const noexcept;
    bool interrupted() const noexcept { return flag().load(); }
    // What was asked for is done; the next Ctrl-C is a first one again.
    void clear() noexcept;
};

// While it lives, a signal that ends the process first gives the terminal of standard input the settings that it had at
// the beginning, and writes `last` to standard error.
class TerminalScope {
  public:
    explicit TerminalScope(std::string_view last);
    ~TerminalScope();
    TerminalScope(const TerminalScope&) = delete;
    TerminalScope& operator=(const TerminalScope&) = delete;
};

}  // namespace tessera::app
