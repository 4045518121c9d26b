// What drafts gain: draft_gains FILE [--threads 2] [--tokens 96] [--prompt 64] [--rounds 3] [--accepted
// 0,0.3,0.5,0.7,0.8,0.9,1]. Times steps of 1, 2, 3, 4, 8 and 16 rows of one sequence in turns, then answers of one
// request, without drafts and with drafts of which each token is right with a given probability, in turns, and holds
// both to the same tokens. The bound of a probability is that of the best fixed length, by the times of the steps. With
// one thread times are the processor's, which other processes disturb less.
#include "core/base/error.hpp"
#include "core/base/seconds.hpp"
#include "core/hardware/hardware.hpp"
#include "core/session/drafts/draft_source.hpp"
#include "core/session/generate.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/prompts.hpp"

#include <boost/program_options.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace tessera;

// Foresees a text that it was told, each token with a probability.
class Told final : public session::DraftSource {
  public:
    Told(std::vector<Token> text, double share, uint32_t seed) : text_(std::move(text)), share_(share), random_(seed) {}

    void propose(std::span<session::DraftWish> wishes) override {
        for (session::DraftWish& wish : wishes) {
            for (size_t i = wish.tokens.size(); i < text_.size() && wish.draft.size() < wish.most; ++i) {
                const bool right = std::uniform_real_distribution<double>(0, 1)(random_) < share_;
                wish.draft.push_back({right ? text_[i] : text_[i] == 5 ? 6 : 5, 4});
            }
        }
    }
    void forget(session::RequestId) noexcept override {}

  private:
    std::vector<Token> text_;
    double share_;
    std::mt19937 random_;
};

bool of_processor = false;  // times are
double now() {
    return of_processor ? process_seconds()
                        : std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

std::map<uint32_t, double> time_steps(Engine& engine, std::span<const Token> prompt, int rounds) {
    const std::vector<uint32_t> sizes = {1, 2, 3, 4, 8, 16};
    std::map<uint32_t, std::vector<double>> seconds;
    const SequenceId sequence = engine.cache().create();
    (void)engine.prefill(sequence, prompt);
    for (int round = 0; round < rounds; ++round) {
        for (const uint32_t rows : sizes) {
            if (rows > engine.rows_as_single()) continue;
            const std::vector<Token> tokens(prompt.begin() + round % 8, prompt.begin() + round % 8 + rows);
            const BatchEntry entry{sequence, tokens, true, true};
            const double start = now();
            (void)engine.step({&entry, 1});
            seconds[rows].push_back(now() - start);
            engine.cache().truncate(sequence, static_cast<uint32_t>(prompt.size()));
        }
    }
    engine.cache().remove(sequence);
    std::map<uint32_t, double> times;
    for (const auto& [rows, all] : seconds) times[rows] = median(all);
    return times;
}

// Seconds of a step with so many rows, between those that were timed.
double seconds_of(const std::map<uint32_t, double>& times, uint32_t rows) {
    const auto above = times.lower_bound(rows);
    if (above == times.end()) return INFINITY;
    if (above->first == rows) return above->second;
    const auto below = std::prev(above);
    const double share = static_cast<double>(rows - below->first) / (above->first - below->first);
    return below->second + (above->second - below->second) * share;
}

double bound(const std::map<uint32_t, double>& times, double share) {
    double best = 1;
    for (uint32_t drafted = 1; drafted <= session::kMostDrafted; ++drafted) {
        double tokens = 0;
        for (uint32_t i = 0; i <= drafted; ++i) tokens += std::pow(share, i);
        best = std::max(best, tokens * times.at(1) / seconds_of(times, drafted + 1));
    }
    return best;
}

struct Measured {
    std::vector<Token> tokens;
    double seconds = 0;  // of a token
    uint64_t drafted = 0, accepted = 0;
};

Measured answer(session::Generator& generator, const std::vector<Token>& prompt, uint32_t tokens) {
    Measured measured;
    session::Request request;
    request.prompt = prompt;
    request.sampling.temperature = 0;
    request.max_new_tokens = tokens;
    double first = 0;
    request.on_prompt = [&](const session::PromptProgress&) { first = now(); };
    request.on_finish = [&](const session::Answer& answer) {
        measured.tokens = answer.tokens;
        measured.seconds = (now() - first) / std::max(answer.new_tokens - 1, 1u);
        measured.drafted = answer.drafted_tokens;
        measured.accepted = answer.accepted_tokens;
    };
    generator.add(std::move(request));
    generator.run();
    return measured;
}

}  // namespace

int main(int argc, char** argv) try {
    namespace po = boost::program_options;
    po::options_description described("options");
    described.add_options()("model", po::value<std::string>()->required(), "GGUF file")(
        "threads", po::value<uint32_t>()->default_value(0), "of steps")(
        "tokens", po::value<uint32_t>()->default_value(96), "of an answer")(
        "prompt", po::value<uint32_t>()->default_value(64), "tokens of the prompt")(
        "rounds", po::value<int>()->default_value(3),
        "answers with each probability, and a tenth of steps of each size")(
        "accepted", po::value<std::string>()->default_value("0,0.3,0.5,0.7,0.8,0.9,1"), "probabilities");
    po::positional_options_description positional;
    positional.add("model", 1);
    po::variables_map given;
    po::store(po::command_line_parser(argc, argv).options(described).positional(positional).run(), given);
    po::notify(given);
    CommonSettings common;
    common.model = given["model"].as<std::string>();
    EngineOptions options;
    options.threads = given["threads"].as<uint32_t>();
    of_processor = options.threads == 1;
    options.context = 1024;
    options.output_rows = 16;
    const Machine machine(common, {}, options.threads);
    OpenedModel model = open_model(common);
    const auto tokenizer = make_tokenizer(model.file);
    Engine engine(std::move(model.file), machine.registry, machine.hardware, options);
    std::mt19937 random(1);
    std::vector<Token> prompt(given["prompt"].as<uint32_t>());
    for (Token& token : prompt) token = static_cast<Token>(300 + random() % (tokenizer->size() - 300));
    const int rounds = given["rounds"].as<int>();
    const uint32_t tokens = given["tokens"].as<uint32_t>();
    const auto times = time_steps(engine, prompt, 10 * rounds);
    std::printf("| rows | ms | of one row |\n| --- | --- | --- |\n");
    for (const auto& [rows, seconds] : times)
        std::printf("| %u | %.2f | %.2f |\n", rows, seconds * 1e3, seconds / times.at(1));
    std::printf("\n| accepted | bound | gain | of the bound | drafted, accepted |\n| --- | --- | --- | --- | --- |\n");
    session::Generator plain(engine, *tokenizer);
    const std::vector<Token> text = answer(plain, prompt, tokens).tokens;
    std::string list = given["accepted"].as<std::string>();
    bool same = true;
    for (size_t at = 0; at < list.size();) {
        size_t length = 0;
        const double share = std::stod(list.substr(at), &length);
        at += length + 1;
        session::GeneratorOptions drafted;
        drafted.drafts.sources = {std::make_shared<Told>(text, share, 7)};
        session::Generator generator(engine, *tokenizer, drafted);
        std::vector<double> gains;
        uint64_t all = 0, accepted = 0;
        for (int round = 0; round < rounds; ++round) {
            const Measured without = answer(plain, prompt, tokens), with = answer(generator, prompt, tokens);
            same = same && with.tokens == text && without.tokens == text;
            gains.push_back(without.seconds / with.seconds);
            all += with.drafted;
            accepted += with.accepted;
        }
        const double gain = median(gains), most = bound(times, share);
        std::printf("| %.2f | %.2f | %.2f | %.2f | %llu, %llu |\n", share, most, gain, gain / most,
                    static_cast<unsigned long long>(all), static_cast<unsigned long long>(accepted));
        std::fflush(stdout);
    }
    std::printf("\nanswers with drafts %s\n", same ? "are the same" : "DIFFER");
    return same ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
