// Objects of a device for the time of a check. Functions throw std::runtime_error that says what the device did wrong.
#pragma once

#include "wrong.hpp"

#include <tessera/cpp/device_fault.hpp>
#include <tessera/cpp/float_state.hpp>
#include <tessera/device.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::conformance {

// The device failed for good: what is done on it from now on fails for that alone.
struct DeviceLost : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// How this process computes; calls must leave it so.
inline const sdk::FloatState kUsualFloats = sdk::FloatState::of_this_thread();

// Of a call that has returned to this thread.
inline void take(const tsr_status* status, const std::string& function) {
    if (const sdk::FloatState after = sdk::FloatState::of_this_thread(); after != kUsualFloats) {
        kUsualFloats.restore();
        if (status) text_of(status);
        wrong(function + " leaves its thread computing differently: " + kUsualFloats.difference(after));
    }
    if (!status) return;
    const bool lost = status->code == TSR_DEVICE_LOST;
    const std::string text = function + " failed: " + text_of(status);
    if (lost) throw DeviceLost(text);
    wrong(text);
}

class Queue {
  public:
    explicit Queue(tsr_device& device) : device_(device) {
        take(device.create_queue(&device, &queue_), "create_queue");
    }
    ~Queue() { device_.destroy_queue(&device_, queue_); }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    operator tsr_queue() const { return queue_; }
    void wait() { take(device_.wait_queue(&device_, queue_), "wait_queue"); }

  private:
    tsr_device& device_;
    tsr_queue queue_ = nullptr;
};

class Event {
  public:
    Event(tsr_device& device, bool timed) : device_(device) {
        take(device.create_event(&device, timed, &event_), "create_event");
    }
    ~Event() { device_.destroy_event(&device_, event_); }
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    operator tsr_event() const { return event_; }

  private:
    tsr_device& device_;
    tsr_event event_ = nullptr;
};

class Memory {
  public:
    Memory(tsr_device& device, uint64_t bytes) : device_(device) {
        take(device.allocate(&device, bytes, &address_), "allocate");
        if (std::string why = sdk::address_fault(device, address_, bytes); !why.empty()) wrong(why);
    }
    ~Memory() { device_.release(&device_, address_); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    void* get() const { return address_; }

  private:
    tsr_device& device_;
    void* address_ = nullptr;
};

// Page-locked if the device offers it.
class HostMemory {
  public:
    HostMemory(tsr_device& device, uint64_t bytes) : device_(device) {
        if (device.allocate_pinned) {
            take(device.allocate_pinned(&device, bytes, &address_), "allocate_pinned");
            if (!address_) wrong("allocate_pinned succeeded, and the address is NULL");
            if (reinterpret_cast<uintptr_t>(address_) % 64 != 0)
                wrong("allocate_pinned: the address is not aligned to 64");
        } else {
            own_.resize(bytes);
            address_ = own_.data();
        }
    }
    ~HostMemory() {
        if (device_.allocate_pinned) device_.release_pinned(&device_, address_);
    }
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    unsigned char* get() const { return static_cast<unsigned char*>(address_); }

  private:
    tsr_device& device_;
    void* address_ = nullptr;
    std::vector<unsigned char> own_;
};

// Whether operands lie between bytes of a pattern, or have allocations of exactly their size.
enum class Placement { kGuarded, kExact };

// Memory of a device in which writes outside what was asked for are noticed: in the guards, if it has them; else only
// by a device that checks addresses, which tells of reads as well. The guards are no numbers in any type.
class GuardedMemory {
  public:
    // `name`: for messages, "operand 1 (weight)".
    GuardedMemory(tsr_device& device, std::string name, uint64_t bytes, Placement placement)
        : device_(device),
          name_(std::move(name)),
          bytes_(bytes),
          guard_(placement == Placement::kGuarded ? kGuard : 0),
          memory_(device, std::max<uint64_t>(bytes + 2 * guard_, 1)) {}

    const std::string& name() const noexcept { return name_; }
    // As aligned as the device's allocations are, up to 4,096 bytes.
    void* data() const noexcept { return at(guard_); }

    // Puts the contents on the queue, and guards. Waits, since both are pageable memory.
    void fill(Queue& queue, const std::vector<std::byte>& contents) {
        fill_guards(queue);
        upload(queue, data(), contents);
    }
    // The rest stays as it is; of new memory that is what nobody has written.
    void fill_guards(Queue& queue) {
        if (guard_ == 0) return;
        const std::vector<std::byte> guard(guard_, kGuardByte);
        upload(queue, at(0), guard);
        upload(queue, at(guard_ + bytes_), guard);
    }
    // The contents, after check_guards.
    std::vector<std::byte> download(Queue& queue) {
        check_guards(queue);
        return download(queue, guard_, bytes_);
    }
    void check_guards(Queue& queue) {
        if (guard_ == 0) return;
        const auto written = [](std::byte b) { return b != kGuardByte; };
        const std::vector<std::byte> before = download(queue, 0, guard_),
                                     past = download(queue, guard_ + bytes_, guard_);
        if (const auto found = std::find_if(before.rbegin(), before.rend(), written); found != before.rend())
            wrong("writes " + std::to_string(found - before.rbegin() + 1) + " bytes before the start of " + name_);
        if (const auto found = std::ranges::find_if(past, written); found != past.end())
            wrong("writes " + std::to_string(found - past.begin()) + " bytes past the end of " + name_);
    }

  private:
    static constexpr uint64_t kGuard = 4096;
    static constexpr std::byte kGuardByte{0xFF};

    void* at(uint64_t offset) const noexcept { return static_cast<std::byte*>(memory_.get()) + offset; }
    void upload(Queue& queue, void* to, const std::vector<std::byte>& from) {
        if (from.empty()) return;
        take(device_.upload(&device_, queue, to, from.data(), from.size()), "upload");
        queue.wait();
    }
    std::vector<std::byte> download(Queue& queue, uint64_t offset, uint64_t bytes) {
        std::vector<std::byte> all(bytes);
        if (bytes > 0) take(device_.download(&device_, queue, all.data(), at(offset), bytes), "download");
        queue.wait();
        return all;
    }

    tsr_device& device_;
    std::string name_;
    uint64_t bytes_, guard_;
    Memory memory_;
};

}  // namespace tessera::conformance
