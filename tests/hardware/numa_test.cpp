// Nodes from trees of files like the kernel's, and where threads and memory go on machines that are not here.
#include "core/hardware/numa.hpp"

#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<uint32_t> numbers(uint32_t first, uint32_t count) {
    std::vector<uint32_t> list(count);
    std::iota(list.begin(), list.end(), first);
    return list;
}

// Nodes of `cpus` CPUs each.
std::vector<NumaNode> machine(uint32_t nodes, uint32_t cpus) {
    std::vector<NumaNode> list;
    for (uint32_t id = 0; id < nodes; ++id) list.push_back({id, numbers(id * cpus, cpus)});
    return list;
}

TEST(NumaNodes, AreReadFromTheSystem) {
    const test::TemporaryFolder root;
    root.write("sys/devices/system/node/online", "0-1,3\n");
    root.write("sys/devices/system/node/node0/cpulist", "0-3,8-11\n");
    root.write("sys/devices/system/node/node1/cpulist", "4-7,12-15\n");
    root.write("sys/devices/system/node/node3/cpulist", "\n");  // memory alone
    const auto nodes = probe_numa_nodes(numbers(0, 16), root.path());
    ASSERT_EQ(nodes.size(), 2u);
    EXPECT_THAT(nodes[0].cpus, ElementsAre(0, 1, 2, 3, 8, 9, 10, 11));
    EXPECT_EQ(nodes[1].id, 1u);
    // Of a process that may use one node, that is the machine; of one without such files, too.
    EXPECT_EQ(probe_numa_nodes({5, 13}, root.path()).size(), 1u);
    EXPECT_THAT(probe_numa_nodes({5, 13}, root.path())[0].cpus, ElementsAre(5, 13));
    const test::TemporaryFolder empty;
    ASSERT_EQ(probe_numa_nodes({2}, empty.path()).size(), 1u);
    EXPECT_THAT(probe_numa_nodes({2}, empty.path())[0].cpus, ElementsAre(2));
    EXPECT_FALSE(probe_numa_nodes(allowed_cpus()).empty());
}

TEST(NumaPlacement, DistributesEvenly) {
    for (const uint32_t nodes : {2u, 4u, 6u, 8u}) {
        for (const uint32_t threads : {1u, 3u, 8u, 24u, 100u}) {
            const auto placement = place_on_nodes(NumaMode::kDistribute, machine(nodes, 16), 0, threads);
            ASSERT_EQ(placement.cpus.size(), threads);
            EXPECT_EQ(placement.memory_nodes, numbers(0, nodes));
            std::vector<uint32_t> of_node(nodes, 0);
            uint32_t before = 0;
            for (const auto& cpus : placement.cpus) {
                const uint32_t node = cpus.front() / 16;
                EXPECT_EQ(cpus, numbers(node * 16, 16));
                EXPECT_GE(node, before) << "neighbours in work are not neighbours in place";
                before = node;
                ++of_node[node];
            }
            const auto [least, most] = std::minmax_element(of_node.begin(), of_node.end());
            EXPECT_LE(*most - *least, 1u) << nodes << " nodes, " << threads << " threads";
        }
    }
}

TEST(NumaPlacement, IsolatesWhereTheProcessStarted) {
    const auto placement = place_on_nodes(NumaMode::kIsolate, machine(2, 8), 11, 12);
    ASSERT_EQ(placement.cpus.size(), 12u);
    for (const auto& cpus : placement.cpus) EXPECT_EQ(cpus, numbers(8, 8));
    EXPECT_THAT(placement.memory_nodes, ElementsAre(1));
    ASSERT_TRUE(placement.notice.has_value());
    EXPECT_THAT(placement.notice->text, HasSubstr("8 CPUs for 12 threads"));
}

TEST(NumaPlacement, BindsNothingWhereThereIsNothingToBind) {
    for (const NumaMode mode : {NumaMode::kNone, NumaMode::kDistribute, NumaMode::kIsolate, NumaMode::kNumactl}) {
        const auto placement = place_on_nodes(mode, machine(1, 8), 3, 8);
        EXPECT_THAT(placement.cpus, IsEmpty());
        EXPECT_THAT(placement.memory_nodes, IsEmpty());
        EXPECT_EQ(!placement.notice, mode == NumaMode::kNone || mode == NumaMode::kNumactl);
    }
    EXPECT_THAT(place_on_nodes(NumaMode::kNumactl, machine(2, 8), 3, 8).cpus, IsEmpty());
    const auto none = place_on_nodes(NumaMode::kNone, machine(2, 8), 3, 8);
    EXPECT_THAT(none.cpus, IsEmpty());
    ASSERT_TRUE(none.notice.has_value());
    EXPECT_THAT(none.notice->advice, ElementsAre(Advice{AdviceCode::kSpreadOverNodes, ""}));
}

TEST(NumaMode, ByItsName) {
    EXPECT_EQ(parse_numa_mode("distribute"), NumaMode::kDistribute);
    EXPECT_EQ(parse_numa_mode("isolate"), NumaMode::kIsolate);
    EXPECT_EQ(parse_numa_mode("numactl"), NumaMode::kNumactl);
    EXPECT_EQ(parse_numa_mode("mirror"), std::nullopt);
}

}  // namespace
}  // namespace tessera
