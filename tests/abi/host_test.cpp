// A plugin of ABI 1.0, with the headers that were recorded then, on a host: today's, or (compiled against the headers
// of later_headers.py, with TSR_LATER_HOST defined) one whose structs have all grown.
#include "core/base/error.hpp"
#include "core/plan/kernels.hpp"
#include "core/plan/make_plan.hpp"
#include "core/plan/plan.hpp"
#include "tests/registry/plugin_folder.hpp"

#include <tessera/cpp/abi.hpp>
#include <tessera/ops.h>

#include <gmock/gmock.h>

#include <barrier>
#include <thread>

namespace tessera::test {
namespace {

using testing::HasSubstr;

#ifdef TSR_LATER_HOST
static_assert(sizeof(tsr_kernel) > TSR_SIZE_tsr_kernel_0 && TSR_ABI_MINOR > 0);
#endif

Keys keys_of(const std::string& name, const std::string& abi) {
    return {{"name", PluginFolder::quoted(name)},
            {"version", "'1.0.0'"},
            {"abi", PluginFolder::quoted(abi)},
            {"ops", "['add', 'recorded_triple']"}};
}

std::string this_abi() {
    return fmt::format("{}.{}", TSR_ABI_MAJOR, TSR_ABI_MINOR);
}

struct Loaded {
    Loaded(const std::string& name, const std::string& abi)
        : manifest(folder.add(name, keys_of(name, abi))), registry(Registry::load(folder.config(), machine)) {}

    const PluginRecord& record() const { return record_of(registry, manifest); }

    PluginFolder folder;
    Hardware machine = small_machine();
    fs::path manifest;
    Registry registry;
};

constexpr int64_t kElements = 12, kRows = 5;
constexpr uint32_t kWorkers = 2;

// Runs the nodes of a plan in order, each by two workers; every storage has memory of its own.
class Runner {
  public:
    explicit Runner(const Plan& plan) : plan_(plan), memory_(plan.graph.storage_count()) {
        for (StorageId id = 1; id < plan.graph.storage_count(); ++id)
            memory_[id].resize(plan.graph.storage(id).bytes / 4);
    }

    std::vector<float>& of(Value value) { return memory_[plan_.graph.storage_of(value)]; }
    std::vector<float>& of(std::string_view storage) {
        for (StorageId id = 1; id < plan_.graph.storage_count(); ++id) {
            if (plan_.graph.storage(id).name == storage) return memory_[id];
        }
        throw std::runtime_error("no such storage");
    }

    void run() {
        for (const PlannedNode& node : plan_.nodes) run(node);
    }

  private:
    void run(const PlannedNode& planned) {
        const Node& node = plan_.graph.nodes()[planned.node];
        const NodeView view(plan_.graph, node);
        void* state = nullptr;
        check(planned.kernel->prepare(planned.kernel, &view.abi(), plan_.devices[0], nullptr, &state));
        std::vector<void*> data;
        for (const Value value : node.inputs) data.push_back(of(value).data());
        for (const Value value : node.outputs) data.push_back(of(value).data());
        const tsr_range all{0, static_cast<int32_t>(kRows)}, none{0, 0};
        const std::array<tsr_range, TSR_RANGE_COUNT> ranges{all, none, all, all};
        std::vector<std::byte> workspace(planned.workspace_bytes);
        std::barrier<> team(kWorkers);
        const uint32_t cancelled = 0;
        const auto work = [&](uint32_t worker) {
            tsr_run run{};
            run.struct_size = sizeof run;
            run.data = data.data();
            run.ranges = ranges.data();
            run.workspace = workspace.data();
            run.worker = worker;
            run.workers = kWorkers;
            run.team = &team;
            run.barrier = [](void* barrier, uint32_t) { static_cast<std::barrier<>*>(barrier)->arrive_and_wait(); };
            run.cancelled = &cancelled;
            EXPECT_EQ(planned.kernel->run(planned.kernel, state, &run), nullptr);
        };
        std::thread other(work, 1);
        work(0);
        other.join();
        planned.kernel->release(planned.kernel, state);
    }

    const Plan& plan_;
    std::vector<std::vector<float>> memory_;
};

ScheduleOptions options_of(uint32_t max_rows) {
    ScheduleOptions options;
    options.max_rows = max_rows;
    options.cache_pages = 1;
    return options;
}

struct Model {
    explicit Model(const Registry& registry) {
        for (const tsr_operator* op : registry.operators()) ops.add(op);
        graph.emplace(ops);
        x = graph->input("x", {TSR_TYPE_F32, {kElements, kRows}, TSR_RANGE_ROWS});
    }

    OpSet ops;
    std::optional<Graph> graph;
    Value x = 0;
};

TEST(RecordedPlugin, LoadsAndItsOperatorRuns) {
    Loaded loaded("recorded", "1.0");
    ASSERT_EQ(loaded.record().state, PluginState::kChosen) << loaded.record().reason;
    EXPECT_TRUE(loaded.record().left_out.empty());
    Model model(loaded.registry);
    model.graph->set_output("hidden", model.graph->add_one("recorded_triple", "tripled", {model.x}));
    const Plan plan = make_plan(*model.graph, loaded.registry, loaded.machine, options_of(kRows));
    ASSERT_EQ(plan.lowerings.size(), 1u);
    EXPECT_EQ(plan.lowerings[0].lowering, "sums");
    EXPECT_EQ(plan.lowerings[0].plugin, "recorded");
    EXPECT_EQ(plan.lowerings[0].summary, "two additions");
    ASSERT_EQ(plan.nodes.size(), 2u);

    Runner runner(plan);
    std::vector<float>& x = runner.of("x");
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 7;
    runner.run();
    const std::vector<float>& got = runner.of(plan.graph.find_output("hidden"));
    ASSERT_EQ(got.size(), x.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(got[i], 3 * x[i]) << i;
}

TEST(RecordedPlugin, ItsLoweringOfTheCoresOpIsTaken) {
    Loaded loaded("recorded", "1.0");
    Model model(loaded.registry);
    // No kernel computes silu_mul here, and the core has no lowering of it.
    model.graph->set_output("hidden", model.graph->add_one(TSR_OP_SILU_MUL, "act", {model.x, model.x}));
    const Plan plan = make_plan(*model.graph, loaded.registry, loaded.machine, options_of(kRows));
    ASSERT_EQ(plan.lowerings.size(), 1u);
    EXPECT_EQ(plan.lowerings[0].op, TSR_OP_SILU_MUL);
    EXPECT_EQ(plan.lowerings[0].lowering, "sum");
    EXPECT_EQ(plan.lowerings[0].plugin, "recorded");
}

TEST(RecordedPlugin, ItsStatusIsRead) {
    Loaded loaded("recorded", "1.0");
    Model model(loaded.registry);
    model.graph->set_output("hidden", model.graph->add_one("recorded_triple", "tripled", {model.x}));
    try {
        make_plan(*model.graph, loaded.registry, loaded.machine, options_of(1));
        FAIL() << "a lowering that declines was taken";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(error.what(), HasSubstr("lowering recorded/sums"));
        EXPECT_THAT(error.what(), HasSubstr("recorded: one row is not enough"));
    }
}

TEST(RecordedPlugin, ItsLayoutPacks) {
    Loaded loaded("recorded", "1.0");
    const tsr_layout* layout = loaded.registry.find_layout("recorded_pairs");
    ASSERT_NE(layout, nullptr);
    ASSERT_EQ(layout->group_bytes(layout, 3), 24u);
    const std::array<float, 6> rows{1, 2, 3, 4, 5, 6};
    std::array<float, 6> packed{}, back{};
    layout->pack(layout, 3, 1, rows.data(), packed.data());
    EXPECT_THAT(packed, testing::ElementsAre(1, 4, 2, 5, 3, 6));
    layout->unpack(layout, 3, 1, packed.data(), back.data());
    EXPECT_EQ(back, rows);
}

#ifdef TSR_LATER_HOST
TEST(RecordedPlugin, FieldsThatItLacksAreZero) {
    Loaded loaded("recorded", "1.0");
    const tsr_plugin& table = *loaded.record().table;
    EXPECT_EQ(sdk::field_or_zero(table, &tsr_plugin::later_field), 0u);
    EXPECT_EQ(sdk::field_or_zero(*table.kernels[0], &tsr_kernel::later_field), 0u);
    EXPECT_EQ(sdk::field_or_zero(*table.layouts[0], &tsr_layout::later_field), 0u);
    EXPECT_EQ(sdk::copy_struct(*table.lowerings[0]).later_field, 0u);
    EXPECT_STREQ(sdk::copy_struct(*table.lowerings[0]).name, "sum");
    EXPECT_FALSE(TSR_HAS_FIELD(table.operators[0], later_field));
    EXPECT_TRUE(TSR_HAS_FIELD(table.operators[0], output_count));
}

TEST(LaterPlugin, IsTakenByItsOwnHost) {
    Loaded loaded("later", this_abi());
    ASSERT_EQ(loaded.record().state, PluginState::kChosen) << loaded.record().reason;
    EXPECT_TRUE(TSR_HAS_FIELD(loaded.record().table, later_field));
}
#else
TEST(LaterPlugin, IsRefusedBeforeItIsMapped) {
    Loaded loaded("later", fmt::format("{}.{}", TSR_ABI_MAJOR, TSR_ABI_MINOR + 1));
    EXPECT_EQ(loaded.record().state, PluginState::kRejected);
    EXPECT_THAT(loaded.record().reason, HasSubstr(fmt::format("its manifest says ABI {}.{}; this host takes",
                                                              TSR_ABI_MAJOR, TSR_ABI_MINOR + 1)));
}

TEST(LaterPlugin, IsRefusedByItsTableToo) {
    Loaded loaded("later", this_abi());
    EXPECT_EQ(loaded.record().state, PluginState::kRejected);
    EXPECT_THAT(loaded.record().reason,
                HasSubstr(fmt::format("the table is of ABI {}.{}; this host takes {}.0 to {}.{}", TSR_ABI_MAJOR,
                                      TSR_ABI_MINOR + 1, TSR_ABI_MAJOR, TSR_ABI_MAJOR, TSR_ABI_MINOR)));
}

// Structs longer than this host knows, of a version that it takes.
TEST(LongerStructs, AreTaken) {
    Loaded loaded("longer", this_abi());
    ASSERT_EQ(loaded.record().state, PluginState::kChosen) << loaded.record().reason;
    EXPECT_GT(loaded.record().table->struct_size, sizeof(tsr_plugin));
    EXPECT_GT(loaded.record().table->kernels[0]->struct_size, sizeof(tsr_kernel));
    EXPECT_EQ(loaded.registry.kernels("cpu", "add").size(), 1u);
}
#endif

TEST(Chains, AreFollowedWithCare) {
    struct Extension {
        tsr_chain chain;
        uint64_t value;
    };
    Extension second{{sizeof(Extension), 0, nullptr, "org.example.second/1"}, 42};
    tsr_chain first{sizeof(tsr_chain), 0, &second.chain, "org.example.first/1"};
    EXPECT_EQ(sdk::chain_fault(&first), nullptr);
    EXPECT_EQ(sdk::chain_fault(nullptr), nullptr);
    EXPECT_EQ(sdk::find_extension(&first, "org.example.second/1", sizeof(Extension)), &second.chain);
    EXPECT_EQ(sdk::find_extension(&first, "org.example.second/1", sizeof(Extension) + 8), nullptr);  // too short
    EXPECT_EQ(sdk::find_extension(&first, "org.example.third/1"), nullptr);
    second.chain.next = &first;
    EXPECT_STREQ(sdk::chain_fault(&first), "its chain of extensions is a loop, or has more than 64 links");
    EXPECT_EQ(sdk::find_extension(&first, "org.example.third/1"), nullptr);
    second.chain = {8, 0, nullptr, "org.example.second/1"};
    EXPECT_STREQ(sdk::chain_fault(&first), "an extension's struct_size is smaller than tsr_chain");
    EXPECT_EQ(sdk::find_extension(&first, "org.example.second/1"), nullptr);
    second.chain = {sizeof(Extension), 0, nullptr, nullptr};
    EXPECT_STREQ(sdk::chain_fault(&first), "an extension has no tag");
}

}  // namespace
}  // namespace tessera::test
