#include "core/run/device_uploads.hpp"

#include "core/run/each_on_team.hpp"
#include "core/run/for_weight.hpp"

#include <algorithm>
#include <string_view>

namespace tessera {

DeviceUploads::DeviceUploads(PlanMemory& memory, const WeightSource& source, Team& team, std::span<std::byte> buffers,
                             uint32_t count)
    : memory_(memory),
      source_(source),
      team_(team),
      buffers_(buffers),
      buffer_bytes_(buffers.size() / count),
      halves_(count > 1 ? 2 : 1),
      of_half_(count / halves_) {}

DeviceUploads::~DeviceUploads() {
    // After a failure copies may still read the buffers.
    for (auto& [index, target] : targets_) {
        if (target.under_way[0] || target.under_way[1]) target.device->drain(target.queue);
    }
    for (OpenDevice* device : locked_) device->unregister_host(buffers_.data());
}

DeviceUploads::Target& DeviceUploads::target(DeviceIndex index) {
    if (const auto found = targets_.find(index); found != targets_.end()) return found->second;
    OpenDevice& device = *memory_.device(index);
    // Memory that one device has page-locked is so for all of its interop.
    const bool is_locked = std::ranges::any_of(locked_, [&](const OpenDevice* other) {
        return std::string_view(other->abi()->interop) == device.abi()->interop;
    });
    constexpr uint64_t kPage = 4096;  // a mapping consists of whole pages
    const uint64_t bytes = (buffers_.size() + kPage - 1) / kPage * kPage;
    if (!is_locked && device.register_host(buffers_.data(), bytes)) locked_.push_back(&device);
    Target made{&device, device.loading_queue(), {device.create_event(), device.create_event()}, {}};
    return targets_.emplace(index, made).first->second;
}

void DeviceUploads::wait_for_half(uint32_t half) {
    for (auto& [index, target] : targets_) {
        if (!target.under_way[half]) continue;
        for_weight(*target.under_way[half], [&] { target.device->wait(target.copied[half]); });
        target.under_way[half] = nullptr;
    }
}

void DeviceUploads::wait_for_all() {
    for (auto& [index, target] : targets_) {
        const std::string* weight = target.under_way[0] ? target.under_way[0] : target.under_way[1];
        if (!weight) continue;
        for_weight(*weight, [&] { target.device->wait_queue(target.queue); });
        target.under_way[0] = target.under_way[1] = nullptr;
    }
}

void DeviceUploads::run(std::span<const DeviceUpload> uploads, const std::function<void(uint64_t bytes)>& done) {
    uint32_t half = 0;
    for (size_t first = 0; first < uploads.size(); first += of_half_, half = (half + 1) % halves_) {
        const auto part = uploads.subspan(first, std::min<size_t>(of_half_, uploads.size() - first));
        std::byte* const buffers = buffers_.data() + half * of_half_ * buffer_bytes_;
        wait_for_half(half);
        each_on_team(team_, 0, part.size(), [&](uint32_t, size_t i) {
            source_.read(*part[i].weight, part[i].offset, {buffers + i * buffer_bytes_, part[i].bytes});
        });
        for (size_t i = 0; i < part.size(); ++i) {
            const DeviceUpload& upload = part[i];
            for_weight(*upload.weight, [&] {
                Target& to = target(upload.device);
                to.under_way[half] = upload.weight;
                to.device->upload(to.queue, upload.to, buffers + i * buffer_bytes_, upload.bytes);
            });
            done(upload.bytes);
        }
        for (auto& [index, to] : targets_) {
            if (to.under_way[half])
                for_weight(*to.under_way[half], [&] { to.device->record(to.queue, to.copied[half]); });
        }
    }
    wait_for_all();
}

}  // namespace tessera
