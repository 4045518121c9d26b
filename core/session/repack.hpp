// Writes a copy of a model whose weights are packed for the kernels of this machine, so that loading only maps it.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"
#include "core/run/loader.hpp"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace tessera {

struct RepackedFile {
    uint64_t bytes = 0;                       // of tensors
    std::map<std::string, uint64_t> tensors;  // how many of each type: {"q4_0_x8", 267}
};

// Writes `to`: one file, all metadata, and each tensor in the layout that `plan` has for it on the CPU, if it has one
// alone there and files know it; else as it is. `plan` is of this file. `to` appears when it is complete. Throws Error:
// TSR_INVALID_ARGUMENT if `to` is a part of `file`, TSR_DOES_NOT_FIT if the disk has too little room, TSR_CANCELLED
// soon after `stop` is set, and what reading and writing throw; nothing is left behind then.
RepackedFile repack(const gguf::GgufFile& file, const Plan& plan, const Registry& registry,
                    const std::filesystem::path& to, const LoadProgress& progress, const std::atomic<bool>& stop);

}  // namespace tessera
