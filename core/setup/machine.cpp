#include "core/setup/machine.hpp"

#include "core/base/error.hpp"
#include "core/model/model.hpp"

#include <algorithm>
#include <vector>

namespace tessera {
namespace {

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

// The configuration speaks of this machine, so of a rig it changes nothing.
Hardware find_hardware(const Config& config, const std::optional<fs::path>& rig, uint32_t threads) {
    if (rig) {
        Hardware hardware = Hardware::from_rig(*rig);
        if (threads) hardware.set_threads(threads);
        return hardware;
    }
    Hardware hardware = Hardware::detect();
    apply(config, hardware);
    if (threads) hardware.set_threads(threads);
    return hardware;
}

}  // namespace

Machine::Machine(const CommonSettings& settings, const std::optional<fs::path>& rig, uint32_t threads)
    : config(read_configuration(settings)),
      hardware(find_hardware(config, rig, threads)),
      registry(Registry::load(config, hardware)) {}

uint32_t asked_threads(const EngineOptions& options) {
    return std::max(options.threads, options.prompt_threads);
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
        fail(TSR_NOT_FOUND, "no bundled model (demo-*.gguf) in {}: name a model with -m FILE", folder.string());
    }
    return std::ranges::min(found);
}

OpenedModel open_model(const CommonSettings& settings) {
    const bool bundled = !settings.model;
    fs::path path = bundled ? bundled_model() : *settings.model;
    gguf::GgufFile file = gguf::GgufFile::open(path, settings.overrides);
    return {std::move(path), bundled, std::move(file)};
}

std::vector<std::string> settle(ModelSettings& settings, const gguf::GgufFile& file, const Config& config) {
    std::vector<std::string> remarks;
    const ModelInfo info = read_model_info(file);
    if (settings.latent_attention && !info.latent_attention) {
        fail(TSR_UNSUPPORTED, "-mla {}: this model ({}) has no multi-head latent attention; leave -mla out",
             *settings.latent_attention, info.architecture);
    }
    const bool latent_row = info.latent_attention && settings.latent_attention != "0";
    if (latent_row && settings.value_type_given && settings.engine.cache_type_v != settings.engine.cache_type_k) {
        remarks.emplace_back("-ctv: keys and values of this model are one cached row, whose type is -ctk");
    }
    if (latent_row && settings.engine.hadamard_values) {
        remarks.emplace_back("-vhad: keys and values of this model are one cached row, to which -khad applies");
    }
    const ExpertReduction& experts = settings.engine.experts;
    if (experts.ratio > 0 && info.experts_used <= experts.at_least) {
        remarks.push_back(info.experts_used == 0
                              ? "-ser: this model has no routed experts"
                              : fmt::format("-ser {},{}: this model uses {} experts a row, so that none is left out",
                                            experts.at_least, experts.ratio, info.experts_used));
    }
    for (const PlacementRule& rule : config.placement)
        settings.engine.placement.rules.push_back({rule.pattern, rule.device});
    return remarks;
}

}  // namespace tessera
