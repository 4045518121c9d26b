// An opened device: the functions of the ABI with exceptions instead of statuses, and the objects created on it.
#pragma once

#include "core/base/error.hpp"
#include "core/base/plugin_call.hpp"
#include "core/plan/packing.hpp"

#include <tessera/device.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Bytes of a device's memory, as its driver counts them now.
struct DriverMemory {
    uint64_t free = 0;
    uint64_t total = 0;
};

// Functions throw Error naming the device and what it was to do. Everything made through it is released with it.
class OpenDevice {
  public:
    // `plugin`: the name of the provider's, which lives as long as the process. Throws Error(TSR_DEVICE_ERROR) for a
    // device that lacks functions.
    OpenDevice(const tsr_device_provider& provider, const tsr_device_info& info, const char* plugin);
    ~OpenDevice();
    OpenDevice(const OpenDevice&) = delete;
    OpenDevice& operator=(const OpenDevice&) = delete;

    const tsr_device_info& info() const noexcept { return *info_; }
    tsr_device* abi() const noexcept { return device_; }
    // Some call has told that the device is lost.
    bool is_lost() const noexcept { return lost_.load(); }
    // The error as it is to be thrown: one that tells of the device's loss also says what to do. For errors of kernels:
    // those of other calls have been through it.
    Error noted(const Error& error) const;

    // Zero bytes give nullptr.
    void* allocate(uint64_t bytes);
    // Of what allocate gave, when no work refers to it; nullptr does nothing.
    void release(void* block) noexcept;
    // Nothing if the device does not report it.
    std::optional<DriverMemory> memory() const;
    // False if the device cannot page-lock host memory, or refuses to.
    bool register_host(void* address, uint64_t bytes);
    // Of an address that register_host took, when no copy refers to it.
    void unregister_host(void* address) noexcept;
    // Page-locked host memory, aligned to 64 bytes; nullptr if the device has none, or refuses. The contents are
    // undefined.
    void* allocate_pinned(uint64_t bytes);

    tsr_queue create_queue();
    tsr_event create_event();

    void upload(tsr_queue queue, void* to, const void* from_host, uint64_t bytes);
    void download(tsr_queue queue, void* to_host, const void* from, uint64_t bytes);
    void copy(tsr_queue queue, void* to, const void* from, uint64_t bytes);
    // Whether copy_from_peer works between the two.
    bool reaches(const OpenDevice& peer) const;
    void copy_from_peer(tsr_queue queue, void* to, const OpenDevice& peer, const void* from, uint64_t bytes);

    void record(tsr_queue queue, tsr_event event);
    // Work that is put on the queue from now on starts after the event of `owner`. Where the two devices cannot wait
    // for each other the host waits.
    void wait_before(tsr_queue queue, OpenDevice& owner, tsr_event event);
    void wait(tsr_event event);
    void wait_queue(tsr_queue queue);
    // Waits for the queue; returns the error if it failed.
    std::optional<Error> drain(tsr_queue queue) noexcept;

    bool has_recordings() const noexcept { return device_->begin_recording != nullptr; }
    void begin_recording(tsr_queue queue);
    tsr_recording end_recording(tsr_queue queue);
    void discard_recording(tsr_queue queue) noexcept;
    void replay(tsr_queue queue, tsr_recording recording);

    // Of loading.
    tsr_queue loading_queue() const noexcept { return loading_queue_; }
    // Copies on it and waits; after a failure, too, nothing is under way.
    void upload_now(void* to, std::span<const std::byte> from_host);
    // The same through `staging`, memory of the device with room for the rows, from which it packs them to `to`: whole
    // groups of rows, of a layout that packs on this device.
    void pack_now(const Packing& packing, void* to, void* staging, std::span<const std::byte> rows);
    // Puts the packing of groups of canonical rows, memory of the device, on it.
    void pack(const Packing& packing, void* to, const void* rows, uint64_t groups);
    // Calls body(), which puts work on it, and waits.
    template <typename Body>
    void load_now(Body&& body) {
        try {
            body();
            wait_queue(loading_queue_);
        } catch (...) {
            // What was put on the queue before a failure uses memory that the caller gives back.
            drain(loading_queue_);
            throw;
        }
    }

  private:
    PluginCall call_of(const char* function) const noexcept;
    template <typename Function>
    void call(const char* function, std::string_view what, Function&& body) const {
        call(call_of(function), what, body);
    }
    template <typename Function>
    void call(const PluginCall& made, std::string_view what, Function&& body) const;
    template <typename Function>
    void call_quietly(const char* function, Function&& body) const noexcept;
    void close() noexcept;

    const tsr_device_info* info_;
    const char* plugin_;
    tsr_device* device_ = nullptr;
    tsr_queue loading_queue_ = nullptr;
    mutable std::atomic<bool> lost_{false};
    std::vector<void*> blocks_, registered_, pinned_;
    std::vector<tsr_queue> queues_;
    std::vector<tsr_event> events_;
    std::vector<tsr_recording> recordings_;
};

}  // namespace tessera
