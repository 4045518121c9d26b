#include "device_check.hpp"

#include "device_memory.hpp"

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

void must_refuse(const tsr_status* status, const std::string& what) {
    if (!status) wrong(what + " succeeded; it must be refused");
    text_of(status);
}

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
    struct MemoryInfo {
        uint64_t free = 0, total = 0;
    };
    const auto ask = [&] {
        MemoryInfo info;
        take(device.memory_info(&device, &info.free, &info.total), "memory_info");
        return info;
    };
    constexpr uint64_t kMuch = 16 << 20;
    const MemoryInfo before = ask();
    if (before.total == 0 || before.free > before.total)
        wrong("memory_info: " + std::to_string(before.free) + " bytes free of " + std::to_string(before.total));
    if (before.free < 2 * kMuch) return;
    const Memory some(device, kMuch);
    const MemoryInfo after = ask();
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

// Puts the conversion on a queue, between guarded memory, and returns what it wrote. It may not change what it reads,
// nor write outside the `bytes` that it makes.
template <typename Convert>
std::vector<std::byte> converted(tsr_device& device, const std::vector<std::byte>& from, uint64_t bytes,
                                 const std::string& what, Convert&& convert) {
    Queue queue(device);
    GuardedMemory there(device, "what it reads", from.size(), Placement::kGuarded);
    GuardedMemory made(device, "its target", bytes, Placement::kGuarded);
    there.fill(queue, from);
    made.fill(queue, std::vector<std::byte>(bytes, std::byte{0xA5}));
    queue.wait();
    take(convert(queue, there.data(), made.data()), what);
    queue.wait();
    try {
        if (there.download(queue) != from) wrong("writes to what it reads");
        return made.download(queue);
    } catch (const std::runtime_error& error) {
        wrong(what + " " + error.what());
    }
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

// A node on a device in these layouts, which its tensors have.
class DeviceRun {
  public:
    // `state`: of the kernel, prepared.
    DeviceRun(tsr_device& device, const tsr_kernel& kernel, void* state, const Case& of, const Layouts& layouts,
              uint64_t workspace_bytes, Placement placement)
        : device_(device),
          kernel_(kernel),
          state_(state),
          case_(of),
          layouts_(layouts),
          queue_(device),
          initial_(of.operands()),
          memory_(of.operands()),
          workspace_(device, "the workspace", workspace_bytes, placement),
          ranges_there_(device, "the ranges", sizeof(Ranges), placement),
          ranges_here_(device, sizeof(Ranges)) {
        const std::vector<size_t> in_place = of.outputs_in_place();
        for (size_t i = 0; i < of.operands(); ++i) {
            const Operand& operand = of.operand(i);
            if (operand.tensor.type == TSR_TYPE_NONE) {
                data_.push_back(nullptr);
            } else if (operand.shares_input >= 0) {
                data_.push_back(data_[static_cast<size_t>(operand.shares_input)]);
            } else {
                initial_[i] = layouts[i] && !layouts[i]->pack ? packed_there(device, operand, *layouts[i])
                                                              : packed(operand, layouts[i]);
                memory_[i] = std::make_unique<GuardedMemory>(
                    device, "operand " + std::to_string(i) + " (" + operand.name + ")", initial_[i].size(), placement);
                data_.push_back(memory_[i]->data());
            }
            is_constant_.push_back(!operand.is_output && std::ranges::find(in_place, i) == in_place.end());
        }
        for (size_t k = 0; k < bounds_.size(); ++k) {
            for (const Ranges& any : of.ranges) bounds_[k] = std::max(bounds_[k], any[k].end - any[k].begin);
        }
    }

    // What is then in the operands, in the canonical layout. `recorded`: as a recording that is replayed.
    Result run(const Ranges& ranges, bool recorded) {
        for (size_t i = 0; i < memory_.size(); ++i) {
            if (memory_[i]) memory_[i]->fill(queue_, initial_[i]);
        }
        workspace_.fill_guards(queue_);
        std::vector<std::byte> ranges_bytes(sizeof ranges);
        std::memcpy(ranges_bytes.data(), ranges.data(), sizeof ranges);
        std::memcpy(ranges_here_.get(), ranges.data(), sizeof ranges);
        ranges_there_.fill_guards(queue_);
        take(device_.upload(&device_, queue_, ranges_there_.data(), ranges_here_.get(), sizeof ranges), "upload");
        queue_.wait();
        enqueue(recorded);
        if (ranges_there_.download(queue_) != ranges_bytes) wrong("it writes to the ranges");
        workspace_.check_guards(queue_);
        Result result(case_.operands());
        for (size_t i = 0; i < case_.operands(); ++i) {
            const Operand& operand = case_.operand(i);
            const size_t from = operand.shares_input >= 0 ? static_cast<size_t>(operand.shares_input) : i;
            if (!memory_[from]) continue;
            std::vector<std::byte> all = memory_[from]->download(queue_);
            if (is_constant_[i] && all != initial_[from]) wrong("it writes to " + memory_[from]->name());
            result[i] = layouts_[i] ? unpacked(operand, layouts_[i], all.data()) : std::move(all);
        }
        return result;
    }

  private:
    void enqueue(bool recorded) {
        tsr_launch launch{};
        launch.struct_size = sizeof launch;
        launch.data = data_.data();
        launch.ranges = static_cast<const tsr_range*>(ranges_there_.data());
        launch.row_bounds = bounds_.data();
        launch.token_bound = 1 << 16;
        launch.workspace = workspace_.data();
        launch.queue = queue_;
        tsr_recording recording = nullptr;
        if (recorded) take(device_.begin_recording(&device_, queue_), "begin_recording");
        take(kernel_.enqueue(&kernel_, state_, &launch), recorded ? "enqueue while recording" : "enqueue");
        if (recorded) {
            take(device_.end_recording(&device_, queue_, &recording), "end_recording");
            take(device_.replay(&device_, queue_, recording), "replay");
        }
        queue_.wait();
        if (recorded) device_.destroy_recording(&device_, recording);
    }

    tsr_device& device_;
    const tsr_kernel& kernel_;
    void* state_;
    const Case& case_;
    const Layouts& layouts_;
    Queue queue_;
    std::vector<std::vector<std::byte>> initial_;
    std::vector<std::unique_ptr<GuardedMemory>> memory_;
    std::vector<void*> data_;
    std::vector<bool> is_constant_;
    GuardedMemory workspace_, ranges_there_;
    HostMemory ranges_here_;
    std::array<int32_t, TSR_RANGE_COUNT> bounds_{};
};

// Once between guards, which tells of writes on any device, and once, recorded where the device can, with nothing
// around operands: of reads a device tells that checks addresses. `wanted` as run_reference gives it.
void run_on_device(tsr_device& device, const tsr_device_info& info, const tsr_kernel& kernel, const Case& of,
                   const tsr_node& node, uint64_t workspace_bytes, const Layouts& layouts,
                   const std::vector<Result>& wanted) {
    void* state = nullptr;
    take(kernel.prepare(&kernel, &node, &info, &device, &state), "prepare");
    const auto release = [&](void*) { kernel.release(&kernel, state); };
    const std::unique_ptr<void, decltype(release)> prepared(&state, release);
    for (const Placement placement : {Placement::kGuarded, Placement::kExact}) {
        DeviceRun there(device, kernel, state, of, layouts, workspace_bytes, placement);
        const bool recorded = placement == Placement::kExact && device.begin_recording;
        for (size_t r = 0; r < of.ranges.size(); ++r) {
            const Result result = there.run(of.ranges[r], recorded);
            check_untouched(of, of.ranges[r], result);
            if (!wanted.empty()) compare(of, of.ranges[r], result, wanted[r]);
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
    } catch (const DeviceLost& error) {
        return {Verdict::kFailed, error.what(), true};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

std::string why_not_opened(const tsr_device_provider& provider, const tsr_device_info& info) noexcept {
    try {
        if (why_not_matched(provider, info).empty()) Opened(provider, info);
    } catch (const std::exception& error) {
        return error.what();
    }
    return {};
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
    } catch (const DeviceLost& error) {
        return {Verdict::kFailed, error.what(), true};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

Verdict check_device_kernel(const Setting& setting, const tsr_device_provider& provider, const tsr_device_info& info,
                            const tsr_kernel& kernel, const Case& of) {
    try {
        if (const std::string why = why_not_matched(provider, info); !why.empty()) return {Verdict::kNotClaimed, why};
        CaseNode node(of);
        check_version(kernel, node.node());
        tsr_kernel_plan plan{};
        plan.struct_size = sizeof plan;
        take(kernel.plan(&kernel, &node.node(), &info, &plan), "plan");
        if (std::string fault = kernel_plan_fault(setting, plan, node.node(), provider.interop); !fault.empty())
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
            } catch (const DeviceLost& error) {
                throw DeviceLost(layout_text(layouts) + ": " + error.what());
            } catch (const std::runtime_error& error) {
                wrong(layout_text(layouts) + ": " + error.what());
            }
        }
        return {Verdict::kPassed, not_compared};
    } catch (const DeviceLost& error) {
        return {Verdict::kFailed, error.what(), true};
    } catch (const std::exception& error) {
        return {Verdict::kFailed, error.what()};
    }
}

}  // namespace tessera::conformance
