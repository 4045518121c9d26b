#include "device_check.hpp"

#include <tessera/cpp/device_fault.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>

namespace tessera::conformance {
namespace {

constexpr uint64_t kBytes = (1 << 20) + 52;  // not a whole number of anything

[[noreturn]] void wrong(const std::string& text) {
    throw std::runtime_error(text);
}

std::string text_of(const tsr_status* status) {
    std::string text = status->message ? status->message : "no message";
    if (status->destroy) status->destroy(status);
    return text;
}

void take(const tsr_status* status, const std::string& function) {
    if (status) wrong(function + " failed: " + text_of(status));
}

void must_refuse(const tsr_status* status, const std::string& what) {
    if (!status) wrong(what + " succeeded; it must be refused");
    text_of(status);
}

// Objects of a device that are given back in the end.
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

std::vector<unsigned char> pattern(uint64_t bytes, unsigned seed) {
    std::vector<unsigned char> values(bytes);
    for (uint64_t i = 0; i < bytes; ++i) values[i] = static_cast<unsigned char>(i * 131 + i / 251 + seed);
    return values;
}

void expect_same(const unsigned char* got, const std::vector<unsigned char>& wanted, const std::string& what) {
    const auto at = std::mismatch(wanted.begin(), wanted.end(), got).first;
    if (at != wanted.end()) wrong(what + ": byte " + std::to_string(at - wanted.begin()) + " is wrong");
}

void memory_and_copies(tsr_device& device, tsr_device&) {
    Queue queue(device);
    Memory a(device, kBytes), b(device, kBytes), small(device, 1);
    const auto address = [](const Memory& m) { return reinterpret_cast<uintptr_t>(m.get()); };
    if (address(a) < address(b) + kBytes && address(b) < address(a) + kBytes) wrong("two allocations overlap");
    const std::vector<unsigned char> data = pattern(kBytes, 1);
    std::vector<unsigned char> back(kBytes + 64, 0xEE);
    take(device.upload(&device, queue, a.get(), data.data(), kBytes), "upload");
    take(device.copy(&device, queue, b.get(), a.get(), kBytes), "copy");
    take(device.download(&device, queue, back.data(), b.get(), kBytes), "download");
    queue.wait();
    expect_same(back.data(), data, "what was uploaded, copied and downloaded");
    if (back[kBytes] != 0xEE) wrong("download writes past the bytes that were asked for");
    // Parts, at odd places.
    auto* at = static_cast<unsigned char*>(a.get());
    take(device.upload(&device, queue, at + 1001, data.data(), 77), "upload");
    take(device.copy(&device, queue, static_cast<unsigned char*>(b.get()) + 3, at + 1001, 77), "copy");
    take(device.download(&device, queue, back.data(), b.get(), 100), "download");
    queue.wait();
    expect_same(back.data() + 3, {data.begin(), data.begin() + 77}, "a part that was copied");
    expect_same(back.data() + 80, {data.begin() + 80, data.begin() + 100}, "what lies behind a part");
}

void pinned_memory(tsr_device& device, tsr_device&) {
    Queue queue(device);
    Memory there(device, kBytes);
    HostMemory from(device, kBytes), to(device, kBytes);
    const std::vector<unsigned char> data = pattern(kBytes, 2);
    std::ranges::copy(data, from.get());
    take(device.upload(&device, queue, there.get(), from.get(), kBytes), "upload");
    take(device.download(&device, queue, to.get(), there.get(), kBytes), "download");
    queue.wait();
    expect_same(to.get(), data, "what went through page-locked memory");
}

void registered_memory(tsr_device& device, tsr_device&) {
    constexpr uint64_t kPage = 4096, kSize = 64 * kPage;
    const std::unique_ptr<void, void (*)(void*)> host(std::aligned_alloc(kPage, kSize), std::free);
    const std::vector<unsigned char> data = pattern(kSize, 3);
    std::ranges::copy(data, static_cast<unsigned char*>(host.get()));
    take(device.register_host(&device, host.get(), kSize), "register_host");
    {
        Queue queue(device);
        Memory there(device, kSize);
        std::vector<unsigned char> back(kSize);
        take(device.upload(&device, queue, there.get(), host.get(), kSize), "upload from registered memory");
        take(device.download(&device, queue, back.data(), there.get(), kSize), "download");
        queue.wait();
        expect_same(back.data(), data, "what came from registered memory");
    }
    device.unregister_host(&device, host.get());
}

void memory_info(tsr_device& device, tsr_device&) {
    struct Answer {
        uint64_t free = 0, total = 0;
    };
    const auto ask = [&] {
        Answer answer;
        take(device.memory_info(&device, &answer.free, &answer.total), "memory_info");
        return answer;
    };
    constexpr uint64_t kMuch = 16 << 20;
    const Answer before = ask();
    if (before.total == 0 || before.free > before.total)
        wrong("memory_info: " + std::to_string(before.free) + " bytes free of " + std::to_string(before.total));
    if (before.free < 2 * kMuch) return;
    const Memory some(device, kMuch);
    const Answer after = ask();
    if (after.total != before.total) wrong("memory_info: the total changes with an allocation");
    // Drivers round, and others may use the device, too.
    if (after.free > before.free - kMuch / 2) {
        wrong("memory_info: " + std::to_string(before.free) + " bytes were free before " + std::to_string(kMuch) +
              " were allocated, and " + std::to_string(after.free) + " afterwards");
    }
}

void refuses_too_much(tsr_device& device, tsr_device&) {
    void* address = nullptr;
    must_refuse(device.allocate(&device, uint64_t{1} << 60, &address), "allocating 2^60 bytes");
    Memory after(device, 4096);
}

void events(tsr_device& device, tsr_device&) {
    Queue first(device), second(device);
    Event never(device, false), done(device, false);
    uint32_t complete = 0;
    take(device.query_event(&device, never, &complete), "query_event");
    if (complete != 1) wrong("an event that was never recorded is not complete");
    take(device.wait_event(&device, never), "wait_event of an event that was never recorded");
    take(device.queue_wait_event(&device, first, &device, never),
         "queue_wait_event of an event that was never recorded");

    Memory a(device, kBytes), b(device, kBytes);
    HostMemory from(device, kBytes), to(device, kBytes);
    // Each round another content: what is left of the round before must not pass for it.
    for (unsigned round = 0; round < 8; ++round) {
        const std::vector<unsigned char> data = pattern(kBytes, 10 + round);
        std::ranges::copy(data, from.get());
        take(device.upload(&device, first, a.get(), from.get(), kBytes), "upload");
        take(device.copy(&device, first, b.get(), a.get(), kBytes), "copy");
        take(device.record_event(&device, first, done), "record_event");
        take(device.queue_wait_event(&device, second, &device, done), "queue_wait_event");
        take(device.download(&device, second, to.get(), b.get(), kBytes), "download");
        take(device.record_event(&device, second, never), "record_event");
        take(device.wait_event(&device, never), "wait_event");
        take(device.query_event(&device, never, &complete), "query_event");
        if (complete != 1) wrong("an event that was waited for is not complete");
        take(device.query_event(&device, done, &complete), "query_event");
        if (complete != 1) wrong("an event is not complete although work that waited for it is");
        expect_same(to.get(), data, "what a second queue read after an event of the first");
    }
}

void timed_events(tsr_device& device, tsr_device&) {
    using Clock = std::chrono::steady_clock;
    Queue queue(device);
    Event begin(device, true), middle(device, true), end(device, true);
    Memory a(device, kBytes), b(device, kBytes);
    const auto copies = [&](int count) {
        for (int i = 0; i < count; ++i) take(device.copy(&device, queue, b.get(), a.get(), kBytes), "copy");
    };
    const auto start = Clock::now();
    take(device.record_event(&device, queue, begin), "record_event");
    copies(4);
    take(device.record_event(&device, queue, middle), "record_event");
    copies(8);
    take(device.record_event(&device, queue, end), "record_event");
    take(device.wait_event(&device, end), "wait_event");
    const double passed = std::chrono::duration<double>(Clock::now() - start).count();
    const auto seconds = [&](tsr_event from, tsr_event to) {
        double answer = -1;
        take(device.event_seconds(&device, from, to, &answer), "event_seconds");
        if (!(answer >= 0)) wrong("event_seconds: some copies took " + std::to_string(answer) + " s");
        return answer;
    };
    const double first = seconds(begin, middle), second = seconds(middle, end), both = seconds(begin, end);
    // Clocks of devices tick in steps of up to a few microseconds.
    constexpr double kTick = 20e-6;
    if (both > 1.01 * passed + kTick) {
        wrong("event_seconds: copies took " + std::to_string(both) + " s, of " + std::to_string(passed) +
              " that passed on the host");
    }
    if (std::abs(first + second - both) > kTick + 0.01 * both) {
        wrong("event_seconds: " + std::to_string(first) + " s and then " + std::to_string(second) + " s are not " +
              std::to_string(both) + " s");
    }
}

// ---- two devices ----

void peers(tsr_device& device, tsr_device& peer) {
    const uint32_t answer = device.can_reach_peer(&device, &peer);
    if (answer > 1) wrong("can_reach_peer answers " + std::to_string(answer) + ", expected 0 or 1");
    if (device.can_reach_peer(&device, &peer) != answer) wrong("can_reach_peer answers another thing the second time");
    Queue here(device), there(peer);
    Memory to(device, kBytes), from(peer, kBytes);
    if (answer == 0) {
        const tsr_status* status = device.copy_from_peer(&device, here, to.get(), &peer, from.get(), kBytes);
        must_refuse(status, "copying from a peer that cannot be reached");
        return;
    }
    // The peer overwrites what is copied as soon as an event lets it: nothing but events orders the two.
    Event written(peer, false), copied(device, false);
    constexpr unsigned kRounds = 6;
    HostMemory sources(peer, kRounds * kBytes), results(device, kRounds * kBytes);
    std::fill_n(results.get(), kRounds * kBytes, static_cast<unsigned char>(0xEE));
    for (unsigned round = 0; round < kRounds; ++round) {
        unsigned char* const source = sources.get() + round * kBytes;
        std::ranges::copy(pattern(kBytes, 50 + round), source);
        take(peer.queue_wait_event(&peer, there, &device, copied), "queue_wait_event of a peer's event");
        take(peer.upload(&peer, there, from.get(), source, kBytes), "upload");
        take(peer.record_event(&peer, there, written), "record_event");
        take(device.queue_wait_event(&device, here, &peer, written), "queue_wait_event of a peer's event");
        take(device.copy_from_peer(&device, here, to.get(), &peer, from.get(), kBytes), "copy_from_peer");
        take(device.record_event(&device, here, copied), "record_event");
        take(device.download(&device, here, results.get() + round * kBytes, to.get(), kBytes), "download");
    }
    here.wait();
    there.wait();
    for (unsigned round = 0; round < kRounds; ++round) {
        expect_same(results.get() + round * kBytes, pattern(kBytes, 50 + round),
                    "what was copied from a peer in round " + std::to_string(round));
    }
    // A part, at odd places.
    std::vector<unsigned char> back(kBytes);
    take(device.copy_from_peer(&device, here, static_cast<unsigned char*>(to.get()) + 5, &peer,
                               static_cast<unsigned char*>(from.get()) + 1001, 77),
         "copy_from_peer");
    take(device.download(&device, here, back.data(), to.get(), kBytes), "download");
    here.wait();
    std::vector<unsigned char> wanted = pattern(kBytes, 50 + kRounds - 1);
    const std::vector<unsigned char> part(wanted.begin() + 1001, wanted.begin() + 1078);
    std::ranges::copy(part, wanted.begin() + 5);
    expect_same(back.data(), wanted, "a part that was copied from a peer");
}

// Work of two devices that meets in host memory, as the core does it where peers do not reach each other.
void events_between_devices(tsr_device& device, tsr_device& peer) {
    if (std::strcmp(device.interop, peer.interop) != 0) wrong("two devices of one provider have different interops");
    Queue here(device), there(peer);
    Memory from(device, kBytes), to(peer, kBytes);
    HostMemory first(device, kBytes), meeting(device, kBytes), last(peer, kBytes);
    Event sent(device, false), received(peer, false);
    for (unsigned round = 0; round < 6; ++round) {
        const std::vector<unsigned char> data = pattern(kBytes, 70 + round);
        std::ranges::copy(data, first.get());
        take(device.upload(&device, here, from.get(), first.get(), kBytes), "upload");
        take(device.download(&device, here, meeting.get(), from.get(), kBytes), "download");
        take(device.record_event(&device, here, sent), "record_event");
        take(peer.queue_wait_event(&peer, there, &device, sent), "queue_wait_event of a peer's event");
        take(peer.upload(&peer, there, to.get(), meeting.get(), kBytes), "upload");
        take(peer.download(&peer, there, last.get(), to.get(), kBytes), "download");
        take(peer.record_event(&peer, there, received), "record_event");
        take(device.queue_wait_event(&device, here, &peer, received), "queue_wait_event of a peer's event");
        take(device.record_event(&device, here, sent), "record_event");
        take(device.wait_event(&device, sent), "wait_event");
        expect_same(last.get(), data, "what a device read after an event of its peer");
    }
}

void native_handles(tsr_device& device, tsr_device& peer) {
    const auto distinct = [](const void* a, const void* b, const std::string& what) {
        if (!a || !b) wrong(what + " is NULL");
        if (a == b) wrong(what + " is that of another one, too");
    };
    if (device.native_context) {
        // Two devices that are one card may share a context, as a driver's primary one.
        if (!device.native_context(&device) || !peer.native_context(&peer)) wrong("native_context is NULL");
        if (device.native_context(&device) != device.native_context(&device)) wrong("native_context changes");
    }
    if (device.native_queue) {
        Queue first(device), second(device);
        distinct(device.native_queue(&device, first), device.native_queue(&device, second), "native_queue");
        if (device.native_queue(&device, first) != device.native_queue(&device, first)) wrong("native_queue changes");
    }
    if (device.native_event) {
        Event first(device, false), second(device, false);
        distinct(device.native_event(&device, first), device.native_event(&device, second), "native_event");
        if (device.native_event(&device, first) != device.native_event(&device, first)) wrong("native_event changes");
    }
}

void recordings(tsr_device& device, tsr_device&) {
    Queue queue(device);
    Memory a(device, kBytes), b(device, kBytes);
    HostMemory from(device, kBytes), to(device, kBytes);
    take(device.begin_recording(&device, queue), "begin_recording");
    take(device.upload(&device, queue, a.get(), from.get(), kBytes), "upload while recording");
    take(device.copy(&device, queue, b.get(), a.get(), kBytes), "copy while recording");
    take(device.download(&device, queue, to.get(), b.get(), kBytes), "download while recording");
    tsr_recording recording = nullptr;
    take(device.end_recording(&device, queue, &recording), "end_recording");
    if (!recording) wrong("end_recording succeeded, and the recording is NULL");
    queue.wait();
    for (unsigned round = 0; round < 4; ++round) {
        const std::vector<unsigned char> data = pattern(kBytes, 30 + round);
        std::ranges::copy(data, from.get());
        std::fill_n(to.get(), kBytes, static_cast<unsigned char>(0xEE));
        take(device.replay(&device, queue, recording), "replay");
        queue.wait();
        expect_same(to.get(), data, "what a recording did in round " + std::to_string(round));
    }
    device.destroy_recording(&device, recording);
}

// After each refusal what was captured is discarded, and the queue works as before.
void recordings_refuse(tsr_device& device, tsr_device&) {
    Queue queue(device), other(device);
    Event event(device, false);
    Memory memory(device, kBytes);
    std::vector<unsigned char> pageable(kBytes);
    void* address = nullptr;
    const auto refused = [&](const char* what, auto&& call) {
        take(device.begin_recording(&device, queue), "begin_recording");
        const tsr_status* status = call();
        const tsr_status* ended = device.end_recording(&device, queue, nullptr);
        if (ended) text_of(ended);
        must_refuse(status, std::string(what) + " while recording");
        take(device.upload(&device, queue, memory.get(), pageable.data(), 64),
             "upload after a recording that was discarded");
        queue.wait();
    };
    refused("waiting for the queue", [&] { return device.wait_queue(&device, queue); });
    refused("recording an event", [&] { return device.record_event(&device, queue, event); });
    refused("waiting for an event", [&] { return device.queue_wait_event(&device, queue, &device, event); });
    refused("allocating", [&] { return device.allocate(&device, 4096, &address); });
    if (device.allocate_pinned) {
        refused("an upload of memory that is not page-locked",
                [&] { return device.upload(&device, queue, memory.get(), pageable.data(), kBytes); });
    }
}

const DeviceCheck kChecks[] = {
    {"memory and copies", memory_and_copies, nullptr},
    {"page-locked memory", pinned_memory, [](const tsr_device& d) { return d.allocate_pinned != nullptr; }},
    {"registered memory", registered_memory, [](const tsr_device& d) { return d.register_host != nullptr; }},
    {"memory info", memory_info, [](const tsr_device& d) { return d.memory_info != nullptr; }},
    {"allocation that cannot be had", refuses_too_much, nullptr},
    {"events between queues", events, nullptr},
    {"timed events", timed_events, [](const tsr_device& d) { return d.event_seconds != nullptr; }},
    {"peers", peers, [](const tsr_device& d) { return d.can_reach_peer != nullptr; }},
    {"events between devices", events_between_devices, nullptr},
    {"native handles", native_handles,
     [](const tsr_device& d) { return d.native_context || d.native_queue || d.native_event; }},
    {"recordings", recordings, [](const tsr_device& d) { return d.begin_recording != nullptr; }},
    {"what recordings refuse", recordings_refuse, [](const tsr_device& d) { return d.begin_recording != nullptr; }},
};

class Opened {
  public:
    Opened(const tsr_device_provider& provider, const tsr_device_info& info) {
        take(provider.open(&provider, &info, &device_), "open");
        if (!device_) wrong("open succeeded, and the device is NULL");
        if (std::string why = sdk::device_fault(*device_); !why.empty()) wrong(why);
    }
    ~Opened() {
        if (device_ && device_->close) device_->close(device_);
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    tsr_device& operator*() const { return *device_; }

  private:
    tsr_device* device_ = nullptr;
};

std::string why_not_matched(const tsr_device_provider& provider, const tsr_device_info& info) {
    char reason[TSR_REASON_BYTES] = "";
    const uint32_t answer = provider.match(&provider, &info, reason, sizeof reason);
    if (answer > 1) wrong("match answers " + std::to_string(answer) + ", expected 0 or 1");
    if (answer == 1) return {};
    if (!std::memchr(reason, '\0', sizeof reason)) wrong("match: the reason has no end");
    return reason[0] ? reason : "no reason given";
}

void upload_all(tsr_device& device, tsr_queue queue, void* to, const std::vector<std::byte>& from) {
    take(device.upload(&device, queue, to, from.data(), from.size()), "upload");
}

std::vector<std::byte> download_all(tsr_device& device, Queue& queue, const void* from, size_t bytes) {
    std::vector<std::byte> all(bytes);
    take(device.download(&device, queue, all.data(), from, bytes), "download");
    queue.wait();
    return all;
}

constexpr uint64_t kGuard = 4096;
constexpr std::byte kGuardByte{0xA5};

// Puts the conversion on a queue, between memory that is full of guard bytes, and returns what it wrote. It may not
// change what it reads, nor write past the `bytes` that it makes.
template <typename Convert>
std::vector<std::byte> converted(tsr_device& device, const std::vector<std::byte>& from, uint64_t bytes,
                                 const std::string& what, Convert&& convert) {
    Queue queue(device);
    std::vector<std::byte> source = from, target(bytes + kGuard, kGuardByte);
    source.resize(from.size() + kGuard, kGuardByte);
    Memory there(device, source.size()), made(device, target.size());
    upload_all(device, queue, there.get(), source);
    upload_all(device, queue, made.get(), target);
    queue.wait();
    take(convert(queue, there.get(), made.get()), what);
    queue.wait();
    if (download_all(device, queue, there.get(), source.size()) != source) wrong(what + " writes to what it reads");
    std::vector<std::byte> result = download_all(device, queue, made.get(), target.size());
    if (std::any_of(result.end() - kGuard, result.end(), [](std::byte b) { return b != kGuardByte; }))
        wrong(what + " writes past the end of its target");
    result.resize(bytes);
    return result;
}

int64_t groups_of(const Operand& rows, const tsr_layout& layout) {
    return static_cast<int64_t>(rows.rows() / layout.group_rows);
}

std::vector<std::byte> packed_there(tsr_device& device, const Operand& rows, const tsr_layout& layout) {
    const int64_t elements = rows.tensor.dims[0], groups = groups_of(rows, layout);
    const uint64_t bytes = layout.group_bytes(&layout, elements) * static_cast<uint64_t>(groups);
    return converted(device, rows.bytes, bytes, "enqueue_pack", [&](tsr_queue queue, const void* from, void* to) {
        return layout.enqueue_pack(&layout, &device, queue, elements, groups, from, to);
    });
}

std::vector<std::byte> unpacked_there(tsr_device& device, const Operand& rows, const tsr_layout& layout,
                                      const std::vector<std::byte>& packed) {
    const int64_t elements = rows.tensor.dims[0], groups = groups_of(rows, layout);
    return converted(device, packed, rows.bytes.size(), "enqueue_unpack",
                     [&](tsr_queue queue, const void* from, void* to) {
                         return layout.enqueue_unpack(&layout, &device, queue, elements, groups, from, to);
                     });
}

// In these layouts, which the node's tensors have; also as a recording, where the device makes them. `wanted` as
// run_reference gives it.
void run_on_device(tsr_device& device, const tsr_device_info& info, const tsr_kernel& kernel, const Case& of,
                   const tsr_node& node, uint64_t workspace_bytes, const Layouts& layouts,
                   const std::vector<Result>& wanted) {
    Queue queue(device);
    void* state = nullptr;
    take(kernel.prepare(&kernel, &node, &info, &device, &state), "prepare");
    const auto release = [&](void*) { kernel.release(&kernel, state); };
    const std::unique_ptr<void, decltype(release)> prepared(&state, release);

    const std::vector<size_t> in_place = of.outputs_in_place();
    std::vector<std::vector<std::byte>> initial(of.operands());
    std::vector<std::unique_ptr<Memory>> memory(of.operands());
    std::vector<void*> data;
    for (size_t i = 0; i < of.operands(); ++i) {
        const Operand& operand = of.operand(i);
        if (operand.tensor.type == TSR_TYPE_NONE) {
            data.push_back(nullptr);
        } else if (operand.shares_input >= 0) {
            data.push_back(data[static_cast<size_t>(operand.shares_input)]);
        } else {
            initial[i] = layouts[i] && !layouts[i]->pack ? packed_there(device, operand, *layouts[i])
                                                         : packed(operand, layouts[i]);
            initial[i].resize(initial[i].size() + kGuard, kGuardByte);
            memory[i] = std::make_unique<Memory>(device, initial[i].size());
            data.push_back(memory[i]->get());
        }
    }
    Memory workspace(device, workspace_bytes + kGuard), ranges_there(device, sizeof(Ranges));
    HostMemory ranges_here(device, sizeof(Ranges));

    for (const bool recorded : {false, true}) {
        if (recorded && !device.begin_recording) continue;
        for (size_t r = 0; r < of.ranges.size(); ++r) {
            const Ranges& ranges = of.ranges[r];
            for (size_t i = 0; i < of.operands(); ++i) {
                if (memory[i]) upload_all(device, queue, data[i], initial[i]);
            }
            std::memcpy(ranges_here.get(), ranges.data(), sizeof ranges);
            take(device.upload(&device, queue, ranges_there.get(), ranges_here.get(), sizeof ranges), "upload");
            queue.wait();
            std::array<int32_t, TSR_RANGE_COUNT> bounds{};
            for (size_t k = 0; k < bounds.size(); ++k) {
                for (const Ranges& any : of.ranges) bounds[k] = std::max(bounds[k], any[k].end - any[k].begin);
            }
            tsr_launch launch{};
            launch.struct_size = sizeof launch;
            launch.data = data.data();
            launch.ranges = static_cast<const tsr_range*>(ranges_there.get());
            launch.row_bounds = bounds.data();
            launch.token_bound = 1 << 16;
            launch.workspace = workspace.get();
            launch.queue = queue;
            tsr_recording recording = nullptr;
            if (recorded) take(device.begin_recording(&device, queue), "begin_recording");
            take(kernel.enqueue(&kernel, state, &launch), recorded ? "enqueue while recording" : "enqueue");
            if (recorded) {
                take(device.end_recording(&device, queue, &recording), "end_recording");
                take(device.replay(&device, queue, recording), "replay");
            }
            queue.wait();
            if (recorded) device.destroy_recording(&device, recording);
            Result result(of.operands());
            for (size_t i = 0; i < of.operands(); ++i) {
                const int shared = of.operand(i).shares_input;
                const size_t from = shared >= 0 ? static_cast<size_t>(shared) : i;
                if (!memory[from]) continue;
                std::vector<std::byte> all = download_all(device, queue, data[i], initial[from].size());
                if (!std::equal(all.end() - kGuard, all.end(), initial[from].end() - kGuard))
                    wrong("it writes past the end of operand " + std::to_string(i) + " (" + of.operand(i).name + ")");
                const bool constant = !of.operand(i).is_output && std::ranges::find(in_place, i) == in_place.end();
                if (constant && all != initial[from])
                    wrong("it writes to operand " + std::to_string(i) + " (" + of.operand(i).name + ")");
                all.resize(all.size() - kGuard);
                result[i] = layouts[i] ? unpacked(of.operand(i), layouts[i], all.data()) : std::move(all);
            }
            check_untouched(of, ranges, result);
            if (!wanted.empty()) compare(of, ranges, result, wanted[r]);
        }
    }
}

}  // namespace

std::span<const DeviceCheck> device_checks() {
    return kChecks;
}

Verdict check_device(const tsr_device_provider& provider, const tsr_device_info& info, const tsr_device_info& peer,
                     const DeviceCheck& check) {
    try {
        for (const tsr_device_info* one : {&info, &peer}) {
            if (const std::string why = why_not_matched(provider, *one); !why.empty())
                return {Verdict::kNotClaimed, why};
        }
        const Opened device(provider, info), second(provider, peer);
        if (check.applies && !check.applies(*device)) return {Verdict::kNotClaimed, "the device does not offer it"};
        check.run(*device, *second);
        return {};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

std::shared_ptr<const void> keep_open(const tsr_device_provider& provider, const tsr_device_info& info) noexcept {
    try {
        if (!why_not_matched(provider, info).empty()) return nullptr;
        return std::make_shared<Opened>(provider, info);
    } catch (const std::exception&) {
        return nullptr;  // the cases say why
    }
}

Verdict check_device_layout(const tsr_device_provider& provider, const tsr_device_info& info,
                            const tsr_layout& layout) {
    try {
        if (const std::string why = why_not_matched(provider, info); !why.empty()) return {Verdict::kNotClaimed, why};
        const Opened opened(provider, info);
        tsr_device& device = *opened;
        bool compared = false;
        for_each_packable(layout, [&](const Operand& rows) {
            const std::vector<std::byte> here = layout.pack ? packed(rows, &layout) : std::vector<std::byte>();
            std::vector<std::byte> there = here;
            if (layout.enqueue_pack) {
                there = packed_there(device, rows, layout);
                if (layout.pack && there != here) wrong("enqueue_pack gives other bytes than pack");
                if (layout.unpack && unpacked(rows, &layout, there.data()) != rows.bytes)
                    wrong("unpack does not give back the rows that enqueue_pack packed");
            }
            if (layout.enqueue_unpack && !there.empty() && unpacked_there(device, rows, layout, there) != rows.bytes)
                wrong("enqueue_unpack does not give back the rows that were packed");
            const int functions = !!layout.pack + !!layout.unpack + !!layout.enqueue_pack + !!layout.enqueue_unpack;
            compared = functions > 1 && !there.empty();
        });
        return {Verdict::kPassed, compared ? "" : "nothing to compare it with"};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

Verdict check_device_kernel(const Setting& setting, const tsr_device_provider& provider, const tsr_device_info& info,
                            const tsr_kernel& kernel, const Case& of) {
    try {
        if (const std::string why = why_not_matched(provider, info); !why.empty()) return {Verdict::kNotClaimed, why};
        CaseNode node(of);
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        take(kernel.plan(&kernel, &node.node(), &info, &plan), "plan");
        if (std::string fault = answer_fault(setting, plan, node.node(), provider.interop); !fault.empty())
            wrong(fault);
        if (!plan.supported) return {Verdict::kNotClaimed, plan.reason};
        const std::vector<Layouts> choices = layout_choices(setting, of, plan, provider.interop);
        if (choices.empty()) return {Verdict::kNotClaimed, "none of its layouts can hold these rows"};
        std::string not_compared;
        const std::vector<Result> wanted = run_reference(setting, of, not_compared);

        for (const Layouts& layouts : choices) {
            for (size_t i = 0; i < layouts.size(); ++i) node.tensor(i).layout = layouts[i] ? layouts[i]->name : "";
            try {
                const Opened opened(provider, info);
                run_on_device(*opened, info, kernel, of, node.node(), plan.workspace_bytes, layouts, wanted);
            } catch (const std::runtime_error& error) {
                wrong(layout_text(layouts) + ": " + error.what());
            }
        }
        return {Verdict::kPassed, not_compared};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

}  // namespace tessera::conformance
