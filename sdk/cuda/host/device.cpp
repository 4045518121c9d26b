#include "device.hpp"

#include <tessera/cuda/images.hpp>

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tessera::cuda {
namespace {

using sdk::Failure;

// CUdevice_attribute
constexpr int kComputeMajor = 75;
constexpr int kComputeMinor = 76;

bool same_text(std::string_view a, std::string_view b) {
    return std::ranges::equal(a, b,
                              [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

// The driver's number of the card that `info` describes: by its place on the bus where that is known, since the order
// of cards can be changed from outside, else by its index.
DeviceNumber find_card(const Driver& driver, const tsr_device_info& info, const std::string& id) {
    int count = 0;
    driver.check(driver.device_count(&count), "cuDeviceGetCount", id);
    const std::string_view wanted = info.pci_id ? info.pci_id : "";
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        if (wanted.empty() && static_cast<uint32_t>(ordinal) != info.index) continue;
        DeviceNumber number = 0;
        driver.check(driver.device(&number, ordinal), "cuDeviceGet", id);
        char pci_id[32] = "";
        if (!wanted.empty()) {
            driver.check(driver.device_pci_id(pci_id, sizeof pci_id - 1, number), "cuDeviceGetPCIBusId", id);
            if (!same_text(wanted, pci_id)) continue;
        }
        return number;
    }
    throw Failure(TSR_NOT_FOUND, id + ": expected a card " +
                                     (wanted.empty() ? "of index " + std::to_string(info.index)
                                                     : "at " + std::string(wanted) + " of the bus") +
                                     "; the driver lists " + std::to_string(count) + " cards, and it is none of them");
}

}  // namespace

Device::Device(const tsr_device_info& info)
    : driver_(Driver::get()), id_(info.id && *info.id ? info.id : "CUDA?"), table_(make_table(info, this)) {
    number_ = find_card(driver_, info, id_);
    int major = 0, minor = 0;
    check(driver_.device_attribute(&major, kComputeMajor, number_), "cuDeviceGetAttribute", "compute capability");
    check(driver_.device_attribute(&minor, kComputeMinor, number_), "cuDeviceGetAttribute", "compute capability");
    if (const auto found = static_cast<uint32_t>(100 * major + 10 * minor); found != info.compute_capability) {
        throw Failure(TSR_INVALID_ARGUMENT, id_ + ": expected a card of compute capability " +
                                                capability_text(info.compute_capability) + "; the driver says " +
                                                capability_text(found));
    }
    check(driver_.retain_context(&context_, number_), "cuDevicePrimaryCtxRetain", "opening");
}

Device::~Device() {
    discard_recording();
    driver_.release_context(number_);
}

void Device::note(const std::exception& error) noexcept {
    if (!recording_here() || !spoilt_.empty()) return;
    try {
        spoilt_ = error.what();
    } catch (const std::bad_alloc&) {
        spoilt_ = "?";  // short enough to need no memory
    }
}

}  // namespace tessera::cuda
