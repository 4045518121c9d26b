#include "core/cache/paged_cache.hpp"

#include "core/base/error.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tessera {
namespace {

using Copies = std::vector<PageCopy>;

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
    EXPECT_EQ(copies[0].from, cache.pages(a)[1]);
    EXPECT_EQ(copies[0].to, cache.pages(b)[1]);
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
    for (const SequenceId sequence : {first, second}) cache.share_again(sequence, copies[0]);
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

constexpr uint32_t kWindow = 100;
// Of all tokens, and of a window.
std::vector<PagedCache::Group> two_groups(uint32_t pages, uint32_t window_pages) {
    return {{{}, pages}, {{kWindow}, window_pages}};
}

TEST(PagedCache, AWindowHoldsThePagesThatItReaches) {
    PagedCache cache(two_groups(40, 8));
    Copies copies;
    const SequenceId s = cache.create();
    for (uint32_t length = 1; length <= 2000; ++length) {
        cache.append(s, 1, copies);
        cache.give_back(s, length);
        const HeldPages held = cache.held(s, 1);
        ASSERT_EQ(held.first + held.pages.size(), pages_for(length));
        // Of the next token, also after a rollback, and no page more.
        const int64_t first = int64_t{length} - kRollbackTokens - kWindow + 1;
        ASSERT_EQ(held.first, std::max<int64_t>(first, 0) / TSR_PAGE_TOKENS) << length;
        ASSERT_EQ(cache.page_count(1) - cache.free_pages(1), held.pages.size());
    }
    EXPECT_EQ(cache.pages(s).size(), pages_for(2000));
    EXPECT_TRUE(copies.empty());
    cache.remove(s);
    EXPECT_EQ(cache.free_pages(1), 8u);
    EXPECT_EQ(cache.free_pages(0), 40u);
}

TEST(PagedCache, NothingIsGivenBackThatAStepUnderWayMayNeedAgain) {
    PagedCache cache(two_groups(40, 20));
    Copies copies;
    const SequenceId s = cache.create();
    cache.append(s, 600, copies);
    cache.give_back(s, 600);
    const uint32_t first = cache.held(s, 1).first;
    cache.append(s, 500, copies);
    EXPECT_EQ(cache.held(s, 1).first, first) << "the step may fail";
    cache.truncate(s, 600);
    EXPECT_EQ(cache.held(s, 1).first, first);
    cache.truncate(s, 600 - kRollbackTokens);
    EXPECT_EQ(cache.length(s), 600 - kRollbackTokens);
}

TEST(PagedCache, ASequenceIsCutOnlyWhereItCanGoOn) {
    PagedCache cache(two_groups(40, 20));
    Copies copies;
    const SequenceId s = cache.create();
    cache.append(s, 1000, copies);
    cache.give_back(s, 1000);
    EXPECT_TRUE(cache.can_truncate(s, 1000 - kRollbackTokens));
    EXPECT_FALSE(cache.can_truncate(s, 500));
    EXPECT_THROW(cache.truncate(s, 500), Error);
    EXPECT_THROW(cache.fork(s, 500), Error);
    EXPECT_EQ(cache.length(s), 1000u);
    EXPECT_TRUE(cache.can_truncate(s, 0)) << "from the beginning";
    cache.truncate(s, 0);
    EXPECT_EQ(cache.free_pages(1), 20u);
    cache.append(s, 70, copies);
    EXPECT_EQ(cache.held(s, 1).first, 0u);
    EXPECT_EQ(cache.held(s, 1).pages.size(), 2u);
}

TEST(PagedCache, AFullWindowGroupIsSaid) {
    PagedCache cache(two_groups(40, 3));
    Copies copies;
    const SequenceId s = cache.create();
    try {
        cache.append(s, 200, copies);
        FAIL() << "there are 3 pages";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_DOES_NOT_FIT);
        EXPECT_NE(std::string(error.what()).find("a window of 100 tokens"), std::string::npos);
    }
    EXPECT_EQ(cache.free_pages(0), 40u) << "changes nothing";
}

TEST(PagedCache, PagesOfOthersMustBeThoseThatAreNeeded) {
    PagedCache cache(two_groups(40, 20));
    Copies copies;
    const SequenceId s = cache.create();
    cache.append(s, 640, copies);
    cache.give_back(s, 640);
    const HeldPages all = cache.held(s, 0), last = cache.held(s, 1);
    const HeldPages enough[] = {all, {last.first, last.pages}};
    const SequenceId same = cache.create(enough, 640);
    EXPECT_EQ(cache.held(same, 1).pages.size(), last.pages.size());
    const HeldPages few[] = {all, {9, last.pages.last(1)}};  // 640 - 100 + 1 is in page 8
    EXPECT_THROW(cache.create(few, 640), Error);
    const HeldPages gap[] = {all, {last.first, last.pages.first(1)}};
    EXPECT_THROW(cache.create(gap, 640), Error);
    EXPECT_THROW(cache.create({enough, 1}, 640), Error);
}

// Contents of every page as a model of its own: what a sequence reads must be what it wrote, whatever others do.
TEST(PagedCache, RandomUseKeepsContentsApart) {
    std::mt19937 random(7);
    PagedCache cache(two_groups(60, 24));
    std::map<SequenceId, std::vector<int>> expected;
    std::vector<std::vector<std::array<int, TSR_PAGE_TOKENS>>> memory(2);
    for (GroupIndex group = 0; group < 2; ++group) memory[group].resize(cache.page_count(group));
    int next = 1, cut = 0, refused = 0;
    for (int step = 0; step < 6000; ++step) {
        const auto pick = [&] { return std::next(expected.begin(), static_cast<long>(random() % expected.size())); };
        const unsigned action = random() % 12;
        if (expected.empty() || (action == 0 && expected.size() < 4)) {
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
            for (const PageCopy& copy : copies) memory[copy.group][copy.to] = memory[copy.group][copy.from];
            for (uint32_t i = 0; i < count; ++i) {
                const size_t at = tokens.size(), page = at / TSR_PAGE_TOKENS;
                for (GroupIndex group = 0; group < 2; ++group) {
                    const HeldPages held = cache.held(id, group);
                    memory[group][held.pages[page - held.first]][at % TSR_PAGE_TOKENS] = next;
                }
                tokens.push_back(next++);
            }
        } else if (action <= 8) {
            auto& [id, tokens] = *pick();
            const auto keep = static_cast<uint32_t>(random() % (tokens.size() + 1));
            (cache.can_truncate(id, keep) ? cut : refused) += 1;
            if (!cache.can_truncate(id, keep)) continue;
            if (action == 6) {
                std::vector<int> prefix(tokens.begin(), tokens.begin() + keep);
                expected[cache.fork(id, keep)] = std::move(prefix);
            } else {
                tokens.resize(keep);
                cache.truncate(id, keep);
            }
        } else if (action == 9) {
            const auto at = pick();
            cache.remove(at->first);
            expected.erase(at);
        } else {
            const auto at = pick();
            cache.give_back(at->first, cache.length(at->first));
        }
        for (const auto& [id, tokens] : expected) {
            ASSERT_EQ(cache.length(id), tokens.size());
            for (GroupIndex group = 0; group < 2; ++group) {
                const HeldPages held = cache.held(id, group);
                ASSERT_EQ(held.first + held.pages.size(), pages_for(tokens.size()));
                // What the next token reads.
                const size_t length = tokens.size();
                size_t i = group == 0 || length < kWindow ? 0 : length - kWindow + 1;
                for (; i < length; ++i) {
                    const size_t page = i / TSR_PAGE_TOKENS;
                    ASSERT_GE(page, held.first) << "step " << step;
                    ASSERT_EQ(memory[group][held.pages[page - held.first]][i % TSR_PAGE_TOKENS], tokens[i])
                        << "step " << step;
                }
            }
        }
    }
    EXPECT_GT(cut, 100);
    EXPECT_GT(refused, 30);
    while (!expected.empty()) {
        cache.remove(expected.begin()->first);
        expected.erase(expected.begin());
    }
    EXPECT_EQ(cache.free_pages(), 60u);
    EXPECT_EQ(cache.free_pages(1), 24u);
}

}  // namespace
}  // namespace tessera
