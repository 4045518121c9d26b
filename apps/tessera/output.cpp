#include "apps/tessera/output.hpp"

#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tessera::app {
namespace {

constexpr auto kBetweenDrawings = std::chrono::milliseconds(100);
constexpr auto kWorthALine = std::chrono::seconds(3);
constexpr int kBarWidth = 30;

}  // namespace

void print(std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

void say(std::string_view line) {
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fputc('\n', stderr);
}

ProgressBar::ProgressBar(std::string what) : what_(std::move(what)), terminal_(isatty(STDERR_FILENO) != 0) {}

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
        const std::string line = fmt::format("\r{} [{}] {:3.0f} % of {} ", what_, bar, share * 100, size_text(total));
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
