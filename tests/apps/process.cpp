#include "tests/apps/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace tessera::test {
namespace {

// A temporary file without a name; output of any length needs no thread to drain it.
class Unnamed {
  public:
    Unnamed() : file_(std::tmpfile()) {
        if (!file_) throw std::runtime_error("no temporary file");
    }
    ~Unnamed() { std::fclose(file_); }
    Unnamed(const Unnamed&) = delete;
    Unnamed& operator=(const Unnamed&) = delete;

    int descriptor() const { return fileno(file_); }
    void write(const std::string& text) {
        std::fwrite(text.data(), 1, text.size(), file_);
        std::fflush(file_);
        lseek(descriptor(), 0, SEEK_SET);
    }
    std::string text() {
        std::string all;
        std::array<char, 4096> part;
        lseek(descriptor(), 0, SEEK_SET);
        for (ssize_t n; (n = ::read(descriptor(), part.data(), part.size())) > 0;)
            all.append(part.data(), static_cast<size_t>(n));
        return all;
    }

  private:
    std::FILE* file_;
};

// The user's own configuration is no part of a test, nor are tests runs whose speed the user wants to know of.
void set_environment() {
    setenv("XDG_CACHE_HOME", TSR_PROGRAM ".cache", 0);
    setenv("XDG_CONFIG_HOME", "/proc/nonexistent", 1);
    setenv("T", TSR_PROGRAM, 1);
}

}  // namespace

std::string Outcome::last_error_line() const {
    const size_t end = err.find_last_not_of('\n');
    if (end == std::string::npos) return "";
    const size_t begin = err.rfind('\n', end);
    return err.substr(begin == std::string::npos ? 0 : begin + 1,
                      end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

Outcome run_process(const std::vector<std::string>& words, const std::string& input, Signal signal) {
    Unnamed in, out, err;
    in.write(input);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("fork failed");
    if (child == 0) {
        dup2(in.descriptor(), STDIN_FILENO);
        dup2(out.descriptor(), STDOUT_FILENO);
        dup2(err.descriptor(), STDERR_FILENO);
        set_environment();
        execvp(arguments[0], arguments.data());
        _exit(127);
    }
    int status = 0;
    if (signal != Signal::kNone) {
        struct stat written {};
        while (waitpid(child, &status, WNOHANG) == 0) {
            if (fstat(out.descriptor(), &written) == 0 && written.st_size > 0) {
                kill(child, signal == Signal::kInterruptOutput ? SIGINT : SIGTERM);
                waitpid(child, &status, 0);
                break;
            }
            usleep(1000);
        }
    } else {
        waitpid(child, &status, 0);
    }
    Outcome outcome;
    outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    outcome.out = out.text();
    outcome.err = err.text();
    return outcome;
}

Outcome tessera(std::vector<std::string> words, const std::string& input, Signal signal) {
    words.insert(words.begin(), TSR_PROGRAM);
    return run_process(words, input, signal);
}

Outcome shell(const std::string& script) {
    return run_process({"sh", "-c", script});
}

Terminal::Terminal(std::vector<std::string> words) {
    words.insert(words.begin(), TSR_PROGRAM);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    winsize size{};
    size.ws_col = 80;
    size.ws_row = 24;
    child_ = forkpty(&terminal_, nullptr, nullptr, &size);
    if (child_ < 0) throw std::runtime_error("no terminal");
    if (child_ == 0) {
        set_environment();
        setenv("TERM", "xterm", 1);
        setenv("HOME", "/proc/nonexistent", 1);
        execv(arguments[0], arguments.data());
        _exit(127);
    }
}

Terminal::~Terminal() {
    if (child_ > 0) {
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    close(terminal_);
}

bool Terminal::read_more(int milliseconds) {
    pollfd ready{terminal_, POLLIN, 0};
    if (poll(&ready, 1, milliseconds) <= 0) return false;
    std::array<char, 4096> part;
    const ssize_t got = read(terminal_, part.data(), part.size());
    if (got <= 0) return false;
    shown_.append(part.data(), static_cast<size_t>(got));
    return true;
}

void Terminal::type(const std::string& text) {
    // The output is read meanwhile: a terminal whose output is not read blocks.
    for (size_t at = 0; at < text.size();) {
        const ssize_t put = write(terminal_, text.data() + at, std::min<size_t>(text.size() - at, 256));
        if (put < 0) throw std::runtime_error("the terminal takes nothing");
        at += static_cast<size_t>(put);
        while (read_more(1)) {
        }
    }
}

void Terminal::resize(unsigned short columns) {
    winsize size{};
    size.ws_col = columns;
    size.ws_row = 24;
    // The kernel sends SIGWINCH.
    if (ioctl(terminal_, TIOCSWINSZ, &size) != 0) throw std::runtime_error("the terminal keeps its size");
}

bool Terminal::shows(const std::string& text) {
    for (;;) {
        const size_t at = shown_.find(text, seen_);
        if (at != std::string::npos) {
            seen_ = at + text.size();
            return true;
        }
        if (!read_more(30'000)) return false;
    }
}

int Terminal::wait() {
    while (read_more(30'000)) {
    }
    int status = 0;
    // It closes the terminal before it ends; what says nothing any more and does not end either is killed.
    for (int i = 0; waitpid(child_, &status, WNOHANG) == 0; ++i) {
        if (i < 30'000) {
            usleep(1000);
            continue;
        }
        kill(child_, SIGKILL);
        waitpid(child_, &status, 0);
        break;
    }
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace tessera::test
