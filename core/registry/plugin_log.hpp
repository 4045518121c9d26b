// Lines that plugins log, from any thread: queued without waiting, printed later by a thread that may wait.
#pragma once

#include <tessera/plugin.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

namespace tessera {

// A bounded queue of lines. Any number of threads put lines in; those that find it full are dropped and counted.
class PluginLog {
  public:
    static constexpr uint32_t kLines = 256;         // a power of two
    static constexpr uint32_t kMessageBytes = 256;  // with the NUL at its end; a longer message is cut
    static constexpr uint32_t kNameBytes = 64;      // the same of a plugin's name
    struct Line {
        tsr_log_level level = TSR_LOG_INFO;
        std::array<char, kNameBytes> plugin{};  // empty: the plugin gave none
        std::array<char, kMessageBytes> message{};
    };

    PluginLog() noexcept;

    // Copies the name and the message, on the plugin's own thread and in its call, which a crash report names if a
    // pointer is wild. No lock, no allocation, no loop but over other threads that put lines in. False: dropped. Any
    // thread.
    bool put(tsr_log_level level, const char* plugin, const char* message) noexcept;

    // Passes on the queued lines in their order, then the number of lines that were dropped since the last time.
    // Returns at once if another thread is doing this. Any thread but a worker in a step.
    void take(const std::function<void(const Line&)>& line, const std::function<void(uint64_t)>& dropped);

  private:
    struct Slot {
        // The number of the line that may be put here next, and one more once it has been put: slot i takes lines i, i
        // + kLines, ...
        std::atomic<uint64_t> sequence{0};
        Line line;
    };

    std::array<Slot, kLines> slots_;
    alignas(64) std::atomic<uint64_t> next_put_{0};
    alignas(64) std::atomic<uint64_t> dropped_{0};
    std::mutex taking_;
    uint64_t next_taken_ = 0;  // under taking_
};

// tsr_host.log: writes the line to the log of the process, at once unless the thread is a worker in a step.
void log_for_plugin(tsr_log_level level, const char* plugin, const char* message) noexcept;

// Prints what workers have logged. Between steps and when a model has been loaded. Any thread but a worker in a step.
void print_plugin_log() noexcept;

// While it lives the calling thread is a worker in a step: lines that plugins log on it wait for print_plugin_log.
class WorkerInStep {
  public:
    WorkerInStep() noexcept;
    ~WorkerInStep();
    WorkerInStep(const WorkerInStep&) = delete;
    WorkerInStep& operator=(const WorkerInStep&) = delete;

  private:
    bool before_;
};

}  // namespace tessera
