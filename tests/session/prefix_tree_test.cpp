#include "core/session/prefix_tree.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>
#include <utility>

namespace tessera::session {
namespace {

using Tokens = std::vector<Token>;

Tokens tokens_from(Token first, size_t count) {
    Tokens tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

// The pages of a sequence with that index.
PrefixTree::Pages pages_at(const PagedCache& cache, SequenceId sequence, size_t index) {
    PrefixTree::Pages pages(cache.groups());
    for (GroupIndex group = 0; group < cache.groups(); ++group) {
        const HeldPages held = cache.held(sequence, group);
        if (index >= held.first && index - held.first < held.pages.size())
            pages[group] = held.pages[index - held.first];
    }
    return pages;
}

// Caches `tokens` in a sequence of its own, in chunks of `rows`, and leaves them in the tree, as a request does.
void store(PagedCache& cache, PrefixTree& tree, const Tokens& tokens, const std::string& space = {},
           size_t rows = SIZE_MAX) {
    std::vector<PageCopy> copies;
    const SequenceId sequence = cache.create();
    PrefixTree::Node* node = tree.find(space, {}).node;
    tree.pin(*node);
    for (size_t done = 0, begin = 0; done < tokens.size();) {
        const size_t chunk = std::min(rows, tokens.size() - done);
        for (GroupIndex group = 1; group < cache.groups(); ++group) {
            while (cache.pages_to_append(sequence, static_cast<uint32_t>(chunk), group) > cache.free_pages(group))
                ASSERT_TRUE(tree.evict_window(group));
        }
        cache.append(sequence, static_cast<uint32_t>(chunk), copies);
        cache.give_back(sequence, cache.length(sequence));
        done += chunk;
        for (; begin < done; begin += TSR_PAGE_TOKENS) {
            const size_t count = std::min<size_t>(TSR_PAGE_TOKENS, done - begin);
            if (count < TSR_PAGE_TOKENS && done < tokens.size()) break;
            PrefixTree::Node* const child = tree.insert(*node, std::span(tokens).subspan(begin, count),
                                                        pages_at(cache, sequence, begin / TSR_PAGE_TOKENS));
            if (count < TSR_PAGE_TOKENS) break;
            tree.move_pin(*node, *child);
            node = child;
        }
    }
    tree.unpin(*node);
    cache.remove(sequence);
}

TEST(PrefixTree, FindsTheLongestBeginningToTheToken) {
    PagedCache cache(16);
    PrefixTree tree(cache);
    const Tokens stored = tokens_from(0, 150);
    store(cache, tree, stored);
    EXPECT_EQ(tree.size(), 3u);
    Tokens asked = stored;
    EXPECT_EQ(tree.find("", asked).tokens, 150u);
    EXPECT_EQ(tree.find("", asked).pages.size(), 3u);
    EXPECT_FALSE(tree.find("", asked).difference);
    asked[140] = 7777;
    auto match = tree.find("", asked);
    EXPECT_EQ(match.tokens, 140u);
    EXPECT_EQ(match.difference, std::pair(Token{140}, Token{7777}));
    asked[70] = 8888;
    match = tree.find("", asked);
    EXPECT_EQ(match.tokens, 70u);
    EXPECT_EQ(match.pages.size(), 2u);
    EXPECT_EQ(match.node->depth_tokens(), 64u);
    asked[0] = 9999;
    match = tree.find("", asked);
    EXPECT_EQ(match.tokens, 0u);
    EXPECT_TRUE(match.pages.empty());
    EXPECT_EQ(match.difference, std::pair(Token{0}, Token{9999}));
    EXPECT_EQ(tree.find("", std::span(stored).first(100)).tokens, 100u);
}

TEST(PrefixTree, SpacesShareNothing) {
    PagedCache cache(16);
    PrefixTree tree(cache);
    const Tokens stored = tokens_from(0, 128);
    store(cache, tree, stored, "a");
    EXPECT_EQ(tree.find("b", stored).tokens, 0u);
    EXPECT_EQ(tree.find("", stored).tokens, 0u);
    EXPECT_EQ(tree.find("a", stored).tokens, 128u);
}

TEST(PrefixTree, TheLeafUsedLongestAgoGoesFirst) {
    PagedCache cache(16);
    PrefixTree tree(cache);
    const Tokens a = tokens_from(0, 128), b = tokens_from(1000, 64);
    store(cache, tree, a);
    store(cache, tree, b);
    tree.find("", a);  // b is the older one now
    EXPECT_TRUE(tree.evict_one());
    EXPECT_EQ(tree.find("", b).tokens, 0u);
    EXPECT_EQ(tree.find("", a).tokens, 128u);
    EXPECT_TRUE(tree.evict_one());
    EXPECT_EQ(tree.find("", a).tokens, 64u) << "a leaf goes before the page that it follows";
    EXPECT_TRUE(tree.evict_one());
    EXPECT_FALSE(tree.evict_one());
    EXPECT_EQ(cache.free_pages(), 16u);
}

TEST(PrefixTree, PinnedPathsStay) {
    PagedCache cache(16);
    PrefixTree tree(cache);
    const Tokens a = tokens_from(0, 192);
    store(cache, tree, a);
    const PrefixTree::Match match = tree.find("", std::span(a).first(128));
    tree.pin(*match.node);
    EXPECT_EQ(tree.evictable(), 1u);
    EXPECT_EQ(PrefixTree::evictable_before(*match.node), 0u);
    EXPECT_TRUE(tree.evict_one());
    EXPECT_FALSE(tree.evict_one());
    EXPECT_EQ(tree.find("", a).tokens, 128u);
    tree.unpin(*match.node);
    EXPECT_EQ(PrefixTree::evictable_before(*match.node), 2u);
    EXPECT_EQ(tree.evictable(), 2u);
}

TEST(PrefixTree, APageOfTheSameTokensTakesThePlaceOfOneThatIsNotPinned) {
    PagedCache cache(16);
    PrefixTree tree(cache);
    const Tokens a = tokens_from(0, 128);
    store(cache, tree, a);
    const std::vector<PageId> before = tree.find("", a).pages;
    const PrefixTree::Match first = tree.find("", std::span(a).first(64));
    tree.pin(*first.node);
    store(cache, tree, a);
    tree.unpin(*first.node);
    const std::vector<PageId> after = tree.find("", a).pages;
    EXPECT_EQ(after[0], before[0]);
    EXPECT_NE(after[1], before[1]);
    EXPECT_EQ(tree.size(), 2u);
    EXPECT_EQ(cache.free_pages(), 14u);
}

// Against a plain list of all sequences that were stored.
TEST(PrefixTree, AgreesWithComparingAllSequences) {
    std::mt19937 random(5);
    const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
    PagedCache cache(4096);
    {
        PrefixTree tree(cache);
        std::vector<Tokens> stored;
        for (int round = 0; round < 400; ++round) {
            Tokens tokens;
            if (!stored.empty() && below(3) > 0) {
                tokens = stored[below(static_cast<uint32_t>(stored.size()))];
                tokens.resize(below(static_cast<uint32_t>(tokens.size()) + 1));
            }
            const size_t size = tokens.size() + 1 + below(200);
            while (tokens.size() < size) tokens.push_back(static_cast<Token>(below(3)));
            uint32_t expected = 0;
            for (const Tokens& other : stored) {
                const auto common = std::ranges::mismatch(other, tokens).in1 - other.begin();
                expected = std::max(expected, static_cast<uint32_t>(common));
            }
            const PrefixTree::Match match = tree.find("", tokens);
            ASSERT_EQ(match.tokens, expected);
            ASSERT_EQ(match.pages.size(), (expected + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS);
            const SequenceId shared = cache.create(match.held(), match.tokens);
            EXPECT_EQ(cache.length(shared), expected);
            cache.remove(shared);
            store(cache, tree, tokens);
            stored.push_back(tokens);
            ASSERT_EQ(cache.free_pages() + tree.size(), cache.page_count());
        }
        for (uint64_t left = tree.size(); left > 0; --left) {
            ASSERT_EQ(tree.evictable(), left);
            ASSERT_TRUE(tree.evict_one());
        }
        EXPECT_FALSE(tree.evict_one());
    }
    EXPECT_EQ(cache.free_pages(), cache.page_count());
}

constexpr uint32_t kWindow = 100;

// What the tree says of a beginning can be gone on with.
uint32_t reusable(PagedCache& cache, PrefixTree& tree, std::span<const Token> tokens) {
    const PrefixTree::Match match = tree.find("", tokens);
    const SequenceId sequence = cache.create(match.held(), match.tokens);  // throws for pages that do not do
    EXPECT_EQ(match.node->depth_tokens(), match.tokens / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS);
    cache.remove(sequence);
    return match.tokens;
}

TEST(PrefixTree, ABeginningIsUsedWhereItsWindowIsHeld) {
    PagedCache cache({{{}, 100}, {{kWindow}, 12}});
    {
        PrefixTree tree(cache);
        const Tokens a = tokens_from(0, 1000);
        store(cache, tree, a, "", 256);
        EXPECT_EQ(reusable(cache, tree, a), 1000u) << "the end of a conversation is held";
        EXPECT_EQ(reusable(cache, tree, tokens_from(0, 1200)), 1000u);
        Tokens branch = a;
        branch.resize(600);
        branch.resize(900, 7777);
        // Of 600 tokens, those up to the last chunk whose end is still held: three pages of each are remembered, and
        // the pages of the first chunks were needed again.
        EXPECT_EQ(reusable(cache, tree, branch), 512u);
        const PrefixTree::Match match = tree.find("", branch);
        EXPECT_FALSE(match.difference) << "more is cached than can be used";
        while (tree.evict_window(1)) {
        }
        EXPECT_EQ(reusable(cache, tree, a), 0u);
        EXPECT_EQ(tree.size(), pages_for(1000)) << "the other pages stay";
        EXPECT_EQ(cache.free_pages(1), 12u);
        // Computed again, the nodes get what they lack.
        store(cache, tree, a, "", 256);
        EXPECT_EQ(tree.size(), pages_for(1000));
        EXPECT_EQ(reusable(cache, tree, a), 1000u);
    }
    EXPECT_EQ(cache.free_pages(0), 100u);
    EXPECT_EQ(cache.free_pages(1), 12u);
}

TEST(PrefixTree, WindowPagesOfOthersAreNotTaken) {
    PagedCache cache({{{}, 100}, {{kWindow}, 12}});
    PrefixTree tree(cache);
    const Tokens a = tokens_from(0, 300);
    store(cache, tree, a);
    const PrefixTree::Match match = tree.find("", a);
    const SequenceId user = cache.create(match.held(), match.tokens);
    const uint32_t used = 12 - cache.free_pages(1), held = static_cast<uint32_t>(cache.held(user, 1).pages.size());
    for (uint32_t left = used; left > held; --left) EXPECT_TRUE(tree.evict_window(1));
    EXPECT_FALSE(tree.evict_window(1)) << "what is left is the sequence's";
    EXPECT_EQ(reusable(cache, tree, a), 300u);
    cache.remove(user);
    EXPECT_TRUE(tree.evict_window(1));
    EXPECT_LT(reusable(cache, tree, a), 300u);
}

TEST(PrefixTree, WindowPagesUsedLongestAgoGoFirst) {
    PagedCache cache({{{}, 100}, {{kWindow}, 12}});
    PrefixTree tree(cache);
    const Tokens a = tokens_from(0, 120), b = tokens_from(1000, 120);
    store(cache, tree, a);
    store(cache, tree, b);
    (void)tree.find("", a);
    EXPECT_TRUE(tree.evict_window(1));
    EXPECT_EQ(reusable(cache, tree, a), 120u);
    EXPECT_LT(reusable(cache, tree, b), 120u);
}

// Which nodes have pages of which groups, as it has been told.
class ToldPages final : public PrefixTree::Watcher {
  public:
    void added(PrefixTree::Node& node, GroupIndex group) override {
        EXPECT_TRUE(pages_.emplace(&node, group).second);
        EXPECT_TRUE(pages_.contains({&node, 0}));
        EXPECT_TRUE(node.parent()->is_root() || pages_.contains({node.parent(), 0})) << "what it follows comes first";
    }
    void dropped(PrefixTree::Node& node, GroupIndex group) noexcept override { pages_.erase({&node, group}); }
    const auto& pages() const { return pages_; }

  private:
    std::set<std::pair<const PrefixTree::Node*, GroupIndex>> pages_;
};

TEST(PrefixTree, WhoBeginsToWatchIsToldOfWhatIsThere) {
    PagedCache cache({{{}, 100}, {{kWindow}, 12}});
    PrefixTree tree(cache);
    ToldPages from_the_start, later;
    tree.watch(&from_the_start);
    const Tokens a = tokens_from(0, 300);
    Tokens b = a;
    b[200] = 7777;
    store(cache, tree, a);
    store(cache, tree, b);
    store(cache, tree, a, "another space");
    ASSERT_EQ(from_the_start.pages().size(), tree.size() + 12 - cache.free_pages(1));
    tree.watch(&later);
    EXPECT_EQ(later.pages(), from_the_start.pages());
    ASSERT_TRUE(tree.evict_window(1));
    ASSERT_TRUE(tree.evict_one());
    EXPECT_LT(later.pages().size(), from_the_start.pages().size());
    tree.watch(nullptr);
}

TEST(PrefixTree, ADeepTreeIsDestroyedWithoutRecursion) {
    PagedCache cache(40000);
    {
        PrefixTree tree(cache);
        store(cache, tree, tokens_from(0, size_t{39000} * TSR_PAGE_TOKENS));
    }
    EXPECT_EQ(cache.free_pages(), cache.page_count());
}

}  // namespace
}  // namespace tessera::session
