#include "apps/tessera/bench_output.hpp"
#include "apps/tessera/commands.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/load_with_progress.hpp"
#include "apps/tessera/measuring.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/error.hpp"
#include "core/graph/types.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/model_sizes.hpp"

#include <boost/json/array.hpp>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <optional>

namespace tessera::app {
namespace {

constexpr int64_t kMaximumTokens = 1 << 24;
// Flags that may have several values. Threads are last, so that changing only them does not load the model again.
constexpr std::string_view kSeveral[] = {"n-gpu-layers",
                                         "n-cpu-moe",
                                         "bench-mmap",
                                         "flash-attn",
                                         "mla-use",
                                         "attention-max-batch",
                                         "smart-expert-reduction",
                                         "cache-type-k",
                                         "cache-type-v",
                                         "batch-size",
                                         "ubatch-size",
                                         "threads-batch",
                                         "threads"};
constexpr size_t kOfThreads = 2;

struct Test {
    uint32_t prompt = 0, generation = 0, depth = 0;

    uint32_t tokens() const { return depth + prompt + generation; }
    std::string label() const {
        std::string text = prompt > 0 ? fmt::format("pp{}", prompt) : "";
        if (generation > 0) text += fmt::format("{}tg{}", prompt > 0 ? "+" : "", generation);
        return depth > 0 ? fmt::format("{} @ d{}", text, depth) : text;
    }
};

// "512,128" of -pg and -gp.
std::vector<std::pair<uint32_t, uint32_t>> read_pairs(const Arguments& arguments, std::string_view name) {
    std::vector<std::pair<uint32_t, uint32_t>> pairs;
    const std::vector<int64_t> numbers = arguments.integers(name, 1, kMaximumTokens);
    if (numbers.size() % 2 != 0)
        arguments.reject(name, "pairs of a prompt and a generation, like 512,128", arguments.all(name).back());
    for (size_t i = 0; i < numbers.size(); i += 2)
        pairs.emplace_back(static_cast<uint32_t>(numbers[i]), static_cast<uint32_t>(numbers[i + 1]));
    return pairs;
}

std::vector<Test> read_tests(const Arguments& arguments) {
    const auto given = [&](std::string_view name, int64_t otherwise) {
        std::vector<int64_t> values = arguments.integers(name, 0, kMaximumTokens);
        return values.empty() ? std::vector<int64_t>{otherwise} : values;
    };
    std::vector<Test> tests;
    for (const int64_t d : given("bench-depth", 0)) {
        const auto depth = static_cast<uint32_t>(d);
        for (const int64_t p : given("bench-prompt", 512)) tests.push_back({static_cast<uint32_t>(p), 0, depth});
        for (const int64_t g : given("bench-generate", 128)) tests.push_back({0, static_cast<uint32_t>(g), depth});
        for (const auto& [p, g] : read_pairs(arguments, "bench-pg")) tests.push_back({p, g, depth});
        for (const auto& [p, g] : read_pairs(arguments, "bench-gp")) tests.push_back({0, g, depth + p});
    }
    std::erase_if(tests, [](const Test& test) { return test.prompt + test.generation == 0; });
    if (tests.empty()) throw UsageError("nothing to measure: -p, -n, -pg and -gp come to no test");
    return tests;
}

BenchFormat read_format(Arguments& arguments, std::string_view name) {
    constexpr std::string_view names[] = {"md", "csv", "json", "jsonl"};
    const auto given = arguments.choice(name);
    return given ? static_cast<BenchFormat>(std::ranges::find(names, *given) - names) : BenchFormat::kMarkdown;
}

std::vector<std::string> read_models(const Arguments& arguments) {
    std::vector<std::string> models;
    for (const std::string& text : arguments.all("model")) {
        // A list, unless a file has exactly this name.
        for (std::string_view rest = text;;) {
            const size_t end = std::filesystem::exists(rest) ? rest.size() : std::min(rest.find(','), rest.size());
            models.emplace_back(rest.substr(0, end));
            if (end == rest.size()) break;
            rest.remove_prefix(end + 1);
        }
    }
    return models;
}

// Columns of a table for flags that were given; the others have their defaults.
std::vector<std::string> given_columns(const Arguments& arguments) {
    constexpr std::pair<std::string_view, std::string_view> columns[] = {
        {"n-gpu-layers", "n_gpu_layers"},  {"n-cpu-moe", "n_cpu_moe"}, {"batch-size", "n_batch"},
        {"ubatch-size", "n_ubatch"},       {"cache-type-k", "type_k"}, {"cache-type-v", "type_v"},
        {"flash-attn", "flash_attn"},      {"mla-use", "mla_attn"},    {"attention-max-batch", "attn_max_batch"},
        {"smart-expert-reduction", "ser"}, {"bench-mmap", "use_mmap"}, {"no-mmap", "use_mmap"}};
    std::vector<std::string> given;
    for (const auto& [flag, column] : columns) {
        if (arguments.has(flag)) given.emplace_back(column);
    }
    return given;
}

std::string time_text() {
    const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[32];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

// What all tests of a loaded model share.
BenchRecord describe(const Engine& engine, const std::filesystem::path& path, const Hardware& hardware) {
    const ModelSizes sizes = measure(engine.file());
    std::map<std::string, uint64_t> types;
    for (const KindSize& kind : sizes.kinds) {
        for (const auto& [type, bytes] : kind.bytes_by_type) types[type] += bytes;
    }
    const auto main = std::ranges::max_element(types, {}, [](const auto& type) { return type.second; });
    std::string backends, gpus;
    const Plan& plan = engine.plan();
    for (DeviceIndex device = 0; device < plan.devices.size(); ++device) {
        if (plan.memory[device].weights + plan.memory[device].mapped == 0) continue;
        backends += fmt::format("{}{}", backends.empty() ? "" : "+", plan.devices[device]->id);
        if (device > 0) gpus += fmt::format("{}{}", gpus.empty() ? "" : ", ", plan.devices[device]->name);
    }
    return {{"program", "tessera " TSR_VERSION},
            {"cpu_info", hardware.cpu().name},
            {"gpu_info", gpus},
            {"backend", backends},
            {"model_filename", path.string()},
            {"model_type", fmt::format("{} {}", engine.info().architecture, main == types.end() ? "" : main->first)},
            {"model_size", sizes.bytes},
            {"model_n_params", sizes.weights}};
}

void add_settings(BenchRecord& record, const ModelSettings& settings, const Arguments& arguments,
                  const Engine& engine) {
    const EngineOptions& options = settings.engine;
    const auto number = [&](std::string_view flag, int64_t otherwise) {
        const auto given = arguments.text(flag);
        return given ? std::strtoll(given->c_str(), nullptr, 10) : otherwise;
    };
    record["n_batch"] = number("batch-size", options.rows);
    record["n_ubatch"] = engine.max_rows();
    record["type_k"] = std::string(type_info(options.cache_type_k).name);
    record["type_v"] = std::string(type_info(options.cache_type_v).name);
    record["n_gpu_layers"] = arguments.text("n-gpu-layers").value_or("auto");
    record["n_cpu_moe"] = options.placement.cpu_expert_layers;
    record["override_tensor"] = arguments.text("override-tensor").value_or("");
    record["tensor_split"] = arguments.text("tensor-split").value_or("");
    record["flash_attn"] = options.flash_attention;
    record["mla_attn"] = number("mla-use", 3);
    record["attn_max_batch"] = number("attention-max-batch", static_cast<int64_t>(options.scratch_bytes >> 20));
    record["ser"] = arguments.text("smart-expert-reduction").value_or("-1,0");
    record["use_mmap"] = options.map_weights;
}

class Bench {
  public:
    Bench(Arguments& arguments, const std::atomic<bool>& stop)
        : tests_(read_tests(arguments)),
          repetitions_(arguments.integer("bench-repetitions", 1, 1000).value_or(5)),
          warm_up_(arguments.on_off("bench-warmup").value_or(true)),
          stop_(stop) {
        size_t width = 0;
        for (const Test& test : tests_) {
            context_ = std::max(context_, test.tokens());
            width = std::max(width, test.label().size());
        }
        writers_.emplace_back(read_format(arguments, "bench-output"), stdout, given_columns(arguments), width);
        if (arguments.has("bench-output-err"))
            writers_.emplace_back(read_format(arguments, "bench-output-err"), stderr, given_columns(arguments), width);
    }

    // All combinations of one model.
    void measure_model(Arguments& arguments, const std::optional<std::string>& model) {
        std::vector<ModelSettings> all;
        std::vector<Arguments> lines = bench_lines(arguments);
        uint32_t threads = 0;
        for (Arguments& line : lines) {
            all.push_back(read_model_settings(line));
            for (const std::string& remark : line.remarks()) arguments.remark(remark);
            if (model) all.back().common.model = *model;
            threads = std::max(threads, asked_threads(all.back().engine));
        }
        const Machine machine(all.front().common, {}, threads);
        threads = std::min(threads, machine.processors);
        for (ModelSettings& settings : all) cap_threads(arguments, settings, machine);
        std::unique_ptr<Engine> engine;
        std::string loaded;
        for (size_t i = 0; i < lines.size(); ++i) {
            if (std::string key = key_of(lines[i]); !engine || key != loaded) {
                if (engine) keep_run(machine, *engine);
                engine.reset();
                engine = load(arguments, all[i], machine, threads);
                loaded = std::move(key);
            }
            const EngineOptions& options = all[i].engine;
            engine->set_threads(options.threads, options.prompt_threads ? options.prompt_threads : options.threads);
            BenchRecord record = shared_;
            add_settings(record, all[i], lines[i], *engine);
            const uint32_t generation =
                options.threads ? options.threads : std::max(machine.hardware.cpu().threads, 1u);
            measure_tests(*engine, record, generation, options.prompt_threads ? options.prompt_threads : generation);
        }
        if (engine) keep_run(machine, *engine);
    }

    void finish() {
        for (BenchWriter& writer : writers_) writer.finish();
    }

  private:
    static std::string key_of(const Arguments& line) {
        std::string key;
        for (const std::string_view name : std::span(kSeveral).first(std::size(kSeveral) - kOfThreads))
            key += line.text(name).value_or("") + '\n';
        return key;
    }

    std::unique_ptr<Engine> load(Arguments& arguments, ModelSettings& settings, const Machine& machine,
                                 uint32_t threads) {
        OpenedModel model = open_model(settings.common);
        const std::filesystem::path path = model.path;
        for (const Notice& notice : settle(settings, model, machine)) arguments.remark(worded(notice));
        for (; said_ < arguments.remarks().size(); ++said_) say(arguments.remarks()[said_]);
        EngineOptions options = settings.engine;
        options.context = context_;
        options.threads = options.prompt_threads = threads;
        auto engine = load_engine(std::move(model), machine, options, false, context_, settings.common.verbose);
        shared_ = describe(*engine, path, machine.hardware);
        return engine;
    }

    void measure_tests(Engine& engine, BenchRecord record, uint32_t threads, uint32_t prompt_threads) {
        SpeedMeter meter(engine, stop_);
        for (const Test& test : tests_) {
            if (warm_up_) test.prompt > 0 ? meter.prompt(test.depth, 1) : meter.generation(test.depth, 1);
            std::vector<double> speeds, times;
            boost::json::array samples_ns, samples_ts;
            for (int64_t i = 0; i < repetitions_; ++i) {
                const double seconds = meter.prompt_and_generation(test.depth, test.prompt, test.generation);
                times.push_back(seconds * 1e9);
                speeds.push_back((test.prompt + test.generation) / seconds);
                samples_ns.push_back(static_cast<uint64_t>(times.back()));
                samples_ts.push_back(speeds.back());
            }
            const Spread time = spread_of(times), speed = spread_of(speeds);
            record["n_threads"] = test.generation > 0 ? threads : prompt_threads;
            record["n_prompt"] = test.prompt;
            record["n_gen"] = test.generation;
            record["n_depth"] = test.depth;
            record["test_time"] = time_text();
            record["test"] = test.label();
            record["avg_ns"] = static_cast<uint64_t>(time.mean);
            record["stddev_ns"] = static_cast<uint64_t>(time.deviation);
            record["avg_ts"] = speed.mean;
            record["stddev_ts"] = speed.deviation;
            record["samples_ns"] = std::move(samples_ns);
            record["samples_ts"] = std::move(samples_ts);
            for (BenchWriter& writer : writers_) writer.add(record);
        }
    }

    std::vector<Test> tests_;
    int64_t repetitions_;
    bool warm_up_;
    const std::atomic<bool>& stop_;
    std::vector<BenchWriter> writers_;
    uint32_t context_ = 1;
    BenchRecord shared_;
    size_t said_ = 0;
};

}  // namespace

std::vector<Arguments> bench_lines(const Arguments& arguments) {
    return arguments.combinations(kSeveral);
}

int bench_command(Arguments& arguments) {
    const InterruptScope interrupt;
    Bench bench(arguments, interrupt.flag());
    std::vector<std::string> models = read_models(arguments);
    try {
        if (models.empty()) bench.measure_model(arguments, std::nullopt);
        for (const std::string& model : models) bench.measure_model(arguments, model);
    } catch (const Error& error) {
        if (error.code() != TSR_CANCELLED) throw;
    }
    bench.finish();
    return interrupt.interrupted() ? kExitInterrupted : kExitDone;
}

}  // namespace tessera::app
