#include "core/registry/process_state.hpp"

#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace tessera {
namespace {

// Without setting it, as umask() does, since other threads may create files at this moment. Nothing where there is no
// /proc.
std::optional<mode_t> current_umask() {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);) {
        if (line.starts_with("Umask:")) return static_cast<mode_t>(std::strtoul(line.c_str() + 6, nullptr, 8));
    }
    return std::nullopt;
}

// Signal by signal: the C library leaves the rest of a set as it was in memory.
bool same_signals(const sigset_t& a, const sigset_t& b) {
    for (int number = 1; number < NSIG; ++number) {
        if (sigismember(&a, number) != sigismember(&b, number)) return false;
    }
    return true;
}

bool same_action(const struct sigaction& a, const struct sigaction& b) {
    return a.sa_flags == b.sa_flags && same_signals(a.sa_mask, b.sa_mask) &&
           ((a.sa_flags & SA_SIGINFO) ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler);
}

bool same_directory(int open) {
    struct stat before {
    }, now{};
    return fstat(open, &before) == 0 && stat(".", &now) == 0 && before.st_dev == now.st_dev &&
           before.st_ino == now.st_ino;
}

}  // namespace

ProcessState::ProcessState() noexcept : directory_(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)) {
    umask_ = current_umask();
    for (int number = 1; number < NSIG; ++number)
        sigaction(number, nullptr, &actions_[static_cast<size_t>(number)]);  // fails for those of the C library
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked_);
}

ProcessState::~ProcessState() {
    if (directory_ >= 0) close(directory_);
}

std::vector<std::string> ProcessState::restore() const {
    std::vector<std::string> changed;
    if (directory_ >= 0 && !same_directory(directory_)) {
        changed.emplace_back("the working directory");
        if (fchdir(directory_) != 0) changed.back() += fmt::format(" (which cannot be set back: {})", strerror(errno));
    }
    if (const auto now = current_umask(); umask_ && now && *now != *umask_) {
        umask(*umask_);
        changed.emplace_back("the umask");
    }
    for (int number = 1; number < NSIG; ++number) {
        const struct sigaction& before = actions_[static_cast<size_t>(number)];
        struct sigaction now {};
        if (sigaction(number, nullptr, &now) != 0 || same_action(before, now)) continue;
        if (sigaction(number, &before, nullptr) == 0) changed.push_back(fmt::format("the action of signal {}", number));
    }
    sigset_t blocked{};
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    if (!same_signals(blocked, blocked_)) {
        pthread_sigmask(SIG_SETMASK, &blocked_, nullptr);
        changed.emplace_back("the signals that are blocked");
    }
    return changed;
}

}  // namespace tessera
