// Libraries of plugins, mapped once in a process and never unmapped.
#pragma once

#include "core/hardware/hardware.hpp"
#include "core/registry/manifest.hpp"

#include <tessera/plugin.h>

#include <filesystem>
#include <string>

namespace tessera {

struct Module {
    const tsr_plugin* table = nullptr;  // nullptr if the library cannot be used
    std::string failure;                // why
};

// Maps the library, queries its table, checks that against the manifest and initialises the plugin; later calls return
// the result of the first one. `library` is absolute, trusted, and has the manifest's hash. Any thread.
Module open_module(const std::filesystem::path& library, const Manifest& manifest, const Hardware& hardware);

}  // namespace tessera
