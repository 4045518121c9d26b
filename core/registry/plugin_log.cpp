#include "core/registry/plugin_log.hpp"

#include "core/base/log.hpp"
#include "core/base/text.hpp"

#include <cstring>

namespace tessera {
namespace {

constinit thread_local bool t_in_step = false;

PluginLog& plugin_log() {
    // Never destroyed: plugins may log while the process ends.
    static auto& log = *new PluginLog;
    return log;
}

// Cut where there is no more room; empty for nullptr.
template <size_t N>
void copy_text(std::array<char, N>& to, const char* from) noexcept {
    const size_t length = from ? strnlen(from, N - 1) : 0;
    if (length > 0) std::memcpy(to.data(), from, length);
    to[length] = '\0';
}

void print(const PluginLog::Line& line) {
    constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::debug, spdlog::level::info, spdlog::level::warn,
                                                     spdlog::level::err};
    const auto level = line.level <= TSR_LOG_ERROR ? kLevels[line.level] : spdlog::level::err;
    log().log(level, "{}: {}", printable(line.plugin[0] ? line.plugin.data() : "a plugin", PluginLog::kNameBytes),
              printable(line.message.data(), PluginLog::kMessageBytes));
}

}  // namespace

PluginLog::PluginLog() noexcept {
    for (uint64_t i = 0; i < kLines; ++i) slots_[i].sequence.store(i, std::memory_order_relaxed);
}

bool PluginLog::put(tsr_log_level level, const char* plugin, const char* message) noexcept {
    uint64_t number = next_put_.load(std::memory_order_relaxed);
    while (true) {
        Slot& slot = slots_[number % kLines];
        const uint64_t sequence = slot.sequence.load(std::memory_order_acquire);
        if (sequence == number) {
            if (!next_put_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) continue;
            slot.line.level = level;
            copy_text(slot.line.plugin, plugin);
            copy_text(slot.line.message, message);
            slot.sequence.store(number + 1, std::memory_order_release);
            return true;
        }
        if (sequence < number) {  // the line of a round before has not been taken yet
            dropped_.fetch_add(1, std::memory_order_relaxed);
            return false;
        }
        number = next_put_.load(std::memory_order_relaxed);  // another thread has put a line there
    }
}

void PluginLog::take(const std::function<void(const Line&)>& line, const std::function<void(uint64_t)>& dropped) {
    const std::unique_lock lock(taking_, std::try_to_lock);
    if (!lock) return;
    while (true) {
        Slot& slot = slots_[next_taken_ % kLines];
        if (slot.sequence.load(std::memory_order_acquire) != next_taken_ + 1)
            break;  // none, or it is being written at this moment
        const Line copy = slot.line;
        slot.sequence.store(next_taken_ + kLines, std::memory_order_release);
        ++next_taken_;
        line(copy);
    }
    if (const uint64_t count = dropped_.exchange(0, std::memory_order_relaxed)) dropped(count);
}

void log_for_plugin(tsr_log_level level, const char* plugin, const char* message) noexcept {
    plugin_log().put(level, plugin, message);
    if (!t_in_step) print_plugin_log();
}

void print_plugin_log() noexcept {
    try {
        plugin_log().take(print, [](uint64_t count) {
            log().warn("{} lines that plugins logged were dropped: they came faster than they could be printed", count);
        });
    } catch (...) {
        // A line that cannot be printed is lost.
    }
}

WorkerInStep::WorkerInStep() noexcept : before_(t_in_step) {
    t_in_step = true;
}

WorkerInStep::~WorkerInStep() {
    t_in_step = before_;
}

}  // namespace tessera
