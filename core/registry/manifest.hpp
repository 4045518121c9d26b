// A plugin's manifest: what the core knows of a library before mapping it. docs/plugin-manifest.md describes the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera {

struct Manifest {
    std::string name;
    std::string version;
    uint32_t abi_major = 0;
    uint32_t abi_minor = 0;
    std::string library;  // a file name, beside the manifest
    std::string sha256;   // of the library, 64 lower-case hexadecimal digits
    std::string summary;  // one line for people; may be empty

    std::vector<std::string> kinds;  // device kinds that it has kernels or a provider for; empty: operators only
    std::optional<std::vector<std::string>> ops;  // that it has kernels for or provides as operators, if it states them

    std::vector<std::string> cpu_flags;  // all are needed to run its kernels
    // Those that are needed to map it and to plan with it; cpu_flags if it does not say.
    std::vector<std::string> plan_cpu_flags;
    uint32_t minimum_compute_capability = 0;  // 100 * major + 10 * minor, inclusive
    uint32_t maximum_compute_capability = UINT32_MAX;
    std::string minimum_driver;  // of the GPU: "520.61"; empty: any
    int32_t priority = 0;        // between providers of one device and kernels of one estimate; the larger wins
};

// Throws Error(TSR_CORRUPT_DATA) naming file, line and key.
Manifest parse_manifest(std::string_view text, const std::filesystem::path& file);

// Also throws what File throws.
Manifest read_manifest(const std::filesystem::path& file);

}  // namespace tessera
