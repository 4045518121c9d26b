#include "apps/tessera/interrupt.hpp"

#include "apps/tessera/commands.hpp"
#include "apps/tessera/crash_report.hpp"
#include "core/base/output_file.hpp"

#include <sys/eventfd.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <initializer_list>

namespace tessera::app {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");
struct sigaction g_before;
const int g_noted = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
std::atomic<bool> g_terminal_changed{false};
struct termios g_terminal;
std::string_view g_last_output;

// Safe in a signal handler.
void clean_up() {
    OutputFile::remove_unfinished();
    if (!g_terminal_changed.load()) return;
    tcsetattr(STDIN_FILENO, TCSANOW, &g_terminal);
    // There is nothing to do about an output that fails.
    if (write(STDERR_FILENO, g_last_output.data(), g_last_output.size()) < 0) return;
}

void on_interrupt(int) {
    if (!g_interrupted.exchange(true)) {
        note_signal();
        return;
    }
    print_stuck_calls();
    clean_up();
    end_process(kExitInterrupted);
}

// SA_RESETHAND has restored the default action, which ends the process with the signal's own status.
void on_end(int signal) {
    print_stuck_calls();
    clean_up();
    raise(signal);
}

}  // namespace

void remove_unfinished_files_on_signals() {
    for (const int signal : {SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGXCPU}) {
        struct sigaction action {};
        if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL)
            continue;  // for instance under nohup
        action.sa_handler = on_end;
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
        sigaction(signal, &action, nullptr);
    }
}

int signal_descriptor() noexcept {
    return g_noted;
}

void note_signal() noexcept {
    const int error = errno;
    const uint64_t one = 1;
    // It fails only where the descriptor is readable already, or there is none.
    if (write(g_noted, &one, sizeof one) < 0) errno = error;
}

void forget_signals() noexcept {
    uint64_t count = 0;
    if (read(g_noted, &count, sizeof count) < 0) return;  // none was noted
}

InterruptScope::InterruptScope() {
    g_interrupted = false;
    struct sigaction action {};
    action.sa_handler = on_interrupt;  // without SA_RESTART: a read of the keyboard returns
    sigaction(SIGINT, &action, &g_before);
}

InterruptScope::~InterruptScope() {
    sigaction(SIGINT, &g_before, nullptr);
}

const std::atomic<bool>& InterruptScope::flag() const noexcept {
    return g_interrupted;
}

void InterruptScope::clear() noexcept {
    g_interrupted = false;
}

bool interrupt_pending() noexcept {
    return g_interrupted;
}

TerminalScope::TerminalScope(std::string_view last) {
    if (tcgetattr(STDIN_FILENO, &g_terminal) != 0) return;
    g_last_output = last;
    g_terminal_changed = true;
}

TerminalScope::~TerminalScope() {
    g_terminal_changed = false;
}

}  // namespace tessera::app
