#include "core/run/open_device.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/registry/table.hpp"

#include <algorithm>
#include <string_view>

namespace tessera {

OpenDevice::OpenDevice(const tsr_device_provider& provider, const tsr_device_info& info, const char* plugin)
    : info_(&info), plugin_(plugin) {
    call("open", "open", [&] { return provider.open(&provider, &info, &device_); });
    const PluginCall opening = call_of("open");
    if (!device_) fail(TSR_DEVICE_ERROR, "{}: it succeeded and opened no device", describe(opening));
    if (const std::string why = device_fault(*device_); !why.empty()) {
        fail(TSR_DEVICE_ERROR, "{}: the opened device cannot be used: {}", describe(opening), why);
    }
    try {
        loading_queue_ = create_queue();
    } catch (...) {
        close();
        throw;
    }
}

OpenDevice::~OpenDevice() {
    close();
}

void OpenDevice::close() noexcept {
    for (const tsr_queue queue : queues_) drain(queue);
    call_quietly("close", [&]() -> const tsr_status* {
        for (const tsr_recording recording : recordings_) device_->destroy_recording(device_, recording);
        for (const tsr_event event : events_) device_->destroy_event(device_, event);
        for (const tsr_queue queue : queues_) device_->destroy_queue(device_, queue);
        for (void* address : registered_) device_->unregister_host(device_, address);
        for (void* address : pinned_) device_->release_pinned(device_, address);
        for (void* block : blocks_) device_->release(device_, block);
        device_->close(device_);
        return nullptr;
    });
}

PluginCall OpenDevice::call_of(const char* function) const noexcept {
    return {plugin_, function, "device", info_->id};
}

template <typename Function>
void OpenDevice::call(const PluginCall& made, std::string_view what, Function&& body) const {
    try {
        call_checked(made, body);
    } catch (const Error& error) {
        throw noted(Error(error.code(), fmt::format("{} cannot {}: {}", info_->id, what, error.what())));
    }
}

Error OpenDevice::noted(const Error& error) const {
    if (error.code() != TSR_DEVICE_LOST) return error;
    lost_.store(true);
    const std::string advice = fmt::format("{} is lost: start again without it, or after a reset", info_->id);
    const std::string_view message = error.what();
    if (message.find(advice) != std::string_view::npos) return error;
    return {TSR_DEVICE_LOST, fmt::format("{}; {}", message, advice)};
}

// For calls whose failure has no consequences.
template <typename Function>
void OpenDevice::call_quietly(const char* function, Function&& body) const noexcept {
    try {
        call_checked(call_of(function), body);
    } catch (const Error& error) {
        log().debug("{}", error.what());
    }
}

void* OpenDevice::allocate(uint64_t bytes) {
    if (bytes == 0) return nullptr;
    void* block = nullptr;
    call("allocate", fmt::format("allocate {}", mebibytes(bytes)),
         [&] { return device_->allocate(device_, bytes, &block); });
    if (const std::string why = address_fault(*device_, block, bytes); !why.empty()) {
        fail(TSR_DEVICE_ERROR, "{}: {}", describe(call_of("allocate")), why);
    }
    blocks_.push_back(block);
    return block;
}

void OpenDevice::release(void* block) noexcept {
    if (!block) return;
    std::erase(blocks_, block);
    call_quietly("release", [&]() -> const tsr_status* {
        device_->release(device_, block);
        return nullptr;
    });
}

std::optional<DriverMemory> OpenDevice::memory() const {
    if (!device_->memory_info) return std::nullopt;
    DriverMemory memory;
    call("memory_info", "report its memory",
         [&] { return device_->memory_info(device_, &memory.free, &memory.total); });
    if (memory.free > memory.total) {
        fail(TSR_DEVICE_ERROR, "{}: {} bytes are free of {}", describe(call_of("memory_info")), memory.free,
             memory.total);
    }
    return memory;
}

bool OpenDevice::register_host(void* address, uint64_t bytes) {
    if (!device_->register_host || bytes == 0) return false;
    try {
        call("register_host", "page-lock host memory", [&] { return device_->register_host(device_, address, bytes); });
    } catch (const Error& error) {
        log().debug("{}", error.what());
        return false;
    }
    registered_.push_back(address);
    return true;
}

void OpenDevice::unregister_host(void* address) noexcept {
    std::erase(registered_, address);
    call_quietly("unregister_host", [&]() -> const tsr_status* {
        device_->unregister_host(device_, address);
        return nullptr;
    });
}

void* OpenDevice::allocate_pinned(uint64_t bytes) {
    if (!device_->allocate_pinned || bytes == 0) return nullptr;
    void* address = nullptr;
    try {
        call("allocate_pinned", "allocate page-locked memory",
             [&] { return device_->allocate_pinned(device_, bytes, &address); });
    } catch (const Error& error) {
        log().debug("{}", error.what());
        return nullptr;
    }
    if (address) pinned_.push_back(address);
    constexpr uintptr_t kAlignment = 64;
    return reinterpret_cast<uintptr_t>(address) % kAlignment == 0 ? address : nullptr;
}

tsr_queue OpenDevice::create_queue() {
    tsr_queue queue = nullptr;
    call("create_queue", "create a queue", [&] { return device_->create_queue(device_, &queue); });
    queues_.push_back(queue);
    return queue;
}

tsr_event OpenDevice::create_event() {
    tsr_event event = nullptr;
    call("create_event", "create an event", [&] { return device_->create_event(device_, 0, &event); });
    events_.push_back(event);
    return event;
}

void OpenDevice::upload(tsr_queue queue, void* to, const void* from_host, uint64_t bytes) {
    call("upload", "copy data from the host", [&] { return device_->upload(device_, queue, to, from_host, bytes); });
}

void OpenDevice::download(tsr_queue queue, void* to_host, const void* from, uint64_t bytes) {
    call("download", "copy data to the host", [&] { return device_->download(device_, queue, to_host, from, bytes); });
}

void OpenDevice::copy(tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    call("copy", "copy data", [&] { return device_->copy(device_, queue, to, from, bytes); });
}

bool OpenDevice::reaches(const OpenDevice& peer) const {
    return device_->can_reach_peer && std::string_view(device_->interop) == peer.device_->interop &&
           call_plugin(call_of("can_reach_peer"), [&] { return device_->can_reach_peer(device_, peer.device_); }) == 1;
}

void OpenDevice::copy_from_peer(tsr_queue queue, void* to, const OpenDevice& peer, const void* from, uint64_t bytes) {
    call("copy_from_peer", fmt::format("copy data from {}", peer.info_->id),
         [&] { return device_->copy_from_peer(device_, queue, to, peer.device_, from, bytes); });
}

void OpenDevice::record(tsr_queue queue, tsr_event event) {
    call("record_event", "record an event", [&] { return device_->record_event(device_, queue, event); });
}

void OpenDevice::wait_before(tsr_queue queue, OpenDevice& owner, tsr_event event) {
    if (std::string_view(device_->interop) == owner.device_->interop) {
        call("queue_wait_event", "wait for an event",
             [&] { return device_->queue_wait_event(device_, queue, owner.device_, event); });
    } else {
        owner.wait(event);
    }
}

void OpenDevice::wait(tsr_event event) {
    call("wait_event", "finish its work", [&] { return device_->wait_event(device_, event); });
}

void OpenDevice::wait_queue(tsr_queue queue) {
    call("wait_queue", "finish its work", [&] { return device_->wait_queue(device_, queue); });
}

std::optional<Error> OpenDevice::drain(tsr_queue queue) noexcept {
    try {
        wait_queue(queue);
    } catch (const Error& error) {
        return error;
    } catch (...) {
        // There is no memory for a message.
    }
    return std::nullopt;
}

void OpenDevice::begin_recording(tsr_queue queue) {
    call("begin_recording", "begin a recording", [&] { return device_->begin_recording(device_, queue); });
}

tsr_recording OpenDevice::end_recording(tsr_queue queue) {
    tsr_recording recording = nullptr;
    try {
        call("end_recording", "end a recording", [&] { return device_->end_recording(device_, queue, &recording); });
    } catch (...) {
        discard_recording(queue);  // else the device would go on recording
        throw;
    }
    recordings_.push_back(recording);
    return recording;
}

void OpenDevice::discard_recording(tsr_queue queue) noexcept {
    call_quietly("end_recording", [&] { return device_->end_recording(device_, queue, nullptr); });
}

void OpenDevice::replay(tsr_queue queue, tsr_recording recording) {
    call("replay", "replay a recording", [&] { return device_->replay(device_, queue, recording); });
}

void OpenDevice::upload_now(void* to, std::span<const std::byte> from_host) {
    load_now([&] { upload(loading_queue_, to, from_host.data(), from_host.size()); });
}

void OpenDevice::pack_now(const Packing& packing, void* to, void* staging, std::span<const std::byte> rows) {
    load_now([&] {
        upload(loading_queue_, staging, rows.data(), rows.size());
        pack(packing, to, staging, rows.size() / packing.canonical_bytes);
    });
}

void OpenDevice::pack(const Packing& packing, void* to, const void* rows, uint64_t groups) {
    const tsr_layout& layout = *packing.layout;
    call(packing.call, fmt::format("pack rows as {}", printable(layout.name)), [&] {
        return layout.enqueue_pack(&layout, device_, loading_queue_, static_cast<int64_t>(packing.elements),
                                   static_cast<int64_t>(groups), rows, to);
    });
}

}  // namespace tessera
