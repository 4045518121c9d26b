#include "apps/tessera/step_canceller.hpp"

#include "apps/tessera/interrupt.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <system_error>

namespace tessera::app {
namespace {

// A step that begins after a cancellation is not concerned by it, so that it is repeated.
constexpr int kMillisecondsBetween = 5;

}  // namespace

StepCanceller::StepCanceller(Engine& engine) : engine_(engine), done_(eventfd(0, EFD_CLOEXEC)) {
    if (done_ < 0) return;
    try {
        thread_ = std::thread([this] { watch(); });
    } catch (const std::system_error&) {
        close(done_);
        done_ = -1;
    }
}

StepCanceller::~StepCanceller() {
    if (!thread_.joinable()) return;
    const uint64_t one = 1;
    // It cannot fail: the counter is at 0.
    if (write(done_, &one, sizeof one) == sizeof one) thread_.join();
    close(done_);
}

void StepCanceller::watch() {
    for (;;) {
        const bool interrupted = interrupt_pending();
        if (interrupted) engine_.cancel();
        std::array<pollfd, 2> awaited = {{{done_, POLLIN, 0}, {signal_descriptor(), POLLIN, 0}}};
        poll(awaited.data(), interrupted ? 1 : 2, interrupted ? kMillisecondsBetween : -1);
        if (awaited[0].revents != 0) return;
        // A signal of before, of which nobody has taken notice, is not a new one.
        if (!interrupted && awaited[1].revents != 0 && !interrupt_pending()) forget_signals();
    }
}

}  // namespace tessera::app
