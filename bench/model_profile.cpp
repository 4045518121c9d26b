// Where the time of a step goes: model_profile FILE [--depth 0] [--prompt 512] [--generate 32] [--threads 2] [--cache
// f16] [--mla 3] [--config FILE]. Prints, for the prompt and for generation, the milliseconds of a step by what its
// nodes do.
#include "apps/tessera/measuring.hpp"
#include "core/base/error.hpp"
#include "core/graph/types.hpp"
#include "core/session/engine.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace tessera;

struct Sum {
    double seconds = 0;
    size_t nodes = 0;
};

// "blk.12.attn_q" and "blk.3.attn_q" do the same work.
std::string without_layer(const std::string& name) {
    if (!name.starts_with("blk.")) return name;
    const size_t dot = name.find('.', 4);
    return dot == std::string::npos ? name : name.substr(dot + 1);
}

// in_all: seconds of all steps.
void print(const Plan& plan, const std::vector<double>& seconds, double in_all, uint32_t steps, const char* what) {
    std::map<std::string, Sum> sums;
    double all = 0;
    for (size_t i = 0; i < plan.nodes.size(); ++i) {
        const Node& node = plan.graph.nodes()[plan.nodes[i].node];
        Sum& sum = sums[node.op + " " + without_layer(node.name)];
        sum.seconds += seconds[i] / steps;
        ++sum.nodes;
        all += seconds[i] / steps;
    }
    std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
    std::ranges::sort(sorted, [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    std::printf("%s: %.2f ms a step, of which %.2f in nodes\n", what, in_all / steps * 1e3, all * 1e3);
    for (const auto& [name, sum] : sorted) {
        std::printf("  %8.3f ms %5.1f %% %4zu x %8.2f us  %s\n", sum.seconds * 1e3, 100 * sum.seconds / all, sum.nodes,
                    sum.seconds / static_cast<double>(sum.nodes) * 1e6, name.c_str());
    }
}

}  // namespace

int main(int argc, char** argv) try {
    namespace po = boost::program_options;
    po::options_description described("options");
    described.add_options()("model", po::value<std::string>()->required(), "GGUF file")(
        "depth", po::value<uint32_t>()->default_value(0), "cached tokens before each measurement")(
        "prompt", po::value<uint32_t>()->default_value(512), "tokens of the prompt")(
        "generate", po::value<uint32_t>()->default_value(32), "tokens to generate")(
        "threads", po::value<uint32_t>()->default_value(0), "workers")(
        "cache", po::value<std::string>()->default_value("f16"), "element type of the cache")(
        "mla", po::value<std::string>()->default_value("3"), "lowering of mla_attention")(
        "config", po::value<std::string>(), "configuration file");
    po::positional_options_description positional;
    positional.add("model", 1);
    po::variables_map args;
    po::store(po::command_line_parser(argc, argv).options(described).positional(positional).run(), args);
    po::notify(args);

    const uint32_t depth = args["depth"].as<uint32_t>(), prompt = args["prompt"].as<uint32_t>(),
                   generate = args["generate"].as<uint32_t>();
    const TypeInfo* cache = find_type(std::string_view(args["cache"].as<std::string>()));
    if (!cache) fail(TSR_INVALID_ARGUMENT, "unknown cache type");
    EngineOptions options;
    options.context = depth + std::max(prompt, generate);
    options.threads = args["threads"].as<uint32_t>();
    options.cache_type_k = options.cache_type_v = cache->id;
    options.lowerings["mla_attention"] = args["mla"].as<std::string>();
    const Config config = args.count("config") ? read_config(args["config"].as<std::string>()) : Config{};
    Hardware hardware = Hardware::detect();
    apply(config, hardware);
    const Registry registry = Registry::load(config, hardware);
    Engine engine(gguf::GgufFile::open(args["model"].as<std::string>()), registry, hardware, options);

    const std::atomic<bool> stop = false;
    app::SpeedMeter meter(engine, stop);
    meter.prompt(depth, 0);
    std::vector<double> seconds(engine.plan().nodes.size(), 0.0);
    if (prompt > 0) {
        engine.measure(seconds);
        const double in_all = meter.prompt(depth, prompt);
        print(engine.plan(), seconds, in_all, (prompt + engine.max_rows() - 1) / engine.max_rows(), "prompt");
        engine.measure({});
        std::ranges::fill(seconds, 0.0);
    }
    if (generate > 0) {
        const uint32_t to_warm_up = generate / 4;
        meter.generation(depth, to_warm_up);
        engine.measure(seconds);
        const double in_all = meter.generation(depth + to_warm_up, generate - to_warm_up);
        print(engine.plan(), seconds, in_all, generate - to_warm_up, "generation");
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "model_profile: %s\n", error.what());
    return 1;
}
