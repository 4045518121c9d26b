#include "core/session/kept/page_keeper.hpp"

#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/seconds.hpp"

#include <algorithm>

namespace tessera::session {
namespace {

constexpr uint64_t kHeldBytes = 64 << 20;        // copied and not written yet
constexpr uint64_t kReadAtOnce = 32 << 20;       // of a prompt, which are copied into the cache between two steps
constexpr uint64_t kReadBytes = 128 << 20;       // of all prompts
constexpr double kFinishSeconds = 0.1;           // until it is asked again whether to go on
constexpr std::chrono::milliseconds kPause(50);  // the same where the writer is waited for
constexpr double kByteSeconds = 1e-9;            // of reading, until it has been measured
constexpr double kSaidAgain = 60;                // seconds from one warning of a slow disk to another
constexpr double kRetry = 0.9;                   // where reading seems slower than computing it is tried again later

std::span<const Token> tokens_of(std::span<const Token> tokens, size_t page) {
    return tokens.subspan(page * TSR_PAGE_TOKENS, TSR_PAGE_TOKENS);
}

}  // namespace

PageKeeper::PageKeeper(Engine& engine, PrefixTree& tree, std::shared_ptr<PageStore> store)
    : engine_(engine),
      tree_(tree),
      store_(std::move(store)),
      writer_(store_, kHeldBytes),
      reader_(store_, kReadBytes),
      byte_seconds_(kByteSeconds) {
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
            if (i >= cache.rule(group).first_page(tokens)) parts.push_back({i, group});
        }
    }
    return parts;
}

std::optional<KeptReading> PageKeeper::begin(const std::string& space, std::span<const Token> tokens, uint32_t found,
                                             double token_seconds) {
    if (failed_ || reader_.stuck()) return std::nullopt;
    std::vector<Place> own = places(space, tokens);
    std::vector<PathId> used;
    for (const Place& place : own) used.push_back(place.path);
    store_->touch(used);
    own.resize(usable(own));
    const uint64_t more = own.size() * TSR_PAGE_TOKENS;
    if (more <= found) return std::nullopt;
    const std::vector<Part> missing = parts(own);
    uint64_t bytes = 0;
    for (const Part& part : missing) bytes += store_->page_bytes(part.group);
    if (bytes == 0) return std::nullopt;
    const double computing = static_cast<double>(more - found) * token_seconds;
    if (byte_seconds_ * static_cast<double>(bytes) >= computing) {
        byte_seconds_ *= kRetry;
        return std::nullopt;
    }
    std::vector<PageReader::Page> pages;
    uint64_t chosen = 0;
    for (const Part& part : missing) {
        // All parts of a page together.
        if (chosen >= kReadAtOnce && part.page != pages.back().index) break;
        chosen += store_->page_bytes(part.group);
        const std::span<const Token> of_page = tokens_of(tokens, part.page);
        pages.push_back({own[part.page].parent, {of_page.begin(), of_page.end()}, part.group, part.page});
    }
    return KeptReading{reader_.read(std::move(pages)), computing};
}

void PageKeeper::give_up(KeptReading& reading) {
    const double seconds = reading.pages.seconds(), waited = reading.pages.waited();
    // Of a disk that answers, but slowly, it is known how slow it is at least.
    if (reading.pages.answered())
        byte_seconds_ = std::max(byte_seconds_, seconds / static_cast<double>(reading.pages.bytes()));
    // What has waited behind others alone tells nothing of a disk that answers them.
    const bool slow = seconds > 0 || reading.pages.silent();
    reading.pages.give_up();
    if (!slow) return;
    ++given_up_;
    if (slow_ || (said_ && seconds_since(*said_) < kSaidAgain)) return;
    slow_ = true;
    said_ = std::chrono::steady_clock::now();
    log().warn("pages of the cache are not read for now, but computed: a request has waited {:.1f} s for the disk",
               waited);
}

bool PageKeeper::make_room(GroupIndex group) {
    while (engine_.cache().free_pages(group) == 0) {
        if (group == 0 ? !tree_.evict_one() : !tree_.evict_window(group)) return false;
    }
    return true;
}

// Of one page of a prompt the parts that were read. `node`: nullptr, or the tree's, which is pinned. Returns nullptr if
// there is no room.
PageKeeper::Node* PageKeeper::insert(Node& parent, std::span<const Token> tokens, Node* node,
                                     std::span<const PageReader::Page> parts) {
    PagedCache& cache = engine_.cache();
    PrefixTree::Pages pages(cache.groups());
    if (node) pages.front() = node->page();
    std::vector<std::pair<GroupIndex, PageId>> taken;
    Node* made = nullptr;
    try {
        bool room = true;
        for (const PageReader::Page& part : parts) {
            if (node && node->page(part.group)) continue;  // somebody has computed it meanwhile
            room = make_room(part.group);
            if (!room) break;
            const PageId page = cache.take(part.group);
            taken.emplace_back(part.group, page);
            engine_.write_page(part.group, page, {part.bytes.get(), store_->page_bytes(part.group)});
            pages[part.group] = page;
        }
        if (room) made = tree_.insert(parent, tokens, pages);
    } catch (const Error& error) {
        failed_ = true;
        log().warn("pages of the cache are not read or kept any more: {}", error.what());
    }
    for (const auto& [group, page] : taken) cache.release(group, page);
    return made;
}

bool PageKeeper::take(const std::string& space, std::span<const Token> tokens, KeptReading& reading) {
    const double seconds = reading.pages.seconds() / static_cast<double>(reading.pages.bytes());
    byte_seconds_ += (seconds - byte_seconds_) / 4;
    if (std::exchange(slow_, false)) log().warn("pages of the cache are read again");
    std::span<const PageReader::Page> rest = reading.pages.pages();
    // What is there of the beginning may not go meanwhile.
    Node* tail = &tree_.root(space);
    tree_.pin(*tail);
    bool good = true;
    for (uint32_t index = 0; !rest.empty() && good; ++index) {
        const std::span<const Token> own = tokens_of(tokens, index);
        const auto end = std::ranges::find_if(rest, [&](const auto& part) { return part.index != index; });
        const auto parts = rest.first(static_cast<size_t>(end - rest.begin()));
        rest = rest.subspan(parts.size());
        Node& parent = *tail;
        Node* const node = PrefixTree::child(parent, own);
        // It was there, and has been taken by others since: it can be read again.
        if (!node && (parts.empty() || parts.front().group != 0)) break;
        if (node) {
            tree_.move_pin(parent, *node);
            tail = node;
        }
        if (parts.empty()) continue;
        good = std::ranges::all_of(parts, &PageReader::Page::good);
        Node* const made = good ? insert(parent, own, node, parts) : nullptr;
        good = made != nullptr;
        if (!made || made == node) continue;
        tree_.move_pin(parent, *made);
        tail = made;
    }
    tree_.unpin(*tail);
    return good;
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
        const Left left = write(kFinishSeconds);
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
    return {store_->status(), waiting_.size() + writer_.waiting(), given_up_};
}

}  // namespace tessera::session
