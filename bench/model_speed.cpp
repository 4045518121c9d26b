// Prompt and generation speed of a model at several depths: model_speed FILE [--depths 0,512] [--prompt 512] [--generate 128]
// [--threads 2] [--cache f16|q8_0] [--mla N] [--repeat 1]. Prints one line a depth: tokens/s, best of the repeats.
#include "core/base/error.hpp"
#include "core/session/engine.hpp"
#include "core/tensor/types.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<uint32_t> numbers(const std::string& list) {
    std::vector<uint32_t> values;
    std::stringstream stream(list);
    for (std::string item; std::getline(stream, item, ',');) values.push_back(static_cast<uint32_t>(std::stoul(item)));
    return values;
}

}  // namespace

int main(int argc, char** argv) try {
    namespace po = boost::program_options;
    po::options_description described("options");
    described.add_options()("model", po::value<std::string>()->required(), "GGUF file")(
        "depths", po::value<std::string>()->default_value("0"), "cached tokens before each measurement")(
        "prompt", po::value<uint32_t>()->default_value(512), "tokens of the prompt")(
        "generate", po::value<uint32_t>()->default_value(128), "tokens to generate")(
        "threads", po::value<uint32_t>()->default_value(0), "workers")(
        "cache", po::value<std::string>()->default_value("f16"), "element type of the cache")(
        "mla", po::value<std::string>()->default_value("3"), "lowering of mla_attention")(
        "repeat", po::value<int>()->default_value(1), "the best of this many")(
        "no-mmap", po::bool_switch(), "read weights that could be mapped");
    po::positional_options_description positional;
    positional.add("model", 1);
    po::variables_map args;
    po::store(po::command_line_parser(argc, argv).options(described).positional(positional).run(), args);
    po::notify(args);

    using namespace tessera;
    const auto depths = numbers(args["depths"].as<std::string>());
    const uint32_t prompt = args["prompt"].as<uint32_t>(), generate = args["generate"].as<uint32_t>();
    const TypeInfo* cache = find_type(std::string_view(args["cache"].as<std::string>()));
    if (!cache) fail(TSR_INVALID_ARGUMENT, "unknown cache type");

    EngineOptions options;
    options.context = std::ranges::max(depths) + std::max(prompt, generate);
    options.threads = args["threads"].as<uint32_t>();
    options.cache_type_k = options.cache_type_v = cache->id;
    options.lowerings["mla_attention"] = args["mla"].as<std::string>();
    options.map_weights = !args["no-mmap"].as<bool>();

    const Config config;
    Hardware hardware = Hardware::detect();
    apply(config, hardware);
    const Registry registry = Registry::load(config, hardware);
    const auto start = Clock::now();
    Engine engine(gguf::GgufFile::open(args["model"].as<std::string>()), registry, hardware, options);
    std::fprintf(stderr, "loaded in %.2f s\n", seconds_since(start));

    std::mt19937 random(1);
    std::vector<Token> tokens(options.context);
    for (Token& token : tokens) token = static_cast<Token>(random() % engine.info().vocabulary);
    const SequenceId sequence = engine.cache().create();
    std::printf("depth  prompt/s  generation/s\n");
    for (const uint32_t depth : depths) {
        const uint32_t length = engine.cache().length(sequence);
        if (length < depth) engine.prefill(sequence, std::span(tokens).subspan(length, depth - length));
        double best_prompt = 0, best_generation = 0;
        for (int i = 0; i < args["repeat"].as<int>(); ++i) {
            engine.cache().truncate(sequence, depth);
            if (prompt > 0) {
                const auto begin = Clock::now();
                engine.prefill(sequence, std::span(tokens).subspan(depth, prompt));
                best_prompt = std::max(best_prompt, prompt / seconds_since(begin));
                engine.cache().truncate(sequence, depth);
            }
            const auto begin = Clock::now();
            for (uint32_t k = 0; k < generate; ++k) {
                const BatchEntry entry{sequence, std::span(tokens).subspan(depth + k, 1)};
                engine.step({&entry, 1});
            }
            if (generate > 0) best_generation = std::max(best_generation, generate / seconds_since(begin));
            engine.cache().truncate(sequence, depth);
        }
        std::printf("%5u  %8.2f  %12.2f\n", depth, best_prompt, best_generation);
        std::fflush(stdout);
    }
    return 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "model_speed: %s\n", error.what());
    return 1;
}
