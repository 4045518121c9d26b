#include "core/session/prefix_tree.hpp"

#include "core/base/error.hpp"

#include <algorithm>
#include <utility>

namespace tessera::session {
namespace {

size_t common_length(std::span<const Token> a, std::span<const Token> b) {
    return static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

}  // namespace

bool PrefixTree::Less::operator()(std::span<const Token> a, std::span<const Token> b) const noexcept {
    return std::ranges::lexicographical_compare(a, b);
}

PrefixTree::~PrefixTree() {
    // Without recursion: a path is as deep as a context has pages.
    std::vector<std::unique_ptr<Node>> nodes;
    for (auto& [space, root] : roots_) nodes.push_back(std::move(root));
    while (!nodes.empty()) {
        const std::unique_ptr<Node> node = std::move(nodes.back());
        nodes.pop_back();
        if (node->parent_) cache_.release(node->page_);
        for (auto& [tokens, child] : node->children_) nodes.push_back(std::move(child));
    }
}

PrefixTree::Match PrefixTree::find(const std::string& space, std::span<const Token> tokens) {
    std::unique_ptr<Node>& root = roots_[space];
    if (!root) root = std::make_unique<Node>();
    Match match;
    match.node = root.get();
    ++clock_;
    for (;;) {
        const std::span<const Token> rest = tokens.subspan(match.tokens);
        const auto& children = match.node->children_;
        if (rest.size() >= TSR_PAGE_TOKENS) {
            const auto whole = children.find(rest.first(TSR_PAGE_TOKENS));
            if (whole != children.end()) {
                match.node = whole->second.get();
                match.tokens += TSR_PAGE_TOKENS;
                match.pages.push_back(match.node->page_);
                touch(*match.node);
                continue;
            }
        }
        // In the order of the children the longest common beginning is that of a neighbour.
        const auto page = rest.first(std::min<size_t>(rest.size(), TSR_PAGE_TOKENS));
        const auto after = children.lower_bound(page);
        Node* best = nullptr;
        size_t length = 0;
        const auto consider = [&](Node& node) {
            const size_t common = common_length(node.tokens_, page);
            if (!best || common > length) best = &node, length = common;
        };
        if (after != children.end()) consider(*after->second);
        if (after != children.begin()) consider(*std::prev(after)->second);
        if (best && length < best->tokens_.size() && length < page.size())
            match.difference = {best->tokens_[length], page[length]};
        if (length > 0) {
            match.tokens += static_cast<uint32_t>(length);
            match.pages.push_back(best->page_);
            touch(*best);
        }
        return match;
    }
}

PrefixTree::Node* PrefixTree::insert(Node& parent, std::span<const Token> tokens, PageId page) {
    const bool whole_parent = parent.is_root() || parent.tokens_.size() == TSR_PAGE_TOKENS;
    if (tokens.empty() || tokens.size() > TSR_PAGE_TOKENS || !whole_parent || parent.pins_ == 0)
        fail(TSR_INTERNAL, "a page of {} tokens cannot follow this one", tokens.size());
    if (const auto same = parent.children_.find(tokens); same != parent.children_.end()) {
        Node& node = *same->second;
        touch(node);
        if (node.pins_ == 0 && node.page_ != page) {
            cache_.retain(page);
            cache_.release(std::exchange(node.page_, page));
        }
        return &node;
    }
    auto node = std::make_unique<Node>();
    node->parent_ = &parent;
    node->tokens_.assign(tokens.begin(), tokens.end());
    node->page_ = page;
    node->depth_tokens_ = parent.depth_tokens_ + static_cast<uint32_t>(tokens.size());
    node->used_ = ++clock_;
    Node* const added = node.get();
    parent.children_.emplace(added->tokens_, std::move(node));
    cache_.retain(page);
    ++nodes_;
    idle_.emplace(added->used_, added);
    return added;
}

void PrefixTree::touch(Node& node) {
    const bool idle = idle_.erase({node.used_, &node}) > 0;
    node.used_ = clock_;
    if (idle) idle_.emplace(node.used_, &node);
}

void PrefixTree::enter_idle_if_leaf(Node& node) {
    if (!node.is_root() && node.pins_ == 0 && node.children_.empty()) idle_.emplace(node.used_, &node);
}

void PrefixTree::pin(Node& node) {
    for (Node* at = &node; at; at = at->parent_) {
        if (at->pins_++ > 0 || at->is_root()) continue;
        ++pinned_;
        idle_.erase({at->used_, at});
    }
}

void PrefixTree::unpin(Node& node) {
    ++clock_;
    for (Node* at = &node; at; at = at->parent_) {
        if (--at->pins_ > 0 || at->is_root()) continue;
        --pinned_;
        at->used_ = clock_;
        enter_idle_if_leaf(*at);
    }
}

void PrefixTree::move_pin(Node& node, Node& child) {
    if (child.parent_ != &node) fail(TSR_INTERNAL, "a pin can move to a child only");
    // Those before have the pin already.
    if (child.pins_++ > 0) return;
    ++pinned_;
    idle_.erase({child.used_, &child});
}

uint64_t PrefixTree::evictable_before(const Node& node) noexcept {
    uint64_t pages = 0;
    for (const Node* at = &node; !at->is_root() && at->pins_ == 0; at = at->parent_) ++pages;
    return pages;
}

uint64_t PrefixTree::pinned_alone(const Node& node) noexcept {
    uint64_t pages = 0;
    for (const Node* at = &node; !at->is_root() && at->pins_ == 1; at = at->parent_) ++pages;
    return pages;
}

bool PrefixTree::evict_one() {
    if (idle_.empty()) return false;
    Node* const node = idle_.begin()->second;
    idle_.erase(idle_.begin());
    Node* const parent = node->parent_;
    cache_.release(node->page_);
    parent->children_.erase(parent->children_.find(std::span<const Token>(node->tokens_)));
    --nodes_;
    ++evictions_;
    enter_idle_if_leaf(*parent);
    return true;
}

}  // namespace tessera::session
