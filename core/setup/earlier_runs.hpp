// What earlier runs on this machine reached of their predicted speed, kept in a file of the user's cache folder. It
// corrects what is said of a plan; no plan follows from it.
#pragma once

#include "core/gguf/reader.hpp"
#include "core/model/model.hpp"
#include "core/plan/plan.hpp"
#include "core/registry/registry.hpp"
#include "core/session/step_comparison.hpp"
#include "core/setup/loading.hpp"
#include "core/setup/machine.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tessera {

// Of steps of one kind.
struct EarlierRatio {
    double ratio = 0;   // measured speed over predicted speed: a moving average over runs; 0: no run
    uint32_t runs = 0;  // that it is of
};

struct EarlierRuns {
    EarlierRatio prompts, generation;
    bool any() const noexcept { return prompts.runs > 0 || generation.runs > 0; }
};

// What a ratio holds for, as 64 hexadecimal digits: the devices that compute and what is known of their speed, the
// plugins' libraries, kernels and variants that the plan has chosen on each, and the model's architecture, sizes and
// types. Not the file's name, nor the context: the same kernels compute then, and the prediction knows the context.
std::string prediction_key(const gguf::GgufFile& file, const ModelInfo& info, const Plan& plan,
                           const Registry& registry);

// "earlier-runs.toml" in the user's cache folder; nothing if there is no such folder to be had.
std::optional<std::filesystem::path> default_earlier_runs_file();

// Nothing without the file, or where it says nothing of the key. What is not as add_run writes it is left out as a
// whole, which `say` is told.
EarlierRuns read_earlier_runs(const std::filesystem::path& file, std::string_view key, const NoticeSink& say);
// Adds what a run has compared, if that was enough of it, and replaces the file as a whole; `model` is for people.
// Entries that have not been added to for longest make room. A folder that cannot be written to is no error.
void add_run(const std::filesystem::path& file, std::string_view key, std::string_view model,
             const StepComparisons& compared, const NoticeSink& say) noexcept;

// Notes in the kept speed of this machine's CPU (note_run_speed) what generation reached of its predicted speed, if all
// nodes of the plan are on the CPU: the speed of a GPU says nothing about the memory of the host.
void note_generation_speed(const std::filesystem::path& speed_file, const DeviceDescription& cpu, const Plan& plan,
                           const ComparedSteps& generation) noexcept;

// The same for a plan of this machine, and at the end of a run, with the default file. Nothing for a rig, and where
// the configuration says so (keep_speeds). keep_run() also notes a run that outran this machine's measured speed.
EarlierRuns earlier_runs(const Machine& machine, const gguf::GgufFile& file, const PlannedModel& planned,
                         const NoticeSink& say);
void keep_run(const Machine& machine, const Engine& engine, const NoticeSink& say) noexcept;

}  // namespace tessera
