// Instruction sets of processors by the names of /proc/cpuinfo.
#pragma once

#include <tessera/device.h>

#include <string>
#include <string_view>
#include <vector>

namespace tessera {

// Flags of the processor that this process runs on, sorted, named as /proc/cpuinfo names them. Those whose registers
// the operating system does not save (AVX, AVX-512, AMX state in XCR0) are left out. Any thread.
const std::vector<std::string>& host_cpu_flags();

// Whether `info`, a CPU, has the flag.
bool has_cpu_flag(const tsr_device_info& info, std::string_view flag) noexcept;

// Flags that this program knows, sorted, as /proc/cpuinfo names them. Any thread.
const std::vector<std::string_view>& known_cpu_flags();
// For people: what the processor has and the system refuses to this process, and why. Empty: nothing. Any thread.
const std::string& withheld_cpu_flags();

}  // namespace tessera
