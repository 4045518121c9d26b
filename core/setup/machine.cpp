#include "core/setup/machine.hpp"

#include "core/base/error.hpp"
#include "core/base/nearest.hpp"
#include "core/base/text.hpp"
#include "core/hardware/available_cpus.hpp"
#include "core/hardware/cpu_flags.hpp"
#include "core/hardware/numa.hpp"
#include "core/hardware/speed_file.hpp"
#include "core/model/model.hpp"
#include "core/registry/refused.hpp"
#include "core/setup/model_check.hpp"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

namespace tessera {
namespace {

constexpr const char* kNoOwner = "no plugin owns devices of its kind";

namespace fs = std::filesystem;

Config read_configuration(const CommonSettings& settings) {
    Config config;
    if (settings.config) {
        config = read_config(*settings.config);
    } else if (const auto file = default_config_file()) {
        config = read_config(*file);
    }
    config.plugin_folders.insert(config.plugin_folders.end(), settings.plugin_folders.begin(),
                                 settings.plugin_folders.end());
    return config;
}

using Gpus = std::span<const tsr_device_info* const>;

std::string count_of(Gpus gpus) {
    return gpus.size() == 1 ? "is 1 GPU" : fmt::format("are {} GPUs", gpus.size());
}

std::string ids_of(Gpus gpus) {
    std::string ids;
    for (const tsr_device_info* gpu : gpus) ids += (ids.empty() ? "" : ", ") + std::string(gpu->id);
    return ids;
}

void apply(const DeviceChoice& choice, Hardware& hardware) {
    if (choice.gpus) {
        try {
            hardware.keep_gpus(*choice.gpus);
        } catch (const Error& error) {
            fail(error.code(), Notice::on(Setting::kDevices, "", error.what()));
        }
    }
    if (choice.only && hardware.devices().size() > 1) {
        const auto gpus = hardware.devices().subspan(1);
        if (*choice.only >= gpus.size()) {
            fail(TSR_NOT_FOUND,
                 Notice::on(Setting::kOneDevice, std::to_string(*choice.only),
                            fmt::format("there {} here, numbered from 0: {}", count_of(gpus), ids_of(gpus))));
        }
        hardware.keep_gpus(std::vector<std::string>{gpus[*choice.only]->id});
    }
    if (choice.margins.empty()) return;
    const auto all = hardware.devices().subspan(1);
    if (!all.empty() && choice.margins.size() > all.size()) {
        fail(TSR_INVALID_ARGUMENT,
             Notice::on(Setting::kDeviceMargins, "",
                        fmt::format("there are {} margins, but there {}: {}; give at most one for each",
                                    choice.margins.size(), count_of(all), ids_of(all))));
    }
    size_t at = 0;
    for (const tsr_device_info* gpu : hardware.devices().subspan(1)) {
        const uint64_t margin = choice.margins[std::min(at++, choice.margins.size() - 1)];
        hardware.limit_memory(gpu->id, gpu->free_memory_bytes - std::min(margin, gpu->free_memory_bytes));
    }
}

// The configuration describes this machine and does not apply to a rig.
Hardware find_hardware(const Config& config, const CommonSettings& settings, const std::optional<fs::path>& rig,
                       uint32_t threads, uint32_t cpus, NumaMode numa) {
    Hardware hardware = rig ? Hardware::from_rig(*rig) : Hardware::detect();
    apply(config, hardware);
    apply(settings.devices, hardware);
    if (threads) hardware.set_threads(threads);
    if (hardware.cpu().threads > cpus) hardware.set_threads(cpus);
    apply_speed(hardware, default_speed_file(hardware.cpu_description()));
    if (numa == NumaMode::kIsolate) hardware.isolate_node();
    return hardware;
}

// Folders without a usable plugin, refused and disabled plugins, more threads than CPUs, and what is not of the rig.
std::vector<Notice> idle_names(const CommonSettings& settings, const Config& config, const Hardware& hardware,
                               const Registry& registry, uint32_t cpus) {
    std::vector<Notice> lines;
    std::vector<std::string_view> names;
    for (const PluginRecord& record : registry.plugins()) {
        if (!record.manifest.name.empty()) names.push_back(record.manifest.name);
    }
    // Those of the command line are the last of the configuration's.
    const size_t of_file = config.plugin_folders.size() - settings.plugin_folders.size();
    for (size_t i = 0; i < config.plugin_folders.size(); ++i) {
        const fs::path& folder = config.plugin_folders[i];
        // Of the file, or of the user.
        const auto note = [&](const std::string& text, std::vector<Advice> advice = {}) {
            lines.push_back(i < of_file ? Notice(fmt::format("{}: plugins.folders: {}: {}", config.file.string(),
                                                             folder.string(), text),
                                                 std::move(advice))
                                        : Notice::on(Setting::kPluginFolder, folder.string(), text, std::move(advice)));
        };
        size_t found = 0, used = 0;
        for (const PluginRecord& record : registry.plugins()) {
            if (record.path.parent_path() != folder && record.path != folder) continue;
            ++found;
            used += record.state == PluginState::kChosen;
        }
        std::error_code unused;
        if (!fs::is_directory(folder, unused)) {
            note("there is no such folder");
        } else if (found == 0) {
            note("holds no plugin");
        } else if (used == 0) {
            note("none of its plugins is used", {{AdviceCode::kSeeWhyNotUsed, ""}});
        }
    }
    if (const std::string refused = refused_plugins(registry, config, hardware); !refused.empty())
        lines.emplace_back(
            Notice(fmt::format("plugins that are not used: {}", refused), {{AdviceCode::kSeeWhyNotUsed, ""}}));
    if (hardware.is_rig() && (config.threads || !config.devices.empty()))
        lines.emplace_back(
            fmt::format("{}: threads and devices are those of this machine, not of the rig", config.file.string()));
    if (!hardware.is_rig() && config.threads > cpus)
        lines.emplace_back(
            fmt::format("{}: threads = {}: {}", config.file.string(), config.threads, capped_threads_text(cpus)));
    for (const std::string& name : config.off) {
        if (std::ranges::find(names, name) != names.end()) continue;
        lines.emplace_back(fmt::format("{}: plugins.off: there is no plugin '{}'{}", config.file.string(),
                                       printable(name, 60), did_you_mean(name, names)));
    }
    return lines;
}

bool has_gpu(const Machine& machine) {
    return std::ranges::any_of(machine.hardware.devices().subspan(1), [&](const tsr_device_info* device) {
        return machine.registry.find_provider(*device, nullptr) != nullptr;
    });
}

// Settings for hardware that the machine does not have.
std::vector<Notice> idle_on_machine(const ModelSettings& settings, const Machine& machine) {
    std::vector<Notice> lines;
    const PlacementOptions& placement = settings.engine.placement;
    Notice idle("no GPU is used here, so that all layers are on the CPU");
    if (placement.gpu_layers > 0) idle.about.push_back(Setting::kGpuLayers);
    if (!placement.tensor_split.empty()) idle.about.push_back(Setting::kTensorSplit);
    if (!idle.about.empty() && !has_gpu(machine)) lines.push_back(std::move(idle));
    return lines;
}

// Throws Error(TSR_UNSUPPORTED) if one of the GPUs that the user names cannot be used.
void check_chosen(const DeviceChoice& choice, const Machine& machine) {
    if (!choice.gpus && !choice.only) return;
    for (const tsr_device_info* gpu : machine.hardware.devices().subspan(1)) {
        std::string why;
        if (machine.registry.find_provider(*gpu, &why)) continue;
        fail(TSR_UNSUPPORTED, Notice::on(choice.only ? Setting::kOneDevice : Setting::kDevices, "",
                                         fmt::format("{} ({}) cannot be used: {}", gpu->id, printable(gpu->name),
                                                     why.empty() ? kNoOwner : why)));
    }
}

// GPUs that no plugin uses, those with one name and one reason in one line.
std::vector<Notice> unused_gpus(const Machine& machine) {
    struct Group {
        std::string ids, name, why;
        bool is_built;
    };
    std::vector<Group> groups;
    for (const tsr_device_info* device : machine.hardware.devices().subspan(1)) {
        std::string why;
        if (machine.registry.find_provider(*device, &why)) continue;
        const bool is_built = std::ranges::any_of(machine.registry.plugins(), [&](const PluginRecord& record) {
            return std::ranges::find(record.manifest.kinds, device->kind) != record.manifest.kinds.end();
        });
        const auto same =
            std::ranges::find_if(groups, [&](const Group& g) { return g.name == device->name && g.why == why; });
        if (same != groups.end()) {
            same->ids += fmt::format(", {}", device->id);
        } else {
            groups.push_back({device->id, device->name, why, is_built || std::string_view(device->kind) != "cuda"});
        }
    }
    std::vector<Notice> lines;
    for (const Group& group : groups) {
        std::string why = group.why.empty() ? kNoOwner : group.why;
        for (size_t at = 0; (at = why.find('\n', at)) != std::string::npos;) why.replace(at, 1, "; ");
        Notice notice(fmt::format("{} ({}) without a plugin, not used: {}", group.ids, printable(group.name), why));
        if (!group.is_built) notice.advice.push_back({AdviceCode::kBuildForCuda, ""});
        lines.push_back(std::move(notice));
    }
    return lines;
}

// Plugins for processors that the one of a rig lacks flags for.
std::vector<Notice> plugins_without_flags(const Machine& machine) {
    std::vector<Notice> lines;
    for (const PluginRecord& record : machine.registry.plugins()) {
        std::string missing;
        for (const std::string& flag : record.manifest.cpu_flags) {
            if (!has_cpu_flag(machine.hardware.cpu(), flag)) missing += (missing.empty() ? "" : ", ") + flag;
        }
        if (record.state != PluginState::kRejected || missing.empty()) continue;
        lines.push_back(Notice::on(Setting::kRig, "",
                                   fmt::format("the plugin {} is not used: the processor ({}) lacks {}",
                                               record.manifest.name, printable(machine.hardware.cpu().name), missing)));
    }
    return lines;
}

void check_plugins(const Machine& machine) {
    const Registry& registry = machine.registry;
    if (std::ranges::any_of(registry.plugins(), [](const auto& record) { return record.table != nullptr; })) return;
    const bool any = std::ranges::any_of(registry.plugins(), [](const auto& r) { return !r.manifest.name.empty(); });
    std::string folders;
    for (const fs::path& folder : registry.folders()) folders += (folders.empty() ? "" : ", ") + folder.string();
    if (const std::string refused = refused_plugins(registry, machine.config, machine.hardware); !refused.empty()) {
        fail(TSR_UNSUPPORTED, Notice(fmt::format("no plugin can be used: {} (in {})", refused, folders),
                                     {{AdviceCode::kSeeWhyNotUsed, ""}}));
    }
    fail(TSR_NOT_FOUND, Notice(fmt::format("{} found in {}; keep the program's folders bin/ and lib/ together",
                                           any ? "no plugin that can be used was" : "no plugins", folders),
                               {{AdviceCode::kNamePluginFolder, ""}}));
}

void check_devices(const std::vector<TensorRule>& rules, const Hardware& hardware) {
    for (const TensorRule& rule : rules) {
        if (hardware.find(rule.device)) continue;
        std::string ids;
        for (const tsr_device_info* device : hardware.devices())
            ids += fmt::format("{}{}", ids.empty() ? "" : ", ", device->id);
        fail(TSR_NOT_FOUND, Notice::on(Setting::kTensorRules,
                                       fmt::format("{}={}", printable(rule.pattern, 60), printable(rule.device, 60)),
                                       fmt::format("names a device that is not here; there are: {}", ids)));
    }
}

}  // namespace

Machine::Machine(const CommonSettings& settings, const std::optional<fs::path>& rig, uint32_t threads, NumaMode numa)
    : config(read_configuration(settings)),
      processors(rig ? std::max(Hardware::from_rig(*rig).cpu().threads, 1u) : available_cpus()),
      hardware(find_hardware(config, settings, rig, threads, processors, numa)),
      registry(Registry::load(config, hardware)),
      remarks(idle_names(settings, config, hardware, registry, processors)) {}

uint32_t asked_threads(const EngineOptions& options) {
    return std::max(options.threads, options.prompt_threads);
}

std::string capped_threads_text(uint32_t cpus) {
    return fmt::format("{} available to this process (affinity, CPU quota), so {} used",
                       cpus == 1 ? "1 CPU is" : fmt::format("{} CPUs are", cpus),
                       cpus == 1 ? "1 thread is" : fmt::format("{} threads are", cpus));
}

std::vector<CappedThreads> cap_threads(ModelSettings& settings, uint32_t cpus) {
    std::vector<CappedThreads> capped;
    const auto cap = [&](uint32_t& threads, CappedThreads::Use use) {
        if (threads <= cpus) return;
        capped.push_back({use, threads});
        threads = cpus;
    };
    cap(settings.engine.threads, CappedThreads::Use::kGeneration);
    cap(settings.engine.prompt_threads, CappedThreads::Use::kPrompts);
    cap(settings.drafts.threads, CappedThreads::Use::kDraftGeneration);
    cap(settings.drafts.prompt_threads, CappedThreads::Use::kDraftPrompts);
    return capped;
}

fs::path bundled_model() {
    std::error_code error;
    const fs::path program = fs::read_symlink("/proc/self/exe", error);
    const fs::path folder = program.parent_path().parent_path() / "share" / "tessera" / "models";
    std::vector<fs::path> found;
    if (fs::is_directory(folder, error)) {
        for (const auto& entry : fs::directory_iterator(folder, error)) {
            const std::string name = entry.path().filename().string();
            if (name.starts_with("demo-") && name.ends_with(".gguf")) found.push_back(entry.path());
        }
    }
    if (found.empty()) {
        fail(TSR_NOT_FOUND, Notice(fmt::format("no bundled model (demo-*.gguf) in {}", folder.string()),
                                   {{AdviceCode::kNameModel, ""}}));
    }
    return std::ranges::min(found);
}

OpenedModel open_model(const CommonSettings& settings) {
    const bool bundled = !settings.model;
    fs::path path = bundled ? bundled_model() : *settings.model;
    gguf::GgufFile file = gguf::GgufFile::open(path, settings.overrides);
    file.override_metadata(rope_overrides(settings.rope, file.metadata()));
    return {std::move(path), bundled, std::move(file)};
}

Notice unknown_key(const std::string& key, const gguf::GgufFile& file) {
    std::vector<std::string_view> known;
    for (const auto& entry : file.metadata().entries()) {
        if (entry.key != key) known.push_back(entry.key);
    }
    return Notice::on(Setting::kMetadata, printable(key, 80),
                      fmt::format("the file has no such key, it is added{}", did_you_mean(key, known)));
}

std::vector<Notice> settle(ModelSettings& settings, const OpenedModel& model, const Machine& machine) {
    check_plugins(machine);
    check_devices(settings.engine.placement.rules, machine.hardware);
    std::vector<Notice> remarks = machine.remarks;
    check_chosen(settings.common.devices, machine);
    std::ranges::move(idle_on_machine(settings, machine), std::back_inserter(remarks));
    std::ranges::move(unused_gpus(machine), std::back_inserter(remarks));
    if (machine.hardware.is_rig()) std::ranges::move(plugins_without_flags(machine), std::back_inserter(remarks));
    for (const std::string& key : model.file.added_keys()) remarks.push_back(unknown_key(key, model.file));
    const ModelInfo info = read_model_info(model.file, machine.registry);
    if (settings.latent_attention && !info.latent_attention) {
        fail(TSR_UNSUPPORTED,
             Notice::on(Setting::kLatentAttention, *settings.latent_attention,
                        fmt::format("this model ({}) has no multi-head latent attention", info.architecture),
                        {{AdviceCode::kLeaveOut, ""}}));
    }
    const bool latent_row = info.latent_attention && settings.latent_attention != "0";
    if (latent_row && settings.value_type_given && settings.engine.cache_type_v != settings.engine.cache_type_k) {
        remarks.push_back(Notice::on(Setting::kValueCacheType, "",
                                     "keys and values of this model are one cached row, whose type is that of keys"));
    }
    if (latent_row && settings.engine.hadamard_values) {
        remarks.push_back(Notice::on(Setting::kValueBasis, "",
                                     "keys and values of this model are one cached row, whose basis is that of keys"));
    }
    const ExpertReduction& experts = settings.engine.experts;
    if (experts.ratio > 0 && info.experts_used <= experts.at_least) {
        remarks.push_back(
            info.experts_used == 0
                ? Notice::on(Setting::kExpertReduction, "", "this model has no routed experts")
                : Notice::on(
                      Setting::kExpertReduction, fmt::format("{},{}", experts.at_least, experts.ratio),
                      fmt::format("this model uses {} experts a row, so that none is left out", info.experts_used)));
    }
    if (settings.check_values) {
        std::ranges::move(require_values(model.file, machine.registry, machine.processors),
                          std::back_inserter(remarks));
    }
    for (const PlacementRule& rule : machine.config.placement)
        settings.engine.placement.rules.push_back({rule.pattern, rule.device});
    return remarks;
}

}  // namespace tessera
