#include "device.hpp"

#include <cstring>

namespace tessera::cuda {
namespace {

using sdk::Failure;

constexpr unsigned kNonBlocking = 1;    // CU_STREAM_NON_BLOCKING: not ordered against the default stream
constexpr unsigned kDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING

}  // namespace

void Device::require_queue(tsr_queue queue) const {
    if (!recorded_queue_ || queue == recorded_queue_) return;
    throw Failure(TSR_INVALID_ARGUMENT, id_ + ": work for another queue than the one that is being recorded");
}

tsr_queue Device::create_queue() {
    Stream stream = nullptr;
    check(driver_.create_stream(&stream, kNonBlocking), "cuStreamCreate", "creating a queue");
    return stream;
}

void Device::destroy_queue(tsr_queue queue) {
    if (queue == recorded_queue_) discard_recording();
    check(driver_.destroy_stream(queue), "cuStreamDestroy", "destroying a queue");
}

void Device::wait_queue(tsr_queue queue) {
    check(driver_.synchronize_stream(queue), "cuStreamSynchronize", "work on a queue");
}

tsr_event Device::create_event(bool timed) {
    Event event = nullptr;
    check(driver_.create_event(&event, timed ? 0 : kDisableTiming), "cuEventCreate", "creating an event");
    return event;
}

void Device::destroy_event(tsr_event event) {
    check(driver_.destroy_event(event), "cuEventDestroy", "destroying an event");
}

void Device::record_event(tsr_queue queue, tsr_event event) {
    check(driver_.record_event(event, queue), "cuEventRecord", "recording an event");
}

void Device::queue_wait_event(tsr_queue queue, tsr_device* owner, tsr_event event) {
    if (!owner || !owner->interop || std::strcmp(owner->interop, kInterop) != 0 || !owner->native_event)
        throw Failure(TSR_INVALID_ARGUMENT,
                      id_ + ": waiting for an event: expected one of a device of interop " + std::string(kInterop));
    check(driver_.stream_wait_event(queue, owner->native_event(owner, event), 0), "cuStreamWaitEvent",
          "waiting for an event");
}

bool Device::query_event(tsr_event event) {
    const Result result = driver_.query_event(event);
    if (result == kNotReady) return false;
    check(result, "cuEventQuery", "work before an event");
    return true;
}

void Device::wait_event(tsr_event event) {
    check(driver_.synchronize_event(event), "cuEventSynchronize", "work before an event");
}

double Device::event_seconds(tsr_event begin, tsr_event end) {
    float milliseconds = 0;
    check(driver_.elapsed(&milliseconds, begin, end), "cuEventElapsedTime", "the time between two events");
    return 1e-3 * static_cast<double>(milliseconds);
}

}  // namespace tessera::cuda
