// What every command needs: configuration, hardware, plugins, the model's file.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/hardware/hardware.hpp"
#include "core/registry/config.hpp"
#include "core/registry/registry.hpp"
#include "core/setup/settings.hpp"
#include "core/text/tokenizer.hpp"

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// This machine with the user's configuration applied, or the machine of a rig file. `threads`: of the team, at most as
// many as there are CPUs; 0: all cores. `numa`: kIsolate plans for one node of memory.
struct Machine {
    Config config;
    uint32_t processors;  // CPUs at hand: affinity and CPU quota of this process, or the threads of the rig
    Hardware hardware;    // its team has at most `processors` threads
    Registry registry;
    // Things that the configuration or the settings name and that do not exist, a line each.
    std::vector<Notice> remarks;

    explicit Machine(const CommonSettings& settings, const std::optional<std::filesystem::path>& rig = {},
                     uint32_t threads = 0, NumaMode numa = NumaMode::kNone);
};

// Threads that the settings ask for at most; 0 if they ask for nothing.
uint32_t asked_threads(const EngineOptions& options);

// A number of threads that was lowered to the CPUs at hand.
struct CappedThreads {
    enum class Use : uint8_t { kGeneration, kPrompts, kDraftGeneration, kDraftPrompts };
    Use use;
    uint32_t requested;
};

// Lowers the threads of the settings, those of the draft model included, to `cpus`: more threads than CPUs only wait
// for each other. Returns the numbers that it lowered. To be called before settle().
std::vector<CappedThreads> cap_threads(ModelSettings& settings, uint32_t cpus);

// "2 CPUs are available to this process (affinity, CPU quota), so 2 threads are used"
std::string capped_threads_text(uint32_t cpus);

// The bundled model, in the installation of the program. Throws Error(TSR_NOT_FOUND) with the places searched.
std::filesystem::path bundled_model();

struct OpenedModel {
    std::filesystem::path path;
    bool bundled = false;
    gguf::GgufFile file;
};
OpenedModel open_model(const CommonSettings& settings);

// The message that an override names a key that the file does not have.
Notice unknown_key(const std::string& key, const gguf::GgufFile& file);

// Checks settings against the model and the machine, adds the config's placement rules after the user's own, and
// returns a line for each setting that has no effect. Throws Error: TSR_UNSUPPORTED, TSR_NOT_FOUND without any
// plugin, and what require_values throws where values are to be checked.
std::vector<Notice> settle(ModelSettings& settings, const OpenedModel& model, const Machine& machine);

}  // namespace tessera
