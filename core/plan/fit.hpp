// How much of each device's memory a plan may use, and what to do where that is too little.
#pragma once

#include "core/base/notice.hpp"
#include "core/plan/plan.hpp"

#include <optional>

namespace tessera {

// Whether the two are one card, or parts of it that are devices of their own.
bool on_one_card(const tsr_device_info& a, const tsr_device_info& b);

// The device with the memory of all `devices` that are parts of its card.
tsr_device_info whole_card(Devices devices, DeviceIndex device);

// What is left free of a device for the driver's context and the code that it loads. A process has one context on a
// card: those of `devices` that are parts of it leave room for one together, each in proportion to its memory. An
// estimate: a context is made only when a model is loaded.
uint64_t context_bytes(Devices devices, DeviceIndex device);

// How much of a device the plan may not exceed: free memory less context_bytes and a margin.
uint64_t usable_bytes(Devices devices, DeviceIndex device);

// "CPU needs 352.80 GiB, 22.50 GiB available: 330.30 GiB missing", and what would help: for a device that the plan asks
// too much of; nothing for another.
std::optional<Notice> misfit(const Plan& plan, DeviceIndex device);

// Throws Error(TSR_DOES_NOT_FIT) with the reason of the first device that the plan does not fit.
void check_fit(const Plan& plan);

}  // namespace tessera
