// The functions of a device's table, and the provider.
#include "device.hpp"

#include <bit>
#include <cstdio>
#include <cstring>

namespace tessera::simulated {
namespace {

using sdk::Failure;

Device& device_of(tsr_device* self) noexcept {
    return *static_cast<Device*>(self->context);
}

const tsr_status* allocate(tsr_device* self, uint64_t bytes, void** address) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_ALLOCATE, Threads::kOne, [&] { *address = device.allocate(bytes); });
}

void release(tsr_device* self, void* address) {
    device_of(self).release(address);
}

const tsr_status* memory_info(tsr_device* self, uint64_t* free_bytes, uint64_t* total_bytes) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_MEMORY_INFO, Threads::kAny, [&] {
        *free_bytes = device.memory().limit() - device.memory().used();
        *total_bytes = self->info->memory_bytes;
    });
}

const tsr_status* allocate_pinned(tsr_device* self, uint64_t bytes, void** host_address) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_ALLOCATE_PINNED, Threads::kOne,
                       [&] { *host_address = HostMemory::instance().allocate(&device, bytes); });
}

void release_pinned(tsr_device* self, void* host_address) {
    device_of(self).release_host(host_address, true);
}

const tsr_status* register_host(tsr_device* self, void* host_address, uint64_t bytes) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_REGISTER_HOST, Threads::kOne,
                       [&] { HostMemory::instance().lock(&device, host_address, bytes); });
}

void unregister_host(tsr_device* self, void* host_address) {
    device_of(self).release_host(host_address, false);
}

const tsr_status* create_queue(tsr_device* self, tsr_queue* queue) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_CREATE_QUEUE, Threads::kOne, [&] { *queue = device.create_queue(); });
}

void destroy_queue(tsr_device* self, tsr_queue queue) {
    if (queue) device_of(self).destroy_queue(queue);
}

const tsr_status* wait_queue(tsr_device* self, tsr_queue queue) {
    Device& device = device_of(self);
    const tsr_status* status =
        device.call(TSR_SIMULATED_WAIT_QUEUE, Threads::kOne, [&] { device.wait_queue(device.queue(queue)); });
    if (status) device.drain(queue);
    return status;
}

const tsr_status* create_event(tsr_device* self, uint32_t timed, tsr_event* event) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_CREATE_EVENT, Threads::kOne, [&] { *event = device.create_event(timed != 0); });
}

void destroy_event(tsr_device* self, tsr_event event) {
    if (event) device_of(self).destroy_event(event);
}

const tsr_status* record_event(tsr_device* self, tsr_queue queue, tsr_event event) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_RECORD_EVENT, Threads::kOne,
                       [&] { device.record_event(device.queue(queue), event); });
}

const tsr_status* queue_wait_event(tsr_device* self, tsr_queue queue, tsr_device* owner, tsr_event event) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_QUEUE_WAIT_EVENT, Threads::kOne,
                       [&] { device.queue_wait_event(device.queue(queue), owner, event); });
}

const tsr_status* query_event(tsr_device* self, tsr_event event, uint32_t* complete) {
    Device& device = device_of(self);
    *complete = 1;  // if it is to be omitted
    return device.call(TSR_SIMULATED_QUERY_EVENT, Threads::kAny, [&] { *complete = device.query_event(event); });
}

const tsr_status* wait_event(tsr_device* self, tsr_event event) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_WAIT_EVENT, Threads::kAny, [&] { device.wait_event(event); });
}

const tsr_status* event_seconds(tsr_device* self, tsr_event begin, tsr_event end, double* seconds) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_EVENT_SECONDS, Threads::kOne,
                       [&] { *seconds = device.event_seconds(begin, end); });
}

const tsr_status* upload(tsr_device* self, tsr_queue queue, void* to, const void* from_host, uint64_t bytes) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_UPLOAD, Threads::kOne,
                       [&] { device.copy(TSR_SIMULATED_UPLOAD, device.queue(queue), to, from_host, bytes); });
}

const tsr_status* download(tsr_device* self, tsr_queue queue, void* to_host, const void* from, uint64_t bytes) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_DOWNLOAD, Threads::kOne,
                       [&] { device.copy(TSR_SIMULATED_DOWNLOAD, device.queue(queue), to_host, from, bytes); });
}

const tsr_status* copy(tsr_device* self, tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_COPY, Threads::kOne,
                       [&] { device.copy(TSR_SIMULATED_COPY, device.queue(queue), to, from, bytes); });
}

bool reach(const Device& a, const Device& b) noexcept {
    constexpr uint32_t kNone = TSR_SIMULATED_UNREACHABLE | TSR_SIMULATED_NO_PEERS;
    return ((a.options().without | b.options().without) & kNone) == 0;
}

uint32_t can_reach_peer(tsr_device* self, tsr_device* peer) {
    try {
        return reach(device_of(self), Device::of(peer, "can_reach_peer"));
    } catch (const Failure&) {
        return 0;
    }
}

const tsr_status* copy_from_peer(tsr_device* self, tsr_queue queue, void* to, tsr_device* peer, const void* from,
                                 uint64_t bytes) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_COPY_FROM_PEER, Threads::kOne, [&] {
        Device& other = Device::of(peer, "copy_from_peer, the peer");
        if (!reach(device, other))
            throw Failure(TSR_UNSUPPORTED, device.id() + ": copy_from_peer: " + other.id() + " cannot be reached");
        device.copy(TSR_SIMULATED_COPY_FROM_PEER, device.queue(queue), to, from, bytes, &other);
    });
}

const tsr_status* begin_recording(tsr_device* self, tsr_queue queue) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_BEGIN_RECORDING, Threads::kOne,
                       [&] { device.begin_recording(device.queue(queue)); });
}

const tsr_status* end_recording(tsr_device* self, tsr_queue queue, tsr_recording* recording) {
    Device& device = device_of(self);
    if (!recording) {
        device.discard_recording();
        return nullptr;
    }
    return device.call(TSR_SIMULATED_END_RECORDING, Threads::kOne, [&] { *recording = device.end_recording(queue); });
}

void destroy_recording(tsr_device* self, tsr_recording recording) {
    if (recording) device_of(self).destroy_recording(recording);
}

const tsr_status* replay(tsr_device* self, tsr_queue queue, tsr_recording recording) {
    Device& device = device_of(self);
    return device.call(TSR_SIMULATED_REPLAY, Threads::kOne, [&] { device.replay(device.queue(queue), recording); });
}

// Handles are their own native ones.
void* native_context(tsr_device* self) {
    return self->context;
}

void* native_queue(tsr_device*, tsr_queue queue) {
    return queue;
}

void* native_event(tsr_device*, tsr_event event) {
    return event;
}

void close(tsr_device* self) {
    delete &device_of(self);
}

uint32_t match(const tsr_device_provider*, const tsr_device_info* info, char* reason, uint32_t capacity) {
    if (!info->kind || std::strcmp(info->kind, "simulated") != 0) {
        std::snprintf(reason, capacity, "required kind simulated; found %s", info->kind ? info->kind : "none");
        return 0;
    }
    if (info->compute_capability < kMinimumCapability) {
        std::snprintf(reason, capacity, "required compute capability 6.0 or more; found %u.%u",
                      info->compute_capability / 100, info->compute_capability / 10 % 10);
        return 0;
    }
    if (info->memory_bytes == 0) {
        std::snprintf(reason, capacity, "required some memory; found 0 bytes");
        return 0;
    }
    constexpr uint64_t kMaximumAlignment = uint64_t{1} << 30;
    if (info->allocation_alignment > kMaximumAlignment ||
        (info->allocation_alignment != 0 && !std::has_single_bit(info->allocation_alignment))) {
        std::snprintf(reason, capacity,
                      "required an allocation alignment that is a power of two up to 2^30; found %llu",
                      static_cast<unsigned long long>(info->allocation_alignment));
        return 0;
    }
    return 1;
}

const tsr_status* open(const tsr_device_provider* self, const tsr_device_info* info, tsr_device** device) {
    return sdk::guarded([&] {
        char reason[256];
        if (!match(self, info, reason, sizeof reason)) throw Failure(TSR_UNSUPPORTED, reason);
        *device = (new Device(*info))->table();
    });
}

}  // namespace

tsr_device make_table(const tsr_device_info& info, Device* device, uint32_t without) noexcept {
    const auto has = [without](uint32_t part) { return (without & part) == 0; };
    const bool pinned = has(TSR_SIMULATED_NO_PINNED), registration = has(TSR_SIMULATED_NO_REGISTRATION);
    const bool peers = has(TSR_SIMULATED_NO_PEERS), recordings = has(TSR_SIMULATED_NO_RECORDINGS);
    tsr_device table{};
    table.struct_size = sizeof table;
    table.context = device;
    table.info = &info;
    table.interop = TSR_SIMULATED_INTEROP;
    table.allocate = allocate;
    table.release = release;
    table.memory_info = has(TSR_SIMULATED_NO_MEMORY_INFO) ? memory_info : nullptr;
    table.allocate_pinned = pinned ? allocate_pinned : nullptr;
    table.release_pinned = pinned ? release_pinned : nullptr;
    table.register_host = registration ? register_host : nullptr;
    table.unregister_host = registration ? unregister_host : nullptr;
    table.create_queue = create_queue;
    table.destroy_queue = destroy_queue;
    table.wait_queue = wait_queue;
    table.create_event = create_event;
    table.destroy_event = destroy_event;
    table.record_event = record_event;
    table.queue_wait_event = queue_wait_event;
    table.query_event = query_event;
    table.wait_event = wait_event;
    table.event_seconds = has(TSR_SIMULATED_NO_TIMING) ? event_seconds : nullptr;
    table.upload = upload;
    table.download = download;
    table.copy = copy;
    table.can_reach_peer = peers ? can_reach_peer : nullptr;
    table.copy_from_peer = peers ? copy_from_peer : nullptr;
    table.begin_recording = recordings ? begin_recording : nullptr;
    table.end_recording = recordings ? end_recording : nullptr;
    table.destroy_recording = recordings ? destroy_recording : nullptr;
    table.replay = recordings ? replay : nullptr;
    table.native_context = native_context;
    table.native_queue = native_queue;
    table.native_event = native_event;
    table.close = close;
    return table;
}

const tsr_device_provider kProvider = {
    sizeof(tsr_device_provider), TSR_DEVICE_ABI, nullptr, nullptr, "simulated", TSR_SIMULATED_INTEROP, match, open,
};

}  // namespace tessera::simulated
