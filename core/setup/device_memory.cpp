#include "core/setup/device_memory.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/run/open_device.hpp"

namespace tessera {
namespace {

std::string memory_line(const Registry& registry, const tsr_device_provider& provider, const tsr_device_info& info) {
    const OpenDevice device(provider, info, registry.owner(provider).table->name);
    const std::optional<DriverMemory> memory = device.memory();
    return memory
               ? fmt::format("{} free of {}, as the driver counts", size_text(memory->free), size_text(memory->total))
               : "the driver does not report it";
}

}  // namespace

std::map<std::string, std::string> driver_memory(const Hardware& hardware, const Registry& registry) {
    std::map<std::string, std::string> lines;
    if (hardware.is_rig()) return lines;
    for (const tsr_device_info* info : hardware.devices().subspan(1)) {
        try {
            if (const tsr_device_provider* provider = registry.find_provider(*info))
                lines[info->id] = memory_line(registry, *provider, *info);
        } catch (const Error& error) {
            lines[info->id] = fmt::format("unknown: {}", error.what());
        }
    }
    return lines;
}

}  // namespace tessera
