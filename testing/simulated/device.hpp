// A simulated GPU: what its table's functions do. device_table.cpp has the table, and the provider that opens devices.
#pragma once

#include "address_space.hpp"
#include "control.hpp"
#include "event.hpp"
#include "host_memory.hpp"
#include "queue.hpp"
#include "scheduler.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/device.h>
#include <tessera/plugin.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace tessera::simulated {

// What the two CUDA plugins divide the world by: 100 * major + 10 * minor.
inline constexpr uint32_t kMinimumCapability = 600;
inline constexpr uint32_t kAmpere = 800;

// Where messages go that no call can return; nullptr: nowhere. Set before anything else.
void set_host(const tsr_host* host) noexcept;

// Who may call a function: any thread, or one at a time.
enum class Threads { kAny, kOne };

class Device {
  public:
    // Throws sdk::Failure.
    explicit Device(const tsr_device_info& info);
    // Logs what was still under way.
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    // The device behind a table that any plugin may have made. Throws sdk::Failure(TSR_INVALID_ARGUMENT), with `what`,
    // if it is none of this plugin's.
    static Device& of(const tsr_device* device, const char* what);

    tsr_device* table() noexcept { return &table_; }
    const std::string& id() const noexcept { return id_; }
    Control& control() noexcept { return control_; }
    const Options& options() const noexcept { return options_; }
    AddressSpace& memory() noexcept { return memory_; }

    // The frame of every call: one thread at a time, mistakes of functions without a status told, refused while
    // recording where a driver refuses it, counted and failed as wanted. `body` is not called if it is to be omitted.
    template <class Body>
    const tsr_status* call(tsr_simulated_operation operation, Threads threads, Body&& body,
                           const char* op = nullptr) noexcept;

    // ---- bodies of calls; they throw sdk::Failure ----

    Queue& queue(tsr_queue handle);
    tsr_queue create_queue();
    void destroy_queue(tsr_queue handle);
    void wait_queue(Queue& queue);
    // Waits for a queue that a failed wait left as it was; nothing if there is no such queue.
    void drain(tsr_queue handle) noexcept;

    tsr_event create_event(bool timed);
    void destroy_event(tsr_event handle);
    void record_event(Queue& queue, tsr_event event);
    void queue_wait_event(Queue& queue, const tsr_device* owner, tsr_event event);
    uint32_t query_event(tsr_event event);
    void wait_event(tsr_event event);
    double event_seconds(tsr_event begin, tsr_event end);
    void require_event(tsr_event event);

    void* allocate(uint64_t bytes);
    void release(void* address);
    void release_host(void* address, bool allocated);

    // `from` or `to` is the host's in uploads and downloads; `peer` of copies from one.
    void copy(tsr_simulated_operation operation, Queue& queue, void* to, const void* from, uint64_t bytes,
              Device* peer = nullptr);
    // Puts a kernel on a queue. `held` is what it refers to.
    void launch(Queue& queue, std::unique_ptr<Work> work, std::vector<Held*> held);

    void begin_recording(Queue& queue);
    Recording* end_recording(tsr_queue queue);
    void discard_recording() noexcept;
    bool recording() const noexcept { return captured_ != nullptr; }
    void destroy_recording(tsr_recording handle);
    void replay(Queue& queue, tsr_recording handle);

    // ---- for kernels ----

    // Where `bytes` at a device address are. Throws sdk::Failure(TSR_INVALID_ARGUMENT) that says whether the address is
    // a foreign one or the bytes go past the end of an allocation; `what` makes the name of what was asked for, then
    // only.
    template <class What>
    Place resolve(const void* address, uint64_t bytes, What&& what) const {
        const Place place = memory_.find(address, bytes);
        if (!place.allocation) refuse_address(address, bytes, what());
        return place;
    }

    // A mistake in a function that returns no status; told by the next one that does.
    void remember(const std::string& mistake) noexcept;

    // Keeps something that the host has released until nothing refers to it.
    void keep(std::unique_ptr<Held> held);

  private:
    [[noreturn]] void refuse_address(const void* address, uint64_t bytes, const std::string& what) const;
    void require_host(const void* pointer, const char* what) const;
    void tell_mistake();
    // Any thread.
    bool recording_here() const noexcept { return recorder_.load() == std::this_thread::get_id(); }
    void refuse_while_recording(tsr_simulated_operation operation) const;
    void spoil_recording(const char* reason) noexcept;
    void submit(Queue& queue, std::unique_ptr<Command> command);
    void put(Queue& queue, std::unique_ptr<Command> command);
    bool staged_at_once() noexcept;
    Record* hold_record(tsr_event event);
    void release_kept() noexcept;

    std::string id_;
    Control& control_;
    Options options_;
    tsr_device table_;
    AddressSpace memory_;
    std::atomic<bool> entered_{false};

    mutable std::mutex mutex_;  // events and mistake_, which any thread may ask for
    std::map<tsr_event, std::unique_ptr<Event>> events_;
    std::string mistake_;

    std::map<tsr_queue, std::unique_ptr<Queue>> queues_;
    std::map<tsr_recording, std::unique_ptr<Recording>> recordings_;
    std::vector<std::unique_ptr<Recording>> kept_recordings_;
    std::vector<std::unique_ptr<Held>> kept_;
    uint32_t next_queue_ = 0;

    // What is being captured; `spoilt_` says why it cannot be used, where there was memory for that.
    std::unique_ptr<Recording> captured_;
    Queue* captured_on_ = nullptr;
    std::atomic<std::thread::id> recorder_;  // none: nothing is being recorded
    bool is_spoilt_ = false;
    std::string spoilt_;

    uint64_t random_;      // decides which uploads from memory that is not page-locked are staged
    Scheduler scheduler_;  // last: its thread ends first
};

// The table with all functions; `without` leaves some out.
tsr_device make_table(const tsr_device_info& info, Device* device, uint32_t without) noexcept;

extern const tsr_device_provider kProvider;

template <class Body>
const tsr_status* Device::call(tsr_simulated_operation operation, Threads threads, Body&& body,
                               const char* op) noexcept {
    return sdk::guarded([&] {
        struct Entry {
            std::atomic<bool>* entered;
            ~Entry() {
                if (entered) entered->store(false, kHidden);
            }
        } entry{nullptr};
        if (threads == Threads::kOne) {
            if (entered_.exchange(true, kHidden))
                throw sdk::Failure(TSR_INTERNAL, id_ + ": called by two threads at once, which its functions forbid");
            entry.entered = &entered_;
        }
        try {
            tell_mistake();
            refuse_while_recording(operation);
            if (control_.begin(operation, op)) body();
        } catch (const std::exception& error) {
            if (recording_here()) spoil_recording(error.what());
            throw;
        }
    });
}

}  // namespace tessera::simulated
