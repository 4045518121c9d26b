// measure_card PLUGIN.so [--small] [--seconds N] [--card ID] [--topics LIST] [--what REGEX] [--list] [--plan]: what a
// card does with a CUDA plugin's kernels, a JSON object a line: rates of the card (copies, multiplications by each
// instruction) and what launches cost, then kernels, each with what it has to read and to compute, its time and the
// time that the plugin's plan had estimated. --topics: of rates, attention, products, experts, rows, all unless given;
// --what: kernels whose description, "576/512, 16 heads, 61439 cached, f16, 1 row", contains it; --list: the cards
// alone; --plan: estimates alone. Uses the plugin through the C ABI. For tools/gpu_acceptance, which makes tables of
// it, and for authors: a plugin that owns no cards, but has kernels for them, is measured on all that the driver lists,
// what it has no kernels for left out. Exit code: 1 if a kernel failed, 3 if there is no card for the plugin.
#include "core/hardware/hardware.hpp"
#include "topics.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <sstream>
#include <stdexcept>

#ifdef TSR_RATES_LEGACY
extern const tessera::cuda::Module tessera_cuda_module_measure_card__rates_legacy;
#endif
#ifdef TSR_RATES_AMPERE
extern const tessera::cuda::Module tessera_cuda_module_measure_card__rates_ampere;
#endif

namespace tessera::test {
namespace {

const tsr_plugin& load(const char* path) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    auto* query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY));
    if (!query) throw std::runtime_error(std::string(path) + " is no plugin");
    static tsr_host host{};
    host.struct_size = sizeof host;
    host.abi_major = TSR_ABI_MAJOR;
    host.log = [](const tsr_host*, tsr_log_level, const char*, const char*) {};
    const tsr_plugin* plugin = query(&host);
    if (!plugin) throw std::runtime_error(std::string(path) + " does not serve this ABI");
    return *plugin;
}

// Whether kernels of the plugin are for the card.
bool serves(const tsr_plugin& plugin, const tsr_device_info& info) {
    if (std::string_view(info.kind) != "cuda") return false;
    char reason[TSR_REASON_BYTES] = "";
    return plugin.provider_count == 0 ||
           plugin.providers[0]->match(plugin.providers[0], &info, reason, sizeof reason) != 0;
}

// Whether it uses what there was before tensor cores of 8.0. Of a plugin for all cards the card's generation decides.
bool is_legacy(const tsr_plugin& plugin, const tsr_device_info& info) {
    return std::string_view(plugin.name) == "cuda_legacy" || info.compute_capability < 800;
}

const cuda::Module* rates_of(bool legacy) {
#ifdef TSR_RATES_LEGACY
    if (legacy) return &tessera_cuda_module_measure_card__rates_legacy;
#endif
#ifdef TSR_RATES_AMPERE
    if (!legacy) return &tessera_cuda_module_measure_card__rates_ampere;
#endif
    return nullptr;
}

struct Options {
    const char* plugin;
    std::string card;
    bool small = false, list = false, plan = false;
    double seconds = 1e9;
    std::vector<std::string> topics;  // empty: all
    std::string what;
};

struct Topic {
    const char* name;
    void (*measure)(Bench&);
};
constexpr Topic kTopics[] = {{"attention", measure_attention},
                             {"products", measure_products},
                             {"experts", measure_experts},
                             {"rows", measure_rows}};
constexpr const char* kRates = "rates";

std::vector<std::string> topics_of(const std::string& list) {
    std::vector<std::string> topics;
    std::istringstream words(list);
    for (std::string word; std::getline(words, word, ',');) {
        const auto* const known = std::ranges::find(kTopics, word, &Topic::name);
        if (word != kRates && known == std::end(kTopics))
            throw std::runtime_error("--topics: expected some of rates, attention, products, experts, rows; found " +
                                     word);
        topics.push_back(word);
    }
    return topics;
}

Options parse(int count, char** words) {
    if (count < 2)
        throw std::runtime_error(
            "usage: measure_card PLUGIN.so [--small] [--seconds N] [--card ID] [--topics LIST] [--what REGEX] [--list] "
            "[--plan]");
    Options options{words[1], "", false, false, false, 1e9, {}, ""};
    for (int i = 2; i < count; ++i) {
        const std::string_view word = words[i];
        const auto value = [&] {
            if (++i == count) throw std::runtime_error(std::string(word) + " needs a value");
            return words[i];
        };
        if (word == "--small")
            options.small = true;
        else if (word == "--list")
            options.list = true;
        else if (word == "--plan")
            options.plan = true;
        else if (word == "--seconds")
            options.seconds = std::stod(value());
        else if (word == "--card")
            options.card = value();
        else if (word == "--topics")
            options.topics = topics_of(value());
        else if (word == "--what")
            options.what = value();
        else
            throw std::runtime_error("unknown option " + std::string(word));
    }
    return options;
}

Scale scale_of(const Options& options, const tsr_plugin& plugin, const tsr_device_info& info) {
    constexpr int64_t kMebi = 1 << 20;
    Scale scale;
    scale.small = options.small;
    scale.tensor_cores = !is_legacy(plugin, info);
    scale.only_offered = plugin.provider_count == 0;
    scale.plan_only = options.plan;
    scale.seconds = options.seconds;
    scale.what = options.what;
    scale.matrix_bytes = std::max<int64_t>(4 * static_cast<int64_t>(info.l2_bytes), 64 * kMebi);
    // Room for three stacks of experts of 200 MB, which the second-level cache must not hold either.
    scale.content_bytes = options.small ? 4 * kMebi : std::max<int64_t>(scale.matrix_bytes + kMebi, 1024 * kMebi);
    return scale;
}

int run(int count, char** words) {
    const Options options = parse(count, words);
    const tsr_plugin& plugin = load(options.plugin);
    const Hardware hardware = Hardware::detect();
    int measured = 0;
    bool failed = false;
    for (const tsr_device_info* info : hardware.devices().subspan(1)) {
        if (!serves(plugin, *info)) continue;
        if (!options.card.empty() && options.card != info->id) continue;
        ++measured;
        std::printf("%s\n", boost::json::serialize(boost::json::object{{"topic", "card"},
                                                                       {"card", info->id},
                                                                       {"name", info->name},
                                                                       {"plugin", plugin.name},
                                                                       {"capability", info->compute_capability},
                                                                       {"processors", info->processors},
                                                                       {"l2", info->l2_bytes},
                                                                       {"described_bandwidth", info->memory_bandwidth},
                                                                       {"clock", info->clock_hz}})
                                .c_str());
        if (options.list) continue;
        Bench bench(plugin, *info, scale_of(options, plugin, *info));
        const auto wanted = [&](const char* topic) {
            return options.topics.empty() || std::ranges::find(options.topics, topic) != options.topics.end();
        };
        if (!options.plan && wanted(kRates)) {
            measure_rates(bench, rates_of(is_legacy(plugin, *info)));
            measure_latencies(bench, rates_of(is_legacy(plugin, *info)));
        }
        for (const Topic& topic : kTopics) {
            if (wanted(topic.name)) topic.measure(bench);
        }
        failed = failed || bench.failed();
    }
    if (measured == 0) {
        std::fprintf(stderr, "measure_card: no card here that the plugin owns, or has kernels for\n");
        return 3;
    }
    return failed ? 1 : 0;
}

}  // namespace
}  // namespace tessera::test

int main(int count, char** words) {
    try {
        return tessera::test::run(count, words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "measure_card: %s\n", error.what());
        return 1;
    }
}
