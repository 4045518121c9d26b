// What drafts gain: draft_gains FILE [--threads 2] [--tokens 96] [--prompt 64] [--rounds 3] [--clients 1,4]
// [--accepted 0,0.3,0.5,0.7,0.8,0.9,1] [--edited 4,8,16] [--draft-model FILE]. Times steps of 1, 2, 3, 4, 8 and 16 rows
// of one sequence in turns, then answers without drafts and with them, in turns, and holds both to the same tokens.
// Drafts are: tokens of the answer of which each is right with a given probability; what NgramDrafts find where the
// prompt had the answer but for each fourth token, and so on; and those of a draft model. Of the latter the time of the
// prompt counts, too. The first round is that of which nothing was known before. The bound of a probability is that of
// the best fixed length, by the times of the steps. With one thread times are the processor's, which other processes
// disturb less.
#include "core/base/error.hpp"
#include "core/base/seconds.hpp"
#include "core/hardware/hardware.hpp"
#include "core/session/drafts/draft_source.hpp"
#include "core/session/drafts/model_drafts.hpp"
#include "core/session/drafts/ngram_drafts.hpp"
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

// Prompts with the answers to them.
using Texts = std::vector<std::vector<Token>>;

const std::vector<Token>* text_of(const Texts& texts, std::span<const Token> tokens, size_t prompt) {
    for (const std::vector<Token>& text : texts) {
        if (std::ranges::equal(tokens.first(prompt), std::span(text).first(prompt))) return &text;
    }
    return nullptr;
}

// Foresees texts that it was told, each token with a probability.
class Told final : public session::DraftSource {
  public:
    Told(Texts texts, size_t prompt, double share, uint32_t seed)
        : texts_(std::move(texts)), prompt_(prompt), share_(share), random_(seed) {}

    void propose(std::span<session::DraftWish> wishes) override {
        for (session::DraftWish& wish : wishes) {
            const std::vector<Token>* const text = text_of(texts_, wish.tokens, prompt_);
            if (!text) continue;
            for (size_t i = wish.tokens.size(); i < text->size() && wish.draft.size() < wish.most; ++i) {
                const bool right = std::uniform_real_distribution<double>(0, 1)(random_) < share_;
                wish.draft.push_back({right ? (*text)[i] : (*text)[i] == 5 ? 6 : 5, 4});
            }
        }
    }
    void forget(session::RequestId) noexcept override {}

  private:
    Texts texts_;
    size_t prompt_;
    double share_;
    std::mt19937 random_;
};

// What NgramDrafts find where the prompt begins with the answer, of which each so many-th token is another one.
class Edited final : public session::DraftSource {
  public:
    Edited(const Texts& texts, size_t prompt, uint32_t each) : texts_(texts), prompt_(prompt), each_(each) {}

    void propose(std::span<session::DraftWish> wishes) override {
        std::vector<session::DraftWish> others;
        std::vector<std::vector<Token>> tokens;
        tokens.reserve(wishes.size());
        for (const session::DraftWish& wish : wishes) {
            std::vector<Token>& all = tokens.emplace_back();
            if (const std::vector<Token>* const text = text_of(texts_, wish.tokens, prompt_)) {
                all.assign(text->begin() + static_cast<std::ptrdiff_t>(prompt_), text->end());
                for (size_t i = each_ - 1; i < all.size(); i += each_) all[i] = static_cast<Token>(7 + i);
            }
            all.insert(all.end(), wish.tokens.begin(), wish.tokens.end());
            others.push_back({wish.id, all, wish.most, {}});
        }
        drafts_.propose(others);
        for (size_t i = 0; i < wishes.size(); ++i) wishes[i].draft = std::move(others[i].draft);
    }
    void forget(session::RequestId id) noexcept override { drafts_.forget(id); }

  private:
    Texts texts_;
    size_t prompt_;
    uint32_t each_;
    session::NgramDrafts drafts_;
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
    Texts texts;
    double seconds = 0;  // of generation; of all with the prompts
    double all_seconds = 0;
    uint64_t drafted = 0, accepted = 0;
};

// Of all prompts at once.
Measured answers(session::Generator& generator, const Texts& prompts, uint32_t tokens) {
    Measured measured;
    measured.texts.resize(prompts.size());
    double first = 0;
    const double start = now();
    for (size_t i = 0; i < prompts.size(); ++i) {
        session::Request request;
        request.prompt = prompts[i];
        request.reuse = false;
        request.sampling.temperature = 0;
        request.max_new_tokens = tokens;
        request.on_prompt = [&](const session::PromptProgress& progress) {
            if (progress.done == progress.total) first = now();
        };
        request.on_finish = [&measured, i](const session::Answer& answer) {
            measured.texts[i] = answer.tokens;
            measured.drafted += answer.drafted_tokens;
            measured.accepted += answer.accepted_tokens;
        };
        generator.add(std::move(request));
    }
    generator.run();
    measured.seconds = now() - first;
    measured.all_seconds = now() - start;
    return measured;
}

std::vector<double> numbers(const std::string& list) {
    std::vector<double> numbers;
    for (size_t at = 0; at < list.size();) {
        size_t length = 0;
        numbers.push_back(std::stod(list.substr(at), &length));
        at += length + 1;
    }
    return numbers;
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
        "clients", po::value<std::string>()->default_value("1"), "requests at once")(
        "accepted", po::value<std::string>()->default_value("0,0.3,0.5,0.7,0.8,0.9,1"), "probabilities")(
        "edited", po::value<std::string>()->default_value(""), "tokens of which one is another")(
        "draft-model", po::value<std::string>(), "GGUF file of the same vocabulary");
    po::positional_options_description positional;
    positional.add("model", 1);
    po::variables_map given;
    po::store(po::command_line_parser(argc, argv).options(described).positional(positional).run(), given);
    po::notify(given);
    CommonSettings common;
    common.model = given["model"].as<std::string>();
    const std::vector<double> clients = numbers(given["clients"].as<std::string>());
    EngineOptions options;
    options.threads = given["threads"].as<uint32_t>();
    of_processor = options.threads == 1;
    const uint32_t tokens = given["tokens"].as<uint32_t>();
    const size_t length = given["prompt"].as<uint32_t>();
    options.sequences = static_cast<uint32_t>(*std::ranges::max_element(clients));
    // Texts that ended stay cached, those of the generator without drafts and of the one with them.
    options.context = 3 * options.sequences * static_cast<uint32_t>(length + tokens + 2 * TSR_PAGE_TOKENS);
    options.output_rows = options.sequences + 15;
    const Machine machine(common, {}, options.threads);
    OpenedModel model = open_model(common);
    const auto tokenizer = make_tokenizer(model.file);
    Engine engine(std::move(model.file), machine.registry, machine.hardware, options);
    std::unique_ptr<Engine> draft_engine;
    if (given.contains("draft-model")) {
        CommonSettings of_draft;
        of_draft.model = given["draft-model"].as<std::string>();
        OpenedModel draft_model = open_model(of_draft);
        session::check_same_vocabulary(*tokenizer, *make_tokenizer(draft_model.file));
        draft_engine =
            std::make_unique<Engine>(std::move(draft_model.file), machine.registry, machine.hardware, options);
    }
    std::mt19937 random(1);
    Texts prompts(options.sequences, std::vector<Token>(length));
    for (std::vector<Token>& prompt : prompts)
        for (Token& token : prompt) token = static_cast<Token>(300 + random() % (tokenizer->size() - 300));
    const int rounds = given["rounds"].as<int>();
    const auto times = time_steps(engine, prompts.front(), 10 * rounds);
    std::printf("| rows | ms | of one row |\n| --- | --- | --- |\n");
    for (const auto& [rows, seconds] : times)
        std::printf("| %u | %.2f | %.2f |\n", rows, seconds * 1e3, seconds / times.at(1));
    std::printf(
        "\n| clients | drafts | bound | gain | first | least | drafted, accepted |\n"
        "| --- | --- | --- | --- | --- | --- | --- |\n");
    bool same = true;
    session::Generator plain(engine, *tokenizer);
    for (const double count : clients) {
        const Texts some(prompts.begin(), prompts.begin() + static_cast<std::ptrdiff_t>(count));
        const Texts texts = answers(plain, some, tokens).texts;
        const auto measure = [&](const char* what, double value, double most, auto source, bool whole) {
            session::GeneratorOptions drafted;
            drafted.drafts.sources = {std::move(source)};
            session::Generator generator(engine, *tokenizer, drafted);
            std::vector<double> without, with, gains;
            uint64_t all = 0, accepted = 0;
            for (int round = 0; round < rounds; ++round) {
                const Measured a = answers(plain, some, tokens), b = answers(generator, some, tokens);
                same = same && a.texts == texts && b.texts == texts;
                without.push_back(whole ? a.all_seconds : a.seconds);
                with.push_back(whole ? b.all_seconds : b.seconds);
                gains.push_back(without.back() / with.back());
                all += b.drafted;
                accepted += b.accepted;
            }
            std::printf("| %.0f | %s %.2f | %.2f | %.3f | %.3f | %.3f | %llu, %llu |\n", count, what, value, most,
                        median(without) / median(with), gains.front(), *std::ranges::min_element(gains),
                        static_cast<unsigned long long>(all), static_cast<unsigned long long>(accepted));
            std::fflush(stdout);
        };
        for (const double share : numbers(given["accepted"].as<std::string>()))
            measure("accepted", share, count > 1 ? NAN : bound(times, share),
                    std::make_shared<Told>(texts, length, share, 7), false);
        for (const double each : numbers(given["edited"].as<std::string>()))
            measure("edited, one of", each, NAN, std::make_shared<Edited>(texts, length, static_cast<uint32_t>(each)),
                    false);
        if (!draft_engine) continue;
        const auto vocabulary = tokenizer->size();
        measure("draft model", 0, NAN, std::make_shared<session::ModelDrafts>(std::move(draft_engine), vocabulary, 0),
                true);
        if (clients.size() > 1) break;  // it is gone
    }
    std::printf("\nanswers with drafts %s\n", same ? "are the same" : "DIFFER");
    return same ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
}
