// measure_steps [--steps N] [--seed N] [--rows N] [--sequences N] [--config FILE] [-c TOKENS] MODEL: loads a model,
// takes steps in which prompts of some sequences and single tokens of others are mixed, and compares what the drivers
// of the GPUs count with what was planned: one JSON object a line, {"topic": "memory", ...} for each GPU and {"topic":
// "steps", ...}. Exit code: 1 for an error. For tools/gpu_acceptance.
#include "core/base/error.hpp"
#include "core/run/open_device.hpp"
#include "core/setup/loading.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <malloc.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <string_view>

namespace tessera::test {
namespace {

struct Options {
    CommonSettings common;
    EngineOptions engine;
    uint32_t steps = 1000;
    unsigned seed = 1;
};

Options parse(int count, char** words) {
    Options options;
    options.engine.rows = 64;
    options.engine.sequences = 4;
    for (int i = 1; i < count; ++i) {
        const std::string_view word = words[i];
        const auto value = [&]() -> std::string {
            if (++i == count) throw std::runtime_error(std::string(word) + " needs a value");
            return words[i];
        };
        const auto number = [&] { return static_cast<uint32_t>(std::stoul(value())); };
        if (word == "--steps")
            options.steps = number();
        else if (word == "--seed")
            options.seed = number();
        else if (word == "--rows")
            options.engine.rows = number();
        else if (word == "--sequences")
            options.engine.sequences = number();
        else if (word == "-c")
            options.engine.context = number();
        else if (word == "--config")
            options.common.config = value();
        else if (!word.starts_with('-') && !options.common.model)
            options.common.model = std::string(word);
        else
            throw std::runtime_error("unknown option " + std::string(word));
    }
    if (!options.common.model) throw std::runtime_error("expected a model");
    return options;
}

void print(const boost::json::object& line) {
    std::printf("%s\n", boost::json::serialize(line).c_str());
    std::fflush(stdout);
}

uint64_t host_bytes() {
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

// A GPU that stays open, so that its context is not counted as the model's.
struct Watched {
    const tsr_device_info* info;
    std::unique_ptr<OpenDevice> device;
    uint64_t opened = 0, loaded = 0, warm = 0, stepped = 0;  // free bytes
    uint64_t free() const {
        const auto memory = device->memory();
        if (!memory) throw std::runtime_error(std::string(info->id) + " does not report its memory");
        return memory->free;
    }
};

// Sequences that grow by prompts and by single tokens, end, and begin again.
class Mixer {
  public:
    Mixer(Engine& engine, unsigned seed) : engine_(engine), random_(seed), tokens_(engine.max_rows()) {
        for (uint32_t i = 0; i < engine.max_sequences(); ++i) sequences_.push_back(engine.cache().create());
        share_ = engine.context() / engine.max_sequences() / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS;
    }
    ~Mixer() {
        for (const SequenceId id : sequences_) engine_.cache().remove(id);
    }
    Mixer(const Mixer&) = delete;
    Mixer& operator=(const Mixer&) = delete;

    // One sequence brings a prompt, the others a token each; some end before.
    void step() {
        const auto count = static_cast<uint32_t>(sequences_.size());
        const uint32_t prompts = count > 1 ? random_() % count : 0;
        const uint32_t most = std::max(1u, std::min(engine_.max_rows() - (count - 1), share_));
        entries_.clear();
        size_t at = 0;
        for (uint32_t i = 0; i < count; ++i) {
            const uint32_t rows = i == prompts ? 1 + random_() % most : 1;
            const uint32_t length = engine_.cache().length(sequences_[i]);
            if (length + rows > share_)
                engine_.cache().truncate(sequences_[i], random_() % 2 ? 0 : (share_ - rows) / 2);
            for (uint32_t r = 0; r < rows; ++r)
                tokens_[at + r] = static_cast<Token>(random_() % engine_.info().vocabulary);
            entries_.push_back({sequences_[i], std::span(tokens_).subspan(at, rows)});
            at += rows;
        }
        engine_.step(entries_);
        rows_ += at;
    }
    uint64_t rows() const noexcept { return rows_; }

  private:
    Engine& engine_;
    std::mt19937 random_;
    std::vector<Token> tokens_;
    std::vector<SequenceId> sequences_;
    std::vector<BatchEntry> entries_;
    uint32_t share_ = 0;
    uint64_t rows_ = 0;
};

// At most: of steps of 1, 2, 4 .. rows up to one of each sequence.
uint64_t recordings_of(const Plan& plan, DeviceIndex device) {
    const auto runs = std::ranges::count_if(plan.step.actions, [&](const Action& action) {
        return action.kind == ActionKind::kNodes && plan.step.device_of(action) == device;
    });
    return static_cast<uint64_t>(runs) * (1 + std::bit_width(plan.options.max_sequences - 1));
}

int run(int count, char** words) {
    Options options = parse(count, words);
    const Machine machine(options.common);
    std::vector<Watched> gpus;
    for (const tsr_device_info* info : machine.hardware.devices().subspan(1)) {
        const tsr_device_provider* provider = machine.registry.find_provider(*info);
        if (!provider) continue;
        gpus.push_back(
            {info, std::make_unique<OpenDevice>(*provider, *info, machine.registry.owner(*provider).table->name)});
    }
    for (Watched& gpu : gpus) gpu.opened = gpu.free();
    const auto say = [](const Notice& notice) { std::fprintf(stderr, "%s\n", notice.text.c_str()); };
    auto begin = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(); };
    OpenedModel model = open_model(options.common);
    ModelSettings settings;
    settings.common = options.common;
    settings.engine = options.engine;
    for (const Notice& notice : settle(settings, model, machine)) say(notice);  // with the placement of --config
    const std::unique_ptr<Engine> engine =
        load_engine(std::move(model), machine, settings.engine, true, 1, false, say, {});
    const double load_seconds = passed();
    for (Watched& gpu : gpus) gpu.loaded = gpu.free();
    Mixer mixer(*engine, options.seed);
    constexpr uint32_t kWarmUp = 3;
    for (uint32_t i = 0; i < std::min(kWarmUp, options.steps); ++i) mixer.step();
    for (Watched& gpu : gpus) gpu.warm = gpu.free();
    const uint64_t host_before = host_bytes(), rows_before = mixer.rows();
    begin = std::chrono::steady_clock::now();
    for (uint32_t i = 0; i < options.steps; ++i) mixer.step();
    const double seconds = passed();
    const uint64_t host_after = host_bytes();
    for (Watched& gpu : gpus) gpu.stepped = gpu.free();

    const Plan& plan = engine->plan();
    for (const Watched& gpu : gpus) {
        uint64_t planned = 0, weights = 0, cache = 0, recordings = 0;
        for (DeviceIndex i = 1; i < plan.devices.size(); ++i) {
            if (std::string_view(plan.devices[i]->id) != gpu.info->id) continue;
            planned = plan.memory[i].allocated() - plan.memory[i].loading;
            weights = plan.memory[i].weights;
            cache = plan.memory[i].cache;
            recordings += recordings_of(plan, i);
        }
        print({{"topic", "memory"},
               {"device", gpu.info->id},
               {"pci_id", gpu.info->pci_id},
               {"planned", planned},
               {"weights", weights},
               {"cache", cache},
               {"recordings", recordings},
               {"free_opened", gpu.opened},
               {"free_loaded", gpu.loaded},
               {"free_warm", gpu.warm},
               {"free_stepped", gpu.stepped}});
    }
    print({{"topic", "steps"},
           {"steps", options.steps},
           {"rows", mixer.rows() - rows_before},
           {"load_seconds", load_seconds},
           {"seconds", seconds},
           {"host_before", host_before},
           {"host_after", host_after}});
    return 0;
}

}  // namespace
}  // namespace tessera::test

int main(int count, char** words) {
    try {
        return tessera::test::run(count, words);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "measure_steps: %s\n", error.what());
        return 1;
    }
}
