#include "core/cache/paged_cache.hpp"

#include "core/base/error.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tessera {
namespace {

using Copies = std::vector<std::pair<PageId, PageId>>;

TEST(PagedCache, GrowsByPages) {
    PagedCache cache(4);
    Copies copies;
    const SequenceId s = cache.create();
    cache.append(s, 1, copies);
    EXPECT_EQ(cache.pages(s).size(), 1u);
    cache.append(s, TSR_PAGE_TOKENS - 1, copies);
    EXPECT_EQ(cache.pages(s).size(), 1u);
    cache.append(s, 1, copies);
    EXPECT_EQ(cache.pages(s).size(), 2u);
    EXPECT_EQ(cache.length(s), TSR_PAGE_TOKENS + 1u);
    EXPECT_EQ(cache.free_pages(), 2u);
    EXPECT_TRUE(copies.empty());
}

TEST(PagedCache, FullCacheChangesNothing) {
    PagedCache cache(2);
    Copies copies;
    const SequenceId s = cache.create();
    cache.append(s, 100, copies);
    EXPECT_THROW(cache.append(s, 100, copies), Error);
    EXPECT_EQ(cache.length(s), 100u);
    EXPECT_EQ(cache.free_pages(), 0u);
    cache.append(s, 28, copies);
    EXPECT_EQ(cache.length(s), 128u);
}

TEST(PagedCache, ForkSharesWholePagesAndCopiesTheLastOnWrite) {
    PagedCache cache(8);
    Copies copies;
    const SequenceId a = cache.create();
    cache.append(a, 100, copies);
    const SequenceId b = cache.fork(a, 100);
    EXPECT_EQ(cache.free_pages(), 6u);
    EXPECT_EQ(cache.pages(a)[0], cache.pages(b)[0]);
    EXPECT_EQ(cache.pages(a)[1], cache.pages(b)[1]);
    cache.append(b, 1, copies);
    ASSERT_EQ(copies.size(), 1u);
    EXPECT_EQ(copies[0].first, cache.pages(a)[1]);
    EXPECT_EQ(copies[0].second, cache.pages(b)[1]);
    EXPECT_NE(cache.pages(a)[1], cache.pages(b)[1]);
    EXPECT_EQ(cache.pages(a)[0], cache.pages(b)[0]);
    copies.clear();
    cache.append(a, 1, copies);
    EXPECT_TRUE(copies.empty()) << "the page belongs to the first sequence alone now";
}

TEST(PagedCache, ACopyThatCouldNotBeMadeIsTakenBack) {
    PagedCache cache(6);
    Copies copies;
    const SequenceId first = cache.create();
    cache.append(first, 70, copies);
    const SequenceId second = cache.fork(first, 70);
    const std::vector<PageId> before(cache.pages(second).begin(), cache.pages(second).end());
    cache.append(second, 100, copies);
    ASSERT_EQ(copies.size(), 1u);
    for (const SequenceId sequence : {first, second}) cache.share_again(sequence, copies[0].first, copies[0].second);
    cache.truncate(second, 70);
    EXPECT_EQ(std::vector<PageId>(cache.pages(second).begin(), cache.pages(second).end()), before);
    EXPECT_EQ(cache.free_pages(), 4u);
    cache.remove(first);
    EXPECT_EQ(cache.free_pages(), 4u);
    cache.remove(second);
    EXPECT_EQ(cache.free_pages(), 6u);
}

TEST(PagedCache, ForkAtAPageBorderCopiesNothing) {
    PagedCache cache(8);
    Copies copies;
    const SequenceId a = cache.create();
    cache.append(a, 200, copies);
    const SequenceId b = cache.fork(a, 128);
    cache.append(b, 10, copies);
    EXPECT_TRUE(copies.empty());
    EXPECT_EQ(cache.length(b), 138u);
    EXPECT_NE(cache.pages(a)[2], cache.pages(b)[2]);
}

TEST(PagedCache, RollbackGivesPagesBackOnce) {
    PagedCache cache(4);
    Copies copies;
    const SequenceId a = cache.create();
    cache.append(a, 200, copies);
    const SequenceId b = cache.fork(a, 130);
    cache.truncate(a, 60);
    EXPECT_EQ(cache.free_pages(), 1u) << "the fork still holds two of the pages that were given up";
    cache.remove(b);
    EXPECT_EQ(cache.free_pages(), 3u);
    cache.remove(a);
    EXPECT_EQ(cache.free_pages(), 4u);
    EXPECT_THROW((void)cache.length(a), Error);
    EXPECT_THROW(cache.fork(a, 0), Error);
}

TEST(PagedCache, ForkOfMoreThanThereIsIsRefused) {
    PagedCache cache(4);
    Copies copies;
    const SequenceId a = cache.create();
    cache.append(a, 5, copies);
    EXPECT_THROW(cache.fork(a, 6), Error);
}

// Contents of every page as a model of its own: what a sequence reads must be what it wrote, whatever others do.
TEST(PagedCache, RandomUseKeepsContentsApart) {
    std::mt19937 random(7);
    PagedCache cache(24);
    std::map<SequenceId, std::vector<int>> expected;
    std::vector<std::array<int, TSR_PAGE_TOKENS>> memory(24);
    int next = 1;
    for (int step = 0; step < 5000; ++step) {
        const auto pick = [&] { return std::next(expected.begin(), static_cast<long>(random() % expected.size())); };
        const unsigned action = random() % 10;
        if (expected.empty() || action == 0) {
            expected[cache.create()];
        } else if (action <= 5) {
            auto& [id, tokens] = *pick();
            Copies copies;
            const uint32_t count = 1 + random() % 90;
            try {
                cache.append(id, count, copies);
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), TSR_DOES_NOT_FIT);
                continue;
            }
            for (const auto& [from, to] : copies) memory[to] = memory[from];
            for (uint32_t i = 0; i < count; ++i) {
                const size_t at = tokens.size();
                memory[cache.pages(id)[at / TSR_PAGE_TOKENS]][at % TSR_PAGE_TOKENS] = next;
                tokens.push_back(next++);
            }
        } else if (action == 6) {
            const auto& [id, tokens] = *pick();
            const auto keep = static_cast<uint32_t>(random() % (tokens.size() + 1));
            std::vector<int> prefix(tokens.begin(), tokens.begin() + keep);
            expected[cache.fork(id, keep)] = std::move(prefix);
        } else if (action == 7) {
            auto& [id, tokens] = *pick();
            tokens.resize(random() % (tokens.size() + 1));
            cache.truncate(id, static_cast<uint32_t>(tokens.size()));
        } else if (action == 8) {
            const auto at = pick();
            cache.remove(at->first);
            expected.erase(at);
        }
        for (const auto& [id, tokens] : expected) {
            ASSERT_EQ(cache.length(id), tokens.size());
            for (size_t i = 0; i < tokens.size(); ++i) {
                ASSERT_EQ(memory[cache.pages(id)[i / TSR_PAGE_TOKENS]][i % TSR_PAGE_TOKENS], tokens[i])
                    << "step " << step;
            }
        }
    }
    while (!expected.empty()) {
        cache.remove(expected.begin()->first);
        expected.erase(expected.begin());
    }
    EXPECT_EQ(cache.free_pages(), 24u);
}

}  // namespace
}  // namespace tessera
