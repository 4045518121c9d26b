// Signals: the first Ctrl-C requests a clean end, the second one quits; signals that end the process leave no
// unfinished files.
#pragma once

#include <atomic>
#include <string_view>

namespace tessera::app {

// From now on a signal that ends the process (SIGTERM, SIGHUP, SIGINT and others that are not ignored) first removes
// files that are not finished. The process still ends by that signal. Once, before other threads start.
void remove_unfinished_files_on_signals();

// A descriptor that is readable from a signal noted until forget_signals(). Who waits for input waits for it as well: a
// signal that comes just before a read would not interrupt that read. -1 if there is none.
int signal_descriptor() noexcept;
// Safe in a signal handler, in any thread.
void note_signal() noexcept;
void forget_signals() noexcept;

// While it lives, SIGINT sets the flag instead of ending the process, and is noted for the descriptor above. One at a
// time; blocking reads are interrupted.
class InterruptScope {
  public:
    InterruptScope();
    ~InterruptScope();
    InterruptScope(const InterruptScope&) = delete;
    InterruptScope& operator=(const InterruptScope&) = delete;

    const std::atomic<bool>& flag() const noexcept;
    bool interrupted() const noexcept { return flag().load(); }
    // The interruption has been handled; the next Ctrl-C is a first one again.
    void clear() noexcept;
};

// Whether SIGINT has come since the last clear().
bool interrupt_pending() noexcept;

// While it lives, a signal that ends the process first restores the settings that the terminal of standard input had at
// the beginning, and writes `last` to standard error.
class TerminalScope {
  public:
    explicit TerminalScope(std::string_view last);
    ~TerminalScope();
    TerminalScope(const TerminalScope&) = delete;
    TerminalScope& operator=(const TerminalScope&) = delete;
};

}  // namespace tessera::app
