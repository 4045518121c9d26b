// What is to fail on a device, and what it has done: shared between the device and tests.
#pragma once

#include "simulated_failures.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace tessera::simulated {

class Failures {
  public:
    // The one of a device of that id, made if need be. Any thread.
    static std::shared_ptr<Failures> of(const std::string& device);

    // Each says that something is about to happen and throws sdk::Failure if it is to fail. Any thread.
    void allocation(uint64_t bytes);
    void copying(const char* what, uint64_t bytes);
    void kernel(const char* op, const char* node);
    void alive();

    void allocated(uint64_t bytes);
    void released(uint64_t bytes);
    void computed(const char* op);

    friend struct FailureTable;

  private:
    static constexpr uint64_t kNever = UINT64_MAX;

    void alive_locked() const;

    std::mutex mutex_;
    std::string device_;
    uint64_t allocations_left_ = kNever;
    uint64_t copies_left_ = kNever;
    uint64_t kernels_left_ = kNever;
    std::string failing_op_;  // empty: any
    bool vanished_ = false;
    uint64_t allocated_ = 0, most_allocated_ = 0;
    std::map<std::string, uint64_t, std::less<>> computed_;
};

const tsr_simulated_failures* failure_table();

}  // namespace tessera::simulated
