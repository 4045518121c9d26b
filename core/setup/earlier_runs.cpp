#include "core/setup/earlier_runs.hpp"

#include "core/base/error.hpp"
#include "core/base/folders.hpp"
#include "core/base/output_file.hpp"
#include "core/base/text.hpp"
#include "core/base/toml.hpp"
#include "core/hardware/speed_file.hpp"
#include "core/registry/sha256.hpp"
#include "core/setup/model_sizes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kVersion = 1;
constexpr size_t kMostEntries = 128;
constexpr size_t kModelBytes = 120;
// Ratios are kept as whole thousandths: 1 is a machine that is a thousand times too slow.
constexpr double kThousandth = 1e-3;
constexpr int64_t kMostThousandths = 1'000'000;
constexpr int64_t kMostRuns = 1'000'000;
// A run counts with so much at least, so that the file follows what the machine has become.
constexpr double kWeight = 1.0 / 8;
// Of one run. Few tokens are soon generated, and a prompt's step is long.
constexpr uint64_t kFewestTokens = 8;

struct Entry {
    std::string key, model;
    EarlierRuns runs;
};

std::vector<Entry>::const_iterator find(const std::vector<Entry>& entries, std::string_view key) {
    return std::ranges::find(entries, key, &Entry::key);
}

int64_t thousandths(double ratio) {
    return static_cast<int64_t>(std::clamp(std::round(ratio / kThousandth), 1.0, double{kMostThousandths}));
}

EarlierRatio read_ratio(TomlFile::Table& table, std::string_view name) {
    const std::optional<int64_t> ratio = table.integer(name, 1, kMostThousandths);
    const std::string runs_name = fmt::format("{}_runs", name);
    const std::optional<int64_t> runs = table.integer(runs_name, 1, kMostRuns);
    if (!ratio && !runs) return {};
    return {kThousandth * static_cast<double>(table.need(ratio, name)),
            static_cast<uint32_t>(table.need(runs, runs_name))};
}

// Throws Error for what is not as text_of writes it.
std::vector<Entry> read_entries(const fs::path& file) {
    const TomlFile toml = TomlFile::read(file);
    TomlFile::Table root = toml.root();
    root.need(root.integer("version", kVersion, kVersion), "version");
    std::vector<Entry> entries;
    for (TomlFile::Table& table : root.tables("runs")) {
        Entry entry;
        entry.key = table.need(table.string("key"), "key");
        entry.model = table.need(table.string("model"), "model");
        entry.runs = {read_ratio(table, "prompt"), read_ratio(table, "generation")};
        table.finish();
        if (!normalize_sha256(entry.key)) table.reject("key", "expected 64 hexadecimal digits");
        if (find(entries, entry.key) != entries.end()) table.reject("key", "occurs twice");
        if (entries.size() == kMostEntries) table.reject("key", fmt::format("is more than {}", kMostEntries));
        entries.push_back(std::move(entry));
    }
    root.finish();
    return entries;
}

std::vector<Entry> read_or_none(const fs::path& file, const NoticeSink& say) {
    std::error_code error;
    if (!fs::exists(file, error)) return {};
    try {
        return read_entries(file);
    } catch (const Error& fault) {
        say(fmt::format("{}; the file is left out, and written anew by the next run", fault.what()));
        return {};
    }
}

std::string text_of(const std::vector<Entry>& entries) {
    std::string text = fmt::format(
        "# What runs reached of their predicted speed, in thousandths; tessera makes it anew when it is removed.\n"
        "version = {}\n",
        kVersion);
    for (const Entry& entry : entries) {
        text += fmt::format("\n[[runs]]\nkey = \"{}\"\nmodel = \"{}\"\n", entry.key, entry.model);
        const auto add = [&](std::string_view name, const EarlierRatio& ratio) {
            if (ratio.runs == 0) return;
            text += fmt::format("{0} = {1}\n{0}_runs = {2}\n", name, thousandths(ratio.ratio), ratio.runs);
        };
        add("prompt", entry.runs.prompts);
        add("generation", entry.runs.generation);
    }
    return text;
}

// Fit to stand in a TOML string as it is.
std::string plain(std::string_view text) {
    std::string safe(text.substr(0, kModelBytes));
    for (char& c : safe) {
        if (c < ' ' || c > '~' || c == '"' || c == '\\') c = '_';
    }
    return safe;
}

bool is_enough(const ComparedSteps& compared) {
    return compared.tokens >= kFewestTokens && compared.ratio > 0;
}

void add(EarlierRatio& earlier, const ComparedSteps& compared) {
    if (!is_enough(compared)) return;
    const double weight = std::max(kWeight, 1.0 / (earlier.runs + 1.0));
    earlier.ratio += (compared.ratio - earlier.ratio) * weight;
    earlier.runs = std::min(earlier.runs + 1, static_cast<uint32_t>(kMostRuns));
}

std::optional<fs::path> file_of(const Machine& machine) {
    if (machine.hardware.is_rig() || !machine.config.keep_speeds) return std::nullopt;
    return default_earlier_runs_file();
}

}  // namespace

std::string prediction_key(const gguf::GgufFile& file, const ModelInfo& info, const Plan& plan,
                           const Registry& registry) {
    // Steps of up to twice as many rows are one kind: a server adds rows for those who generate.
    std::string text = fmt::format("{} {} {} {} {} {}\n", info.architecture, info.layers, info.embedding,
                                   info.vocabulary, info.experts_used, std::bit_width(plan.options.max_rows));
    std::map<std::string, uint64_t> types;
    for (const KindSize& kind : measure(file).kinds) {
        for (const auto& [type, bytes] : kind.bytes_by_type) types[type] += bytes;
    }
    for (const auto& [type, bytes] : types) text += fmt::format("{} {}\n", type, bytes);
    std::map<DeviceIndex, size_t> nodes;
    std::set<std::string> kernels;
    for (const PlannedNode& node : plan.nodes) {
        ++nodes[node.device];
        const Manifest& plugin = registry.owner(*node.kernel).manifest;
        kernels.insert(
            fmt::format("{} {} {} {} {}\n", node.device, plugin.name, plugin.sha256, node.kernel->name, node.variant));
    }
    for (const auto& [device, count] : nodes) {
        const tsr_device_info& d = *plan.devices[device];
        text += fmt::format("{} {} {} {} {} {} {} {} {}\n", device, d.kind, d.name, d.processors, d.threads, d.clock_hz,
                            d.memory_bandwidth, d.link_bandwidth, count);
    }
    for (const std::string& kernel : kernels) text += kernel;
    return sha256_of(text);
}

std::optional<fs::path> default_earlier_runs_file() {
    const std::optional<fs::path> folder = user_cache_folder();
    if (!folder) return std::nullopt;
    return *folder / "earlier-runs.toml";
}

EarlierRuns read_earlier_runs(const fs::path& file, std::string_view key, const NoticeSink& say) {
    const std::vector<Entry> entries = read_or_none(file, say);
    const auto found = find(entries, key);
    return found == entries.end() ? EarlierRuns() : found->runs;
}

void add_run(const fs::path& file, std::string_view key, std::string_view model, const StepComparisons& compared,
             const NoticeSink& say) noexcept {
    if (!is_enough(compared.prompts) && !is_enough(compared.generation)) return;
    try {
        std::vector<Entry> entries = read_or_none(file, say);
        Entry entry{std::string(key), plain(model), {}};
        if (const auto found = find(entries, key); found != entries.end()) {
            entry.runs = found->runs;
            entries.erase(found);
        }
        add(entry.runs.prompts, compared.prompts);
        add(entry.runs.generation, compared.generation);
        if (entries.size() >= kMostEntries) entries.erase(entries.begin());
        entries.push_back(std::move(entry));
        std::error_code error;
        fs::create_directories(file.parent_path(), error);
        const std::string text = text_of(entries);
        OutputFile out(file);
        out.append(std::as_bytes(std::span(text)));
        out.finish();
    } catch (const std::exception&) {
        return;
    }
}

EarlierRuns earlier_runs(const Machine& machine, const gguf::GgufFile& file, const PlannedModel& planned,
                         const NoticeSink& say) {
    const std::optional<fs::path> kept = file_of(machine);
    if (!kept) return {};
    return read_earlier_runs(*kept, prediction_key(file, planned.info, planned.plan, machine.registry), say);
}

void note_generation_speed(const fs::path& speed_file, const DeviceDescription& cpu, const Plan& plan,
                           const ComparedSteps& generation) noexcept {
    const bool on_cpu = std::ranges::all_of(plan.nodes, [](const PlannedNode& node) { return node.device == 0; });
    if (on_cpu && is_enough(generation)) note_run_speed(speed_file, cpu, generation.ratio);
}

void keep_run(const Machine& machine, const Engine& engine, const NoticeSink& say) noexcept {
    try {
        const std::optional<fs::path> kept = file_of(machine);
        if (!kept) return;
        const DeviceDescription& cpu = machine.hardware.cpu_description();
        if (const std::optional<fs::path> speed = default_speed_file(cpu))
            note_generation_speed(*speed, cpu, engine.plan(), engine.compared().generation);
        const ModelInfo& info = engine.info();
        add_run(*kept, prediction_key(engine.file(), info, engine.plan(), machine.registry),
                info.name.empty() ? info.architecture : info.name, engine.compared(), say);
    } catch (const std::exception&) {
        return;
    }
}

}  // namespace tessera
