#include "core/session/kept/page_keeper.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/seconds.hpp"

#include <algorithm>

namespace tessera::session {
namespace {

constexpr uint64_t kHeldBytes = 64 << 20;   // copied and not written yet
constexpr uint64_t kReadAtOnce = 32 << 20;  // bytes of pages, by the engine's workers
constexpr double kLoadSeconds = 0.1;
constexpr std::chrono::milliseconds kPause(50);  // until it is asked again whether to go on
constexpr double kByteSeconds = 1e-9;            // of reading, until it has been measured
constexpr double kRetry = 0.9;                   // where reading seems slower than computing it is tried again later

std::span<const Token> tokens_of(std::span<const Token> tokens, size_t page) {
    return tokens.subspan(page * TSR_PAGE_TOKENS, TSR_PAGE_TOKENS);
}

}  // namespace

PageKeeper::PageKeeper(Engine& engine, PrefixTree& tree, std::shared_ptr<PageStore> store)
    : engine_(engine), tree_(tree), store_(std::move(store)), writer_(store_, kHeldBytes), byte_seconds_(kByteSeconds) {
    tree_.watch(this);
}

PageKeeper::~PageKeeper() {
    tree_.watch(nullptr);
}

void PageKeeper::added(Node& node, GroupIndex group) {
    if (node.tokens().size() != TSR_PAGE_TOKENS) return;
    if (group == 0) {
        const Node& parent = *node.parent();
        paths_[&node] = path_after(parent.is_root() ? store_->root(parent.space()) : paths_.at(&parent), node.tokens());
    }
    if (store_->has(paths_.at(&node), group)) return;
    numbers_[{&node, group}] = next_;
    waiting_[next_++] = {&node, group};
}

void PageKeeper::dropped(Node& node, GroupIndex group) noexcept {
    if (const auto waits = numbers_.find({&node, group}); waits != numbers_.end()) {
        waiting_.erase(waits->second);
        numbers_.erase(waits);
    }
    if (group == 0) paths_.erase(&node);
}

bool PageKeeper::has(const Place& place, GroupIndex group) const {
    if (place.node && place.node->page(group)) return true;
    return store_->has(place.path, group);
}

// Of the first pages of a prompt, which the tree or the store has.
std::vector<PageKeeper::Place> PageKeeper::places(const std::string& space, std::span<const Token> tokens) {
    std::vector<Place> places;
    Node* at = &tree_.root(space);
    PathId path = store_->root(space);
    for (size_t page = 0; (page + 1) * TSR_PAGE_TOKENS <= tokens.size(); ++page) {
        const std::span<const Token> own = tokens_of(tokens, page);
        Place place{path, {}, at ? PrefixTree::child(*at, own) : nullptr};
        place.path = place.node ? paths_.at(place.node) : path_after(path, own);
        if (!has(place, 0)) break;
        places.push_back(place);
        at = place.node;
        path = place.path;
    }
    return places;
}

// Pages from which every group can go on.
uint32_t PageKeeper::usable(std::span<const Place> places) const {
    const PagedCache& cache = engine_.cache();
    std::vector<uint32_t> since(cache.groups(), 0);  // the group has pages of all places from this one on
    uint32_t most = 0;
    for (uint32_t i = 0; i < places.size(); ++i) {
        bool all = true;
        for (GroupIndex group = 1; group < cache.groups(); ++group) {
            if (!has(places[i], group)) since[group] = i + 1;
            all = all && since[group] <= cache.rule(group).first_page((i + 1) * TSR_PAGE_TOKENS);
        }
        if (all) most = i + 1;
    }
    return most;
}

// What is to be read of all of them, in order.
std::vector<PageKeeper::Part> PageKeeper::parts(std::span<const Place> places) const {
    const PagedCache& cache = engine_.cache();
    const auto tokens = static_cast<uint32_t>(places.size() * TSR_PAGE_TOKENS);
    std::vector<Part> parts;
    for (uint32_t i = 0; i < places.size(); ++i) {
        for (GroupIndex group = 0; group < cache.groups(); ++group) {
            if (places[i].node && places[i].node->page(group)) continue;
            if (i >= cache.rule(group).first_page(tokens)) parts.push_back({i, group, nullptr, false});
        }
    }
    return parts;
}

bool PageKeeper::has_more(const std::string& space, std::span<const Token> tokens, uint32_t found,
                          double token_seconds) {
    if (failed_) return false;
    std::vector<Place> own = places(space, tokens);
    std::vector<PathId> used;
    for (const Place& place : own) used.push_back(place.path);
    store_->touch(used);
    own.resize(usable(own));
    const uint64_t more = own.size() * TSR_PAGE_TOKENS;
    if (more <= found) return false;
    uint64_t bytes = 0;
    for (const Part& part : parts(own)) bytes += store_->page_bytes(part.group);
    const double computing = static_cast<double>(more - found) * token_seconds;
    if (byte_seconds_ * static_cast<double>(bytes) < computing) return bytes > 0;
    byte_seconds_ *= kRetry;
    return false;
}

// By the workers, each a page after the other.
void PageKeeper::read(std::span<Part> parts, std::span<const Place> places, std::span<const Token> tokens) {
    const auto start = std::chrono::steady_clock::now();
    if (buffers_.size() < parts.size()) buffers_.resize(parts.size());
    uint64_t bytes = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
        buffers_[i].resize(store_->page_bytes(parts[i].group));
        parts[i].buffer = &buffers_[i];
        bytes += buffers_[i].size();
    }
    engine_.each_on_team(parts.size(), [&](size_t i) {
        Part& part = parts[i];
        part.good = store_->read(places[part.page].parent, tokens_of(tokens, part.page), part.group, *part.buffer);
    });
    const double seconds = seconds_since(start) / static_cast<double>(bytes);
    byte_seconds_ += (seconds - byte_seconds_) / 4;
}

bool PageKeeper::make_room(GroupIndex group) {
    while (engine_.cache().free_pages(group) == 0) {
        if (group == 0 ? !tree_.evict_one() : !tree_.evict_window(group)) return false;
    }
    return true;
}

// Of one page of a prompt the parts that were read. `node`: nullptr, or the tree's. Returns nullptr if there is no
// room.
PageKeeper::Node* PageKeeper::insert(Node& parent, std::span<const Token> tokens, Node* node,
                                     std::span<const Part> parts) {
    PagedCache& cache = engine_.cache();
    PrefixTree::Pages pages(cache.groups());
    if (node) pages.front() = node->page();
    std::vector<std::pair<GroupIndex, PageId>> taken;
    Node* made = nullptr;
    try {
        for (const Part& part : parts) {
            if (!make_room(part.group)) break;
            const PageId page = cache.take(part.group);
            taken.emplace_back(part.group, page);
            engine_.write_page(part.group, page, *part.buffer);
            pages[part.group] = page;
        }
        if (taken.size() == parts.size()) made = tree_.insert(parent, tokens, pages);
    } catch (const Error& error) {
        failed_ = true;
        log().warn("pages of the cache are not read or kept any more: {}", error.what());
    }
    for (const auto& [group, page] : taken) cache.release(group, page);
    return made;
}

bool PageKeeper::load(const std::string& space, std::span<const Token> tokens) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<Place> own = places(space, tokens);
    own.resize(usable(own));
    std::vector<Part> missing = parts(own);
    if (missing.empty()) return false;
    // What the tree has of it is the beginning, and may not go meanwhile.
    const auto in_tree = static_cast<size_t>(std::ranges::find(own, nullptr, &Place::node) - own.begin());
    Node& root = tree_.root(space);
    Node* tail = in_tree > 0 ? own[in_tree - 1].node : &root;
    tree_.pin(*tail);
    bool some = false, good = true;
    for (size_t first = 0; first < missing.size() && good && seconds_since(start) < kLoadSeconds;) {
        uint64_t bytes = 0;
        size_t end = first;
        // All parts of a page together.
        while (end < missing.size() && (bytes < kReadAtOnce || missing[end].page == missing[end - 1].page))
            bytes += store_->page_bytes(missing[end++].group);
        const std::span<Part> batch = std::span(missing).subspan(first, end - first);
        read(batch, own, tokens);
        for (size_t at = 0; at < batch.size() && good;) {
            const uint32_t page = batch[at].page;
            size_t behind = at;
            while (behind < batch.size() && batch[behind].page == page) ++behind;
            const std::span<const Part> of_page = batch.subspan(at, behind - at);
            at = behind;
            good = std::ranges::all_of(of_page, &Part::good);
            if (!good) break;
            Node& parent = page >= in_tree ? *tail : page > 0 ? *own[page - 1].node : root;
            Node* const node = insert(parent, tokens_of(tokens, page), own[page].node, of_page);
            good = node != nullptr;
            some = some || good;
            if (!good || page < in_tree) continue;
            tree_.move_pin(*tail, *node);
            tail = node;
        }
        first = end;
    }
    tree_.unpin(*tail);
    return some && good;
}

PageKeeper::Left PageKeeper::write(double seconds) {
    const auto start = std::chrono::steady_clock::now();
    do {
        if (waiting_.empty() || failed_) return Left::kNothing;
        const auto [node, group] = waiting_.begin()->second;
        const uint64_t bytes = store_->page_bytes(group);
        if (!writer_.has_room(bytes) || store_->waits()) return Left::kLater;
        const Node& parent = *node->parent();
        PageWriter::Page page;
        page.parent = parent.is_root() ? store_->root(parent.space()) : paths_.at(&parent);
        page.path = paths_.at(node);
        page.tokens.assign(node->tokens().begin(), node->tokens().end());
        page.group = group;
        page.bytes = writer_.buffer();
        page.bytes.resize(bytes);
        numbers_.erase({node, group});
        waiting_.erase(waiting_.begin());
        try {
            engine_.read_page(group, *node->page(group), page.bytes);
        } catch (const Error& error) {
            failed_ = true;
            log().warn("pages of the cache are not read or kept any more: {}", error.what());
            return Left::kNothing;
        }
        writer_.push(std::move(page));
    } while (seconds_since(start) < seconds);
    return waiting_.empty() ? Left::kNothing : Left::kSome;
}

// Those that could not be written.
void PageKeeper::add_missing() {
    const GroupIndex groups = engine_.cache().groups();
    for (const auto& [node, path] : paths_) {
        for (GroupIndex group = 0; group < groups; ++group) {
            if (!node->page(group) || store_->has(path, group) || numbers_.contains({node, group})) continue;
            numbers_[{node, group}] = next_;
            waiting_[next_++] = {node, group};
        }
    }
}

uint64_t PageKeeper::finish(const std::function<bool()>& go_on) {
    while (go_on() && !writer_.wait_until_written(kPause)) {
    }
    if (store_->status().failures > 0) add_missing();
    while (go_on()) {
        const Left left = write(kLoadSeconds);
        if (left == Left::kNothing) break;
        if (left == Left::kSome) continue;
        if (store_->waits()) break;
        writer_.wait_for_room(store_->page_bytes(waiting_.begin()->second.second), kPause);
    }
    while (go_on() && !writer_.wait_until_written(kPause)) {
    }
    if (go_on()) writer_.keep_times();
    while (go_on() && !writer_.wait_until_written(kPause)) {
    }
    return waiting_.size() + writer_.waiting();
}

std::shared_future<void> PageKeeper::forget(const std::string& space, std::span<const Token> tokens) {
    const Node* at = &tree_.root(space);
    PathId path = store_->root(space);
    std::vector<PathId> paths;  // behind the last that the tree has
    for (size_t page = 0; (page + 1) * TSR_PAGE_TOKENS <= tokens.size(); ++page) {
        const std::span<const Token> own = tokens_of(tokens, page);
        at = at ? PrefixTree::child(*at, own) : nullptr;
        path = path_after(path, own);
        if (!at) paths.push_back(path);
    }
    std::ranges::reverse(paths);
    return writer_.forget(std::move(paths));
}

KeptStatus PageKeeper::status() const {
    return {store_->status(), waiting_.size() + writer_.waiting()};
}

}  // namespace tessera::session
