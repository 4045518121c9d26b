// The functions of tessera/device.h for a card, and the provider that opens cards.
#include "device.hpp"

#include <tessera/cuda/images.hpp>

#include <cstdio>
#include <cstring>

namespace tessera::cuda {
namespace {

using sdk::Failure;

const tsr_status* allocate(tsr_device* self, uint64_t bytes, void** address) {
    Device& device = Device::of(self);
    return device.call("allocate", [&] { *address = device.allocate(bytes); });
}
void release(tsr_device* self, void* address) {
    Device& device = Device::of(self);
    device.quietly([&] { device.release(address); });
}
const tsr_status* memory_info(tsr_device* self, uint64_t* free, uint64_t* total) {
    Device& device = Device::of(self);
    return device.call(nullptr, [&] { device.memory_info(*free, *total); });
}
const tsr_status* allocate_pinned(tsr_device* self, uint64_t bytes, void** address) {
    Device& device = Device::of(self);
    return device.call("allocate_pinned", [&] { *address = device.allocate_pinned(bytes); });
}
void release_pinned(tsr_device* self, void* address) {
    Device& device = Device::of(self);
    device.quietly([&] { device.release_pinned(address); });
}
const tsr_status* register_host(tsr_device* self, void* address, uint64_t bytes) {
    Device& device = Device::of(self);
    return device.call("register_host", [&] { device.register_host(address, bytes); });
}
void unregister_host(tsr_device* self, void* address) {
    Device& device = Device::of(self);
    device.quietly([&] { device.unregister_host(address); });
}
const tsr_status* create_queue(tsr_device* self, tsr_queue* queue) {
    Device& device = Device::of(self);
    return device.call("create_queue", [&] { *queue = device.create_queue(); });
}
void destroy_queue(tsr_device* self, tsr_queue queue) {
    Device& device = Device::of(self);
    device.quietly([&] { device.destroy_queue(queue); });
}
const tsr_status* wait_queue(tsr_device* self, tsr_queue queue) {
    Device& device = Device::of(self);
    return device.call("wait_queue", [&] { device.wait_queue(queue); });
}
const tsr_status* create_event(tsr_device* self, uint32_t timed, tsr_event* event) {
    Device& device = Device::of(self);
    return device.call("create_event", [&] { *event = device.create_event(timed != 0); });
}
void destroy_event(tsr_device* self, tsr_event event) {
    Device& device = Device::of(self);
    device.quietly([&] { device.destroy_event(event); });
}
const tsr_status* record_event(tsr_device* self, tsr_queue queue, tsr_event event) {
    Device& device = Device::of(self);
    return device.call("record_event", [&] { device.record_event(queue, event); });
}
const tsr_status* queue_wait_event(tsr_device* self, tsr_queue queue, tsr_device* owner, tsr_event event) {
    Device& device = Device::of(self);
    return device.call("queue_wait_event", [&] { device.queue_wait_event(queue, owner, event); });
}
const tsr_status* query_event(tsr_device* self, tsr_event event, uint32_t* complete) {
    Device& device = Device::of(self);
    return device.call("query_event", [&] { *complete = device.query_event(event) ? 1 : 0; });
}
const tsr_status* wait_event(tsr_device* self, tsr_event event) {
    Device& device = Device::of(self);
    return device.call("wait_event", [&] { device.wait_event(event); });
}
const tsr_status* event_seconds(tsr_device* self, tsr_event begin, tsr_event end, double* seconds) {
    Device& device = Device::of(self);
    return device.call("event_seconds", [&] { *seconds = device.event_seconds(begin, end); });
}
const tsr_status* upload(tsr_device* self, tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    Device& device = Device::of(self);
    return device.call(nullptr, [&] { device.upload(queue, to, from, bytes); });
}
const tsr_status* download(tsr_device* self, tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    Device& device = Device::of(self);
    return device.call(nullptr, [&] { device.download(queue, to, from, bytes); });
}
const tsr_status* copy(tsr_device* self, tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    Device& device = Device::of(self);
    return device.call(nullptr, [&] { device.copy(queue, to, from, bytes); });
}
uint32_t can_reach_peer(tsr_device* self, tsr_device* peer) {
    Device& device = Device::of(self);
    bool can = false;
    device.quietly([&] { can = device.can_reach(peer); });
    return can ? 1 : 0;
}
const tsr_status* copy_from_peer(tsr_device* self, tsr_queue queue, void* to, tsr_device* peer, const void* from,
                                 uint64_t bytes) {
    Device& device = Device::of(self);
    return device.call(nullptr, [&] { device.copy_from_peer(queue, to, peer, from, bytes); });
}
const tsr_status* begin_recording(tsr_device* self, tsr_queue queue) {
    Device& device = Device::of(self);
    return device.call("begin_recording", [&] { device.begin_recording(queue); });
}
const tsr_status* end_recording(tsr_device* self, tsr_queue queue, tsr_recording* recording) {
    Device& device = Device::of(self);
    if (!recording) {
        device.quietly([&] { device.discard_recording(); });
        return nullptr;
    }
    return device.call(nullptr, [&] { *recording = device.end_recording(queue); });
}
void destroy_recording(tsr_device* self, tsr_recording recording) {
    Device& device = Device::of(self);
    device.quietly([&] { device.destroy_recording(recording); });
}
const tsr_status* replay(tsr_device* self, tsr_queue queue, tsr_recording recording) {
    Device& device = Device::of(self);
    return device.call("replay", [&] { device.replay(queue, recording); });
}
void* native_context(tsr_device* self) {
    return Device::of(self).context();
}
void* native_queue(tsr_device*, tsr_queue queue) {
    return queue;
}
void* native_event(tsr_device*, tsr_event event) {
    return event;
}
void close(tsr_device* self) {
    delete &Device::of(self);
}

const CardRange& range_of(const tsr_device_provider* provider) {
    return *static_cast<const CardRange*>(provider->context);
}

uint32_t match(const tsr_device_provider* self, const tsr_device_info* info, char* reason, uint32_t capacity) {
    const CardRange& range = range_of(self);
    if (!info->kind || std::strcmp(info->kind, kKind) != 0) {
        std::snprintf(reason, capacity, "required a device of kind %s; found %s", kKind, info->kind ? info->kind : "?");
        return 0;
    }
    if (!range.contains(info->compute_capability)) {
        std::snprintf(reason, capacity, "required compute capability %u.%u to %u.%u; found %u.%u", range.minimum / 100,
                      range.minimum / 10 % 10, range.maximum / 100, range.maximum / 10 % 10,
                      info->compute_capability / 100, info->compute_capability / 10 % 10);
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

tsr_device make_table(const tsr_device_info& info, Device* device) noexcept {
    tsr_device table{};
    table.struct_size = sizeof table;
    table.context = device;
    table.info = &info;
    table.interop = kInterop;
#define TESSERA_CUDA_FIELD(name) table.name = name
    TESSERA_CUDA_FIELD(allocate);
    TESSERA_CUDA_FIELD(release);
    TESSERA_CUDA_FIELD(memory_info);
    TESSERA_CUDA_FIELD(allocate_pinned);
    TESSERA_CUDA_FIELD(release_pinned);
    TESSERA_CUDA_FIELD(register_host);
    TESSERA_CUDA_FIELD(unregister_host);
    TESSERA_CUDA_FIELD(create_queue);
    TESSERA_CUDA_FIELD(destroy_queue);
    TESSERA_CUDA_FIELD(wait_queue);
    TESSERA_CUDA_FIELD(create_event);
    TESSERA_CUDA_FIELD(destroy_event);
    TESSERA_CUDA_FIELD(record_event);
    TESSERA_CUDA_FIELD(queue_wait_event);
    TESSERA_CUDA_FIELD(query_event);
    TESSERA_CUDA_FIELD(wait_event);
    TESSERA_CUDA_FIELD(event_seconds);
    TESSERA_CUDA_FIELD(upload);
    TESSERA_CUDA_FIELD(download);
    TESSERA_CUDA_FIELD(copy);
    TESSERA_CUDA_FIELD(can_reach_peer);
    TESSERA_CUDA_FIELD(copy_from_peer);
    TESSERA_CUDA_FIELD(begin_recording);
    TESSERA_CUDA_FIELD(end_recording);
    TESSERA_CUDA_FIELD(destroy_recording);
    TESSERA_CUDA_FIELD(replay);
    TESSERA_CUDA_FIELD(native_context);
    TESSERA_CUDA_FIELD(native_queue);
    TESSERA_CUDA_FIELD(native_event);
    TESSERA_CUDA_FIELD(close);
#undef TESSERA_CUDA_FIELD
    return table;
}

tsr_device_provider make_provider(const CardRange& range) noexcept {
    return {sizeof(tsr_device_provider), TSR_DEVICE_ABI, nullptr, &range, kKind, kInterop, match, open};
}

}  // namespace tessera::cuda
