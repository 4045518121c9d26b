// A card that was opened: what the functions of its table do. device_table.cpp has the table.
#pragma once

#include <tessera/cuda/driver.hpp>
#include <tessera/cuda/provider.hpp>
#include <tessera/device.h>

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>

namespace tessera::cuda {

// Queues, events and recordings are the driver's own handles: CUstream, CUevent, CUgraphExec. Functions throw
// sdk::Failure.
class Device {
  public:
    explicit Device(const tsr_device_info& info);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    static Device& of(const tsr_device* table) noexcept { return *static_cast<Device*>(table->context); }
    tsr_device* table() noexcept { return &table_; }
    Context context() const noexcept { return context_; }

    // The frame of a call: refused on a lost device, its failure a status, the context current while `body` runs.
    // `what` names the call for the refusal while recording; nullptr: allowed then.
    template <class Body>
    const tsr_status* call(const char* refused_while_recording, Body&& body) noexcept;
    // For release functions: what fails is not told, a lost device is no obstacle.
    template <class Body>
    void quietly(Body&& body) noexcept;

    // ---- memory (memory.cpp) ----
    void* allocate(uint64_t bytes);
    void release(void* address);
    void memory_info(uint64_t& free, uint64_t& total);
    void* allocate_pinned(uint64_t bytes);
    void release_pinned(void* address);
    void register_host(void* address, uint64_t bytes);
    void unregister_host(void* address);
    void upload(tsr_queue queue, void* to, const void* from, uint64_t bytes);
    void download(tsr_queue queue, void* to, const void* from, uint64_t bytes);
    void copy(tsr_queue queue, void* to, const void* from, uint64_t bytes);

    // ---- peers (peers.cpp) ----
    bool can_reach(tsr_device* peer);
    void copy_from_peer(tsr_queue queue, void* to, tsr_device* peer, const void* from, uint64_t bytes);

    // ---- queues and events (queues.cpp) ----
    tsr_queue create_queue();
    void destroy_queue(tsr_queue queue);
    void wait_queue(tsr_queue queue);
    tsr_event create_event(bool timed);
    void destroy_event(tsr_event event);
    void record_event(tsr_queue queue, tsr_event event);
    void queue_wait_event(tsr_queue queue, tsr_device* owner, tsr_event event);
    bool query_event(tsr_event event);
    void wait_event(tsr_event event);
    double event_seconds(tsr_event begin, tsr_event end);

    // ---- recordings (recordings.cpp) ----
    void begin_recording(tsr_queue queue);
    tsr_recording end_recording(tsr_queue queue);
    void discard_recording() noexcept;
    void destroy_recording(tsr_recording recording);
    void replay(tsr_queue queue, tsr_recording recording);

  private:
    // Throws if work is for another queue than the one that is being recorded.
    void require_queue(tsr_queue queue) const;
    // While recording: throws if host memory is not page-locked.
    void require_page_locked(const void* host, const char* what) const;
    void check(Result result, const char* call, const std::string& what) const {
        if (result != kSuccess) driver_.check(result, call, id_ + ": " + what);
    }
    void note(const std::exception& error) noexcept;
    // Whether the calling thread makes a recording. [any]
    bool recording_here() const noexcept { return recorder_.load() == std::this_thread::get_id(); }

    const Driver& driver_;
    std::string id_;
    DeviceNumber number_ = 0;
    Context context_ = nullptr;
    tsr_device table_;
    std::atomic<bool> lost_{false};

    std::mutex peers_mutex_;
    std::map<Context, bool> peers_;  // what can_reach has found

    // Of the thread that makes a recording; nullptr: none is being made.
    tsr_queue recorded_queue_ = nullptr;
    std::atomic<std::thread::id> recorder_;
    std::string spoilt_;  // why what was captured cannot be used
};

tsr_device make_table(const tsr_device_info& info, Device* device) noexcept;

template <class Body>
const tsr_status* Device::call(const char* refused_while_recording, Body&& body) noexcept {
    return sdk::guarded([&] {
        if (lost_.load())
            throw sdk::Failure(TSR_DEVICE_LOST, id_ + ": the device failed before and cannot be used any more");
        try {
            if (refused_while_recording && recording_here()) {
                throw sdk::Failure(TSR_INVALID_ARGUMENT,
                                   id_ + ": " + refused_while_recording + " while a recording is made");
            }
            const CurrentContext current(driver_, context_);
            body();
        } catch (const sdk::Failure& failure) {
            if (failure.code() == TSR_DEVICE_LOST) lost_.store(true);
            note(failure);
            throw;
        }
    });
}

template <class Body>
void Device::quietly(Body&& body) noexcept {
    try {
        const CurrentContext current(driver_, context_);
        body();
    } catch (const std::exception&) {
        // The context is gone, and with it what was to be released.
    }
}

}  // namespace tessera::cuda
