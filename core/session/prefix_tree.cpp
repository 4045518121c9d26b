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
        if (node->parent_) cache_.release(0, node->page_);
        for (GroupIndex group = 1; group <= node->windows_.size(); ++group) drop_window(*node, group);
        for (auto& [tokens, child] : node->children_) nodes.push_back(std::move(child));
    }
}

std::vector<HeldPages> PrefixTree::Match::held() const {
    std::vector<HeldPages> held = {{0, pages}};
    for (const Window& window : windows) held.push_back({window.first, window.pages});
    return held;
}

PrefixTree::Node& PrefixTree::root(const std::string& space) {
    std::unique_ptr<Node>& root = roots_[space];
    if (!root) {
        root = std::make_unique<Node>();
        root->space_ = space;
    }
    return *root;
}

PrefixTree::Node* PrefixTree::child(const Node& node, std::span<const Token> tokens) {
    const auto found = node.children_.find(tokens);
    return found == node.children_.end() ? nullptr : found->second.get();
}

void PrefixTree::watch(Watcher* watcher) {
    std::vector<Node*> nodes;
    if (watcher) {
        for (const auto& [space, root] : roots_) nodes.push_back(root.get());
    }
    while (!nodes.empty()) {
        Node& node = *nodes.back();
        nodes.pop_back();
        if (!node.is_root()) watcher->added(node, 0);
        for (GroupIndex group = 1; group <= node.windows_.size(); ++group) {
            if (node.has_window(group)) watcher->added(node, group);
        }
        for (const auto& [tokens, child] : node.children_) nodes.push_back(child.get());
    }
    watcher_ = watcher;
}

PrefixTree::Match PrefixTree::find(const std::string& space, std::span<const Token> tokens) {
    Node& root = this->root(space);
    Match match;
    ++clock_;
    // Each node has a whole page but the last one, of which the last tokens are the beginning perhaps.
    std::vector<Node*> path;
    uint32_t matched = 0;
    for (Node* at = &root;;) {
        const std::span<const Token> rest = tokens.subspan(matched);
        const auto& children = at->children_;
        if (rest.size() >= TSR_PAGE_TOKENS) {
            const auto whole = children.find(rest.first(TSR_PAGE_TOKENS));
            if (whole != children.end()) {
                at = whole->second.get();
                matched += TSR_PAGE_TOKENS;
                path.push_back(at);
                touch(*at);
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
            matched += static_cast<uint32_t>(length);
            path.push_back(best);
            touch(*best);
        }
        break;
    }
    match.tokens = usable(path, matched);
    if (match.tokens < matched) match.difference.reset();
    const uint32_t pages = pages_for(match.tokens), whole = match.tokens / TSR_PAGE_TOKENS;
    match.node = whole > 0 ? path[whole - 1] : &root;
    for (uint32_t i = 0; i < pages; ++i) match.pages.push_back(path[i]->page_);
    for (GroupIndex group = 1; group < cache_.groups(); ++group) {
        Match::Window& window = match.windows.emplace_back();
        window.first = std::min(cache_.rule(group).first_page(match.tokens), pages);
        for (uint32_t i = window.first; i < pages; ++i) {
            window.pages.push_back(*path[i]->windows_[group - 1].page);
            touch_window(*path[i], group);
        }
    }
    return match;
}

// Of the first `tokens` tokens of a path, to its end: up to where all groups hold what the next one reads.
uint32_t PrefixTree::usable(std::span<Node* const> path, uint32_t tokens) const {
    uint32_t most = cache_.groups() == 1 ? tokens : 0;
    if (most == tokens) return most;
    std::vector<uint32_t> since(cache_.groups(), 0);  // the group has pages of all nodes from this one on
    for (uint32_t i = 0; i < path.size(); ++i) {
        const uint32_t length = std::min(tokens, (i + 1) * TSR_PAGE_TOKENS);
        bool all = true;
        for (GroupIndex group = 1; group < cache_.groups(); ++group) {
            if (!path[i]->has_window(group)) since[group] = i + 1;
            all = all && since[group] <= cache_.rule(group).first_page(length);
        }
        if (all) most = length;
    }
    return most;
}

PrefixTree::Node* PrefixTree::insert(Node& parent, std::span<const Token> tokens, const Pages& pages) {
    const bool whole_parent = parent.is_root() || parent.tokens_.size() == TSR_PAGE_TOKENS;
    if (tokens.empty() || tokens.size() > TSR_PAGE_TOKENS || !whole_parent || parent.pins_ == 0)
        fail(TSR_INTERNAL, "a page of {} tokens cannot follow this one", tokens.size());
    if (pages.size() != cache_.groups() || !pages.front())
        fail(TSR_INTERNAL, "a node has a page of the group of all tokens, and one or none of each other group");
    const auto same = parent.children_.find(tokens);
    const bool fresh = same == parent.children_.end();
    Node* node = fresh ? nullptr : same->second.get();
    if (fresh) {
        auto made = std::make_unique<Node>();
        node = made.get();
        node->parent_ = &parent;
        node->tokens_.assign(tokens.begin(), tokens.end());
        node->page_ = *pages.front();
        node->windows_.resize(windows_.size());
        node->depth_tokens_ = parent.depth_tokens_ + static_cast<uint32_t>(tokens.size());
        node->used_ = ++clock_;
        parent.children_.emplace(node->tokens_, std::move(made));
        cache_.retain(0, node->page_);
        ++nodes_;
        idle_.emplace(node->used_, node);
        if (watcher_) watcher_->added(*node, 0);
    } else {
        touch(*node);
        if (node->pins_ == 0 && node->page_ != *pages.front()) {
            cache_.retain(0, *pages.front());
            cache_.release(0, std::exchange(node->page_, *pages.front()));
        }
    }
    for (GroupIndex group = 1; group < cache_.groups(); ++group) {
        if (!pages[group]) continue;
        if (node->has_window(group) && node->pins_ > 0)
            touch_window(*node, group);
        else
            set_window(*node, group, *pages[group]);
    }
    return node;
}

void PrefixTree::touch_window(Node& node, GroupIndex group) {
    Node::Window& window = node.windows_[group - 1];
    held(group).erase({window.used, &node});
    window.used = clock_;
    held(group).emplace(window.used, &node);
}

void PrefixTree::set_window(Node& node, GroupIndex group, PageId page) {
    cache_.retain(group, page);
    const bool had = node.has_window(group);
    if (had) {
        cache_.release(group, *node.windows_[group - 1].page);
        held(group).erase({node.windows_[group - 1].used, &node});
    }
    node.windows_[group - 1].page = page;
    touch_window(node, group);
    if (watcher_ && !had) watcher_->added(node, group);
}

void PrefixTree::drop_window(Node& node, GroupIndex group) {
    Node::Window& window = node.windows_[group - 1];
    if (!window.page) return;
    cache_.release(group, *window.page);
    held(group).erase({window.used, &node});
    window.page.reset();
    if (watcher_) watcher_->dropped(node, group);
}

bool PrefixTree::evict_window(GroupIndex group) {
    for (const auto& [used, node] : held(group)) {
        if (cache_.holders(group, *node->windows_[group - 1].page) > 1) continue;
        drop_window(*node, group);
        return true;
    }
    return false;
}

bool PrefixTree::forget_window(GroupIndex group, PageId page) {
    const auto found = std::ranges::find_if(
        held(group), [&](const auto& entry) { return entry.second->windows_[group - 1].page == page; });
    if (found == held(group).end()) return false;
    drop_window(*found->second, group);
    return true;
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
    if (idle_.empty() || !evict(*idle_.begin()->second)) return false;
    ++evictions_;
    return true;
}

bool PrefixTree::evict(Node& node) {
    if (idle_.erase({node.used_, &node}) == 0) return false;
    Node* const parent = node.parent_;
    cache_.release(0, node.page_);
    for (GroupIndex group = 1; group < cache_.groups(); ++group) drop_window(node, group);
    if (watcher_) watcher_->dropped(node, 0);
    parent->children_.erase(parent->children_.find(std::span<const Token>(node.tokens_)));
    --nodes_;
    enter_idle_if_leaf(*parent);
    return true;
}

}  // namespace tessera::session
