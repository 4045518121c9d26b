#include "apps/tessera/output.hpp"

#include "core/base/system_error.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

namespace tessera::app {
namespace {

constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr auto kWorthALine = std::chrono::seconds(3);
constexpr int kBarWidth = 30;

int g_print_error = 0;  // the first one
bool g_silent = false;
std::atomic<std::FILE*> g_log = nullptr;  // until a write to it fails; any thread
std::string g_log_name;

void write_line(std::string_view line, bool shown) {
    if (shown) {
        std::fwrite(line.data(), 1, line.size(), stderr);
        std::fputc('\n', stderr);
    }
    std::FILE* const copy = g_log;
    if (!copy) return;
    errno = 0;
    const bool whole = std::fwrite(line.data(), 1, line.size(), copy) == line.size() && std::fputc('\n', copy) != EOF;
    if (whole && std::fflush(copy) == 0) return;
    const int error = errno ? errno : EIO;
    if (!g_log.exchange(nullptr)) return;  // another thread has said so; not closed, since others may be writing to it
    const std::string lost = fmt::format("{}: cannot write: {}; further messages are not copied there\n",
                                         printable(g_log_name, 4096), std::generic_category().message(error));
    std::fwrite(lost.data(), 1, lost.size(), stderr);
}

}  // namespace

void print(std::string_view text) {
    errno = 0;
    const bool whole = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if ((std::fflush(stdout) != 0 || !whole) && g_print_error == 0) g_print_error = errno ? errno : EIO;
}

std::string print_failure() {
    return g_print_error ? std::generic_category().message(g_print_error) : "";
}

void say(std::string_view line) {
    write_line(line, !g_silent);
}

void say_error(std::string_view line) {
    write_line(line, true);
}

void silence_messages() noexcept {
    g_silent = true;
}

void copy_messages_to(const std::string& file) {
    std::FILE* const opened = std::fopen(file.c_str(), "we");
    if (!opened) fail_system(errno, file, "write");
    std::setvbuf(opened, nullptr, _IOLBF, 0);
    g_log_name = file;
    g_log = opened;
}

ProgressBar::ProgressBar(std::string what, AmountText amount)
    : what_(std::move(what)), amount_(std::move(amount)), terminal_(!g_silent && isatty(STDERR_FILENO) != 0) {}

ProgressBar::~ProgressBar() {
    finish();
}

void ProgressBar::update(uint64_t done, uint64_t total) {
    if (total == 0) return;
    const auto now = Clock::now();
    const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
    if (terminal_) {
        if (now - last_ < kBetweenDrawings) return;
        last_ = now;
        std::string bar(kBarWidth, '.');
        std::fill_n(bar.begin(), static_cast<int>(share * kBarWidth), '#');
        const std::string line = fmt::format("\r{} [{}] {:3.0f} % of {} ", what_, bar, share * 100, amount_(total));
        std::fwrite(line.data(), 1, line.size(), stderr);
        std::fflush(stderr);
        drawn_ = true;
    } else if (now - start_ > kWorthALine && static_cast<uint64_t>(share * 4) > quarter_) {
        quarter_ = static_cast<uint64_t>(share * 4);
        say(fmt::format("{}: {} %", what_, quarter_ * 25));
    }
}

void ProgressBar::finish() {
    if (!drawn_) return;
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    drawn_ = false;
}

}  // namespace tessera::app
