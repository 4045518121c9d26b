// Checks of an opened device that do not use it.
#pragma once

#include <tessera/device.h>

#include <cstdint>
#include <string>

namespace tessera::sdk {

// The first required function that is missing, or an optional group that is incomplete; empty if nothing is wrong.
// `device` may point to any readable memory.
inline std::string device_fault(const tsr_device& device) {
    if (device.struct_size < sizeof(tsr_device)) {
        return "struct_size is " + std::to_string(device.struct_size) + ", expected at least " +
               std::to_string(sizeof(tsr_device));
    }
    if (!device.info) return "info is NULL";
    if (!device.interop || !*device.interop) return "it has no interop";
    struct Function {
        const char* name;
        bool there;
    };
#define TSR_FUNCTION(name)            \
    Function {                        \
#name, device.name != nullptr \
    }
    const Function required[] = {
        TSR_FUNCTION(allocate),      TSR_FUNCTION(release),      TSR_FUNCTION(create_queue),
        TSR_FUNCTION(destroy_queue), TSR_FUNCTION(wait_queue),   TSR_FUNCTION(create_event),
        TSR_FUNCTION(destroy_event), TSR_FUNCTION(record_event), TSR_FUNCTION(queue_wait_event),
        TSR_FUNCTION(query_event),   TSR_FUNCTION(wait_event),   TSR_FUNCTION(upload),
        TSR_FUNCTION(download),      TSR_FUNCTION(copy),         TSR_FUNCTION(close)};
    for (const Function& function : required) {
        if (!function.there) return std::string("the function ") + function.name + " is missing";
    }
    struct Group {
        Function functions[4];
    };
    const Group groups[] = {
        {{TSR_FUNCTION(allocate_pinned), TSR_FUNCTION(release_pinned), {nullptr, false}, {nullptr, false}}},
        {{TSR_FUNCTION(register_host), TSR_FUNCTION(unregister_host), {nullptr, false}, {nullptr, false}}},
        {{TSR_FUNCTION(can_reach_peer), TSR_FUNCTION(copy_from_peer), {nullptr, false}, {nullptr, false}}},
        {{TSR_FUNCTION(begin_recording), TSR_FUNCTION(end_recording), TSR_FUNCTION(destroy_recording),
          TSR_FUNCTION(replay)}}};
#undef TSR_FUNCTION
    for (const Group& group : groups) {
        const Function *present = nullptr, *missing = nullptr;
        for (const Function& function : group.functions) {
            if (function.name) (function.there ? present : missing) = &function;
        }
        if (present && missing) {
            return std::string("the function ") + present->name + " is present, and " + missing->name +
                   ", which belongs to it, is missing";
        }
    }
    return {};
}

// What is wrong with an address that the device allocated.
inline std::string address_fault(const tsr_device& device, const void* address, uint64_t bytes) {
    if (!address) return "allocate succeeded, and the address is NULL";
    const uint64_t alignment = device.info->allocation_alignment ? device.info->allocation_alignment : 1;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if (at % alignment != 0) return "the address is not aligned to " + std::to_string(alignment) + " bytes";
    if (at + bytes < at) return "the memory does not end within the address space";
    return {};
}

}  // namespace tessera::sdk
