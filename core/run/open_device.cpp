#include "core/run/open_device.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <string_view>

namespace tessera {

OpenDevice::OpenDevice(const tsr_device_provider& provider, const tsr_device_info& info) : info_(&info) {
    check(provider.open(&provider, &info, &device_), "open");
    if (!device_) fail(TSR_DEVICE_ERROR, "{}: the plugin opened no device", info.id);
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
    for (const tsr_recording recording : recordings_) device_->destroy_recording(device_, recording);
    for (const tsr_event event : events_) device_->destroy_event(device_, event);
    for (const tsr_queue queue : queues_) device_->destroy_queue(device_, queue);
    for (void* address : registered_) device_->unregister_host(device_, address);
    for (void* block : blocks_) device_->release(device_, block);
    device_->close(device_);
}

void OpenDevice::check(const tsr_status* status, const char* what) const {
    try {
        tessera::check(status);
    } catch (const Error& error) {
        fail(error.code(), "{} cannot {}: {}{}", info_->id, what, error.what(),
             error.code() == TSR_DEVICE_LOST ? "; the device is lost: start again without it, or after a reset" : "");
    }
}

void* OpenDevice::allocate(uint64_t bytes) {
    if (bytes == 0) return nullptr;
    void* block = nullptr;
    check(device_->allocate(device_, bytes, &block), fmt::format("allocate {}", mebibytes(bytes)).c_str());
    blocks_.push_back(block);
    return block;
}

bool OpenDevice::register_host(void* address, uint64_t bytes) {
    if (!device_->register_host || bytes == 0) return false;
    if (const tsr_status* status = device_->register_host(device_, address, bytes)) {
        if (status->destroy) status->destroy(status);
        return false;
    }
    registered_.push_back(address);
    return true;
}

tsr_queue OpenDevice::create_queue() {
    tsr_queue queue = nullptr;
    check(device_->create_queue(device_, &queue), "create a queue");
    queues_.push_back(queue);
    return queue;
}

tsr_event OpenDevice::create_event() {
    tsr_event event = nullptr;
    check(device_->create_event(device_, 0, &event), "create an event");
    events_.push_back(event);
    return event;
}

void OpenDevice::upload(tsr_queue queue, void* to, const void* from_host, uint64_t bytes) {
    check(device_->upload(device_, queue, to, from_host, bytes), "copy data from the host");
}

void OpenDevice::download(tsr_queue queue, void* to_host, const void* from, uint64_t bytes) {
    check(device_->download(device_, queue, to_host, from, bytes), "copy data to the host");
}

void OpenDevice::copy(tsr_queue queue, void* to, const void* from, uint64_t bytes) {
    check(device_->copy(device_, queue, to, from, bytes), "copy data");
}

bool OpenDevice::reaches(const OpenDevice& peer) const {
    return device_->can_reach_peer && device_->copy_from_peer &&
           std::string_view(device_->interop) == peer.device_->interop &&
           device_->can_reach_peer(device_, peer.device_) != 0;
}

void OpenDevice::copy_from_peer(tsr_queue queue, void* to, const OpenDevice& peer, const void* from, uint64_t bytes) {
    check(device_->copy_from_peer(device_, queue, to, peer.device_, from, bytes),
          fmt::format("copy data from {}", peer.info_->id).c_str());
}

void OpenDevice::record(tsr_queue queue, tsr_event event) {
    check(device_->record_event(device_, queue, event), "record an event");
}

void OpenDevice::wait_before(tsr_queue queue, OpenDevice& owner, tsr_event event) {
    if (std::string_view(device_->interop) == owner.device_->interop) {
        check(device_->queue_wait_event(device_, queue, owner.device_, event), "wait for an event");
    } else {
        owner.wait(event);
    }
}

void OpenDevice::wait(tsr_event event) {
    check(device_->wait_event(device_, event), "finish its work");
}

void OpenDevice::wait_queue(tsr_queue queue) {
    check(device_->wait_queue(device_, queue), "finish its work");
}

void OpenDevice::drain(tsr_queue queue) noexcept {
    const tsr_status* status = device_->wait_queue(device_, queue);
    if (status && status->destroy) status->destroy(status);
}

void OpenDevice::begin_recording(tsr_queue queue) {
    check(device_->begin_recording(device_, queue), "begin a recording");
}

tsr_recording OpenDevice::end_recording(tsr_queue queue) {
    tsr_recording recording = nullptr;
    check(device_->end_recording(device_, queue, &recording), "end a recording");
    recordings_.push_back(recording);
    return recording;
}

void OpenDevice::discard_recording(tsr_queue queue) noexcept {
    const tsr_status* status = device_->end_recording(device_, queue, nullptr);
    if (status && status->destroy) status->destroy(status);
}

void OpenDevice::replay(tsr_queue queue, tsr_recording recording) {
    check(device_->replay(device_, queue, recording), "replay a recording");
}

void OpenDevice::upload_now(void* to, const void* from_host, uint64_t bytes) {
    upload(loading_queue_, to, from_host, bytes);
    wait_queue(loading_queue_);
}

}  // namespace tessera
