// Caches that have a page table of their own: which there are, and that pages are copied in one group alone.
#include "core/plan/cache_groups.hpp"

#include "core/base/error.hpp"
#include "core/graph/op_set.hpp"
#include "core/plan/make_plan.hpp"
#include "core/run/page_copies.hpp"
#include "tests/support.hpp"

#include <tessera/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace tessera {
namespace {

using testing::ElementsAre;

constexpr int64_t kRows = 4, kElements = 32;

// Rows that are written to caches of 8 pages and, by another table, to one of 3.
struct TwoGroups {
    OpSet ops;
    Graph graph{ops};
    Value rows = graph.input("rows", {TSR_TYPE_F32, {kElements, kRows}, TSR_RANGE_ROWS});
    Value positions = graph.input("positions", {TSR_TYPE_I32, {kRows}, TSR_RANGE_ROWS});
    Value sequences = graph.input("sequences", {TSR_TYPE_I32, {kRows}, TSR_RANGE_ROWS});
    Value all = graph.input("page_table", {TSR_TYPE_I32, {8, 1}});
    Value last = graph.input("page_table.window", {TSR_TYPE_I32, {8, 1}});
    Value a = cache("a", 8), b = cache("b", 8), c = cache("c", 3);

    TwoGroups() {
        write(a, all);
        write(c, last);
        write(b, all);
    }
    Value cache(const char* name, int64_t pages) {
        return graph.cache(name, {TSR_TYPE_F32, {kElements, TSR_PAGE_TOKENS, pages}});
    }
    void write(Value to, Value table) {
        graph.add(TSR_OP_CACHE_WRITE, "write", {rows, positions, sequences, table}, {}, {to});
    }
    StorageId of(Value value) const { return graph.storage_of(value); }
};

TEST(CacheGroups, AreThoseOfAPageTable) {
    const TwoGroups made;
    const std::vector<CacheGroup> groups = cache_groups_of(made.graph);
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].page_table, made.of(made.all));
    EXPECT_THAT(groups[0].caches, ElementsAre(made.of(made.a), made.of(made.b)));
    EXPECT_EQ(groups[0].pages, 8u);
    EXPECT_EQ(groups[1].page_table, made.of(made.last));
    EXPECT_THAT(groups[1].caches, ElementsAre(made.of(made.c)));
    EXPECT_EQ(groups[1].pages, 3u);
}

TEST(CacheGroups, HaveOneTableAndOneNumberOfPages) {
    TwoGroups two_tables;
    two_tables.write(two_tables.a, two_tables.last);
    EXPECT_THROW(cache_groups_of(two_tables.graph), Error);
    TwoGroups two_sizes;
    two_sizes.write(two_sizes.cache("d", 5), two_sizes.all);
    EXPECT_THROW(cache_groups_of(two_sizes.graph), Error);
}

TEST(CacheGroups, APageIsCopiedInOneOfThem) {
    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(test::plugins_without({}), hardware);
    const TwoGroups made;
    const Plan plan = make_plan(made.graph, registry, hardware, {});
    ASSERT_EQ(plan.cache_groups.size(), 2u);
    const PlanMemory memory(plan, registry);
    const Tracks tracks(plan, memory);
    const PageCopies copies(plan, memory, tracks);
    constexpr size_t kPage = kElements * TSR_PAGE_TOKENS * sizeof(float);
    std::map<std::string, std::byte*> at;
    for (InstanceId id = 1; id < plan.instances.size(); ++id) {
        const Storage& storage = plan.graph.storage(plan.instances[id].storage);
        if (storage.role != TSR_ROLE_CACHE) continue;
        at[storage.name] = static_cast<std::byte*>(memory.address(plan.instances[id]));
        for (size_t page = 0; page < plan.instances[id].bytes / kPage; ++page)
            std::memset(at[storage.name] + page * kPage, static_cast<int>(page) + 1, kPage);
    }
    const auto first_bytes = [&](const char* name, size_t page) {
        return std::pair(static_cast<int>(at.at(name)[page * kPage]),
                         static_cast<int>(at.at(name)[(page + 1) * kPage - 1]));
    };
    const std::pair<uint32_t, uint32_t> pages[] = {{0, 2}};
    copies.enqueue(0, pages);
    EXPECT_EQ(first_bytes("a", 2), std::pair(1, 1));
    EXPECT_EQ(first_bytes("b", 2), std::pair(1, 1));
    EXPECT_EQ(first_bytes("c", 2), std::pair(3, 3));
    const std::pair<uint32_t, uint32_t> others[] = {{1, 0}};
    copies.enqueue(1, others);
    EXPECT_EQ(first_bytes("a", 0), std::pair(1, 1));
    EXPECT_EQ(first_bytes("c", 0), std::pair(2, 2));
}

}  // namespace
}  // namespace tessera
