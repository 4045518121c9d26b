// Experts of the host that a card computes in steps of many rows, an expert at a time: both halves of the ring are
// filled again and again. On two emulated cards of one kind; the second one is lost.
#include "core/base/error.hpp"
#include "core/session/repack.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <ostream>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kRowsFrom = 8;
constexpr const char* kUpload = "cuMemcpyHtoDAsync_v2";

// A function of the emulated driver, which the plugins have opened.
template <class Function>
Function* driver_function(const char* name) {
    void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!library) throw std::runtime_error("no driver is open");
    return reinterpret_cast<Function*>(dlsym(library, name));
}

size_t uploads() {
    return driver_function<size_t(int, const char*)>("tesseraEmulatedCalls")(0, kUpload);
}

EngineOptions options_of(const char* card, bool stream, uint64_t wave_bytes, PackWeights pack) {
    EngineOptions options;
    options.context = 256;
    options.rows = 48;
    options.threads = 1;
    options.placement.gpu_layers = 99;
    options.placement.rules = {{"exps", "CPU"}, {".*", card}};
    options.stream_experts = stream;
    options.stream_rows_from = kRowsFrom;
    options.stream_wave_bytes = wave_bytes;
    options.pack_weights = pack;
    return options;
}

struct Case {
    std::string name;
    std::string model;
    PackWeights pack;
    bool repacked;  // the file has its rows interleaved
    double tolerance;

    friend std::ostream& operator<<(std::ostream& out, const Case& test) { return out << test.name; }
};

// The logits of a step of 24 rows, of one that does not stream, and of a token; and the uploads of the first.
struct Outcome {
    std::vector<float> logits;
    size_t uploads = 0;
};

Outcome run(Engine& engine) {
    Outcome outcome;
    std::mt19937 random(3);
    const SequenceId sequence = engine.cache().create();
    for (const size_t rows : {24, 7, 1}) {
        std::vector<Token> tokens(rows);
        for (Token& token : tokens) token = static_cast<Token>(random() % engine.info().vocabulary);
        const std::vector<BatchEntry> entries = {{sequence, tokens}};
        const size_t before = uploads();
        for (const auto row : engine.step(entries)) outcome.logits.insert(outcome.logits.end(), row.begin(), row.end());
        if (rows >= kRowsFrom) outcome.uploads = uploads() - before;
    }
    return outcome;
}

std::filesystem::path interleaved(const std::filesystem::path& model, const TemporaryFolder& folder) {
    Hardware hardware = Hardware::detect();
    hardware.keep_gpus(std::span<const std::string>());
    const Config config = plugins_without({"simulated"});
    const Registry registry = Registry::load(config, hardware);
    const gguf::GgufFile file = gguf::GgufFile::open(model);
    const std::atomic<bool> stop{false};
    std::filesystem::path made = folder.path() / "interleaved.gguf";
    const RepackedFile found =
        repack(file, plan_model(file, registry, hardware, EngineOptions()).plan, registry, made, {}, stop);
    EXPECT_TRUE(std::ranges::any_of(found.tensors, [](const auto& type) {
        return type.first.find("_x") != std::string::npos || type.first.find("_r") != std::string::npos;
    })) << "no tensor of the file is interleaved";
    return made;
}

class StreamedExperts : public testing::TestWithParam<Case> {};

TEST_P(StreamedExperts, GiveTheLogitsOfTheHost) {
    const Case& test = GetParam();
    const TemporaryFolder folder;
    std::filesystem::path model = source_dir() / test.model;
    if (test.repacked) model = interleaved(model, folder);
    const Config config = plugins_without({"simulated"});
    Outcome without;
    {
        LoadedModel loaded(model, options_of("CUDA0", false, 1, test.pack), config);
        ASSERT_TRUE(loaded.engine->plan().streamed.empty());
        without = run(*loaded.engine);
    }
    LoadedModel loaded(model, options_of("CUDA0", true, 1, test.pack), config);
    const Plan& plan = loaded.engine->plan();
    ASSERT_FALSE(plan.streamed.empty());
    size_t experts = 0;
    for (const StreamedNode& streamed : plan.streamed) {
        EXPECT_EQ(streamed.experts_at_once, 1u);
        EXPECT_STREQ(plan.devices[streamed.device]->id, "CUDA0");
        const Node& node = plan.graph.nodes()[plan.nodes[streamed.node].node];
        experts = static_cast<size_t>(plan.graph.tensor(node.inputs[3]).dims[2]);  // of the matrix gate, in each layer
    }
    const Outcome streamed = run(*loaded.engine);
    // The ranges, x and the weights of the rows once, and for each part three matrices and the experts' places.
    // The last layer computes the one row of the output, and does not stream.
    const size_t nodes = plan.streamed.size() - 1;
    ASSERT_GT(nodes, 0u);
    ASSERT_GT(streamed.uploads, without.uploads + 3 * nodes);
    const size_t of_waves = streamed.uploads - without.uploads - 3 * nodes;
    EXPECT_EQ(of_waves % 4, 0u);
    EXPECT_GE(of_waves / 4, 3 * nodes) << "no half of the ring is used twice";
    EXPECT_LE(of_waves / 4, experts * nodes);
    EXPECT_GE(of_waves / 4, experts * nodes * 3 / 4) << "24 rows name nearly all experts";

    ASSERT_EQ(streamed.logits.size(), without.logits.size());
    double largest = 0, worst = 0;
    for (size_t i = 0; i < without.logits.size(); ++i) {
        ASSERT_TRUE(std::isfinite(streamed.logits[i])) << i;
        largest = std::max<double>(largest, std::abs(without.logits[i]));
        worst = std::max<double>(worst, std::abs(streamed.logits[i] - without.logits[i]));
    }
    std::printf("%zu parts, largest difference %.6f of %.3f\n", of_waves / 4, worst, largest);
    EXPECT_LE(worst, test.tolerance * largest);
}

INSTANTIATE_TEST_SUITE_P(
    Models, StreamedExperts,
    testing::Values(Case{"canonical", TSR_GOLDENS "/v3-groups.gguf", PackWeights::kNever, false, 2e-3},
                    Case{"packed", TSR_GOLDENS "/v3-groups.gguf", PackWeights::kAtLoad, false, 2e-3},
                    Case{"interleaved", "models/demo-tessera-10m.gguf", PackWeights::kNever, true, 0.05}),
    [](const auto& test) { return test.param.name; });

// The card is lost in the middle of a node's parts: the error says of which, and what to do.
TEST(StreamedExpertsOnALostCard, AreNamed) {
    LoadedModel loaded(TSR_GOLDENS "/v3-groups.gguf", options_of("CUDA1", true, 1, PackWeights::kAtLoad),
                       plugins_without({"simulated"}));
    ASSERT_FALSE(loaded.engine->plan().streamed.empty());
    const std::string fault = std::string("1:") + kUpload + "@24";
    ASSERT_EQ(driver_function<int(const char*)>("tesseraEmulatedFaults")(fault.c_str()), 0);
    const std::vector<Token> tokens = {5, 17, 3, 42, 8, 1, 30, 12, 9, 11, 23, 2};
    for (int again = 0; again < 2; ++again) {
        const SequenceId sequence = loaded.engine->cache().create();
        const std::vector<BatchEntry> entries = {{sequence, tokens}};
        try {
            loaded.engine->step(entries);
            ADD_FAILURE() << "no error";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), uint32_t{TSR_DEVICE_LOST});
            EXPECT_THAT(error.what(), AllOf(HasSubstr("(moe_ffn, layer 1), its experts copied to CUDA1: "),
                                            HasSubstr("CUDA1: uploading "), HasSubstr(" bytes: cuMemcpyHtoDAsync"),
                                            HasSubstr("CUDA1 is lost: start again without it")));
            EXPECT_THAT(error.what(), testing::Not(HasSubstr("also")));
        }
        loaded.engine->cache().remove(sequence);
    }
}

}  // namespace
}  // namespace tessera::test
