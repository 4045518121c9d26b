// Weights in packed layouts on devices: packed there or by the host, from any source, within the planned memory; and
// what happens when that fails.
#include "core/base/error.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/op_set.hpp"
#include "core/plan/make_plan.hpp"
#include "core/run/executor.hpp"
#include "tests/formats/recorded.hpp"
#include "tests/model/random_models.hpp"
#include "tests/run/simulated_rig.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <map>
#include <optional>

namespace tessera {
namespace {

namespace fs = std::filesystem;
using test::CardOptions;
using test::golden;
using test::simulated_failures;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

constexpr const char* kDevice = "SIM0";

struct Loading {
    const char* name;
    uint32_t without;
    PackedOn on;  // of the weights of products
};
constexpr Loading kThere = {"there", 0, PackedOn::kDevice};
constexpr Loading kHere = {"here", TSR_SIMULATED_NO_PACKING, PackedOn::kHost};
constexpr Loading kCanonical = {"canonical", TSR_SIMULATED_NO_LAYOUTS, PackedOn::kNowhere};

// ---- whole models ----

struct Model {
    const char* name;
    fs::path file;
    const char* lowering;  // of mla_attention; empty: the model has none
};

std::vector<Model> models() {
    std::vector<Model> all = {{"v3_mla1", golden("v3-groups.gguf"), "1"},
                              {"v2_mla3", golden("v2-plain.gguf"), "3"},  // with weights that are derived
                              {"qwen3moe", golden("qwen3moe-norm.gguf"), ""}};
    all.push_back({"q8_0", test::random_model("packing-q8_0", "--preset tiny-v3 --type q8_0"), "3"});
    return all;
}

std::unique_ptr<test::LoadedModel> load(const Model& model, bool maps = true) {
    EngineOptions options;
    options.context = 128;
    options.sequences = 2;
    options.rows = options.output_rows = 24;
    options.expand_from = 8;
    options.map_weights = maps;
    if (*model.lowering) options.lowerings["mla_attention"] = model.lowering;
    options.placement.gpu_layers = 99;
    return std::make_unique<test::LoadedModel>(model.file, options, test::rig_config({860}));
}

// Of all rows, so that they need all experts of the last layer, too.
std::vector<float> logits(Engine& engine) {
    std::mt19937 random(5);
    std::vector<float> all;
    const auto prompt = test::random_tokens(engine, random, 21), other = test::random_tokens(engine, random, 12),
               one = test::random_tokens(engine, random, 1);
    const SequenceId a = engine.cache().create(), b = engine.cache().create();
    test::add_step(engine, {{a, prompt, true, true}}, all);
    test::add_step(engine, {{a, one, true, true}, {b, other, true, true}}, all);
    return all;
}

std::map<PackedOn, size_t> packed_weights(const Plan& plan) {
    std::map<PackedOn, size_t> counts;
    for (const Instance& it : plan.instances) {
        if (it.storage && it.device == 1 && !it.layout.empty()) ++counts[it.packed_on];
    }
    return counts;
}

class DevicePacking : public testing::TestWithParam<size_t> {};

TEST_P(DevicePacking, GivesTheBitsOfCanonicalWeights) {
    const Model model = models()[GetParam()];
    std::vector<float> wanted;
    for (const Loading& loading : {kCanonical, kThere, kHere}) {
        for (const bool maps : {true, false}) {
            SCOPED_TRACE(testing::Message() << loading.name << (maps ? ", mapped" : ", read"));
            const CardOptions card(kDevice, TSR_SIMULATED_RANDOM, loading.without);
            const auto loaded = load(model, maps);
            const auto packed = packed_weights(loaded->engine->plan());
            if (loading.on == PackedOn::kNowhere) {
                EXPECT_TRUE(packed.empty());
            } else {
                EXPECT_EQ(packed.size(), 1u);
                EXPECT_GE(packed.contains(loading.on) ? packed.at(loading.on) : 0, 6u);
            }
            const uint64_t calls = simulated_failures().count(kDevice, TSR_SIMULATED_PACK, nullptr);
            EXPECT_EQ(calls > 0, loading.on == PackedOn::kDevice);
            const std::vector<float> got = logits(*loaded->engine);
            if (wanted.empty()) wanted = got;
            EXPECT_EQ(got, wanted);
        }
    }
}

// What is allocated while loading is what the plan says, and what loading alone needed is given back.
TEST_P(DevicePacking, TakesThePlannedMemory) {
    for (const Loading& loading : {kThere, kHere}) {
        SCOPED_TRACE(loading.name);
        const CardOptions card(kDevice, TSR_SIMULATED_RANDOM, loading.without);
        const auto loaded = load(models()[GetParam()]);
        const Plan& plan = loaded->engine->plan();
        const DeviceMemory& memory = plan.memory[1];
        EXPECT_EQ(simulated_failures().maximum_allocated_bytes(kDevice), memory.allocated());
        EXPECT_EQ(simulated_failures().allocated_bytes(kDevice), memory.allocated() - memory.loading);
        EXPECT_EQ(memory.packing > 0, loading.on == PackedOn::kDevice);
        // Rows lie where steps have their activations later, if there is room.
        const bool has_room = memory.packing <= std::max(memory.activations, memory.workspace);
        EXPECT_EQ(memory.loading, has_room ? 0 : memory.packing);
        EXPECT_EQ(plan.loading.packed > 0, loading.on == PackedOn::kHost);
        EXPECT_GE(plan.memory[0].loading, plan.loading.piece + plan.loading.packed);
    }
}

INSTANTIATE_TEST_SUITE_P(Models, DevicePacking, testing::Range<size_t>(0, models().size()),
                         [](const auto& of) { return models()[of.param].name; });

// ---- failures ----

std::optional<Error> failure_of(const std::function<void()>& body) {
    try {
        body();
    } catch (const Error& error) {
        return error;
    }
    return std::nullopt;
}

class PackingFailure : public testing::TestWithParam<tsr_simulated_policy> {};

TEST_P(PackingFailure, NamesWeightLayoutAndDeviceAndLeavesNothingBehind) {
    const Model model = models()[0];
    uint64_t packs = 0, operations = 0;
    {
        const CardOptions card(kDevice, GetParam());
        load(model);
        packs = simulated_failures().count(kDevice, TSR_SIMULATED_PACK, nullptr);
        for (const tsr_simulated_operation o : {TSR_SIMULATED_UPLOAD, TSR_SIMULATED_PACK, TSR_SIMULATED_EXECUTE_COPY,
                                                TSR_SIMULATED_EXECUTE_KERNEL, TSR_SIMULATED_WAIT_QUEUE})
            operations += simulated_failures().count(kDevice, o, nullptr);
    }
    ASSERT_GT(packs, 6u);
    for (const bool maps : {true, false}) {
        for (const uint64_t at : {uint64_t{0}, packs / 2, packs - 1}) {
            for (const tsr_simulated_operation o :
                 {TSR_SIMULATED_PACK, TSR_SIMULATED_EXECUTE_KERNEL, TSR_SIMULATED_WAIT_QUEUE}) {
                SCOPED_TRACE(testing::Message() << "operation " << o << " at " << at << " of " << packs);
                const CardOptions card(kDevice, GetParam());
                simulated_failures().fail(kDevice, o, nullptr, at, 1);
                const auto failed = failure_of([&] { load(model, maps); });
                ASSERT_TRUE(failed);
                EXPECT_EQ(failed->code(), uint32_t{TSR_DEVICE_ERROR});
                EXPECT_THAT(failed->what(), AllOf(HasSubstr(".weight"), HasSubstr(kDevice), HasSubstr("injected")));
                if (o == TSR_SIMULATED_PACK) {
                    EXPECT_THAT(failed->what(), AllOf(HasSubstr("f16_simulated_x8"), HasSubstr("plugin simulated")));
                }
                EXPECT_EQ(simulated_failures().allocated_bytes(kDevice), 0u);
            }
        }
        for (uint64_t i = 0; i < 6; ++i) {
            const uint64_t at = 10 + i * (operations / 2) / 6;  // after the device was opened
            SCOPED_TRACE(testing::Message() << "lost after " << at << " of " << operations << " operations");
            const CardOptions card(kDevice, GetParam());
            simulated_failures().vanish(kDevice, at);
            const auto failed = failure_of([&] { load(model, maps); });
            ASSERT_TRUE(failed);
            EXPECT_EQ(failed->code(), uint32_t{TSR_DEVICE_LOST}) << failed->what();
            EXPECT_THAT(failed->what(), HasSubstr(kDevice));
            EXPECT_EQ(simulated_failures().allocated_bytes(kDevice), 0u);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Policies, PackingFailure,
                         testing::Values(TSR_SIMULATED_RANDOM, TSR_SIMULATED_ON_WAIT, TSR_SIMULATED_OLDEST_LAST),
                         [](const auto& of) { return "policy_" + std::to_string(of.param); });

// Each wait of loading is left out in turn, on a device that does nothing before it is waited for: rows that the host
// has overwritten meanwhile were packed then, or nothing was.
TEST(DevicePackingOrder, AMissingWaitIsFound) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "ThreadSanitizer reports the missing wait itself";
#endif
    const Model model = models()[0];
    std::vector<float> wanted;
    uint64_t waits = 0;
    {
        const CardOptions card(kDevice, TSR_SIMULATED_ON_WAIT);
        const auto loaded = load(model, false);
        // One after each packing, and one for all that is uploaded as it is. The last one is kept: without it the
        // device would read memory that is no longer there.
        waits = simulated_failures().count(kDevice, TSR_SIMULATED_PACK, nullptr);
        wanted = logits(*loaded->engine);
    }
    ASSERT_GT(waits, 6u);
    for (uint64_t at = 0; at < waits; ++at) {
        SCOPED_TRACE(testing::Message() << "wait " << at << " of " << waits);
        const CardOptions card(kDevice, TSR_SIMULATED_ON_WAIT);
        simulated_failures().omit(kDevice, TSR_SIMULATED_WAIT_QUEUE, nullptr, at, 1);
        bool found = false;
        try {
            const auto loaded = load(model, false);
            found = logits(*loaded->engine) != wanted;
        } catch (const Error&) {
            found = true;
        }
        EXPECT_TRUE(found);
    }
}

// Of packing that was not done the kernels themselves tell.
TEST(DevicePackingOrder, PackingThatWasNotDoneIsFound) {
    const CardOptions card(kDevice);
    simulated_failures().omit(kDevice, TSR_SIMULATED_PACK, nullptr, 3, 1);
    const auto failed = failure_of([] { load(models()[0]); });
    ASSERT_TRUE(failed);
    EXPECT_THAT(failed->what(), AllOf(HasSubstr("is not packed as f16_simulated_x8"), HasSubstr(kDevice)));
}

// ---- weights of any size and source ----

// A table of rows to multiply, `t`, and a weight, `w`.
class Source : public WeightSource {
  public:
    Source(std::vector<unsigned char> table, std::vector<unsigned char> weight, bool maps)
        : table_(std::move(table)), weight_(std::move(weight)), maps_(maps) {}
    void read(const std::string& name, uint64_t offset, std::span<std::byte> to) const override {
        std::memcpy(to.data(), of(name).data() + offset, to.size());
    }
    const std::byte* mapped(const std::string&) const override { return nullptr; }
    std::span<const std::byte> acquire(const std::string& name, uint64_t offset, uint64_t bytes) const override {
        if (!maps_) return {};
        return {reinterpret_cast<const std::byte*>(of(name).data()) + offset, bytes};
    }

  private:
    const std::vector<unsigned char>& of(const std::string& name) const { return name == "t" ? table_ : weight_; }
    std::vector<unsigned char> table_, weight_;
    bool maps_;
};

struct Product {
    const char* name;
    tsr_type type;
    int64_t elements, rows;
    const char* source_layout;
    uint64_t pieces;    // in which the weight is packed, mapped
    bool needs_memory;  // of its own on the card, while it is packed there
};
void PrintTo(const Product& product, std::ostream* out) {
    *out << product.name;
}

constexpr int64_t kTableRows = 4;

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

// Copies of a recorded group of eight rows.
std::vector<unsigned char> recorded_groups(const Product& product) {
    const gguf::GgufFile file = gguf::GgufFile::open(TSR_SOURCE_DIR "/tests/formats/ik_rows.gguf");
    const auto group = tests::recorded<unsigned char>(file, std::string(product.source_layout) + ".interleaved");
    EXPECT_EQ(group.size(), 8 * product.elements / 32 * 34);
    std::vector<unsigned char> bytes;
    for (int64_t row = 0; row < product.rows; row += 8) bytes.insert(bytes.end(), group.begin(), group.end());
    return bytes;
}

// Rows of the table times the weight, all on the card.
std::vector<float> product_of(const Product& product, bool maps) {
    constexpr int32_t kRows = 2;
    Hardware hardware = Hardware::detect();
    const test::TestConfig config = test::rig_config({860});
    apply(config, hardware);
    const Registry registry = Registry::load(config, hardware);
    OpSet ops;
    for (const tsr_operator* op : registry.operators()) ops.add(op, registry.owner(*op).table->name);
    Graph graph(ops);
    const Value tokens = graph.input("tokens", {TSR_TYPE_I32, {kRows}, TSR_RANGE_ROWS});
    graph.set_layer(0);
    const Value table = graph.weight("t", {TSR_TYPE_F16, {product.elements, kTableRows}});
    const Value weight = graph.weight("w", {product.type, {product.elements, product.rows}}, product.source_layout);
    const Value taken = graph.add_one("get_rows", "taken", {table, tokens});
    graph.set_output("logits", graph.add_one("matmul", "product", {taken, weight}));
    ScheduleOptions options;
    options.max_rows = kRows;
    options.placement.gpu_layers = 99;
    options.placement.rules = {{".*", kDevice}};
    Team team(2);
    Executor executor(make_plan(graph, registry, hardware, options), registry, team);
    executor.load(Source(
        random_halves(product.elements * kTableRows),
        *product.source_layout ? recorded_groups(product) : random_halves(product.elements * product.rows), maps));
    const DeviceMemory& memory = executor.plan().memory[1];
    EXPECT_EQ(simulated_failures().maximum_allocated_bytes(kDevice), memory.allocated());
    EXPECT_EQ(simulated_failures().allocated_bytes(kDevice), memory.allocated() - memory.loading);
    EXPECT_EQ(memory.loading, product.needs_memory ? memory.packing : 0);
    const int32_t chosen[kRows] = {1, kTableRows - 1};
    std::memcpy(executor.input("tokens").data(), chosen, sizeof chosen);
    std::array<tsr_range, TSR_RANGE_COUNT> ranges{};
    ranges[TSR_RANGE_ROWS] = {0, kRows};
    executor.run(ranges);
    const auto* result = reinterpret_cast<const float*>(executor.output("logits"));
    return {result, result + kRows * product.rows};
}

class PackedProduct : public testing::TestWithParam<Product> {};

TEST_P(PackedProduct, IsThatOfCanonicalWeights) {
    const Product product = GetParam();
    std::vector<float> wanted;
    for (const Loading& loading : {kCanonical, kThere, kHere}) {
        for (const bool maps : {true, false}) {
            SCOPED_TRACE(testing::Message() << loading.name << (maps ? ", mapped" : ", read"));
            const CardOptions card(kDevice, TSR_SIMULATED_ON_WAIT, loading.without);
            const std::vector<float> got = product_of(product, maps);
            const uint64_t calls = simulated_failures().count(kDevice, TSR_SIMULATED_PACK, nullptr);
            if (loading.on != PackedOn::kDevice) {
                EXPECT_EQ(calls, 0u);
            } else if (maps) {
                EXPECT_EQ(calls, product.pieces);
            } else {
                EXPECT_GE(calls, product.pieces);  // what is read comes in smaller parts
            }
            if (wanted.empty()) wanted = got;
            EXPECT_EQ(got, wanted);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Weights, PackedProduct,
                         testing::Values(Product{"one_group", TSR_TYPE_F16, 64, 8, "", 1, false},
                                         // Pieces of 128 groups, the last of 7.
                                         Product{"last_piece_in_part", TSR_TYPE_F16, 1024, 8 * 263, "", 3, true},
                                         // A group has more bytes than a piece has elsewhere.
                                         Product{"large_groups", TSR_TYPE_F16, 150'000, 24, "", 3, true},
                                         Product{"interleaved_in_the_file", TSR_TYPE_Q8_0, 512, 8 * 5, "q8_0_r8", 1,
                                                 true}),
                         [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace tessera
