// The team of a test: threads with the barrier and the pieces of tsr_run.
#pragma once

#include <tessera/kernel.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace tessera::conformance {

// Every wait ends: workers that do not pass the same barriers are found.
class Workers {
  public:
    explicit Workers(uint32_t count) : count_(count), shares_(count) {}

    // Calls kernel.run on `count` threads with these arguments, of which worker, workers, team, barrier and piece are
    // filled in. `hand_out`: whether there is a `piece`. Throws std::runtime_error for a status, an exception or
    // different barriers.
    void run(const tsr_kernel& kernel, void* state, const tsr_run& arguments, bool hand_out);

  private:
    struct Share {
        uint32_t next = 0, end = 0;
    };

    static void barrier(void* team, uint32_t worker);
    static uint32_t piece(void* team, uint32_t worker, uint32_t count);
    void work(const tsr_kernel& kernel, void* state, tsr_run arguments);
    void arrive(bool ends);
    void fail(std::string what);

    uint32_t count_;
    std::mutex mutex_;
    std::condition_variable changed_;
    uint32_t waiting_ = 0, ended_ = 0;
    uint64_t phase_ = 0;
    uint64_t shared_phase_ = UINT64_MAX;  // of shares_
    std::vector<Share> shares_;
    bool open_ = false;
    std::string failure_;
};

}  // namespace tessera::conformance
