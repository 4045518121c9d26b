// Which packed layouts a kernel may ask for, who packs, and what memory that takes.
#include "core/plan/packing.hpp"

#include "core/base/error.hpp"
#include "core/graph/op_set.hpp"
#include "core/plan/make_plan.hpp"

#include <tessera/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kInterop = "tests/1";

// ---- plugins of the tests: a provider, a kernel that asks for the layout "packed", and that layout ----

uint64_t group_bytes(const tsr_layout* self, int64_t elements) {
    return static_cast<uint64_t>(elements) * self->group_rows * 2 + 16;
}
void pack(const tsr_layout*, int64_t, int64_t, const void*, void*) {}
const tsr_status* enqueue_pack(const tsr_layout*, tsr_device*, tsr_queue, int64_t, int64_t, const void*, void*) {
    return nullptr;
}

tsr_layout layout_of(uint32_t rows, bool packs_here, const char* packs_on) {
    tsr_layout layout{};
    layout.struct_size = sizeof layout;
    layout.type = TSR_TYPE_F16;
    layout.name = "packed";
    layout.group_rows = rows;
    layout.elements_multiple = 1;
    layout.group_bytes = group_bytes;
    layout.unpack = pack;
    if (packs_here) layout.pack = pack;
    if (packs_on) {
        layout.interop = packs_on;
        layout.device_abi = TSR_DEVICE_ABI;
        layout.enqueue_pack = enqueue_pack;
    }
    return layout;
}

struct Kernel : tsr_kernel {
    Kernel(const char* kernel_name, const char* on, double estimate, bool asks)
        : tsr_kernel{}, seconds(estimate), packed(asks) {
        struct_size = sizeof(tsr_kernel);
        op_version = 1;
        name = kernel_name;
        tsr_kernel::op = TSR_OP_MATMUL;
        device_kind = on;
        tsr_kernel::plan = [](const tsr_kernel* self, const tsr_node*, const tsr_device_info*,
                              tsr_kernel_plan* answer) {
            static const char* const kLists[] = {"packed", nullptr};
            static const char* const kEither[] = {"packed", "", nullptr};
            const Kernel& kernel = *static_cast<const Kernel*>(self);
            answer->supported = 1;
            answer->seconds_one_row = answer->seconds_all_rows = kernel.seconds;
            if (kernel.packed) answer->layouts[1] = kernel.either ? kEither : kLists;
            return static_cast<const tsr_status*>(nullptr);
        };
        prepare = [](const tsr_kernel*, const tsr_node*, const tsr_device_info*, tsr_device*, void**) {
            return static_cast<const tsr_status*>(nullptr);
        };
        release = [](const tsr_kernel*, void*) {};
        if (std::string_view(on) == "cpu") {
            run = [](const tsr_kernel*, void*, const tsr_run*) { return static_cast<const tsr_status*>(nullptr); };
        } else {
            interop = kInterop;
            device_abi = TSR_DEVICE_ABI;
            enqueue = [](const tsr_kernel*, void*, const tsr_launch*) {
                return static_cast<const tsr_status*>(nullptr);
            };
        }
    }
    double seconds;
    bool packed;
    bool either = false;  // it takes canonical rows, too
};

uint32_t match_all(const tsr_device_provider*, const tsr_device_info*, char*, uint32_t) {
    return 1;
}
const tsr_status* open_nothing(const tsr_device_provider*, const tsr_device_info*, tsr_device** device) {
    *device = nullptr;
    return nullptr;
}
constexpr tsr_device_provider kProvider = {
    sizeof(tsr_device_provider), TSR_DEVICE_ABI, nullptr, nullptr, "test", kInterop, match_all, open_nothing};
const tsr_device_provider* const kProviders[] = {&kProvider};

// Two kernels a device, of which the faster one asks for the layout.
const Kernel kKernels[] = {{"there.packed", "test", 1e-4, true},
                           {"there.canonical", "test", 1e-3, false},
                           {"here.packed", "cpu", 1e-4, true},
                           {"here.canonical", "cpu", 1e-3, false}};
const tsr_kernel* const kKernelList[] = {&kKernels[1], &kKernels[0], &kKernels[2], &kKernels[3]};

tsr_plugin table_of(const char* name) {
    tsr_plugin table{};
    table.struct_size = sizeof table;
    table.abi_major = TSR_ABI_MAJOR;
    table.abi_minor = TSR_ABI_MINOR;
    table.name = name;
    table.version = "1.0";
    return table;
}

// A registry of the kernels, of one plugin for each layout, and of the plugin "author" with kernels of its own.
class Plugins {
  public:
    explicit Plugins(std::vector<tsr_layout> layouts, std::vector<Kernel> authors = {},
                     const std::vector<std::string>& prefer = {}, bool canonical_there = true)
        : layouts_(std::move(layouts)), authors_(std::move(authors)) {
        tables_.reserve(layouts_.size() + 2);
        tables_.push_back(table_of("kernels"));
        tables_[0].providers = kProviders;
        tables_[0].provider_count = 1;
        const size_t first = canonical_there ? 0 : 1;
        tables_[0].kernels = kKernelList + first;
        tables_[0].kernel_count = static_cast<uint32_t>(std::size(kKernelList) - first);
        static constexpr const char* kNames[] = {"one", "two"};
        for (const tsr_layout& layout : layouts_) pointers_.push_back(&layout);
        for (size_t i = 0; i < layouts_.size(); ++i) {
            tables_.push_back(table_of(kNames[i]));
            tables_.back().layouts = &pointers_[i];
            tables_.back().layout_count = 1;
        }
        for (const Kernel& kernel : authors_) authors_list_.push_back(&kernel);
        tables_.push_back(table_of("author"));
        tables_.back().kernels = authors_list_.data();
        tables_.back().kernel_count = static_cast<uint32_t>(authors_list_.size());
        std::vector<const tsr_plugin*> list;
        for (const tsr_plugin& table : tables_) list.push_back(&table);
        registry = std::make_unique<Registry>(Registry::of_tables(list, prefer));
    }

    std::unique_ptr<Registry> registry;

  private:
    std::vector<tsr_layout> layouts_;
    std::vector<const tsr_layout*> pointers_;
    std::vector<Kernel> authors_;
    std::vector<const tsr_kernel*> authors_list_;
    std::vector<tsr_plugin> tables_;
};

const Hardware& machine() {
    static const Hardware hardware = [] {
        DeviceDescription cpu, card;
        cpu.kind = "cpu";
        cpu.id = "CPU";
        cpu.threads = 3;
        cpu.memory_bytes = cpu.free_memory_bytes = uint64_t{8} << 30;
        Hardware made({cpu});
        card.kind = "test";
        card.id = "TEST0";
        card.memory_bytes = card.free_memory_bytes = uint64_t{4} << 30;
        made.add(card);
        return made;
    }();
    return hardware;
}

constexpr int64_t kElements = 1024, kRows = 1040;

// x times a weight of rows of f16, on the card if `there`.
Plan plan_of(const Registry& registry, bool there) {
    static const OpSet ops;
    Graph graph(ops);
    const Value x = graph.input("x", {TSR_TYPE_F32, {kElements, 4}, TSR_RANGE_ROWS});
    graph.set_layer(0);
    const Value weight = graph.weight("w", {TSR_TYPE_F16, {kElements, kRows}});
    graph.set_output("logits", graph.add_one(TSR_OP_MATMUL, "product", {x, weight}));
    ScheduleOptions options;
    options.max_rows = 4;
    options.placement.gpu_layers = 99;
    options.placement.rules = {{"w", there ? "TEST0" : "CPU"}};
    return make_plan(graph, registry, machine(), options);
}

const Instance& weight_of(const Plan& plan) {
    for (const Instance& it : plan.instances) {
        if (it.storage && plan.graph.storage(it.storage).name == "w") return it;
    }
    throw std::runtime_error("no weight");
}

std::string chosen(const Plan& plan) {
    return plan.nodes.at(0).kernel->name;
}

TEST(PackedLayout, IsPackedOnTheDeviceIfThatCan) {
    const Plugins plugins({layout_of(8, true, kInterop)});
    const Plan there = plan_of(*plugins.registry, true), here = plan_of(*plugins.registry, false);
    EXPECT_EQ(chosen(there), "there.packed");
    EXPECT_EQ(weight_of(there).packed_on, PackedOn::kDevice);
    EXPECT_EQ(chosen(here), "here.packed");
    EXPECT_EQ(weight_of(here).packed_on, PackedOn::kHost);
}

TEST(PackedLayout, IsPackedOnTheHostOtherwise) {
    for (const char* interop : {static_cast<const char*>(nullptr), "other/1"}) {
        const Plugins plugins({layout_of(8, true, interop)});
        const Plan plan = plan_of(*plugins.registry, true);
        EXPECT_EQ(chosen(plan), "there.packed");
        EXPECT_EQ(weight_of(plan).packed_on, PackedOn::kHost);
    }
}

TEST(PackedLayout, MayBePackedByAnotherPluginThanTheHosts) {
    const Plugins plugins({layout_of(8, true, nullptr), layout_of(8, false, kInterop)});
    EXPECT_THAT(plugins.registry->conflicts(), IsEmpty());
    EXPECT_EQ(weight_of(plan_of(*plugins.registry, true)).packed_on, PackedOn::kDevice);
    EXPECT_EQ(weight_of(plan_of(*plugins.registry, false)).packed_on, PackedOn::kHost);
}

// What means other bytes by the name is not used.
TEST(PackedLayout, OfOtherBytesIsNotTheSame) {
    const Plugins plugins({layout_of(8, true, nullptr), layout_of(4, true, kInterop)});
    EXPECT_EQ(plugins.registry->conflicts().size(), 1u);
    EXPECT_EQ(weight_of(plan_of(*plugins.registry, true)).packed_on, PackedOn::kHost);
}

TEST(PackedLayout, ThatNobodyPacksLosesTheKernelItsPlace) {
    const Plugins plugins({layout_of(8, false, "other/1")});
    for (const bool there : {true, false}) {
        const Plan plan = plan_of(*plugins.registry, there);
        EXPECT_EQ(chosen(plan), there ? "there.canonical" : "here.canonical");
        EXPECT_TRUE(weight_of(plan).layout.empty());
        ASSERT_EQ(plan.nodes[0].rejected.size(), 1u);
        EXPECT_THAT(plan.nodes[0].rejected[0].reason,
                    AllOf(HasSubstr("plugin kernels: plan of kernel"), HasSubstr("at node product"),
                          HasSubstr("layouts[1] names packed, into which no loaded plugin can pack rows"),
                          HasSubstr(there ? "enqueue_pack for the interop tests/1" : "pack is NULL")));
    }
    // On a device that packs it the CPU's kernel cannot ask for it all the same.
    const Plugins device({layout_of(8, false, kInterop)});
    EXPECT_EQ(chosen(plan_of(*device.registry, true)), "there.packed");
    EXPECT_EQ(chosen(plan_of(*device.registry, false)), "here.canonical");
}

TEST(PackedLayout, ThatCannotHoldTheWeightLosesTheKernelItsPlace) {
    static uint64_t (*const kNothingForLongRows)(const tsr_layout*, int64_t) = [](const tsr_layout*, int64_t elements) {
        return uint64_t{elements < kElements};
    };
    static uint64_t (*const kTooMuchForLongRows)(const tsr_layout*, int64_t) = [](const tsr_layout*, int64_t elements) {
        return elements < kElements ? uint64_t{1} : ~uint64_t{0};
    };
    tsr_layout odd = layout_of(7, true, nullptr), wide = layout_of(8, true, nullptr);
    wide.elements_multiple = 1000;
    tsr_layout nothing = layout_of(8, true, nullptr), much = nothing;
    nothing.group_bytes = kNothingForLongRows;
    much.group_bytes = kTooMuchForLongRows;
    const std::pair<tsr_layout, const char*> cases[] = {
        {odd, "1040 rows of 1024 elements, expected multiples of 7 rows and of 1 elements"},
        {wide, "expected multiples of 8 rows and of 1000 elements"},
        {nothing, "for which group_bytes gives 0, expected 1 to"},
        {much, "for which group_bytes gives 18446744073709551615, expected 1 to"}};
    for (const auto& [layout, why] : cases) {
        const Plugins plugins({layout});
        const Plan plan = plan_of(*plugins.registry, false);
        EXPECT_EQ(chosen(plan), "here.canonical");
        ASSERT_EQ(plan.nodes[0].rejected.size(), 1u);
        EXPECT_THAT(plan.nodes[0].rejected[0].reason,
                    AllOf(HasSubstr("layouts[1] names packed, which cannot hold "), HasSubstr(why)));
    }
}

// The list is one of preferences: the kernel is used with the next that holds the weight.
TEST(PackedLayout, ThatCannotHoldTheWeightIsPassedOver) {
    Kernel either("mine.either", "cpu", 1e-5, true);
    either.either = true;
    for (const bool packs : {true, false}) {
        const Plugins plugins({layout_of(packs ? 7 : 8, packs, nullptr)}, {either});
        const Plan plan = plan_of(*plugins.registry, false);
        EXPECT_EQ(chosen(plan), "mine.either");
        EXPECT_TRUE(weight_of(plan).layout.empty());
    }
    const Plugins plugins({layout_of(8, true, nullptr)}, {either});
    EXPECT_EQ(weight_of(plan_of(*plugins.registry, false)).layout, "packed");
}

// A view of the weight fits the layout, the weight does not: where the card has no other kernel, the node is computed
// elsewhere unless a rule of the user forbids that.
TEST(PackedLayout, ThatCannotHoldTheWholeWeightLeavesOtherDevices) {
    const Plugins plugins({layout_of(8, true, nullptr)}, {}, {}, false);
    static const OpSet ops;
    Graph graph(ops);
    const Value x = graph.input("x", {TSR_TYPE_F32, {kElements, 4}, TSR_RANGE_ROWS});
    graph.set_layer(0);
    const Value weight = graph.weight("w", {TSR_TYPE_F16, {kElements, kRows + 1}});
    tsr_tensor most = graph.tensor(weight);
    most.dims[1] = kRows;
    graph.set_output("logits", graph.add_one(TSR_OP_MATMUL, "product", {x, graph.view(weight, most)}));
    ScheduleOptions options;
    options.max_rows = 4;
    const Plan plan = make_plan(graph, *plugins.registry, machine(), options);
    EXPECT_EQ(chosen(plan), "here.canonical");
    options.placement.rules = {{"w", "TEST0"}};
    try {
        make_plan(graph, *plugins.registry, machine(), options);
        FAIL() << "it was planned";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_UNSUPPORTED);
        EXPECT_THAT(error.what(), AllOf(HasSubstr("product: no kernel takes w as it can be kept on TEST0"),
                                        HasSubstr("kernels/there.packed: it reads operand 1 as 'packed', which cannot "
                                                  "hold all of w")));
    }
}

TEST(PackedLayout, IsAskedOnlyForRowsThatItHolds) {
    tsr_layout wide = layout_of(8, true, nullptr);
    wide.elements_multiple = 1000;
    wide.group_bytes = [](const tsr_layout*, int64_t elements) {
        EXPECT_EQ(elements % 1000, 0);
        return uint64_t{16};
    };
    const Plugins plugins({wide});
    EXPECT_EQ(chosen(plan_of(*plugins.registry, false)), "here.canonical");
}

TEST(PackedLayout, WithGroupsOfNoBytesIsRefused) {
    tsr_layout layout = layout_of(8, true, nullptr);
    layout.group_bytes = [](const tsr_layout*, int64_t) { return uint64_t{0}; };
    try {
        const Plugins plugins({layout});
        FAIL() << "it was taken";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("layout packed: group_bytes gives 0 for rows of 1 elements"));
    }
}

// What the user or an author puts first wins over a packed kernel that is faster, and the plan says by how much.
TEST(PackedLayout, DoesNotOvercomeAPreferenceOrAPriority) {
    Kernel mine("mine.canonical", "cpu", 5e-3, false);
    {
        const Plugins plugins({layout_of(8, true, nullptr)}, {mine});
        const Plan plan = plan_of(*plugins.registry, false);
        EXPECT_EQ(chosen(plan), "here.packed");
        std::vector<std::string> lines;
        for (const Rejection& r : plan.nodes[0].rejected) lines.push_back(r.candidate + ": " + r.reason);
        EXPECT_THAT(lines,
                    testing::UnorderedElementsAre(
                        "author/mine.canonical: it reads operand 1 as canonical rows, which is kept as 'packed': 5.16 "
                        "ms, not 0.105 ms, by estimate",
                        HasSubstr("kernels/here.canonical: it reads operand 1 as canonical rows, which is kept as")));
    }
    for (const bool by_priority : {false, true}) {
        mine.priority = by_priority ? 3 : 0;
        const Plugins plugins({layout_of(8, true, nullptr)}, {mine},
                              by_priority ? std::vector<std::string>() : std::vector<std::string>{"author"});
        const Plan plan = plan_of(*plugins.registry, false);
        EXPECT_EQ(chosen(plan), "mine.canonical");
        EXPECT_TRUE(weight_of(plan).layout.empty());
        std::vector<std::string> lines;
        for (const Rejection& r : plan.nodes[0].rejected) lines.push_back(r.candidate + ": " + r.reason);
        EXPECT_THAT(
            lines,
            testing::UnorderedElementsAre(
                HasSubstr("kernels/here.packed: it reads operand 1 as 'packed', which is kept as canonical rows: 0.1"),
                HasSubstr(by_priority ? "kernels/here.canonical: its priority is 0, that of author/mine.canonical is 3"
                                      : "kernels/here.canonical: plugins.prefer puts author before it")));
    }
}

TEST(PackedLayout, OfAnotherDeviceAbiIsPackedByTheHost) {
    tsr_layout layout = layout_of(8, true, kInterop);
    layout.device_abi = TSR_DEVICE_ABI + 1;
    const Plugins plugins({layout});
    EXPECT_EQ(weight_of(plan_of(*plugins.registry, true)).packed_on, PackedOn::kHost);
    EXPECT_THAT(plugins.registry->plugins()[1].left_out,
                ElementsAre(HasSubstr("packing of layout packed on a device")));
}

TEST(PackedLayout, WithoutInteropIsRefused) {
    tsr_layout layout = layout_of(8, true, kInterop);
    layout.interop = nullptr;
    try {
        const Plugins plugins({layout});
        FAIL() << "it was taken";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("layout packed: it packs on devices and names no interop"));
    }
}

// ---- memory ----

constexpr uint64_t kRowBytes = kElements * 2;

TEST(LoadingMemory, HoldsRowsThatAreOnTheirWay) {
    struct Case {
        uint32_t group_rows;
        bool on_device;
        uint64_t piece, staged;  // staged: canonical rows on the card, or packed ones on the host
    };
    const uint64_t in_a_piece = kLoadingPiece / kRowBytes;  // rows
    for (const Case& c : {Case{8, true, kLoadingPiece, in_a_piece * kRowBytes},
                          Case{8, false, kLoadingPiece, in_a_piece * kRowBytes + in_a_piece / 8 * 16},
                          // All rows are one group, which is larger than a piece.
                          Case{kRows, true, kRows * kRowBytes, kRows * kRowBytes},
                          Case{kRows, false, kRows * kRowBytes, kRows * kRowBytes + 16}}) {
        SCOPED_TRACE(testing::Message() << c.group_rows << (c.on_device ? " there" : " here"));
        const Plugins plugins({layout_of(c.group_rows, true, c.on_device ? kInterop : nullptr)});
        const Plan plan = plan_of(*plugins.registry, true);
        const auto aligned = [](uint64_t bytes) { return (bytes + 255) / 256 * 256; };
        EXPECT_EQ(plan.loading.piece, c.piece);
        EXPECT_EQ(plan.loading.packed, c.on_device ? 0 : aligned(c.staged));
        EXPECT_EQ(plan.memory[1].packing, c.on_device ? aligned(c.staged) : 0);
        EXPECT_EQ(plan.memory[1].loading, plan.memory[1].packing) << "nothing else of the card is as large";
        EXPECT_EQ(plan.memory[0].loading, std::max(3 * c.piece, aligned(c.piece) + plan.loading.packed));
        EXPECT_EQ(plan.memory[1].weights, aligned(kRows / c.group_rows * (c.group_rows * kRowBytes + 16)));
    }
}

TEST(LoadingMemory, IsNotNeededForCanonicalRows) {
    const Plugins plugins({layout_of(8, false, "other/1")});
    const Plan plan = plan_of(*plugins.registry, true);
    EXPECT_EQ(plan.memory[1].packing, 0u);
    EXPECT_EQ(plan.memory[1].loading, 0u);
    EXPECT_EQ(plan.loading.packed, 0u);
    EXPECT_EQ(plan.memory[0].loading, 3 * kLoadingPiece);
}

}  // namespace
}  // namespace tessera
