#include "apps/server/access_log.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/system_error.hpp"
#include "core/text/json_writer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/fmt/chrono.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>

namespace tessera::server {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kWaitingBytes = 4 << 20;
constexpr int kPollMilliseconds = 100;
constexpr std::chrono::seconds kLastWrites(1);

std::string line_of(const Access& access) {
    using std::chrono::milliseconds, std::chrono::seconds;
    const auto now = std::chrono::floor<milliseconds>(std::chrono::system_clock::now());
    const auto second = std::chrono::floor<seconds>(now);
    std::string line;
    text::JsonWriter json(line);
    json.begin_object();
    json.member("time", fmt::format("{:%FT%T}.{:03}Z", second, (now - second).count()));
    json.member("id", access.request->number);
    json.member("client", access.request->address);
    json.member("method", access.request->method);
    json.member("path", access.request->path);
    json.member("status", access.status).member("bytes", access.bytes);
    json.key("seconds").fixed(access.seconds, 4);
    if (const Usage* usage = access.usage) {
        json.member("prompt_tokens", usage->prompt_tokens);
        json.member("cached_tokens", usage->reused_tokens);
        json.member("new_tokens", usage->new_tokens);
        json.key("first_token_seconds").fixed(usage->first_token_seconds, 4);
        if (usage->differs_at) json.member("differs_at", *usage->differs_at);
        json.member("finish", usage->finish);
    }
    json.end_object();
    line += '\n';
    return line;
}

}  // namespace

AccessLog::AccessLog(const std::optional<std::filesystem::path>& file) : path_(file) {
    if (!path_) return;
    descriptor_ = open_file();
    torn_ = ends_within_line();
    thread_ = std::thread([this] { run(); });
}

AccessLog::~AccessLog() {
    if (!path_) return;
    {
        const std::scoped_lock lock(mutex_);
        end_ = Clock::now() + kLastWrites;
        changed_.notify_one();
    }
    thread_.join();
    if (descriptor_ > STDOUT_FILENO) close(descriptor_);
}

int AccessLog::open_file() const {
    if (*path_ == "-") return STDOUT_FILENO;
    // A pipe that nobody reads is an error instead of a wait.
    const int descriptor = open(path_->c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0640);
    if (descriptor < 0) fail_system(errno, *path_, "write the access log");
    return descriptor;
}

void AccessLog::write(const Access& access) {
    if (!path_) return;
    const std::string line = line_of(access);
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() + line.size() > kWaitingBytes) {
        ++dropped_;
        return;
    }
    waiting_ += line;
    changed_.notify_one();
}

void AccessLog::reopen() {
    const std::scoped_lock lock(mutex_);
    reopen_ = true;
    changed_.notify_one();
}

uint64_t AccessLog::dropped() const {
    const std::scoped_lock lock(mutex_);
    return dropped_;
}

void AccessLog::run() {
    pthread_setname_np(pthread_self(), "tessera-access");
    // A reader of a pipe that has gone ends the log, not the server.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    for (;;) {
        std::string text;
        bool reopening = false;
        {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [&] { return reopen_ || end_ || !waiting_.empty(); });
            if (end_ && waiting_.empty()) return;
            text.swap(waiting_);
            reopening = std::exchange(reopen_, false);
        }
        // What could not be ended before, on a full disk perhaps, does not spoil the next line.
        if (torn_ && !text.empty()) text = '\n' + text;
        const std::string_view left = write_all(text);
        if (left.size() < text.size()) torn_ = text[text.size() - left.size() - 1] != '\n';
        if (!left.empty()) {
            const std::scoped_lock lock(mutex_);
            if (dropped_ == 0) log().error("lines of the access log cannot be written and are dropped");
            dropped_ += static_cast<uint64_t>(
                std::ranges::count(left == text && text[0] == '\n' ? left.substr(1) : left, '\n'));
        }
        if (!reopening) continue;
        try {
            const int opened = open_file();
            if (descriptor_ > STDOUT_FILENO) close(descriptor_);
            descriptor_ = opened;
            torn_ = ends_within_line();
        } catch (const Error& error) {
            log().error("{}", error.what());
        }
    }
}

// As after a disk was full, or the machine went off.
bool AccessLog::ends_within_line() const {
    struct stat status {};
    if (*path_ == "-" || fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
        return false;
    const int reading = open(path_->c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reading < 0) return false;
    char last = '\n';
    if (pread(reading, &last, 1, status.st_size - 1) != 1) last = '\n';
    close(reading);
    return last != '\n';
}

std::string_view AccessLog::write_all(std::string_view text) {
    while (!text.empty()) {
        pollfd ready{descriptor_, POLLOUT, 0};
        const int count = poll(&ready, 1, kPollMilliseconds);
        {
            const std::scoped_lock lock(mutex_);
            if (end_ && Clock::now() >= *end_) return text;
        }
        if (count == 0 || (count < 0 && errno == EINTR)) continue;
        // As much as a pipe that is ready takes without a wait, whoever else uses it.
        const ssize_t written = ::write(descriptor_, text.data(), std::min<size_t>(text.size(), PIPE_BUF));
        if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (written <= 0) return text;
        text.remove_prefix(static_cast<size_t>(written));
    }
    return {};
}

}  // namespace tessera::server
