// Kernels and lowerings of several plugins for one op: which one is chosen, and the reasons for the others.
#include "core/base/error.hpp"
#include "core/plan/kernels.hpp"
#include "core/plan/make_plan.hpp"
#include "core/plan/plan.hpp"

#include <tessera/cpp/builder.hpp>
#include <tessera/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kElements = 8, kRows = 4;

struct Kernel : tsr_kernel {
    double seconds = 0;
};

const tsr_status* plan_kernel(const tsr_kernel* self, const tsr_node*, const tsr_device_info*, tsr_kernel_plan* plan) {
    plan->supported = 1;
    plan->seconds_one_row = plan->seconds_all_rows = static_cast<const Kernel*>(self)->seconds;
    return nullptr;
}
const tsr_status* prepare_kernel(const tsr_kernel*, const tsr_node*, const tsr_device_info*, tsr_device*, void**) {
    return nullptr;
}
void release_kernel(const tsr_kernel*, void*) {}
const tsr_status* run_kernel(const tsr_kernel*, void*, const tsr_run*) {
    return nullptr;
}
const tsr_status* enqueue_kernel(const tsr_kernel*, void*, const tsr_launch*) {
    return nullptr;
}

// A lowering that writes `adds` additions, all but the first of the result of the one before.
struct Lowering : tsr_lowering {
    int adds = 1;
};

const tsr_status* build_adds(const tsr_lowering* self, const tsr_node*, const tsr_lowering_options*,
                             tsr_builder* table) {
    return sdk::guarded([&] {
        const sdk::Builder b(table);
        tsr_value value = b.input(0);
        for (int i = 0; i < static_cast<const Lowering*>(self)->adds; ++i)
            value = b.add(TSR_OP_ADD, "part", {value, value});
        b.output(0, value);
    });
}

const tsr_status* infer_same(const tsr_operator*, const tsr_node* node, tsr_tensor* const* outputs) {
    *outputs[0] = *node->inputs[0];
    outputs[0]->role = TSR_ROLE_ACTIVATION;
    return nullptr;
}

uint32_t match_all(const tsr_device_provider*, const tsr_device_info*, char*, uint32_t) {
    return 1;
}
const tsr_status* open_nothing(const tsr_device_provider*, const tsr_device_info*, tsr_device** device) {
    *device = nullptr;
    return nullptr;
}

// A plugin's table, made up from parts.
class Plugin {
  public:
    explicit Plugin(const char* name) {
        table_.struct_size = sizeof table_;
        table_.abi_major = TSR_ABI_MAJOR;
        table_.abi_minor = TSR_ABI_MINOR;
        table_.name = name;
        table_.version = "1.0";
    }

    Kernel& kernel(const char* name, const char* op, double seconds, const char* kind = "cpu") {
        Kernel& made = kernels_.emplace_back();
        made.struct_size = sizeof(tsr_kernel);
        made.op_version = 1;
        made.name = name;
        made.op = op;
        made.device_kind = kind;
        made.plan = plan_kernel;
        made.prepare = prepare_kernel;
        made.release = release_kernel;
        made.run = run_kernel;
        if (std::string_view(kind) != "cpu") {
            made.enqueue = enqueue_kernel;
            made.device_abi = TSR_DEVICE_ABI;
        }
        made.seconds = seconds;
        return made;
    }

    // With an operator of that name if it `brings` it.
    Lowering& lowering(const char* op, const char* name, int adds, bool brings = false) {
        Lowering& made = lowerings_.emplace_back();
        made.struct_size = sizeof(tsr_lowering);
        made.op = op;
        made.name = name;
        made.summary = "additions";
        made.build = build_adds;
        made.adds = adds;
        if (!brings) {
            others_.push_back(&made);
            return made;
        }
        own_.push_back(&made);
        bring(op);
        return made;
    }

    tsr_operator& bring(const char* op) {
        tsr_operator& made = operators_.emplace_back();
        made.struct_size = sizeof(tsr_operator);
        made.version = 1;
        made.name = op;
        made.infer = infer_same;
        made.output_count = 1;
        return made;
    }

    tsr_device_provider& provider(const char* kind, const char* interop) {
        providers_.push_back(
            {sizeof(tsr_device_provider), TSR_DEVICE_ABI, nullptr, nullptr, kind, interop, match_all, open_nothing});
        return providers_.back();
    }

    const tsr_plugin* table() {
        pointers(kernels_, kernel_list_, table_.kernels, table_.kernel_count);
        pointers(providers_, provider_list_, table_.providers, table_.provider_count);
        for (tsr_operator& op : operators_) {
            op.lowerings = own_.data();
            op.lowering_count = static_cast<uint32_t>(own_.size());
        }
        pointers(operators_, operator_list_, table_.operators, table_.operator_count);
        table_.lowerings = others_.data();
        table_.lowering_count = static_cast<uint32_t>(others_.size());
        return &table_;
    }

  private:
    template <typename From, typename T>
    static void pointers(const From& from, std::vector<const T*>& list, const T* const*& first, uint32_t& count) {
        list.clear();
        for (const auto& entry : from) list.push_back(&entry);
        first = list.data();
        count = static_cast<uint32_t>(list.size());
    }

    tsr_plugin table_{};
    std::deque<Kernel> kernels_;
    std::deque<Lowering> lowerings_;
    std::deque<tsr_operator> operators_;
    std::deque<tsr_device_provider> providers_;
    std::vector<const tsr_kernel*> kernel_list_;
    std::vector<const tsr_device_provider*> provider_list_;
    std::vector<const tsr_operator*> operator_list_;
    std::vector<const tsr_lowering*> own_, others_;
};

Registry registry_of(std::initializer_list<Plugin*> plugins, const std::vector<std::string>& prefer = {}) {
    std::vector<const tsr_plugin*> tables;
    for (Plugin* plugin : plugins) tables.push_back(plugin->table());
    return Registry::of_tables(tables, prefer);
}

Hardware machine() {
    DeviceDescription cpu;
    cpu.kind = "cpu";
    cpu.id = "CPU";
    cpu.threads = 2;
    cpu.memory_bytes = cpu.free_memory_bytes = uint64_t{8} << 30;
    Hardware hardware({cpu});
    DeviceDescription gpu;
    gpu.kind = "cuda";
    gpu.id = "SIM0";
    gpu.memory_bytes = gpu.free_memory_bytes = uint64_t{4} << 30;
    hardware.add(gpu);
    return hardware;
}

// A graph of one node of `op`, planned on the CPU alone.
Plan plan_of(const char* op, const Registry& registry, const std::string& named = "") {
    static const Hardware hardware = [] {
        DeviceDescription cpu;
        cpu.kind = "cpu";
        cpu.id = "CPU";
        cpu.threads = 2;
        cpu.memory_bytes = cpu.free_memory_bytes = uint64_t{8} << 30;
        return Hardware({cpu});
    }();
    OpSet ops;
    for (const tsr_operator* brought : registry.operators()) ops.add(brought);
    static std::deque<OpSet> kept;  // the plan's graph refers to them
    Graph graph(kept.emplace_back(std::move(ops)));
    const Value x = graph.input("x", {TSR_TYPE_F32, {kElements, kRows}, TSR_RANGE_ROWS});
    const bool two = std::string_view(op) != "squeeze";
    graph.set_output("hidden", two ? graph.add_one(op, "node", {x, x}) : graph.add_one(op, "node", {x}));
    ScheduleOptions options;
    options.max_rows = kRows;
    if (!named.empty()) options.lowerings[op] = named;
    return make_plan(graph, registry, hardware, options);
}

std::vector<std::string> rejected(const std::vector<Rejection>& list) {
    std::vector<std::string> lines;
    for (const Rejection& r : list) lines.push_back(r.candidate + ": " + r.reason);
    return lines;
}

TEST(Competition, TheKernelOfTheBetterEstimateWins) {
    Plugin builtin("cpu_builtin"), author("author");
    builtin.kernel("add.builtin", TSR_OP_ADD, 2e-3);
    author.kernel("add.mine", TSR_OP_ADD, 1e-3);
    for (const bool reversed : {false, true}) {
        const Registry registry = reversed ? registry_of({&author, &builtin}) : registry_of({&builtin, &author});
        const Plan plan = plan_of(TSR_OP_ADD, registry);
        ASSERT_EQ(plan.nodes.size(), 1u);
        EXPECT_STREQ(plan.nodes[0].kernel->name, "add.mine");
        EXPECT_THAT(rejected(plan.nodes[0].rejected), ElementsAre(HasSubstr("cpu_builtin/add.builtin: slower")));
    }
}

TEST(Competition, PriorityDecidesBeforeTheEstimate) {
    Plugin builtin("cpu_builtin"), author("author");
    builtin.kernel("add.builtin", TSR_OP_ADD, 1e-3);
    author.kernel("add.mine", TSR_OP_ADD, 2e-3).priority = 1;
    EXPECT_STREQ(plan_of(TSR_OP_ADD, registry_of({&builtin, &author})).nodes[0].kernel->name, "add.mine");
}

TEST(Competition, TheFasterLoweringWinsWhoeverBringsIt) {
    Plugin owner("owner"), author("author");
    owner.kernel("add", TSR_OP_ADD, 1e-3);
    owner.lowering("squeeze", "long", 3, true);
    author.lowering("squeeze", "short", 2);
    const Registry registry = registry_of({&owner, &author});
    const Plan plan = plan_of("squeeze", registry);
    ASSERT_EQ(plan.lowerings.size(), 1u);
    EXPECT_EQ(plan.lowerings[0].lowering, "short");
    EXPECT_EQ(plan.lowerings[0].plugin, "author");
    EXPECT_EQ(plan.lowerings[0].summary, "additions");
    EXPECT_EQ(plan.nodes.size(), 2u);
    EXPECT_THAT(rejected(plan.lowerings[0].rejected),
                ElementsAre("lowering owner/long (additions): slower than lowering author/short (additions), by "
                            "estimate: 3.1 ms, not 2.07"));
}

TEST(Competition, TheUserNamesALoweringOfOnePlugin) {
    Plugin owner("owner"), author("author");
    owner.kernel("add", TSR_OP_ADD, 1e-3);
    owner.lowering("squeeze", "way", 3, true);
    author.lowering("squeeze", "way", 2);
    const Registry registry = registry_of({&owner, &author});
    EXPECT_EQ(plan_of("squeeze", registry, "way").lowerings[0].plugin, "author");  // both are named: the faster one
    const Plan plan = plan_of("squeeze", registry, "owner/way");
    EXPECT_EQ(plan.lowerings[0].plugin, "owner");
    EXPECT_TRUE(plan.lowerings[0].asked);
    const Plan none = plan_of("squeeze", registry, "other/way");
    EXPECT_FALSE(none.lowerings[0].asked);
    EXPECT_THAT(none.notes, testing::Contains(HasSubstr("squeeze 'other/way' was asked for and cannot be used")));
}

TEST(Competition, AKernelThatIsFasterThanALoweringStays) {
    Plugin owner("owner"), author("author");
    owner.kernel("add", TSR_OP_ADD, 1e-3);
    owner.kernel("squeeze", "squeeze", 1.5e-3);
    owner.bring("squeeze");
    author.lowering("squeeze", "adds", 2);
    const Plan plan = plan_of("squeeze", registry_of({&owner, &author}));
    ASSERT_EQ(plan.lowerings.size(), 1u);
    EXPECT_EQ(plan.lowerings[0].lowering, "kernel");
    EXPECT_EQ(plan.lowerings[0].plugin, "");
    EXPECT_THAT(
        rejected(plan.lowerings[0].rejected),
        ElementsAre("lowering author/adds (additions): slower than one kernel, by estimate: 2.07 ms, not 1.55"));
}

TEST(Competition, ThePreferredPluginDecidesBetweenAKernelAndALowering) {
    Plugin owner("owner"), slow("slow"), parts("parts");
    owner.kernel("add", TSR_OP_ADD, 1e-3);
    owner.lowering("squeeze", "adds", 2, true);
    slow.kernel("squeeze.slow", "squeeze", 5e-3);
    EXPECT_EQ(plan_of("squeeze", registry_of({&owner, &slow})).lowerings[0].lowering, "adds");
    const Plan kernel = plan_of("squeeze", registry_of({&owner, &slow}, {"slow"}));
    EXPECT_EQ(kernel.lowerings[0].lowering, "kernel");
    EXPECT_TRUE(kernel.lowerings[0].preferred);
    EXPECT_THAT(rejected(kernel.lowerings[0].rejected),
                ElementsAre("lowering owner/adds (additions): plugins.prefer puts the plugin of one kernel first, by "
                            "estimate: 2.07 ms, not 5.16"));
    // A plugin whose kernels compute the parts is preferred to one kernel of another.
    parts.kernel("add.parts", TSR_OP_ADD, 9e-3);
    const Plan split = plan_of("squeeze", registry_of({&owner, &slow, &parts}, {"parts"}));
    EXPECT_EQ(split.lowerings[0].lowering, "adds");
    EXPECT_STREQ(split.nodes[0].kernel->name, "add.parts");
    EXPECT_TRUE(split.lowerings[0].preferred);
    EXPECT_THAT(rejected(split.lowerings[0].rejected),
                ElementsAre("one kernel: plugins.prefer puts another plugin first, by estimate: 5.16 ms, not 18.6"));
}

TEST(Competition, ALoweringThatWritesItsOwnOpEnds) {
    Plugin owner("owner"), author("author");
    author.lowering(TSR_OP_ADD, "more", 1);
    try {
        plan_of(TSR_OP_ADD, registry_of({&owner, &author}));
        FAIL() << "nothing computes add here";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(error.what(), HasSubstr("the node is one that this lowering wrote"));
    }
    owner.kernel("add", TSR_OP_ADD, 1e-3);
    EXPECT_EQ(plan_of(TSR_OP_ADD, registry_of({&owner, &author})).lowerings[0].lowering, "kernel");
}

TEST(Competition, OperatorsOfTheCoreCannotBeReplaced) {
    Plugin culprit("culprit");
    culprit.bring(TSR_OP_ADD);
    try {
        registry_of({&culprit});
        FAIL() << "it was taken";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("culprit"));
        EXPECT_THAT(error.what(), HasSubstr("operator add: the core has an op of this name"));
    }
}

TEST(Competition, OperatorsOfTwoPluginsAreAConflict) {
    Plugin first("a"), second("b");
    first.kernel("add", TSR_OP_ADD, 1e-3);
    first.lowering("squeeze", "one", 2, true);
    second.lowering("squeeze", "two", 1, true);
    const Registry registry = registry_of({&first, &second});
    ASSERT_EQ(registry.conflicts().size(), 1u);
    EXPECT_THAT(registry.conflicts()[0], HasSubstr("operator squeeze: a and b provide it; that of a is used"));
    // Lowerings of the operator that is not used may mean something else by the name.
    EXPECT_EQ(plan_of("squeeze", registry).lowerings[0].lowering, "one");
    EXPECT_THAT(plan_of("squeeze", registry).lowerings[0].rejected, IsEmpty());
}

TEST(Competition, ALoweringOfAnUnknownOpIsLeftOut) {
    Plugin author("author");
    author.lowering("nobodys", "way", 1);
    const Registry registry = registry_of({&author});
    EXPECT_THAT(registry.plugins()[0].left_out, ElementsAre("lowering way of nobodys: no plugin provides this op"));
}

TEST(Competition, KindsOfDevicesThatAreNeverFoundAreSaid) {
    Plugin owner("owner"), kernels("kernels"), usual("usual");
    owner.provider("npu", "npu-driver/1");
    kernels.kernel("add.npu", TSR_OP_ADD, 1e-3, "npu").interop = "npu-driver/1";
    usual.provider("cuda", "cuda-driver/1");
    const Registry registry = registry_of({&owner, &kernels, &usual});
    for (const size_t i : {0, 1})
        EXPECT_THAT(registry.plugins()[i].left_out,
                    ElementsAre(HasSubstr("devices of kind npu: this version finds none")));
    EXPECT_THAT(registry.plugins()[2].left_out, IsEmpty());
}

// One plugin's kernels would read the addresses of another one's device as something that they are not.
TEST(Interop, BindsKernelsToTheirDevices) {
    Plugin owner("owner"), fitting("fitting"), foreign("foreign"), silent("silent");
    owner.provider("cuda", "fixture/1");
    fitting.kernel("add.fitting", TSR_OP_ADD, 3e-3, "cuda").interop = "fixture/1";
    foreign.kernel("add.foreign", TSR_OP_ADD, 1e-3, "cuda").interop = "cuda-driver/1";
    silent.kernel("add.silent", TSR_OP_ADD, 1e-3, "cuda");
    silent.kernel("add.cpu", TSR_OP_ADD, 1e-3).interop = "fixture/1";
    const Registry registry = registry_of({&owner, &fitting, &foreign, &silent});
    const Hardware hardware = machine();
    OpSet ops;
    Graph graph(ops);
    const Value x = graph.input("x", {TSR_TYPE_F32, {kElements, kRows}, TSR_RANGE_ROWS});
    graph.add_one(TSR_OP_ADD, "node", {x, x});
    const NodeView node(graph, graph.nodes()[0]);

    const KernelCandidates simulated = find_kernels(node.abi(), *hardware.find("SIM0"), registry);
    ASSERT_EQ(simulated.able.size(), 1u);
    EXPECT_STREQ(simulated.able[0].kernel->name, "add.fitting");
    EXPECT_THAT(rejected(simulated.unable),
                ElementsAre("foreign/add.foreign: it needs interop cuda-driver/1; SIM0 has fixture/1",
                            "silent/add.silent: it names no interop; SIM0 has fixture/1"));

    const KernelCandidates cpu = find_kernels(node.abi(), *hardware.find("CPU"), registry);
    EXPECT_THAT(cpu.able, IsEmpty());
    EXPECT_THAT(rejected(cpu.unable), ElementsAre("silent/add.cpu: it needs interop fixture/1; CPU has none"));
}

TEST(Interop, ADeviceWithoutAnOwnerTakesNoKernel) {
    Plugin fitting("fitting");
    fitting.kernel("add.fitting", TSR_OP_ADD, 3e-3, "cuda").interop = "fixture/1";
    const Registry registry = registry_of({&fitting});
    const Hardware hardware = machine();
    OpSet ops;
    Graph graph(ops);
    const Value x = graph.input("x", {TSR_TYPE_F32, {kElements, kRows}, TSR_RANGE_ROWS});
    graph.add_one(TSR_OP_ADD, "node", {x, x});
    const NodeView node(graph, graph.nodes()[0]);
    EXPECT_THAT(find_kernels(node.abi(), *hardware.find("SIM0"), registry).able, IsEmpty());
}

TEST(DeviceAbi, PartsOfAnotherNumberAreLeftOutAndTheRestIsUsed) {
    Plugin old("old");
    old.provider("cuda", "fixture/1").device_abi = TSR_DEVICE_ABI + 1;
    old.kernel("add.device", TSR_OP_ADD, 1e-3, "cuda").device_abi = TSR_DEVICE_ABI + 1;
    old.kernel("add.cpu", TSR_OP_ADD, 1e-3);
    const Registry registry = registry_of({&old});
    EXPECT_EQ(registry.kernels("cpu", TSR_OP_ADD).size(), 1u);
    EXPECT_THAT(registry.kernels("cuda", TSR_OP_ADD), IsEmpty());
    EXPECT_THAT(registry.providers("cuda"), IsEmpty());
    const std::string numbers =
        fmt::format("built for device ABI {}, this host drives devices by {}", TSR_DEVICE_ABI + 1, TSR_DEVICE_ABI);
    EXPECT_THAT(registry.plugins()[0].left_out, ElementsAre(HasSubstr("kernel add.device for cuda: " + numbers),
                                                            HasSubstr("a device provider: " + numbers)));
}

TEST(Statuses, ThatAreTooShortAreNotRead) {
    alignas(tsr_status) const std::array<uint32_t, 2> few{8, TSR_IO_ERROR};
    const auto* status = reinterpret_cast<const tsr_status*>(few.data());
    try {
        check(status);
        FAIL() << "it was taken for a success";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INTERNAL);
        EXPECT_THAT(error.what(), HasSubstr("a status whose struct_size is 8, expected at least 32"));
    }
}

}  // namespace
}  // namespace tessera
