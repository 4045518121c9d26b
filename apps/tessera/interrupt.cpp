#include "apps/tessera/interrupt.hpp"

#include "apps/tessera/commands.hpp"
#include "apps/tessera/crash_report.hpp"

#include <csignal>

namespace tessera::app {
namespace {

std::atomic<bool> g_interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "set from a signal handler");
struct sigaction g_before;

void on_interrupt(int) {
    if (!g_interrupted.exchange(true)) return;
    print_stuck_calls();
    end_process(kExitInterrupted);
}

}  // namespace

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

}  // namespace tessera::app
