// Command lines that people ran, planned on the machines they ran them on (rig_lines.txt), by the plugins for GPUs.
#include "tests/apps/process.hpp"
#include "tests/apps/sparse_model.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

struct Line {
    std::string rig, preset, type;
    std::vector<std::string> flags;

    friend std::ostream& operator<<(std::ostream& out, const Line& line) {
        out << line.rig << ' ' << line.preset << ' ' << line.type;
        for (const std::string& flag : line.flags) out << ' ' << flag;
        return out;
    }
};

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
}

std::vector<Line> read_lines() {
    std::ifstream file(TSR_RIG_LINES);
    std::vector<Line> lines;
    std::string whole;
    for (std::string part; std::getline(file, part);) {
        if (part.starts_with('#') || part.empty()) continue;
        const bool goes_on = part.ends_with('\\');
        whole += goes_on ? part.substr(0, part.size() - 1) : part;
        if (goes_on) continue;
        const size_t bar = whole.find(" | ");
        const std::vector<std::string> head = words_of(whole.substr(0, bar));
        if (bar == std::string::npos || head.size() != 3) throw std::runtime_error("malformed line: " + whole);
        lines.push_back({head[0], head[1], head[2], words_of(whole.substr(bar + 3))});
        whole.clear();
    }
    return lines;
}

// With that, and without a rule for them, all of a layer but its experts lies on a card.
bool asks_for_all_layers(const Line& line) {
    constexpr int kMostLayers = 61;
    for (size_t i = 0; i + 1 < line.flags.size(); ++i) {
        if (line.flags[i] == "-ngl" || line.flags[i] == "--n-gpu-layers")
            return std::stoi(line.flags[i + 1]) > kMostLayers;
    }
    return false;
}

class RigLines : public testing::TestWithParam<Line> {};

// A line plans, fits or says by how much it does not, and uses each GPU of the machine by the plugin made for it.
TEST_P(RigLines, IsPlanned) {
    const Line& line = GetParam();
    std::vector<std::string> words = {"plan", sparse_model(line.preset, line.type)};
    words.insert(words.end(), line.flags.begin(), line.flags.end());
    const std::string rig = TSR_SOURCE_DIR "/testing/rigs/" + line.rig + ".toml";
    words.insert(words.end(), {"--json", "--rig", rig});
    const Outcome outcome = tessera(words);
    ASSERT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.err;
    const auto plan = boost::json::parse(outcome.out);
    EXPECT_EQ(plan.at("fits").as_bool(), outcome.code == 0);
    EXPECT_THAT(outcome.err, testing::Not(testing::HasSubstr("without a plugin")));
    std::map<std::string, std::string> plugins;  // by device
    for (const auto& device : plan.at("devices").as_array()) {
        const bool is_old =
            device.at("kind").as_string() == "cuda" && device.at("compute_capability").to_number<int>() < 800;
        plugins[std::string(device.at("id").as_string())] = is_old ? "cuda_legacy" : "cuda_ampere";
    }
    for (const auto& node : plan.at("nodes").as_array()) {
        const std::string device(node.at("device").as_string()), plugin(node.at("plugin").as_string());
        const bool is_attention = node.at("op").as_string().find("attention") != std::string_view::npos;
        EXPECT_FALSE(is_attention && asks_for_all_layers(line) && device == "CPU") << node.at("name").as_string();
        if (device == "CPU") {
            EXPECT_THAT(plugin, testing::StartsWith("cpu_"));
        } else {
            EXPECT_EQ(plugin, plugins.at(device)) << device;
        }
    }
}

// Experts that lie on the CPU are copied to the card for prompts where the estimates say that this is faster, and
// never if that is not wanted.
TEST(Streaming, IsChosenByEstimate) {
    const auto streamed = [](std::vector<std::string> flags) {
        flags.insert(flags.begin(),
                     {"plan", sparse_model("v3", "q2_K"), "--json", "-c", "8192", "-ctk", "q8_0", "-ngl", "99", "-ot",
                      "exps=CPU", "--rig", TSR_SOURCE_DIR "/testing/rigs/a6000-threadripper.toml"});
        const Outcome outcome = tessera(flags);
        EXPECT_EQ(outcome.code, 0) << outcome.err;
        const auto plan = boost::json::parse(outcome.out);
        std::map<int, uint32_t> rows_from;  // by layer
        for (const auto& one : plan.at("streamed").as_array()) {
            EXPECT_EQ(one.at("device").as_string(), "CUDA0");
            rows_from[one.at("layer").to_number<int>()] = one.at("rows_from").to_number<uint32_t>();
        }
        // Their cost is one of the constants that nobody has measured.
        EXPECT_EQ(outcome.out.find("\"a part of streamed experts\"") != std::string::npos, !rows_from.empty());
        return rows_from;
    };
    const auto large = streamed({"-ub", "4096"});
    // Layers 3 to 59: those before have no experts, and the last one computes only rows whose logits are wanted.
    EXPECT_EQ(large.size(), 57u);
    for (const auto& [layer, rows] : large) {
        EXPECT_GT(rows, 512u) << layer;
        EXPECT_LE(rows, 4096u) << layer;
    }
    EXPECT_THAT(streamed({"-ub", "512"}), testing::IsEmpty());
    for (const std::vector<std::string>& off :
         {std::vector<std::string>{"--no-op-offload"}, {"-nopo"}, {"-op", "27,0"}, {"-op", "26,1,29,0"}}) {
        std::vector<std::string> flags = off;
        flags.insert(flags.end(), {"-ub", "4096"});
        EXPECT_THAT(streamed(flags), testing::IsEmpty()) << off.back();
    }
    // Another operation, and the same one allowed.
    EXPECT_EQ(streamed({"-op", "26,0,27,1", "-ub", "4096"}), large);
}

// What `plan --why` says of the layers on a device, in one line.
std::string layers_on(const std::string& text, const std::string& device) {
    std::string found;
    bool inside = false;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) {
        if (!line.starts_with(' '))
            inside = line.starts_with("layer") && line.find(" on " + device + " ") != std::string::npos;
        if (!inside) continue;
        for (const std::string& word : words_of(line)) found += word + ' ';
    }
    return found;
}

// Layers on Pascal have another attention than those on Ampere, and the plan says why, in words, as it says it on no
// Ampere.
TEST(AmpereAndPascal, ThePlanSaysWhyPascalHasAnotherAttention) {
    const Outcome outcome = tessera({"plan", sparse_model("lite", "q4_0"), "-c", "4096", "-ngl", "99", "-ts", "1,1,1,1",
                                     "--why", "--rig", TSR_SOURCE_DIR "/testing/rigs/ampere-and-pascal.toml"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const std::string generation =
        "not lowering mla/3 (latent cache; prompt expanded, generation absorbed with flash "
        "attention): ";
    const std::string why =
        "cuda_legacy/flash_attention.cuda: flash_attention: required heads of 576/512 over one latent "
        "row; supported: 192/128 128/128 64/64, not 576/512; missing: tensor cores with asynchronous "
        "copies, from 8.0 on; use tiled_attention";
    for (const char* ampere : {"CUDA0", "CUDA1"}) {
        const std::string text = layers_on(outcome.out, ampere);
        EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("flash_attention cuda_ampere: flash_attention.cuda"),
                                         testing::Not(testing::HasSubstr("from 8.0 on"))));
    }
    for (const char* pascal : {"CUDA2", "CUDA3"}) {
        const std::string text = layers_on(outcome.out, pascal);
        EXPECT_THAT(text, testing::AllOf(testing::HasSubstr("tiled_attention cuda_legacy: tiled_attention.cuda"),
                                         testing::HasSubstr(generation), testing::HasSubstr(why)));
    }
}

INSTANTIATE_TEST_SUITE_P(Lines, RigLines, testing::ValuesIn(read_lines()),
                         [](const testing::TestParamInfo<Line>& test) {
                             std::string name = test.param.rig + "_" + std::to_string(test.index);
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace tessera::test
