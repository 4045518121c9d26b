// Between a tree of cached pages and a store of them: what is computed is written, and what was written is read in
// place of being computed.
#pragma once

#include "core/session/engine.hpp"
#include "core/session/kept/page_reader.hpp"
#include "core/session/kept/page_store.hpp"
#include "core/session/kept/page_writer.hpp"
#include "core/session/prefix_tree.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tessera::session {

struct KeptStatus {
    PageStoreStatus store;
    uint64_t waiting_pages = 0;  // to be written
    uint64_t given_up = 0;       // requests that were computed since the disk was slow
};

// Pages of a prompt that are being read.
struct KeptReading {
    PageReader::Reading pages;
    double computing_seconds;  // that what is kept of the prompt would take
};

// Whole pages are kept, of each group those that the tree had when they were written. Pages are copied between steps
// by the caller's thread, and written and read by others. One thread at a time; all but what says otherwise works while
// no step is under way.
class PageKeeper final : public PrefixTree::Watcher {
  public:
    // `engine` and `tree` outlive this.
    PageKeeper(Engine& engine, PrefixTree& tree, std::shared_ptr<PageStore> store);
    ~PageKeeper() override;
    PageKeeper(const PageKeeper&) = delete;
    PageKeeper& operator=(const PageKeeper&) = delete;

    // Begins to read pages so that more than the first `found` of the tokens need not be computed: some of those that
    // the store and the tree have together, if reading all of them seems faster than `token_seconds` each. Nothing: it
    // does not, there is none, or the disk has not answered for a while. Counts as use. While steps are under way, too,
    // as what follows.
    std::optional<KeptReading> begin(const std::string& space, std::span<const Token> tokens, uint32_t found,
                                     double token_seconds);
    // Whether such a reading would be in vain.
    bool stuck() const { return reader_.stuck(); }
    // The reading took too long; where the disk is silent none begins until it answers.
    void give_up(KeptReading& reading);
    // Until a reading is done, at most so long.
    void wait(std::chrono::milliseconds time) { reader_.wait(time); }
    // Copies what was read, which is done, into the tree. Pages for it are free, or are taken from nodes that nobody
    // uses. False: not all of it could be used, and more would not be.
    bool take(const std::string& space, std::span<const Token> tokens, KeptReading& reading);

    enum class Left {
        kNothing,
        kSome,   // and the writer takes more
        kLater,  // the writer has enough, or the store waits
    };
    // Copies pages that are to be written, for so long and at least one.
    Left write(double seconds);
    // Writes all that there is, as long as `go_on` says so. Returns how many pages are left.
    uint64_t finish(const std::function<bool()>& go_on);

    // Forgets the files of the text's pages, from the last one on, up to one that the tree has, or that others follow.
    // None is found or written from now on; ready when they have been removed, as of PageWriter::forget.
    std::shared_future<void> forget(const std::string& space, std::span<const Token> tokens);

    KeptStatus status() const;

    void added(PrefixTree::Node& node, GroupIndex group) override;
    void dropped(PrefixTree::Node& node, GroupIndex group) noexcept override;

  private:
    using Node = PrefixTree::Node;
    // A page of a prompt.
    struct Place {
        PathId parent, path;
        Node* node;  // nullptr: the tree has none
    };
    // Of a prompt's pages one that is to be read.
    struct Part {
        uint32_t page;
        GroupIndex group;
    };

    std::vector<Place> places(const std::string& space, std::span<const Token> tokens);
    uint32_t usable(std::span<const Place> places) const;
    std::vector<Part> parts(std::span<const Place> places) const;
    bool has(const Place& place, GroupIndex group) const;
    Node* insert(Node& parent, std::span<const Token> tokens, Node* node, std::span<const PageReader::Page> parts);
    bool make_room(GroupIndex group);
    void add_missing();

    Engine& engine_;
    PrefixTree& tree_;
    const std::shared_ptr<PageStore> store_;
    PageWriter writer_;
    PageReader reader_;
    std::unordered_map<const Node*, PathId> paths_;  // of whole pages
    using Waiting = std::map<uint64_t, std::pair<const Node*, GroupIndex>>;
    Waiting waiting_;                                                 // in the order in which they were computed
    std::map<std::pair<const Node*, GroupIndex>, uint64_t> numbers_;  // of those that wait
    uint64_t next_ = 0;
    double byte_seconds_;  // of reading, measured
    uint64_t given_up_ = 0;
    bool slow_ = false;                                          // it was said that readings are given up
    std::optional<std::chrono::steady_clock::time_point> said_;  // when, for the last time
    bool failed_ = false;                                        // a device has: nothing is copied any more
};

}  // namespace tessera::session
