#include "apps/tessera/crash_report.hpp"

#include "apps/tessera/commands.hpp"
#include "core/base/log.hpp"
#include "core/base/output_file.hpp"
#include "core/base/plugin_call.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace tessera::app {
namespace {

constexpr size_t kLine = 1200;
constexpr size_t kStackBytes = 64 << 10;

struct Signal {
    int number;
    const char* name;
    const char* meaning;
};
constexpr Signal kCrashes[] = {{SIGSEGV, "SIGSEGV", "invalid memory access"},
                               {SIGBUS, "SIGBUS", "memory that its file or device does not back"},
                               {SIGILL, "SIGILL", "illegal instruction"},
                               {SIGFPE, "SIGFPE", "arithmetic error"},
                               {SIGABRT, "SIGABRT", "abort, or an uncaught exception"}};

struct sigaction g_before[NSIG];
constinit std::atomic<int32_t> g_reporter{0};  // the thread that reports a crash
constinit std::atomic<bool> g_installed{false};

void print_parts(std::initializer_list<const char*> parts) noexcept {
    char line[kLine + 200];
    size_t size = 0;
    for (const char* part : parts) {
        for (; *part && size < sizeof line; ++part) line[size++] = *part;
    }
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, size);
}

// If the thread that crashed is in no call, other threads' calls are reported: it may be a thread of a plugin.
void print_other_calls() noexcept {
    char text[kLine];
    for (size_t i = 0; i < call_slots(); ++i) {
        if (look_at_call(i, text, sizeof text).serial) print_parts({"tessera:   in a call meanwhile: ", text, "\n"});
    }
}

void on_crash(int number, siginfo_t*, void*) {
    const int saved = errno;
    int32_t nobody = 0;
    const auto self = static_cast<int32_t>(syscall(SYS_gettid));
    if (g_reporter.compare_exchange_strong(nobody, self)) {
        const Signal* what = &kCrashes[0];
        for (const Signal& known : kCrashes) {
            if (known.number == number) what = &known;
        }
        char call[kLine];
        if (look_at_own_call(call, sizeof call).serial) {
            print_parts({"tessera: ", what->name, " (", what->meaning, ") in ", call, "\n"});
        } else {
            print_parts({"tessera: ", what->name, " (", what->meaning, ") outside of any call into a plugin\n"});
            print_other_calls();
        }
    } else if (nobody != self) {
        pause();  // the first crash is about to end the process
    }
    OutputFile::remove_unfinished();
    // With the action that was there before it happens again: an instruction when it is executed again, a signal that
    // was sent when this handler returns.
    sigaction(number, &g_before[number], nullptr);
    raise(number);
    errno = saved;
}

// Whether the thread is in a call into a plugin.
bool print_exit(const char* function) noexcept {
    char call[kLine];
    if (!g_installed.load() || !look_at_own_call(call, sizeof call).serial) return false;
    g_installed = false;  // reported once
    print_parts({"tessera: ", function, " was called, which ends the process, in ", call, "\n"});
    return true;
}

// What a plugin ended is not done, whatever it says.
int code_of_exit(int code) noexcept {
    return code == 0 ? kExitFailed : code;
}

// Other threads are running: objects that they use must not be destroyed.
void on_exit_called(int status, void*) {
    if (print_exit("exit")) end_process(code_of_exit(status));
}

// The handler of a stack overflow needs a stack of its own.
struct SignalStack {
    void* memory = MAP_FAILED;
    ~SignalStack() {
        if (memory == MAP_FAILED) return;
        stack_t none{};
        none.ss_flags = SS_DISABLE;
        sigaltstack(&none, nullptr);
        munmap(memory, kStackBytes);
    }
};

void give_thread_a_signal_stack() {
    thread_local SignalStack own;
    stack_t present{};
    if (own.memory != MAP_FAILED || sigaltstack(nullptr, &present) != 0 || !(present.ss_flags & SS_DISABLE)) return;
    own.memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own.memory == MAP_FAILED) return;
    stack_t stack{};
    stack.ss_sp = own.memory;
    stack.ss_size = kStackBytes;
    sigaltstack(&stack, nullptr);
}

}  // namespace

void install_crash_report() {
    give_thread_a_signal_stack();
    set_thread_hook(give_thread_a_signal_stack);
    struct sigaction action {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    for (const Signal& crash : kCrashes) sigaction(crash.number, &action, &g_before[crash.number]);
    g_installed = true;
    on_exit(on_exit_called, nullptr);
}

void print_stuck_calls() noexcept {
    char text[kLine];
    for (size_t i = 0; i < call_slots(); ++i) {
        if (look_at_call(i, text, sizeof text).reported) print_parts({"tessera: ended while waiting for ", text, "\n"});
    }
}

void end_process(int code) noexcept {
    g_installed = false;
    _exit(code);
}

struct CallWatch::State {
    struct Seen {
        uint64_t serial = 0;
        std::chrono::steady_clock::time_point since;
        std::chrono::milliseconds next{};
    };
    std::chrono::milliseconds patience;
    std::mutex mutex;
    std::condition_variable wake;
    bool stop = false;
    std::vector<Seen> seen;
    std::thread thread;

    void look() {
        const auto now = std::chrono::steady_clock::now();
        std::array<char, kLine> text;
        seen.resize(call_slots());
        for (size_t i = 0; i < seen.size(); ++i) {
            const CallState state = look_at_call(i, text.data(), text.size());
            if (state.serial != seen[i].serial) seen[i] = {state.serial, now, patience};
            if (!state.serial || now - seen[i].since < seen[i].next) continue;
            const double seconds = std::chrono::duration<double>(now - seen[i].since).count();
            mark_reported(i, state.serial);
            log().warn("{} has not returned for {:.0f} s (thread {})", text.data(), seconds, state.thread);
            seen[i].next *= 2;
        }
    }
    void run() {
        std::unique_lock lock(mutex);
        while (!wake.wait_for(lock, patience / 4, [&] { return stop; })) look();
    }
};

CallWatch::CallWatch(std::chrono::milliseconds patience) : state_(std::make_unique<State>()) {
    state_->patience = patience;
    // Signals that are sent to the process are for threads that can be interrupted.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
        state_->thread = std::thread([state = state_.get()] { state->run(); });
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

CallWatch::~CallWatch() {
    {
        const std::scoped_lock lock(state_->mutex);
        state_->stop = true;
    }
    state_->wake.notify_all();
    if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace tessera::app

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The program's own come before the C library's, for plugins too. Sanitizers need theirs.
extern "C" {
[[noreturn]] void _exit(int code) {
    if (tessera::app::print_exit("_exit")) code = tessera::app::code_of_exit(code);
    for (;;) syscall(SYS_exit_group, code);
}
[[noreturn]] void _Exit(int code) noexcept {
    _exit(code);
}
}
#endif
