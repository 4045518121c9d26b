#include "process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <system_error>

extern char** environ;

namespace tessera::conformance {
namespace {

constexpr size_t kMaxErrors = 64 << 10;
constexpr auto kTick = std::chrono::milliseconds(100);

[[noreturn]] void fail(const char* what, int error) {
    throw std::system_error(error, std::generic_category(), what);
}

class Descriptor {
  public:
    explicit Descriptor(int number = -1) : number_(number) {}
    ~Descriptor() { close(); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return number_; }
    void set(int number) { number_ = number; }
    void close() {
        if (number_ >= 0) ::close(number_);
        number_ = -1;
    }

  private:
    int number_;
};

void make_pipe(Descriptor& read_end, Descriptor& write_end) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe", errno);
    read_end.set(ends[0]);
    write_end.set(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
}

pid_t spawn(const std::vector<std::string>& words, int output, int errors) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (output >= 0) {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
        posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
    }
    std::array<char, 4096> self{};
    const ssize_t length = readlink("/proc/self/exe", self.data(), self.size() - 1);
    std::vector<char*> arguments = {self.data()};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    pid_t child = 0;
    const int error =
        length <= 0 ? ENOENT : posix_spawn(&child, self.data(), &actions, nullptr, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) fail("cannot start a child process", error);
    return child;
}

ChildEnd end_of(int status) {
    ChildEnd end;
    if (WIFEXITED(status)) end.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
    return end;
}

// What there is to read now; a part of it where a child writes faster than it is read.
void take_bytes(int descriptor, std::string& to) {
    std::array<char, 8192> buffer;
    ssize_t got = 1;
    for (int parts = 0; parts < 64 && (got = read(descriptor, buffer.data(), buffer.size())) > 0; ++parts)
        to.append(buffer.data(), static_cast<size_t>(got));
}

}  // namespace

std::string describe(const ChildEnd& end) {
    if (end.timed_out) return "did not end and was killed";
    if (end.signal) return "died of signal " + std::to_string(end.signal) + " (" + strsignal(end.signal) + ")";
    return "exited with " + std::to_string(end.exit_code);
}

ChildEnd run_child(const std::vector<std::string>& words, std::chrono::milliseconds silence,
                   const std::function<void(std::string_view)>& line) {
    Descriptor output, output_end, errors, errors_end;
    make_pipe(output, output_end);
    make_pipe(errors, errors_end);
    const pid_t child = spawn(words, output_end.get(), errors_end.get());
    output_end.close();
    errors_end.close();

    std::string text, said;
    bool timed_out = false;
    int status = 0;
    auto last = std::chrono::steady_clock::now();
    for (bool running = true; running;) {
        pollfd waits[] = {{output.get(), POLLIN, 0}, {errors.get(), POLLIN, 0}};
        poll(waits, 2, static_cast<int>(kTick.count()));
        running = waitpid(child, &status, WNOHANG) == 0;
        const size_t before = text.size();
        take_bytes(output.get(), text);
        take_bytes(errors.get(), said);
        if (said.size() > kMaxErrors) said.erase(0, said.size() - kMaxErrors);
        const auto now = std::chrono::steady_clock::now();
        if (text.size() != before) last = now;
        size_t begin = 0;
        for (size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
            line(std::string_view(text).substr(begin, end - begin));
        text.erase(0, begin);
        // A closed pipe is always ready: the child is not asked more often for that.
        if (running && (waits[0].revents & POLLHUP) && (waits[1].revents & POLLHUP)) poll(nullptr, 0, 5);
        if (running && !timed_out && now - last > silence) {
            timed_out = true;
            kill(child, SIGKILL);
        }
    }
    ChildEnd end = end_of(status);
    end.timed_out = timed_out;
    end.errors = std::move(said);
    return end;
}

ChildEnd run_in_place(const std::vector<std::string>& words) {
    const pid_t child = spawn(words, -1, -1);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return end_of(status);
}

}  // namespace tessera::conformance
