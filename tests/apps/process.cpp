#include "tests/apps/process.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
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
        // The user's own configuration is no part of a test.
        setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
        execvp(arguments[0], arguments.data());
        _exit(127);
    }
    int status = 0;
    if (signal == Signal::kInterruptOutput) {
        struct stat written {};
        while (waitpid(child, &status, WNOHANG) == 0) {
            if (fstat(out.descriptor(), &written) == 0 && written.st_size > 0) {
                kill(child, SIGINT);
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

}  // namespace tessera::test
