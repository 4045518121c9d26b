#include "core/run/memory.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <string>

namespace tessera {

OpenDevice::OpenDevice(const tsr_device_provider& provider, const tsr_device_info& info) : info_(&info) {
    check(provider.open(&provider, &info, &device_), "open");
    if (!device_) fail(TSR_DEVICE_ERROR, "{}: the plugin opened no device", info.id);
    try {
        check(device_->create_queue(device_, &queue_), "create a queue");
    } catch (...) {
        device_->close(device_);
        throw;
    }
}

OpenDevice::~OpenDevice() {
    for (void* block : blocks_) device_->release(device_, block);
    device_->destroy_queue(device_, queue_);
    device_->close(device_);
}

void OpenDevice::check(const tsr_status* status, const char* what) const {
    try {
        tessera::check(status);
    } catch (const Error& error) {
        fail(error.code(), "{} cannot {}: {}", info_->id, what, error.what());
    }
}

void* OpenDevice::allocate(uint64_t bytes) {
    if (bytes == 0) return nullptr;
    void* block = nullptr;
    check(device_->allocate(device_, bytes, &block), fmt::format("allocate {}", mebibytes(bytes)).c_str());
    blocks_.push_back(block);
    return block;
}

void OpenDevice::upload(void* to, const void* from_host, uint64_t bytes) {
    check(device_->upload(device_, queue_, to, from_host, bytes), "take data from the host");
}

void OpenDevice::download(void* to_host, const void* from, uint64_t bytes) {
    check(device_->download(device_, queue_, to_host, from, bytes), "give data to the host");
}

void OpenDevice::copy(void* to, const void* from, uint64_t bytes) {
    check(device_->copy(device_, queue_, to, from, bytes), "copy data");
}

void OpenDevice::wait() {
    check(device_->wait_queue(device_, queue_), "finish its work");
}

PlanMemory::PlanMemory(const Plan& plan, const Registry& registry)
    : devices_(plan.devices.size()), arenas_(plan.devices.size()) {
    const DeviceMemory& host = plan.memory[0];
    host_weights_ = HostBlock(host.weights, "weights");
    host_cache_ = HostBlock(host.cache, "the cache");
    host_activations_ = HostBlock(host.activations, "activations");
    host_workspace_ = HostBlock(host.workspace, "workspace");
    host_staging_ = HostBlock(host.staging, "staging");
    arenas_[0] = {host_weights_.data(), host_cache_.data(), host_activations_.data(), host_workspace_.data()};
    for (DeviceIndex i = 1; i < plan.devices.size(); ++i) {
        const DeviceMemory& bytes = plan.memory[i];
        if (bytes.allocated() == 0) continue;  // nothing was placed there: leave it to others
        const tsr_device_provider* provider = registry.find_provider(*plan.devices[i]);
        if (!provider) fail(TSR_INTERNAL, "{} has lost its plugin", plan.devices[i]->id);
        devices_[i] = std::make_unique<OpenDevice>(*provider, *plan.devices[i]);
        arenas_[i] = {devices_[i]->allocate(bytes.weights), devices_[i]->allocate(bytes.cache),
                      devices_[i]->allocate(bytes.activations), devices_[i]->allocate(bytes.workspace)};
    }
}

void* PlanMemory::address(const Instance& instance, tsr_role role) const {
    const Arenas& arenas = arenas_[instance.device];
    void* arena = role == TSR_ROLE_WEIGHT ? arenas.weights : role == TSR_ROLE_CACHE ? arenas.cache : arenas.activations;
    return static_cast<std::byte*>(arena) + instance.offset;
}

void PlanMemory::touch_host() {
    constexpr uint64_t kPage = 4096;
    for (HostBlock* block : {&host_cache_, &host_activations_, &host_workspace_, &host_staging_}) {
        for (uint64_t at = 0; at < block->size(); at += kPage) block->data()[at] = std::byte{0};
    }
}

bool PlanMemory::lock_host() const {
    bool all = true;
    for (const HostBlock* block :
         {&host_weights_, &host_cache_, &host_activations_, &host_workspace_, &host_staging_}) {
        all = block->lock() && all;
    }
    return all;
}

}  // namespace tessera
