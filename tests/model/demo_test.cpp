// The bundled model gives the recorded answers, and retrieves facts of its prompt, with every variant of attention,
// every type of cache, any number of threads, on simulated GPUs, and in batches. Distinguishes correct from garbage.
#include "core/session/generate.hpp"
#include "core/text/chat_template.hpp"
#include "core/text/tokenizer.hpp"
#include "core/text/vocabulary_from_gguf.hpp"
#include "tests/support.hpp"

#include <boost/json.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// Only to try a model that is not yet bundled.
fs::path models_folder() {
    const char* const other = std::getenv("TESSERA_TEST_MODELS");
    return other ? fs::path(other) : test::source_dir() / "models";
}

// models/prompts.json, which names the model.
struct Record {
    Record() {
        const fs::path path = models_folder() / "prompts.json";
        std::ifstream file(path);
        if (!file) throw std::runtime_error("no " + path.string());
        root = json::parse(std::string(std::istreambuf_iterator<char>(file), {})).as_object();
        model = models_folder() / root.at("model").as_string().c_str();
        for (const json::value& one : root.at("answers").as_array()) {
            prompts.emplace_back(one.at("prompt").as_string());
            answers.emplace_back(one.at("answer").as_string());
            ended.push_back(one.at("ended").as_bool());
        }
    }

    json::object root;
    fs::path model;
    std::vector<std::string> prompts, answers;
    std::vector<bool> ended;  // else the answer went on
};

const Record& record() {
    static const Record loaded;
    return loaded;
}

struct Wishes {
    std::string mla = "3";
    tsr_type cache = TSR_TYPE_F16;
    uint32_t threads = 1;
    uint32_t sequences = 8;
    uint32_t context = 1024;
    test::TestConfig config = test::plugins_up_to("cpu_avx2");
    PlacementOptions placement;
};

struct Demo {
    explicit Demo(const Wishes& wishes)
        : loaded(record().model, options_of(wishes), wishes.config), tokenizer(text::vocabulary_from_gguf(metadata())) {
        for (const LoweringChoice& choice : loaded.engine->plan().lowerings) {
            if (choice.op != "mla_attention") continue;
            // A device before 8.0 has no flash attention over latent rows: the variant without it is used.
            const tsr_device_info& device = *loaded.engine->plan().devices[choice.device];
            const bool another = choice.device != 0 && device.compute_capability < 800 && wishes.mla == "3";
            EXPECT_EQ(choice.lowering, another ? "2" : wishes.mla) << choice.node << " on " << device.id;
        }
    }

    static EngineOptions options_of(const Wishes& wishes) {
        EngineOptions options;
        options.context = wishes.context;
        options.sequences = wishes.sequences;
        options.rows = 256;
        options.threads = wishes.threads;
        options.cache_type_k = options.cache_type_v = wishes.cache;
        options.lowerings["mla_attention"] = wishes.mla;
        options.placement = wishes.placement;
        return options;
    }

    const gguf::Metadata& metadata() const { return loaded.engine->file().metadata(); }

    std::vector<Token> tokens_of(const std::string& question) const {
        const auto format = text::ChatTemplate::of_program(metadata().get_string("tokenizer.chat_template"));
        const text::ChatMessage message{"user", question};
        text::ChatOptions options;
        options.bos = tokenizer.spelling(tokenizer.bos());
        options.eos = tokenizer.spelling(tokenizer.eos());
        return tokenizer.encode(format.render({&message, 1}, options), {.add_special = false, .parse_special = true});
    }

    // As many at once as the engine has sequences for.
    std::vector<std::string> ask(const std::vector<std::string>& questions, uint32_t most = 100) {
        std::vector<std::string> texts(questions.size());
        session::Generator generator(*loaded.engine, tokenizer);
        session::SamplingParameters greedy;
        greedy.temperature = 0;
        for (size_t i = 0; i < questions.size(); ++i) {
            session::Request request;
            request.prompt = tokens_of(questions[i]);
            request.sampling = greedy;
            request.max_new_tokens = most;
            request.on_text = [&texts, i](std::string_view text) { texts[i] += text; };
            request.on_finish = [&texts, i](const session::Answer& answer) {
                if (answer.reason != session::FinishReason::kEndOfText)
                    texts[i] += "[" + std::string(reason_name(answer.reason)) + "]";
            };
            generator.add(std::move(request));
        }
        generator.run();
        return texts;
    }

    test::LoadedModel loaded;
    text::Tokenizer tokenizer;
};

void expect_answers(Demo& demo, const std::vector<size_t>& which) {
    std::vector<std::string> questions;
    for (const size_t i : which) questions.push_back(record().prompts.at(i));
    const auto answers = demo.ask(questions, 256);
    for (size_t i = 0; i < which.size(); ++i) {
        const std::string& wanted = record().answers[which[i]];
        EXPECT_EQ(record().ended[which[i]] ? answers[i] : answers[i].substr(0, wanted.size()), wanted) << questions[i];
    }
}

std::vector<size_t> all_prompts() {
    std::vector<size_t> which(record().prompts.size());
    for (size_t i = 0; i < which.size(); ++i) which[i] = i;
    return which;
}

// Every third, beginning elsewhere each time, so that together they are all.
std::vector<size_t> some_prompts(size_t first) {
    std::vector<size_t> which;
    for (size_t i = first % 3; i < record().prompts.size(); i += 3) which.push_back(i);
    return which;
}

TEST(Demo, SaysWhatIsRecorded) {
    Demo demo({});
    expect_answers(demo, all_prompts());
}

TEST(Demo, CountsInFrench) {
    Demo demo({});
    const std::string answer = demo.ask({"Count from 1 to 10 in French."}).front();
    std::vector<std::string> words(1);
    for (const char c : answer) {
        if (std::isalpha(static_cast<unsigned char>(c))) {
            words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        } else if (!words.back().empty()) {
            words.emplace_back();
        }
    }
    if (words.back().empty()) words.pop_back();
    EXPECT_EQ(words,
              (std::vector<std::string>{"un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix"}))
        << answer;
}

struct Variant {
    const char* mla;
    tsr_type cache;
    const char* cache_name;
};

constexpr Variant kVariants[] = {
    {"0", TSR_TYPE_F32, "f32"}, {"0", TSR_TYPE_F16, "f16"}, {"0", TSR_TYPE_BF16, "bf16"}, {"0", TSR_TYPE_Q8_0, "q8_0"},
    {"1", TSR_TYPE_F32, "f32"}, {"1", TSR_TYPE_F16, "f16"}, {"1", TSR_TYPE_BF16, "bf16"}, {"1", TSR_TYPE_Q8_0, "q8_0"},
    {"2", TSR_TYPE_F32, "f32"}, {"2", TSR_TYPE_F16, "f16"}, {"2", TSR_TYPE_BF16, "bf16"}, {"2", TSR_TYPE_Q8_0, "q8_0"},
    {"3", TSR_TYPE_F32, "f32"}, {"3", TSR_TYPE_F16, "f16"}, {"3", TSR_TYPE_BF16, "bf16"}, {"3", TSR_TYPE_Q8_0, "q8_0"}};

std::string variant_name(const testing::TestParamInfo<Variant>& info) {
    return std::string("mla") + info.param.mla + "_" + info.param.cache_name;
}

void PrintTo(const Variant& variant, std::ostream* out) {
    *out << "-mla " << variant.mla << " -ctk " << variant.cache_name;
}

class DemoVariants : public testing::TestWithParam<Variant> {};

TEST_P(DemoVariants, SaysWhatIsRecorded) {
    const Variant& variant = GetParam();
    Wishes wishes;
    wishes.mla = variant.mla;
    wishes.cache = variant.cache;
    Demo demo(wishes);
    expect_answers(demo, some_prompts(static_cast<size_t>(&variant - kVariants)));
}

INSTANTIATE_TEST_SUITE_P(Demo, DemoVariants, testing::ValuesIn(kVariants), variant_name);

TEST(Demo, SaysWhatIsRecordedOnTheReference) {
    Wishes wishes;
    wishes.mla = "1";
    wishes.config = test::plugins_up_to("reference");
    Demo demo(wishes);
    expect_answers(demo, {0, 4, 13, 16, 22});
}

TEST(Demo, SaysWhatIsRecordedOnAvx512) {
    if (!test::runs_here("cpu_avx512")) GTEST_SKIP() << "this processor has none";
    size_t which = 0;
    for (const Variant& variant : {Variant{"0", TSR_TYPE_F16, "f16"},
                                   {"1", TSR_TYPE_F32, "f32"},
                                   {"2", TSR_TYPE_BF16, "bf16"},
                                   {"3", TSR_TYPE_Q8_0, "q8_0"}}) {
        SCOPED_TRACE(variant_name({variant, 0}));
        Wishes wishes;
        wishes.mla = variant.mla;
        wishes.cache = variant.cache;
        wishes.config = test::plugins_up_to("cpu_avx512");
        Demo demo(wishes);
        expect_answers(demo, some_prompts(which++));
    }
}

class DemoKeys : public testing::TestWithParam<Variant> {};

TEST_P(DemoKeys, FindsWhatItWasTold) {
    const json::object& keys = record().root.at("keys").as_object();
    const json::array& texts = keys.at("texts").as_array();
    const std::string answer(keys.at("answer").as_string());
    const std::string place = "{key}";
    const auto with_key = [&](std::string text, const std::string& key) {
        const size_t at = text.find(place);
        if (at == std::string::npos) throw std::runtime_error("no place for a key in: " + text);
        return text.replace(at, place.size(), key);
    };
    Wishes wishes;
    wishes.mla = GetParam().mla;
    wishes.cache = GetParam().cache;
    wishes.context = 8 * 640;
    Demo demo(wishes);

    std::mt19937 random(20);
    std::vector<std::string> questions, wanted;
    size_t fewest = 1000, most = 0;
    for (size_t i = 0; i < 100; ++i) {
        std::string key;
        for (size_t digits = 4 + random() % 2; digits > 0; --digits) key += static_cast<char>('0' + random() % 10);
        const std::string text(texts.at(i % texts.size()).as_string());
        questions.push_back(with_key(text, key));
        wanted.push_back(with_key(answer, key));
        const size_t told =
            demo.tokenizer.encode(std::string_view(text).substr(text.find(place)), {.add_special = false}).size();
        fewest = std::min(fewest, told);
        most = std::max(most, told);
    }
    EXPECT_GE(fewest, 380u);
    const auto answers = demo.ask(questions, 16);
    size_t found = 0;
    for (size_t i = 0; i < answers.size(); ++i) found += answers[i] == wanted[i];
    std::printf("    %zu of %zu keys found, told %zu to %zu tokens earlier\n", found, answers.size(), fewest, most);
    EXPECT_GE(found, 95u);
}

INSTANTIATE_TEST_SUITE_P(Demo, DemoKeys,
                         testing::Values(Variant{"0", TSR_TYPE_F16, "f16"}, Variant{"1", TSR_TYPE_Q8_0, "q8_0"},
                                         Variant{"2", TSR_TYPE_BF16, "bf16"}, Variant{"3", TSR_TYPE_F16, "f16"},
                                         Variant{"3", TSR_TYPE_Q8_0, "q8_0"}),
                         variant_name);

TEST(Demo, SaysTheSameOnAnyNumberOfThreads) {
    std::vector<std::vector<std::string>> answers;
    for (const uint32_t threads : {1, 2, 3, 5, 8}) {
        Wishes wishes;
        wishes.threads = threads;
        Demo demo(wishes);
        std::vector<std::string> questions(record().prompts.begin(), record().prompts.begin() + 6);
        const std::string text(record().root.at("keys").as_object().at("texts").as_array().front().as_string());
        questions.push_back(text);  // without the key: whatever the answer is, it must be the same
        answers.push_back(demo.ask(questions, 40));
    }
    for (const auto& other : answers) EXPECT_EQ(other, answers[0]);
}

TEST(Demo, SaysTheSameInCompany) {
    const std::vector<std::string> questions = {"Count from 1 to 10 in French.", "What is Tessera?", "Copy: 3141592"};
    Wishes wishes;
    wishes.sequences = 3;
    Demo demo(wishes);
    const auto together = demo.ask(questions);
    wishes.sequences = 1;
    Demo alone(wishes);
    for (size_t i = 0; i < questions.size(); ++i)
        EXPECT_EQ(together[i], alone.ask({questions[i]}).front()) << questions[i];
}

struct Rig {
    const char* name;
    std::vector<uint32_t> gpus;  // compute capabilities
    std::vector<TensorRule> rules;
};

class DemoRigs : public testing::TestWithParam<Rig> {};

TEST_P(DemoRigs, SaysWhatIsRecorded) {
    const Rig& rig = GetParam();
    Wishes wishes;
    for (size_t i = 0; i < rig.gpus.size(); ++i) {
        DeviceDescription gpu;
        gpu.kind = "simulated";
        gpu.id = "SIM" + std::to_string(i);
        gpu.name = "simulated";
        gpu.compute_capability = rig.gpus[i];
        gpu.memory_bytes = gpu.free_memory_bytes = 256 << 20;
        wishes.config.gpus.push_back(gpu);
    }
    wishes.placement.rules = rig.rules;
    Demo demo(wishes);
    std::vector<bool> used(rig.gpus.size() + 1, false);
    for (const PlannedNode& node : demo.loaded.engine->plan().nodes) used[node.device] = true;
    for (size_t i = 1; i < used.size(); ++i) EXPECT_TRUE(used[i]) << "nothing runs on GPU " << i - 1;
    EXPECT_EQ(used[0], std::string_view(rig.name) != "alone") << "the CPU";
    expect_answers(demo, {0, 13, 16, 22});
}

INSTANTIATE_TEST_SUITE_P(Demo, DemoRigs,
                         testing::Values(Rig{"alone", {860}, {{".*", "SIM0"}}},
                                         Rig{"experts_on_the_cpu", {860}, {{"exps", "CPU"}, {".*", "SIM0"}}},
                                         Rig{"layer_on_the_cpu", {610}, {{"blk\\.1\\.", "CPU"}, {".*", "SIM0"}}},
                                         Rig{"two_and_the_cpu",
                                             {860, 610},
                                             {{"blk\\.0\\.", "CPU"}, {"blk\\.1\\.", "SIM1"}, {".*", "SIM0"}}}),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace tessera
