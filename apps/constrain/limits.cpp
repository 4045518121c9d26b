#include "apps/constrain/limits.hpp"

#include "apps/structure/protocol.hpp"
#include "core/base/error.hpp"

#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

namespace tessera::constrain {
namespace {

using namespace structure;

// Made before, as handlers of signals may not allocate.
std::string g_out_of_time, g_out_of_memory;
int g_channel = -1;

void end_with(const std::string& message) {
    [[maybe_unused]] const ssize_t sent = send(g_channel, message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    _exit(1);
}

void on_time(int) {
    end_with(g_out_of_time);
}

// llguidance aborts where it gets no memory, and where it is wrong itself; a stack that is full is a fault of memory.
void on_fault(int) {
    end_with(g_out_of_memory);
}

struct Pages {
    uint64_t mapped = 0, resident = 0, of_files = 0;  // bytes
};

Pages pages() {
    Pages found;
    if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
        if (std::fscanf(file, "%lu %lu %lu", &found.mapped, &found.resident, &found.of_files) != 3) found = {};
        std::fclose(file);
    }
    const auto size = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    return {found.mapped * size, found.resident * size, found.of_files * size};
}

}  // namespace

void limit_memory(uint64_t bytes, const OpenFile& channel) {
    g_channel = channel.number();
    g_out_of_memory = message_of({Word::kRefused}, out_of_memory(bytes));
    static char stack[64 << 10];
    const stack_t other{stack, 0, sizeof stack};
    sigaltstack(&other, nullptr);
    struct sigaction action {};
    action.sa_flags = SA_ONSTACK;
    action.sa_handler = on_time;
    sigaction(SIGPROF, &action, nullptr);
    action.sa_handler = on_fault;
    for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(signal, &action, nullptr);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    rlimit memory{};
    getrlimit(RLIMIT_AS, &memory);
    // That which a process may not raise again stays: children get more than this one.
    memory.rlim_cur = std::min(pages().mapped + bytes, memory.rlim_max);
    if (setrlimit(RLIMIT_AS, &memory) != 0)
        fail(TSR_INTERNAL, "cannot limit the memory of a process: {}", std::strerror(errno));
}

uint64_t own_memory() {
    uint64_t total = 0;
    if (std::FILE* const file = std::fopen("/proc/self/smaps_rollup", "r")) {
        char line[256];
        while (std::fgets(line, sizeof line, file)) {
            uint64_t kib = 0;
            if (std::sscanf(line, "Private_Dirty: %lu", &kib) == 1) total += kib << 10;
        }
        std::fclose(file);
    }
    return total;
}

Growth::Signs Growth::signs() {
    const Pages found = pages();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return {static_cast<uint64_t>(usage.ru_minflt) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)),
            found.resident - std::min(found.of_files, found.resident)};
}

Growth::Growth() : before_(own_memory()), last_(signs()) {}

uint64_t Growth::bytes() {
    const Signs now = signs();
    const uint64_t since = std::max(now.faults - last_.faults, now.resident - std::min(last_.resident, now.resident));
    if (since < kUnseen) return counted_ + since;
    const uint64_t own = own_memory();
    counted_ = own - std::min(before_, own);
    last_ = signs();
    return counted_;
}

std::string out_of_memory(uint64_t bytes) {
    return fmt::format("it needs more than {} MiB of memory, or llguidance failed at it; simplify it", bytes >> 20);
}

TimeLimit::TimeLimit(std::chrono::milliseconds limit, std::string_view work) {
    g_out_of_time = message_of({Word::kRefused},
                               fmt::format("{} takes more than {} ms of CPU time; simplify it", work, limit.count()));
    const itimerval timer{{}, {limit.count() / 1000, limit.count() % 1000 * 1000}};
    setitimer(ITIMER_PROF, &timer, nullptr);
}

TimeLimit::~TimeLimit() {
    const itimerval off{};
    setitimer(ITIMER_PROF, &off, nullptr);
}

}  // namespace tessera::constrain
