/* Devices whose memory is the host's, and whose queues do their work at once: the least that a provider needs. A real
 * one puts the work on its driver's queues and returns; only functions whose name begins with wait_ block. */
#include "device.h"

#include <tessera/helpers.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a queue or an event is here: nothing but an address that differs from all others. */
typedef struct {
    char unused;
} handle_t;

static const tsr_status* make_handle(void** handle) {
    *handle = malloc(sizeof(handle_t));
    return *handle ? NULL : tsr_fail(TSR_DOES_NOT_FIT, "out of host memory");
}

static const tsr_status* allocate(tsr_device* self, uint64_t bytes, void** address) {
    const uint64_t alignment = self->info->allocation_alignment;
    /* Every size is checked before it is used, and the message says what was asked for and what there is. */
    if (bytes > self->info->memory_bytes) {
        return tsr_fail(TSR_DOES_NOT_FIT, "%s: allocating %llu bytes of %llu", self->info->id,
                        (unsigned long long)bytes, (unsigned long long)self->info->memory_bytes);
    }
    *address = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (*address) return NULL;
    return tsr_fail(TSR_DOES_NOT_FIT, "%s: allocating %llu bytes", self->info->id, (unsigned long long)bytes);
}
static void release(tsr_device* self, void* address) {
    (void)self;
    free(address);
}

static const tsr_status* create_queue(tsr_device* self, tsr_queue* queue) {
    (void)self;
    return make_handle(queue);
}
static void destroy_queue(tsr_device* self, tsr_queue queue) {
    (void)self;
    free(queue);
}
/* All that was put on the queue has ended already. */
static const tsr_status* wait_queue(tsr_device* self, tsr_queue queue) {
    (void)self, (void)queue;
    return NULL;
}

static const tsr_status* create_event(tsr_device* self, uint32_t timed, tsr_event* event) {
    (void)self, (void)timed;
    return make_handle(event);
}
static void destroy_event(tsr_device* self, tsr_event event) {
    (void)self;
    free(event);
}
static const tsr_status* record_event(tsr_device* self, tsr_queue queue, tsr_event event) {
    (void)self, (void)queue, (void)event;
    return NULL;
}
static const tsr_status* queue_wait_event(tsr_device* self, tsr_queue queue, tsr_device* owner, tsr_event event) {
    (void)self, (void)queue, (void)owner, (void)event;
    return NULL;
}
static const tsr_status* query_event(tsr_device* self, tsr_event event, uint32_t* complete) {
    (void)self, (void)event;
    *complete = 1;
    return NULL;
}
static const tsr_status* wait_event(tsr_device* self, tsr_event event) {
    (void)self, (void)event;
    return NULL;
}

static const tsr_status* upload(tsr_device* self, tsr_queue queue, void* to, const void* from_host, uint64_t bytes) {
    (void)self, (void)queue;
    memcpy(to, from_host, bytes);
    return NULL;
}
static const tsr_status* download(tsr_device* self, tsr_queue queue, void* to_host, const void* from, uint64_t bytes) {
    (void)self, (void)queue;
    memcpy(to_host, from, bytes);
    return NULL;
}
static const tsr_status* copy(tsr_device* self, tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    (void)self, (void)queue;
    memcpy(to, from, bytes);
    return NULL;
}

static void close_device(tsr_device* self) {
    free(self);
}

/* Pure: whether this provider can own the device. On no, the reason says what is required and what was found. */
static uint32_t match(const tsr_device_provider* self, const tsr_device_info* info, char* reason, uint32_t capacity) {
    (void)self;
    if (info->memory_bytes > 0) return 1;
    snprintf(reason, capacity, "expected a device whose memory is known, found %s without", info->name);
    return 0;
}

static const tsr_status* open_device(const tsr_device_provider* self, const tsr_device_info* info,
                                     tsr_device** device) {
    tsr_device* made = calloc(1, sizeof *made);
    if (!made) return tsr_fail(TSR_DOES_NOT_FIT, "%s: out of host memory", info->id);
    /* Optional functions stay NULL: the core does without page-locked memory, recordings and copies between peers. */
    made->struct_size = sizeof *made;
    made->info = info;
    made->interop = self->interop;
    made->allocate = allocate;
    made->release = release;
    made->create_queue = create_queue;
    made->destroy_queue = destroy_queue;
    made->wait_queue = wait_queue;
    made->create_event = create_event;
    made->destroy_event = destroy_event;
    made->record_event = record_event;
    made->queue_wait_event = queue_wait_event;
    made->query_event = query_event;
    made->wait_event = wait_event;
    made->upload = upload;
    made->download = download;
    made->copy = copy;
    made->close = close_device;
    *device = made;
    return NULL;
}

const tsr_device_provider example_provider = {
    .struct_size = sizeof(tsr_device_provider),
    .device_abi = TSR_DEVICE_ABI,
    .kind = "example",
    .interop = EXAMPLE_INTEROP,
    .match = match,
    .open = open_device,
};
