// Reports which plugin a process crashed in or waits for. Only applications may install signal handlers; the core keeps
// the records (core/base/plugin_call.hpp).
#pragma once

#include <chrono>
#include <memory>

namespace tessera::app {

// From now on a crash of the process (SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT), and a plugin that calls exit or _exit,
// print a line that names the plugin, and the call, on standard error. The process then ends as it would without this.
// Called once, before other threads start.
void install_crash_report();

// Prints the calls that CallWatch has reported and that have not returned yet, for handlers of signals that end the
// process. Async-signal-safe.
void print_stuck_calls() noexcept;

// Ends the process at once, as _exit does, without a report on a call that the thread is in. Async-signal-safe.
[[noreturn]] void end_process(int code) noexcept;

// Logs calls into plugins that do not return: after `patience`, and again whenever the time has doubled. Ends nothing.
class CallWatch {
  public:
    // Does nothing if the system refuses a thread.
    explicit CallWatch(std::chrono::milliseconds patience);
    ~CallWatch();
    CallWatch(const CallWatch&) = delete;
    CallWatch& operator=(const CallWatch&) = delete;

  private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace tessera::app
