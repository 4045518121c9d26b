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
// A node has a page of the group of all tokens, and of other groups (windows) one as long as nobody needs it: those
// that a request still held when its tokens were remembered, of which the ones used longest ago go first. A beginning
// can be used up to a node before which all groups hold what their rule needs; so the end of a conversation can be, and
// the ends of chunks of prompts for as long as their pages are not needed by others.
//
// The tree holds a reference to each of its pages. Nodes that a running request uses are pinned; of the others the leaf
// that was used longest ago is the first to be evicted. One thread at a time.
class PrefixTree {
  public:
    class Node;

    // Is told, inside the calls that change the tree, from when on a node has a page of a group and that it has none
    // any more; a node that goes has lost that of group 0 last. May not change the tree.
    class Watcher {
      public:
        virtual ~Watcher() = default;
        virtual void added(Node& node, GroupIndex group) = 0;
        virtual void dropped(Node& node, GroupIndex group) noexcept = 0;
    };

    explicit PrefixTree(PagedCache& cache) : cache_(cache), windows_(cache.groups() - 1) {}
    ~PrefixTree();
    PrefixTree(const PrefixTree&) = delete;
    PrefixTree& operator=(const PrefixTree&) = delete;

    // The longest beginning of `tokens` that is cached and that all groups can go on from.
    struct Match {
        Node* node = nullptr;       // of the last whole page; the root of its space if there is none
        uint32_t tokens = 0;        // in all
        std::vector<PageId> pages;  // of group 0 that hold them, the last one in part perhaps
        // Of the other groups, those that their rules need of them.
        struct Window {
            uint32_t first = 0;
            std::vector<PageId> pages;
        };
        std::vector<Window> windows;
        // The first token of the best candidate that differs: {cached, asked for}. Nothing if the cached text ends
        // there, or is not used up to there.
        std::optional<std::pair<Token, Token>> difference;

        // As PagedCache::create takes them.
        std::vector<HeldPages> held() const;
    };
    // `space`: requests of different spaces share nothing. Counts as use.
    Match find(const std::string& space, std::span<const Token> tokens);

    // Adds the pages, one of each group that has one, that hold `tokens`, 1 to TSR_PAGE_TOKENS, after those of
    // `parent`, which is a whole page or a root and pinned. If the same tokens are there already, that node is returned
    // and gets the pages that it lacks; while it is pinned it keeps those that it has, else the new ones take their
    // place. Nodes of fewer tokens than a page have no children.
    using Pages = std::vector<std::optional<PageId>>;
    Node* insert(Node& parent, std::span<const Token> tokens, const Pages& pages);

    // A pinned node is not evicted, nor are those before it. Each pin() is undone by one unpin().
    void pin(Node& node);
    void unpin(Node& node);
    // The same as pin(child), unpin(node) where `child` is a child of `node`.
    void move_pin(Node& node, Node& child);

    // The child of a node that has exactly these tokens; nullptr: there is none.
    static Node* child(const Node& node, std::span<const Token> tokens);
    Node& root(const std::string& space);
    // One at most; it outlives the tree, or is taken away by nullptr. It is told of all that is there, of a node after
    // the one that it follows.
    void watch(Watcher* watcher);

    // Forgets the leaf that was used longest ago. False: all nodes are pinned.
    bool evict_one();
    // Forgets this node. False: it is a root, has children, or is pinned.
    bool evict(Node& node);
    // Gives back the page of another group than 0 that was used longest ago, of those that no sequence holds. False:
    // there is none.
    bool evict_window(GroupIndex group);
    // Releases the tree's hold on `page` of another group than 0, which a sequence may hold as well. Returns false if
    // no node has it.
    bool forget_window(GroupIndex group, PageId page);
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

    using Held = std::set<std::pair<uint64_t, Node*>>;  // nodes with a page of a group, by last use

    void touch(Node& node);
    void enter_idle_if_leaf(Node& node);
    Held& held(GroupIndex group) { return windows_[group - 1]; }
    void touch_window(Node& node, GroupIndex group);
    void set_window(Node& node, GroupIndex group, PageId page);
    void drop_window(Node& node, GroupIndex group);
    uint32_t usable(std::span<Node* const> path, uint32_t tokens) const;

    PagedCache& cache_;
    std::map<std::string, std::unique_ptr<Node>> roots_;
    std::set<std::pair<uint64_t, Node*>> idle_;  // leaves without pins, by last use
    std::vector<Held> windows_;                  // of the groups from 1 on
    Watcher* watcher_ = nullptr;
    uint64_t clock_ = 0, nodes_ = 0, pinned_ = 0, evictions_ = 0;
};

class PrefixTree::Node {
  public:
    bool is_root() const noexcept { return !parent_; }
    // Before and with this node.
    uint32_t depth_tokens() const noexcept { return depth_tokens_; }
    // Of a node that is not a root, in group 0.
    PageId page() const noexcept { return page_; }
    bool has_window(GroupIndex group) const noexcept { return group <= windows_.size() && windows_[group - 1].page; }
    // Of any group; nothing: it has none.
    std::optional<PageId> page(GroupIndex group) const {
        return group > 0 ? windows_.at(group - 1).page : std::optional(page_);
    }
    const Node* parent() const noexcept { return parent_; }
    std::span<const Token> tokens() const noexcept { return tokens_; }  // of the page
    const std::string& space() const noexcept { return space_; }        // of a root

  private:
    friend class PrefixTree;

    Node* parent_ = nullptr;
    std::string space_;
    std::vector<Token> tokens_;
    PageId page_ = 0;
    struct Window {
        std::optional<PageId> page;
        uint64_t used = 0;  // PrefixTree::clock_
    };
    std::vector<Window> windows_;  // of the groups from 1 on; empty for a root
    uint32_t depth_tokens_ = 0;
    uint64_t used_ = 0;  // PrefixTree::clock_
    uint64_t pins_ = 0;  // of this node and those below it
    std::map<std::vector<Token>, std::unique_ptr<Node>, Less> children_;
};

}  // namespace tessera::session
