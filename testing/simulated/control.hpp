// What is to fail on a device, and what it has done: shared by the devices of one id, their queues' threads and tests.
#pragma once

#include "hidden.hpp"
#include "kernels/plain/plain.hpp"
#include "options.hpp"
#include "simulated_failures.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace tessera::simulated {

// For messages: "upload".
const char* operation_name(tsr_simulated_operation operation) noexcept;

class Control {
  public:
    // The one of a device of that id, made if need be; it lives until the process ends. Any thread but those of queues.
    static Control& of(const std::string& device);

    // Counts an operation that is about to happen. False: it is to be omitted. Throws sdk::Failure if it is to fail, or
    // if the device is lost. `op` of kernels, `what` for the message. Any thread; orders no memory.
    bool begin(tsr_simulated_operation operation, const char* op = nullptr, const std::string& what = {});
    bool lost() const noexcept { return lost_.load(kHidden); }
    // Throws sdk::Failure(TSR_DEVICE_LOST) if the device is lost.
    void require_alive() const;

    void copying(tsr_simulated_operation operation, uint64_t bytes) noexcept;
    void allocated(uint64_t bytes) noexcept;
    void released(uint64_t bytes) noexcept;
    void busy_queues(uint64_t count) noexcept;

    // Any thread but those of queues.
    Options options() const;

    friend struct FailureTable;

  private:
    static constexpr uint64_t kNever = UINT64_MAX;
    static constexpr uint32_t kAnyOp = UINT32_MAX;
    static constexpr uint32_t kOpCount = plain::kOpCount;

    struct Setting {
        std::atomic<uint64_t> after{kNever};
        std::atomic<uint64_t> times{0};
        std::atomic<uint32_t> op{kAnyOp};
        std::atomic<bool> omits{false};
    };
    struct Counts {
        std::array<std::atomic<uint64_t>, kOpCount + 1> by_op{};  // the last: of no op
        std::atomic<uint64_t> bytes{0};
    };

    explicit Control(std::string device) : device_(std::move(device)) {}
    static uint32_t index_of(const char* op) noexcept;
    void set(tsr_simulated_operation operation, const char* op, uint64_t after, uint64_t times, bool omits) noexcept;
    void reset() noexcept;
    uint64_t count(tsr_simulated_operation operation, const char* op) const noexcept;

    std::string device_;
    std::array<Setting, TSR_SIMULATED_OPERATION_COUNT> settings_;
    std::array<Counts, TSR_SIMULATED_OPERATION_COUNT> counts_;
    std::atomic<uint64_t> vanish_after_{kNever};
    std::atomic<bool> lost_{false};
    std::atomic<uint64_t> allocated_{0}, maximum_allocated_{0}, maximum_busy_{0};
    mutable std::mutex mutex_;
    std::optional<Options> options_;
};

const tsr_simulated_failures* failure_table();

}  // namespace tessera::simulated
