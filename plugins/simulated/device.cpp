#include "device.hpp"

#include "queue.hpp"

#include <tessera/cpp/status.hpp>

#include <cstdio>
#include <cstring>

namespace tessera::simulated {
namespace {

using sdk::Failure;
using sdk::guarded;

Device& device_of(tsr_device* self) noexcept {
    return *static_cast<Device*>(self);
}

Queue& queue_of(Device& device, void* queue) {
    if (!Queue::is_queue(queue))
        throw Failure(TSR_INVALID_ARGUMENT, device.id() + ": a queue that is none of this plugin's");
    Queue& found = *static_cast<Queue*>(queue);
    if (&found.device() != &device) {
        throw Failure(TSR_INVALID_ARGUMENT, device.id() + ": a queue of " + found.device().id());
    }
    device.tell_mistake();
    return found;
}

const tsr_status* allocate(tsr_device* self, uint64_t bytes, void** address) {
    return guarded([&] {
        Device& device = device_of(self);
        device.tell_mistake();
        const uint64_t counted = AddressSpace::counted(bytes);
        device.failures().allocation(bytes);
        try {
            *address = device.memory().allocate(bytes);
        } catch (const Failure& failure) {
            throw Failure(failure.code(), device.id() + ": " + failure.what());
        }
        device.failures().allocated(counted);
    });
}

void release(tsr_device* self, void* address) {
    if (!address) return;
    Device& device = device_of(self);
    const uint64_t bytes = device.memory().release(address);
    if (bytes == 0) {
        device.remember("release of an address at which nothing is allocated");
    } else {
        device.failures().released(bytes);
    }
}

// Events of queues that do their work when it is waited for: to wait for one is to do what its queue holds.
struct Event {
    Queue* queue = nullptr;
};

const tsr_status* create_event(tsr_device*, uint32_t, tsr_event* event) {
    return guarded([&] { *event = new Event; });
}

void destroy_event(tsr_device*, tsr_event event) {
    delete static_cast<Event*>(event);
}

const tsr_status* record_event(tsr_device* self, tsr_queue queue, tsr_event event) {
    return guarded([&] { static_cast<Event*>(event)->queue = &queue_of(device_of(self), queue); });
}

const tsr_status* queue_wait_event(tsr_device* self, tsr_queue queue, tsr_device*, tsr_event event) {
    return guarded([&] {
        queue_of(device_of(self), queue);
        if (Queue* recorded = static_cast<Event*>(event)->queue) recorded->finish();
    });
}

const tsr_status* wait_event(tsr_device* self, tsr_event event) {
    return guarded([&] {
        device_of(self).failures().alive();
        if (Queue* recorded = static_cast<Event*>(event)->queue) recorded->finish();
    });
}

const tsr_status* query_event(tsr_device* self, tsr_event event, uint32_t* complete) {
    *complete = 1;
    return wait_event(self, event);
}

void* no_handle(tsr_device*) {
    return nullptr;
}

void* no_handle_of(tsr_device*, void*) {
    return nullptr;
}

const tsr_status* create_queue(tsr_device* self, void** queue) {
    return guarded([&] {
        Device& device = device_of(self);
        device.failures().alive();
        *queue = new Queue(device);
    });
}

void destroy_queue(tsr_device*, void* queue) {
    if (Queue::is_queue(queue)) delete static_cast<Queue*>(queue);
}

const tsr_status* upload(tsr_device* self, void* queue, void* to, const void* from_host, uint64_t bytes) {
    return guarded([&] {
        Device& device = device_of(self);
        Queue& on = queue_of(device, queue);
        device.failures().copying("an upload", bytes);
        device.require_host(from_host, "the source of an upload");
        if (bytes == 0) return;
        on.put_copy(device.resolve(to, bytes, [] { return "upload, target"; }), static_cast<const char*>(from_host),
                    bytes);
    });
}

const tsr_status* download(tsr_device* self, void* queue, void* to_host, const void* from, uint64_t bytes) {
    return guarded([&] {
        Device& device = device_of(self);
        Queue& on = queue_of(device, queue);
        device.failures().copying("a download", bytes);
        device.require_host(to_host, "the target of a download");
        if (bytes == 0) return;
        on.put_copy(static_cast<char*>(to_host), device.resolve(from, bytes, [] { return "download, source"; }), bytes);
    });
}

const tsr_status* copy(tsr_device* self, void* queue, void* to, const void* from, uint64_t bytes) {
    return guarded([&] {
        Device& device = device_of(self);
        Queue& on = queue_of(device, queue);
        device.failures().copying("a copy", bytes);
        if (bytes == 0) return;
        on.put_copy(device.resolve(to, bytes, [] { return "copy, target"; }),
                    device.resolve(from, bytes, [] { return "copy, source"; }), bytes);
    });
}

const tsr_status* wait_queue(tsr_device* self, void* queue) {
    return guarded([&] {
        Device& device = device_of(self);
        Queue& on = queue_of(device, queue);
        device.failures().alive();
        on.finish();
    });
}

void close(tsr_device* self) {
    delete static_cast<Device*>(self);
}

uint32_t match(const tsr_device_provider*, const tsr_device_info* info, char* reason, uint32_t capacity) {
    if (!info->kind || std::strcmp(info->kind, "simulated") != 0) {
        std::snprintf(reason, capacity, "required kind simulated; found %s", info->kind ? info->kind : "none");
        return 0;
    }
    if (info->compute_capability < kLeastCapability) {
        std::snprintf(reason, capacity, "required compute capability 6.0 or more; found %u.%u",
                      info->compute_capability / 100, info->compute_capability / 10 % 10);
        return 0;
    }
    if (info->memory_bytes == 0) {
        std::snprintf(reason, capacity, "required some memory; found 0 bytes");
        return 0;
    }
    return 1;
}

const tsr_status* open(const tsr_device_provider* self, const tsr_device_info* info, tsr_device** device) {
    return guarded([&] {
        char reason[256];
        if (!match(self, info, reason, sizeof reason)) throw Failure(TSR_UNSUPPORTED, reason);
        *device = new Device(*info);
    });
}

// What may be allocated: what is free where that is said.
uint64_t limit_of(const tsr_device_info& info) noexcept {
    return info.free_memory_bytes != 0 && info.free_memory_bytes < info.memory_bytes ? info.free_memory_bytes
                                                                                     : info.memory_bytes;
}

}  // namespace

const tsr_device_provider kProvider = {
    sizeof(tsr_device_provider), TSR_DEVICE_ABI, nullptr, nullptr, "simulated", kInterop, match, open};

Device::Device(const tsr_device_info& device)
    : tsr_device{}, memory_(limit_of(device)), failures_(Failures::of(device.id ? device.id : "?")) {
    struct_size = sizeof(tsr_device);
    info = &device;
    interop = kInterop;
    allocate = simulated::allocate;
    release = simulated::release;
    create_queue = simulated::create_queue;
    destroy_queue = simulated::destroy_queue;
    wait_queue = simulated::wait_queue;
    create_event = simulated::create_event;
    destroy_event = simulated::destroy_event;
    record_event = simulated::record_event;
    queue_wait_event = simulated::queue_wait_event;
    query_event = simulated::query_event;
    wait_event = simulated::wait_event;
    upload = simulated::upload;
    download = simulated::download;
    copy = simulated::copy;
    native_context = no_handle;
    native_queue = no_handle_of;
    native_event = no_handle_of;
    close = simulated::close;
    failures_->alive();
}

void Device::refuse_address(const void* address, uint64_t bytes, const std::string& what) const {
    char where[32];
    std::snprintf(where, sizeof where, "%p", address);
    std::string message = id() + ": " + what + ": " + std::to_string(bytes) + " bytes at " + where;
    if (!memory_.owns(address)) {
        message += address ? ", which is no address of this device (a host pointer?)" : ", which is NULL";
    } else if (const uint64_t left = memory_.left(address)) {
        message += " go past the end of an allocation, of which " + std::to_string(left) + " are left";
    } else {
        message += ", where nothing is allocated (any more)";
    }
    throw Failure(TSR_INVALID_ARGUMENT, message);
}

void Device::require_host(const void* pointer, const char* what) const {
    if (memory_.owns(pointer)) {
        throw Failure(TSR_INVALID_ARGUMENT, id() + ": " + what + " is an address of the device, not of the host");
    }
}

void Device::remember(const std::string& mistake) {
    const std::lock_guard lock(mutex_);
    mistake_ = mistake;
}

void Device::tell_mistake() {
    const std::lock_guard lock(mutex_);
    if (mistake_.empty()) return;
    const Failure failure(TSR_INTERNAL, id() + ": " + mistake_);
    mistake_.clear();
    throw failure;
}

}  // namespace tessera::simulated
