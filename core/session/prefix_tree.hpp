// Cached prompts and answers, by their tokens: what a new request finds computed already.
#pragma once

#include "core/cache/paged_cache.hpp"
#include "core/session/engine.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tessera::session {

// A tree whose nodes are cache pages: the path to a node spells all tokens before it, so that sequences with the same
// beginning share their first nodes. The idea is that of RadixAttention (Zheng et al., arXiv:2312.07104), by pages
// instead of tokens. Tokens are compared, never hashes.
//
// The tree holds a reference to each of its pages. Nodes that a running request uses are pinned; of the others the leaf
// that was used longest ago is the first to be evicted. One thread at a time.
class PrefixTree {
  public:
    class Node;

    explicit PrefixTree(PagedCache& cache) : cache_(cache) {}
    ~PrefixTree();
    PrefixTree(const PrefixTree&) = delete;
    PrefixTree& operator=(const PrefixTree&) = delete;

    // The longest beginning of `tokens` that is cached.
    struct Match {
        Node* node = nullptr;       // of the last whole page; the root of its space if there is none
        uint32_t tokens = 0;        // in all
        std::vector<PageId> pages;  // that hold them, the last one in part perhaps
        // The first token of the best candidate that differs: {cached, asked for}. Nothing if the cached text ends
        // there.
        std::optional<std::pair<Token, Token>> difference;
    };
    // `space`: requests of different spaces share nothing. Counts as use.
    Match find(const std::string& space, std::span<const Token> tokens);

    // Adds the page that holds `tokens`, 1 to TSR_PAGE_TOKENS, after those of `parent`, which is a whole page or a root
    // and pinned. If the same tokens are there already, that node is returned; while it is pinned it keeps its page,
    // else `page` takes the place of that one. Nodes of fewer tokens than a page have no children.
    Node* insert(Node& parent, std::span<const Token> tokens, PageId page);

    // A pinned node is not evicted, nor are those before it. Each pin() is undone by one unpin().
    void pin(Node& node);
    void unpin(Node& node);
    // The same as pin(child), unpin(node) where `child` is a child of `node`.
    void move_pin(Node& node, Node& child);

    // Forgets the leaf that was used longest ago. False: all nodes are pinned.
    bool evict_one();
    // Pages of nodes that are not pinned.
    uint64_t evictable() const noexcept { return nodes_ - pinned_; }
    // Of the pages up to `node` those that evictable() counts.
    static uint64_t evictable_before(const Node& node) noexcept;
    // Of the pages up to `node`, which is pinned, those that evictable() would count without one of its pins.
    static uint64_t pinned_alone(const Node& node) noexcept;
    // Pages of all nodes.
    uint64_t size() const noexcept { return nodes_; }
    uint64_t evictions() const noexcept { return evictions_; }

  private:
    struct Less {
        using is_transparent = void;
        bool operator()(std::span<const Token> a, std::span<const Token> b) const noexcept;
    };

    void touch(Node& node);
    void leave_idle(Node& node);
    void enter_idle_if_leaf(Node& node);

    PagedCache& cache_;
    std::map<std::string, std::unique_ptr<Node>> roots_;
    std::set<std::pair<uint64_t, Node*>> idle_;  // leaves without pins, by last use
    uint64_t clock_ = 0, nodes_ = 0, pinned_ = 0, evictions_ = 0;
};

class PrefixTree::Node {
  public:
    bool is_root() const noexcept { return !parent_; }
    // Before and with this node.
    uint32_t depth_tokens() const noexcept { return depth_tokens_; }
    // Of a node that is not a root.
    PageId page() const noexcept { return page_; }

  private:
    friend class PrefixTree;

    Node* parent_ = nullptr;
    std::vector<Token> tokens_;
    PageId page_ = 0;
    uint32_t depth_tokens_ = 0;
    uint64_t used_ = 0;  // PrefixTree::clock_
    uint64_t pins_ = 0;  // of this node and those below it
    std::map<std::vector<Token>, std::unique_ptr<Node>, Less> children_;
};

}  // namespace tessera::session
