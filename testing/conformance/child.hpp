// What runs in a child process: the cases of one kernel, layout or device, each announced before it is run.
//
// On the descriptor come lines of words with tabs between them: "begin NAME", then "pass TEXT", "skip TEXT" (not
// claimed) or "fail TEXT"; "fault TEXT" where the process then dies; "end" after the last.
#pragma once

#include "kernel_check.hpp"

#include <cstddef>
#include <string>

namespace tessera::conformance {

// The cases of the plugin's kernel of this name for the CPU, from number `first` on. The process crashes where the
// kernel does.
void run_kernel_cases(const Setting& setting, const std::string& kernel, size_t first, int descriptor);
// How long the kernel takes of the same cases, next to the kernels of setting.reference.
void run_kernel_times(const Setting& setting, const std::string& kernel, size_t first, int descriptor);
// All layouts that the plugin brings.
void run_layout_cases(const Setting& setting, size_t first, int descriptor);
// A provider with a device that it matches, through the whole interface, and layouts that are made on it. `index`: of
// the provider in the plugin's table, or in that of Setting::owner, whose interface is not tested. peer: another
// device; if the provider does not match it, or it is the same, the device is opened twice.
void run_device_cases(const Setting& setting, uint32_t index, const tsr_device_info& device,
                      const tsr_device_info& peer, size_t first, int descriptor);
// The cases of the plugin's kernel of this name on such a device; the provider is Setting::owner's, if there is one.
void run_device_kernel_cases(const Setting& setting, uint32_t index, const tsr_device_info& device,
                             const std::string& kernel, size_t first, int descriptor);

}  // namespace tessera::conformance
