#include "apps/tessera/plugin_child.hpp"

#include "apps/flags/setter.hpp"
#include "apps/tessera/architecture_cases.hpp"
#include "apps/tessera/commands.hpp"
#include "apps/tessera/crash_report.hpp"
#include "apps/tessera/output.hpp"
#include "core/base/error.hpp"
#include "core/base/folders.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/hardware/hardware.hpp"
#include "core/registry/discover.hpp"
#include "core/registry/extension.hpp"
#include "core/registry/registry.hpp"
#include "core/registry/screen.hpp"
#include "core/registry/table.hpp"
#include "testing/conformance/child.hpp"
#include "testing/conformance/process.hpp"

#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <fstream>
#include <set>

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

// The first word of a child. No command is called so.
constexpr std::string_view kChild = "--plugin-child";
// The size of the largest team that kernels are tested with.
constexpr uint32_t kThreads = 8;

bool g_children_allowed = false;

Hardware hardware_of(const std::string& rig, const std::string& gpus) {
    return rig.empty() ? Hardware::detect() : Hardware::from_rig(rig, gpus);
}

// These plugins and no others.
Registry load(const std::set<fs::path>& manifests, const Hardware& hardware) {
    Config config;
    config.default_plugin_folder = false;
    std::set<fs::path> folders;
    for (const fs::path& manifest : manifests) folders.insert(manifest.parent_path());
    config.plugin_folders.assign(folders.begin(), folders.end());
    set_plugin_screen([&](const PluginRecord& plugin, const Config&) {
        return manifests.contains(plugin.path) ? std::string() : std::string("it is not the one that is asked for");
    });
    return Registry::load(config, hardware);
}

const PluginRecord& record_of(const Registry& registry, const fs::path& manifest) {
    for (const PluginRecord& record : registry.plugins()) {
        if (record.path != manifest) continue;
        if (!record.table) fail(TSR_UNSUPPORTED, "{}", record.reason);
        return record;
    }
    fail(TSR_NOT_FOUND, "{}: no plugin's manifest", manifest.string());
}

// Standard output is the parent's: what a plugin prints goes to standard error.
int take_output() {
    const int output = dup(STDOUT_FILENO);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    return output;
}

void say_line(int output, const std::string& line) {
    const std::string all = line + '\n';
    if (write(output, all.data(), all.size()) < 0) return;  // nobody listens
}

int run_table(const std::string& rig, const std::string& gpus, const fs::path& manifest, const fs::path& config) {
    const int output = take_output();
    try {
        Hardware hardware = hardware_of(rig, gpus);
        if (!config.empty()) apply(read_config(config), hardware);
        const Registry registry = load({manifest}, hardware);
        const PluginRecord& record = record_of(registry, manifest);
        const tsr_plugin& table = *record.table;
        for (uint32_t i = 0; i < table.kernel_count; ++i) {
            const tsr_kernel& kernel = *table.kernels[i];
            say_line(output, fmt::format("kernel\t{}\t{}\t{}", kernel.name, kernel.op, kernel.device_kind));
        }
        for (uint32_t i = 0; i < table.provider_count; ++i)
            say_line(output, fmt::format("provider\t{}", table.providers[i]->kind));
        if (record.for_plans_only) say_line(output, "for plans only");
        for (uint32_t i = 0; i < table.operator_count; ++i) {
            say_line(output, fmt::format("operator\t{}", table.operators[i]->name));
            for (uint32_t k = 0; k < table.operators[i]->lowering_count; ++k) {
                say_line(output, fmt::format("lowering\t{}\t{}", table.operators[i]->lowerings[k]->name,
                                             table.operators[i]->name));
            }
        }
        for (uint32_t i = 0; i < table.lowering_count; ++i) {
            const tsr_lowering& lowering = *table.lowerings[i];
            say_line(output, fmt::format("lowering\t{}\t{}", lowering.name, lowering.op));
        }
        const auto* list = static_cast<const tsr_architectures*>(find_extension(table, TSR_ARCHITECTURES));
        if (const std::string why = list ? architectures_fault(*list) : ""; !why.empty())
            say_line(output, fmt::format("architectures fault\t{}", printable(why, 2000)));
        for (const std::string& name : record.architectures) say_line(output, fmt::format("architecture\t{}", name));
        say_line(output, fmt::format("layouts\t{}", table.layout_count));
        say_line(output, "usable");
    } catch (const std::exception& error) {
        say_line(output, fmt::format("failure\t{}", printable(error.what(), 2000)));
        end_process(kExitFailed);  // what a plugin that failed has left behind is not destroyed
    }
    return kExitDone;
}

size_t number_of(const std::string& word) {
    size_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    return number;
}

// Its graphs may have ops of the plugins that are installed. Where those or the core have an architecture of the same
// name, that of the plugin is tested.
void test_architecture(std::span<const std::string> words, const fs::path& manifest, int output) {
    const Hardware hardware = Hardware::detect();
    Config config;
    config.plugin_folders = {manifest.parent_path()};
    for (const PluginRecord& record : find_plugins(config.plugin_folders)) {
        if (record.path == manifest) config.prefer = {record.manifest.name};
    }
    const Registry registry = Registry::load(config, hardware);
    const std::vector<std::string> only = words[5].empty() ? std::vector<std::string>() : split(words[5], '\t');
    run_architecture_cases(registry, words[7], words[8], only, number_of(words.back()), output);
}

struct Loaded {
    Hardware hardware;
    Registry registry;
    conformance::Setting setting;

    // `owner`: empty, or of the plugin whose devices are used.
    Loaded(const std::string& rig, const std::string& gpus, const fs::path& manifest, const fs::path& reference,
           const fs::path& owner)
        : hardware(hardware_of(rig, gpus)),
          registry((hardware.set_threads(kThreads),
                    load({manifest, reference, owner.empty() ? manifest : owner}, hardware))) {
        setting.plugin = record_of(registry, manifest).table;
        setting.reference = record_of(registry, reference).table;
        if (!owner.empty()) setting.owner = record_of(registry, owner).table;
        setting.cpu = &hardware.cpu();
    }
};

// Plugins of this project, beside the program.
bool is_own(const PluginRecord& plugin) {
    constexpr std::string_view kOwn[] = {"cpu_avx2", "cpu_avx512", "cuda_ampere", "cuda_legacy", "mla", "reference"};
    return std::ranges::find(kOwn, plugin.manifest.name) != std::end(kOwn) &&
           plugin.path.parent_path() == default_plugin_folder();
}

// The file that says that a child survived this library; empty where there is no folder for it.
fs::path survived_file(const PluginRecord& plugin) {
    const std::optional<fs::path> folder = user_cache_folder();
    return folder ? *folder / "tried-plugins" / (TSR_VERSION "-" + plugin.manifest.sha256) : fs::path();
}

// The line in which the child said of what it dies.
std::string last_words(const std::string& errors) {
    constexpr std::string_view kOwn = "tessera: ";
    std::string last;
    size_t begin = 0;
    while (begin < errors.size()) {
        const size_t end = std::min(errors.find('\n', begin), errors.size());
        const std::string_view line = std::string_view(errors).substr(begin, end - begin);
        if (line.starts_with(kOwn)) last = line.substr(kOwn.size());
        begin = end + 1;
    }
    return last;
}

std::vector<std::string> words_of(std::string_view what, const TestSubject& subject) {
    return {std::string(kChild),
            std::string(what),
            subject.rig ? subject.rig->string() : "",
            subject.gpus,
            subject.manifest.string(),
            subject.reference.string(),
            joined(subject.cases, "\t"),
            joined(subject.shapes, "\t")};
}

}  // namespace

void allow_children() {
    g_children_allowed = true;
}

std::optional<int> run_as_child(std::span<const std::string> words) {
    if (words.size() < 5 || words[0] != kChild) return std::nullopt;
    const std::string &what = words[1], &rig = words[2], &gpus = words[3];
    words = words.subspan(1);
    const fs::path manifest = words[3];
    if (what == "table") return run_table(rig, gpus, manifest, words.size() > 4 ? words[4] : "");
    if (words.size() < 8) return kExitUsage;
    const int output = take_output();
    try {
        if (what == "architecture" && words.size() == 10) {
            test_architecture(words, manifest, output);
            return kExitDone;
        }
        const bool is_device = what == "device" && words.size() == 12;
        Loaded loaded(rig, gpus, manifest, words[4], is_device ? words[10] : "");
        if (!words[5].empty()) loaded.setting.cases = split(words[5], '\t');
        if (!words[6].empty()) {
            for (const std::string& shape : split(words[6], '\t'))
                loaded.setting.shapes.push_back(conformance::parse_shape(shape));
        }
        const size_t first = number_of(words.back());
        if (what == "kernel") conformance::run_kernel_cases(loaded.setting, words[7], first, output);
        if (what == "time") conformance::run_kernel_times(loaded.setting, words[7], first, output);
        if (what == "layouts") conformance::run_layout_cases(loaded.setting, first, output);
        if (is_device) {
            const tsr_device_info* device = loaded.hardware.find(words[8]);
            if (!device) fail(TSR_NOT_FOUND, "there is no device {}", words[8]);
            const tsr_device_info* peer = device;
            for (const tsr_device_info* other : loaded.hardware.devices()) {
                if (other != device && std::string_view(other->kind) == device->kind) peer = other;
            }
            const auto provider = static_cast<uint32_t>(number_of(words[7]));
            if (words[9].empty()) {
                conformance::run_device_cases(loaded.setting, provider, *device, *peer, first, output);
            } else {
                conformance::run_device_kernel_cases(loaded.setting, provider, *device, words[9], first, output);
            }
        }
        return kExitDone;
    } catch (const std::exception& error) {
        say(fmt::format("tessera: {}", error.what()));
        return kExitFailed;
    }
}

TriedPlugin try_plugin(const fs::path& manifest, const std::optional<fs::path>& rig, const std::string& gpus,
                       const fs::path& config) {
    TriedPlugin tried;
    bool usable = false;
    const auto take = [&](std::string_view line) {
        const std::vector<std::string> words = split(line, '\t');
        if (words[0] == "kernel" && words.size() == 4) tried.kernels.push_back({words[1], words[2], words[3]});
        if (words[0] == "provider" && words.size() == 2) tried.provider_kinds.push_back(words[1]);
        if (words[0] == "operator" && words.size() == 2) tried.operators.push_back(words[1]);
        if (words[0] == "architectures fault" && words.size() > 1) tried.architectures_fault = words[1];
        if (words[0] == "architecture" && words.size() == 2) tried.architectures.push_back(words[1]);
        if (words[0] == "lowering" && words.size() == 3) tried.lowerings.emplace(words[1], words[2]);
        if (words[0] == "layouts" && words.size() == 2) tried.layouts = static_cast<uint32_t>(number_of(words[1]));
        tried.for_plans_only = tried.for_plans_only || words[0] == "for plans only";
        if (words[0] == "failure" && words.size() > 1) tried.failure = words[1];
        usable = usable || words[0] == "usable";
    };
    const conformance::ChildEnd end = conformance::run_child(
        {std::string(kChild), "table", rig ? rig->string() : "", gpus, manifest.string(), config.string()},
        kChildSilence, take);
    if (!tried.failure.empty() || (usable && end.exit_code == 0)) return tried;
    const std::string said = last_words(end.errors);
    tried.failure =
        fmt::format("a process that tried it {}{}{}", conformance::describe(end), said.empty() ? "" : ": ", said);
    return tried;
}

void try_plugins_in_children(TriedFirst which, const std::optional<fs::path>& rig) {
    if (!g_children_allowed) return;
    set_plugin_screen([which, rig](const PluginRecord& plugin, const Config& config) {
        const fs::path known = which == TriedFirst::kUnknown ? survived_file(plugin) : fs::path();
        std::error_code error;
        if (which == TriedFirst::kUnknown && (is_own(plugin) || (!known.empty() && fs::exists(known, error))))
            return std::string();
        std::string why = try_plugin(plugin.path, rig, "cuda", config.file).failure;
        if (which == TriedFirst::kEvery) return why;
        if (!why.empty()) {
            log().warn("the plugin {} ({}) is not used: {}", plugin.manifest.name, printable(plugin.path.string()),
                       why);
        } else if (!known.empty()) {
            fs::create_directories(known.parent_path(), error);
            std::ofstream(known).flush();  // the name says all
        }
        return why;
    });
}

std::vector<std::string> kernel_words(const TestSubject& subject, const std::string& kernel, size_t first) {
    std::vector<std::string> words = words_of("kernel", subject);
    words.insert(words.end(), {kernel, std::to_string(first)});
    return words;
}

std::vector<std::string> time_words(const TestSubject& subject, const std::string& kernel, size_t first) {
    std::vector<std::string> words = words_of("time", subject);
    words.insert(words.end(), {kernel, std::to_string(first)});
    return words;
}

std::vector<std::string> architecture_words(const TestSubject& subject, const std::string& architecture,
                                            const fs::path& model, size_t first) {
    std::vector<std::string> words = words_of("architecture", subject);
    words.insert(words.end(), {architecture, model.string(), std::to_string(first)});
    return words;
}

std::vector<std::string> layout_words(const TestSubject& subject, size_t first) {
    std::vector<std::string> words = words_of("layouts", subject);
    words.push_back(std::to_string(first));
    return words;
}

std::vector<std::string> device_words(const TestSubject& subject, uint32_t provider, const std::string& device,
                                      const std::string& kernel, size_t first) {
    std::vector<std::string> words = words_of("device", subject);
    words.insert(words.end(), {std::to_string(provider), device, kernel, subject.owner ? subject.owner->string() : "",
                               std::to_string(first)});
    return words;
}

}  // namespace tessera::app
