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
    // filled in. `hand_out`: whether there is a `piece`. Throws std::runtime_error for a status, an exception,
    // different barriers, pieces that are not all taken or asked for wrongly, and a thread that rounds differently
    // afterwards.
    void run(const tsr_kernel& kernel, void* state, const tsr_run& arguments, bool hand_out);

  private:
    struct Share {
        uint32_t next = 0, end = 0;
        bool is_done = false;  // its worker was told in this phase that all pieces are taken
    };

    static void barrier(void* team, uint32_t worker);
    static uint32_t piece(void* team, uint32_t worker, uint32_t count);
    void work(const tsr_kernel& kernel, void* state, tsr_run arguments);
    void arrive(bool ends);
    void check_worker(uint32_t worker, const char* function);
    void check_all_taken();
    void fail(std::string what);
    void fail_locked(std::string what);

    uint32_t count_;
    std::mutex mutex_;
    std::condition_variable changed_;
    uint32_t waiting_ = 0, ended_ = 0;
    uint64_t phase_ = 0;
    uint64_t shared_phase_ = UINT64_MAX;  // of shares_
    uint32_t pieces_ = 0;                 // of that phase
    std::vector<Share> shares_;
    bool open_ = false;
    std::string failure_;
};

}  // namespace tessera::conformance
