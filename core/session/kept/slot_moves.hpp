// A slot's text to a file and back, while others' requests go on.
#pragma once

#include "core/session/kept/page_identity.hpp"
#include "core/session/service.hpp"

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

namespace tessera::session {

struct MovedSlot {
    uint32_t tokens = 0;
    uint64_t bytes = 0;  // of the file
};

// Pages are copied between steps, about 32 MiB at once, and files read and written by the caller, which waits. Both
// throw Error: what SlotWriter and SlotReader throw, what Service::between_steps throws.
MovedSlot save_slot(Service& service, const PageIdentity& identity, const std::filesystem::path& path,
                    const std::string& space, uint32_t slot);
// `page_bytes`: of a page of each group. Also TSR_NOT_FOUND, and TSR_DOES_NOT_FIT where others use all of the cache.
// If it throws nothing has changed, but that texts which nobody used may have been forgotten.
MovedSlot restore_slot(Service& service, const PageIdentity& identity, std::span<const uint64_t> page_bytes,
                       const std::filesystem::path& path, const std::string& space, uint32_t slot);
// Returns the tokens of the text that it had. Waits for files to be removed; throws Error(TSR_IO_ERROR) if that fails
// or takes too long: this process finds the text no more, and writes no page of it.
uint32_t erase_slot(Service& service, const std::string& space, uint32_t slot);

}  // namespace tessera::session
