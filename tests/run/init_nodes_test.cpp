// Init nodes on simulated cards: they run where their results lie, within the planned memory, give what the host gives,
// and fail with names.
#include "core/plan/init_nodes.hpp"

#include "core/base/error.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/op_set.hpp"
#include "core/plan/make_plan.hpp"
#include "core/run/executor.hpp"
#include "tests/formats/recorded.hpp"
#include "tests/run/simulated_rig.hpp"

#include <tessera/cpp/node.hpp>

#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <map>
#include <optional>

namespace tessera {
namespace {

using test::CardOptions;
using test::golden;
using test::simulated_failures;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char *kCard = "SIM0", *kOp = "transpose";

uint64_t launches() {
    return simulated_failures().count(kCard, TSR_SIMULATED_ENQUEUE, kOp);
}

// ---- a whole model: the variant -mla 3 of a file with attn_k_b transposes it in each layer ----

std::unique_ptr<test::LoadedModel> load(bool maps = true, double memory_bandwidth = 0) {
    EngineOptions options;
    options.context = 128;
    options.sequences = 2;
    options.rows = 24;
    options.map_weights = maps;
    options.expand_from = 8;
    options.lowerings["mla_attention"] = "3";
    options.placement.gpu_layers = 99;
    test::TestConfig config = test::rig_config({860});
    config.gpus.front().memory_bandwidth = memory_bandwidth;
    return std::make_unique<test::LoadedModel>(golden("v3-groups.gguf"), options, config);
}

std::vector<float> logits(Engine& engine) {
    std::mt19937 random(5);
    std::vector<float> all;
    const auto prompt = test::random_tokens(engine, random, 21), one = test::random_tokens(engine, random, 1);
    const SequenceId a = engine.cache().create();
    test::add_step(engine, {{a, prompt}}, all);
    test::add_step(engine, {{a, one}}, all);
    return all;
}

struct Card {
    const char* name;
    uint32_t without;
    const char* lacks;
    bool there;       // whether its init nodes run on the card
    uint64_t copied;  // bytes of what one reads, if it is copied
    double memory_bandwidth = 0;
};
constexpr Card kCards[] = {
    {"has_what_they_read", TSR_SIMULATED_NO_LAYOUTS, "", true, 0},
    {"has_no_kernel", TSR_SIMULATED_NO_LAYOUTS, kOp, false, 0},
    // What they read is copied, as what the host makes would be.
    {"has_it_packed", 0, "", true, 16384},
    // The host is faster.
    {"has_slow_memory", 0, "", false, 0, 1e9},
};

TEST(InitNodes, RunOnTheCardOfTheirResults) {
    std::vector<float> wanted;
    for (const Card& card : kCards) {
        for (const bool maps : {true, false}) {
            SCOPED_TRACE(testing::Message() << card.name << (maps ? ", mapped" : ", read"));
            const CardOptions options(kCard, TSR_SIMULATED_ON_WAIT, card.without, card.lacks);
            const auto loaded = load(maps, card.memory_bandwidth);
            const Plan& plan = loaded->engine->plan();
            ASSERT_EQ(plan.init_nodes.size(), 3u);
            for (const PlannedNode& node : plan.init_nodes) EXPECT_EQ(node.device, card.there ? 1u : 0u);
            EXPECT_EQ(launches(), card.there ? 3u : 0u);
            const DeviceMemory& memory = plan.memory[1];
            EXPECT_EQ(memory.deriving, card.there ? 256 + card.copied : 0u) << "no more than the ranges and a copy";
            EXPECT_EQ(simulated_failures().maximum_allocated_bytes(kCard), memory.allocated());
            EXPECT_EQ(simulated_failures().allocated_bytes(kCard), memory.allocated() - memory.loading);
            const std::vector<float> got = logits(*loaded->engine);
            if (wanted.empty()) wanted = got;
            EXPECT_EQ(got, wanted);
        }
    }
}

std::optional<Error> failure_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        return error;
    }
    return std::nullopt;
}

TEST(InitNodes, FailuresNameWeightsOpAndDevice) {
    for (const tsr_simulated_operation o :
         {TSR_SIMULATED_PREPARE, TSR_SIMULATED_ENQUEUE, TSR_SIMULATED_EXECUTE_KERNEL}) {
        for (const uint64_t at : {0, 1}) {
            SCOPED_TRACE(testing::Message() << "operation " << o << " at " << at);
            const CardOptions options(kCard, TSR_SIMULATED_ON_WAIT, TSR_SIMULATED_NO_LAYOUTS);
            simulated_failures().fail(kCard, o, kOp, at, 1);
            const auto failed = failure_of([&] { load(); });
            ASSERT_TRUE(failed);
            EXPECT_EQ(failed->code(), uint32_t{TSR_DEVICE_ERROR});
            const std::string layer = std::to_string(at), attention = "blk." + layer + ".attn";
            EXPECT_THAT(failed->what(), AllOf(HasSubstr(attention + "_k_b.weight: " + attention + ".wk (" + kOp +
                                                        ", layer " + layer + ") on " + kCard + ": "),
                                              HasSubstr("injected")));
            const std::string message = failed->what(), device = std::string(" on ") + kCard + ": ";
            EXPECT_EQ(message.find(device), message.rfind(device)) << "named twice: " << message;
            EXPECT_EQ(simulated_failures().allocated_bytes(kCard), 0u);
        }
    }
}

TEST(InitNodes, WhatTheyMakeIsUsed) {
    const CardOptions options(kCard, TSR_SIMULATED_RANDOM, TSR_SIMULATED_NO_LAYOUTS);
    simulated_failures().omit(kCard, TSR_SIMULATED_EXECUTE_KERNEL, kOp, 0, 1);
    std::vector<float> wrong;
    {
        const auto loaded = load();
        wrong = logits(*loaded->engine);
    }
    simulated_failures().reset(kCard);
    const auto loaded = load();
    EXPECT_NE(logits(*loaded->engine), wrong) << "what the kernel makes is not what is used";
}

// ---- graphs of one init node: y = t[token] * transposed(w) ----

constexpr int64_t kColumns = 576, kRows = 512;  // of w
constexpr int32_t kTableRows = 4, kTokens = 2;

// f16 of 0.1 to 0.5.
std::vector<unsigned char> random_halves(int64_t count) {
    std::mt19937 random(3);
    std::vector<unsigned char> bytes(static_cast<size_t>(count) * 2);
    for (size_t i = 0; i < bytes.size(); i += 2) {
        bytes[i] = static_cast<unsigned char>(random());
        bytes[i + 1] = static_cast<unsigned char>(0x30 + random() % 4);
    }
    return bytes;
}

class Source : public WeightSource {
  public:
    Source(std::map<std::string, std::vector<unsigned char>> weights, bool maps)
        : weights_(std::move(weights)), maps_(maps) {}
    void read(const std::string& name, uint64_t offset, std::span<std::byte> to) const override {
        std::memcpy(to.data(), weights_.at(name).data() + offset, to.size());
    }
    const std::byte* mapped(const std::string& name) const override {
        return maps_ ? reinterpret_cast<const std::byte*>(weights_.at(name).data()) : nullptr;
    }
    std::span<const std::byte> acquire(const std::string& name, uint64_t offset, uint64_t bytes) const override {
        if (!maps_) return {};
        return {mapped(name) + offset, bytes};
    }

  private:
    std::map<std::string, std::vector<unsigned char>> weights_;
    bool maps_;
};

struct Case {
    const char* name;
    tsr_type type = TSR_TYPE_F16;  // of w
    int64_t columns = kColumns;
    const char* source_layout = "";
    tsr_type result = TSR_TYPE_F16;
    bool read_by_steps = false;  // the card has w anyway
    bool chained = false;        // the result of a second node, which converts it, is used as well
    bool on_host_too = false;    // rows of the result are taken on the host, since the card cannot
    int32_t maximum_rows = 512;  // of a step: they give the memory for copies
    uint32_t without = TSR_SIMULATED_NO_LAYOUTS;
    std::vector<DeviceIndex> devices = {1};  // of the init nodes
    uint64_t copied = 0;                     // bytes that the card has in memory of steps
};
void PrintTo(const Case& c, std::ostream* out) {
    *out << c.name;
}

std::vector<unsigned char> weight_of(const Case& c) {
    if (!*c.source_layout) return random_halves(c.columns * kRows);
    const gguf::GgufFile file = gguf::GgufFile::open(TSR_SOURCE_DIR "/tests/formats/ik_rows.gguf");
    const auto group = tests::recorded<unsigned char>(file, std::string(c.source_layout) + ".interleaved");
    std::vector<unsigned char> bytes;
    for (int64_t row = 0; row < kRows; row += 8) bytes.insert(bytes.end(), group.begin(), group.end());
    return bytes;
}

// `chains`: not on the host, which reads what is in the file alone; a conversion to f32 changes nothing.
std::vector<float> results_of(const Case& c, bool maps, bool has_kernel, bool chains) {
    const std::string lacks = std::string(has_kernel ? "" : "transpose,convert,") + (c.on_host_too ? "get_rows" : "");
    const CardOptions card(kCard, TSR_SIMULATED_ON_WAIT, c.without, lacks);
    Hardware hardware = Hardware::detect();
    const test::TestConfig config = test::rig_config({860});
    apply(config, hardware);
    const Registry registry = Registry::load(config, hardware);
    OpSet ops;
    for (const tsr_operator* op : registry.operators()) ops.add(op, registry.owner(*op).table->name);
    Graph graph(ops);
    const Value tokens = graph.input("tokens", {TSR_TYPE_I32, {c.maximum_rows}, TSR_RANGE_ROWS});
    graph.set_layer(0);
    const Value table = graph.weight("t", {TSR_TYPE_F16, {kRows, kTableRows}});
    const Value weight = graph.weight("w", {c.type, {c.columns, kRows}}, c.source_layout);
    const auto init = [&](const char* op, const char* name, Value from, tsr_type type) {
        const tsr_attribute attribute = sdk::attribute("type", int64_t{type});
        return graph.add(op, name, {from}, std::span(&attribute, 1), {}, TSR_STAGE_INIT).front();
    };
    const Value made = init("transpose", "wt", weight, c.result);
    const Value taken = graph.add_one("get_rows", "taken", {table, tokens});
    int64_t other_elements = 0;
    if (c.chained) {
        const Value other = chains ? init("convert", "converted", made, TSR_TYPE_F32) : made;
        graph.set_output("other", graph.add_one("matmul", "other_product", {taken, other}));
        other_elements = c.columns;
    } else if (c.on_host_too) {
        graph.set_output("other", graph.add_one("get_rows", "other_rows", {made, tokens}));
        other_elements = kRows;
    }
    Value y = graph.add_one("matmul", "product", {taken, made});
    if (c.read_by_steps) y = graph.add_one("matmul", "back", {y, weight});
    graph.set_output("y", y);
    ScheduleOptions options;
    options.max_rows = static_cast<uint32_t>(c.maximum_rows);
    options.map_weights = maps;
    options.placement.gpu_layers = 99;
    options.placement.rules = {{"^w$", kCard}};
    Team team(2);
    Executor executor(make_plan(graph, registry, hardware, options), registry, team);
    const Plan& plan = executor.plan();
    if (has_kernel) {
        std::vector<DeviceIndex> devices;
        for (const PlannedNode& node : plan.init_nodes) devices.push_back(node.device);
        EXPECT_EQ(devices, c.devices);
        EXPECT_EQ(plan.memory[1].deriving, std::ranges::count(c.devices, 1u) ? 256 + c.copied : 0);
        EXPECT_EQ(plan.memory[1].loading, 0u);
    }
    const Source source({{"t", random_halves(kRows * kTableRows)}, {"w", weight_of(c)}}, maps);  // steps read it, too
    executor.load(source);
    EXPECT_EQ(simulated_failures().maximum_allocated_bytes(kCard), plan.memory[1].allocated());
    EXPECT_EQ(launches(), has_kernel && std::ranges::count(c.devices, 1u) ? 1u : 0u);
    const int32_t chosen[kTokens] = {1, kTableRows - 1};
    std::memcpy(executor.input("tokens").data(), chosen, sizeof chosen);
    std::array<tsr_range, TSR_RANGE_COUNT> ranges{};
    ranges[TSR_RANGE_ROWS] = {0, kTokens};
    executor.run(ranges);
    std::vector<float> all;
    const auto add = [&](const char* name, int64_t elements) {
        const auto* from = reinterpret_cast<const float*>(executor.output(name));
        all.insert(all.end(), from, from + kTokens * elements);
    };
    add("y", c.read_by_steps ? kRows : c.columns);
    if (other_elements > 0) add("other", other_elements);
    return all;
}

class InitNode : public testing::TestWithParam<Case> {};

TEST_P(InitNode, GivesWhatTheHostGives) {
    const std::vector<float> wanted = results_of(GetParam(), true, false, false);
    for (const bool maps : {true, false}) EXPECT_EQ(results_of(GetParam(), maps, true, true), wanted);
}

constexpr uint64_t kCopy = kColumns * kRows * 2;

INSTANTIATE_TEST_SUITE_P(
    Graphs, InitNode,
    testing::Values(
        Case{.name = "of_a_weight_that_is_there", .result = TSR_TYPE_Q8_0, .read_by_steps = true},
        Case{.name = "of_a_copy", .result = TSR_TYPE_F32, .copied = kCopy},
        Case{.name = "of_interleaved_rows",
             .type = TSR_TYPE_Q8_0,
             .columns = 512,
             .source_layout = "q8_0_r8",
             .result = TSR_TYPE_Q8_0,
             .copied = 512 / 32 * 34 * kRows},
        Case{.name = "packed_there", .without = 0, .copied = 2 * kCopy},
        Case{.name = "packed_by_the_host", .without = TSR_SIMULATED_NO_PACKING, .devices = {0}},
        Case{.name = "chained", .result = TSR_TYPE_Q8_0, .chained = true, .devices = {1, 1}, .copied = kCopy},
        Case{.name = "without_room", .maximum_rows = 2, .devices = {0}},
        Case{.name = "for_the_host_and_a_card", .on_host_too = true, .devices = {0, 1}, .copied = kCopy}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace tessera
