// Which requests take part in steps, and which pages of the cache each has: docs/server.md says by which rules.
#pragma once

#include "core/session/fair_queue.hpp"
#include "core/session/generator_options.hpp"
#include "core/session/kept/page_keeper.hpp"
#include "core/session/prefix_tree.hpp"
#include "core/text/tokenizer.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tessera::session {

struct Task;

// Requests wait in a queue that is fair by client, or are active. `steps_under_way`: whether the engine works on steps
// that have not been waited for; no request gives up pages then, since those steps write to them. One thread at a time.
class Admission {
  public:
    using Tasks = std::vector<std::unique_ptr<Task>>;

    // All outlive this. `pages`: where cached pages are kept; null: nowhere. The destructor removes the sequences of
    // active requests from the cache.
    Admission(Engine& engine, const text::Tokenizer& tokenizer, GeneratorCounters& counters, GenerationTimings& timings,
              std::shared_ptr<PageStore> pages);
    ~Admission();
    Admission(const Admission&) = delete;
    Admission& operator=(const Admission&) = delete;

    void push(std::unique_ptr<Task> task);
    // Out of the queue; nullptr if none waits with that id.
    std::unique_ptr<Task> take_waiting(RequestId id);
    Tasks take_all_waiting();
    size_t waiting() const noexcept { return queue_.size(); }

    // In order of admission; some may be paused.
    Tasks& active() noexcept { return active_; }
    const Tasks& active() const noexcept { return active_; }
    void erase_done();
    const PrefixTree& prefixes() const noexcept { return tree_; }
    PrefixTree& tree() noexcept { return tree_; }
    // Where none are kept so far, while no step is under way.
    void keep_in(std::shared_ptr<PageStore> pages);
    PageKeeper* keeper() noexcept { return keeper_.get(); }
    const PageKeeper* keeper() const noexcept { return keeper_.get(); }

    // Paused requests first, then those that wait, as far as there are places and pages.
    void resume(bool steps_under_way);
    void admit(bool steps_under_way, const std::function<void(const Task&)>& on_admitted);
    // Whether a request has to wait for pages that steps under way write to, or until none is under way. Asked once.
    bool take_waits_for_pages() noexcept { return std::exchange(waits_for_pages_, false); }

    // Gives the task a sequence, of what is cached already. False: an older request is computing what it needs, or what
    // was kept of it is being read, which take_kept() goes on with.
    bool start(Task& task);
    // What has been read for tasks comes into the tree; what takes too long is given up, and computed.
    void take_kept(bool steps_under_way);
    // Where a task waits for what is being read: until something has been, or for a moment.
    void wait_for_kept();
    // Gives its pages to whoever needs them; what it has computed is found again for as long as nobody does.
    void suspend(Task& task);
    // Whole pages become available to others as soon as they have been computed; those behind tokens of which another
    // request holds a page of its own, when that has ended or the task `leaves` its sequence.
    void remember(Task& task, bool leaves = false);
    // Frees pages until each group has `reserved` and those that `rows` more tokens of the task need. Evicts prefixes
    // first, then suspends requests younger than `task`. Returns false if that is not enough, or if it would suspend a
    // request while steps are under way. The task has a sequence.
    bool make_room(const Task& task, std::span<const uint64_t> reserved, uint32_t rows, bool steps_under_way);

  private:
    uint32_t cached(const Task& task) const;
    uint32_t computed(const Task& task) const;
    // Pages that can be had without taking any from a request.
    uint64_t available_pages() const;
    bool has_place() const;
    size_t running() const;
    bool has_any(const std::string& client) const;
    bool make_room_for(const Task& next, bool steps_under_way);
    uint64_t pages_needed(const Task& task);
    PrefixTree::Pages pages_at(const Task& task, uint32_t index) const;
    uint64_t pages_given_back(const Task& task) const;
    bool fits(const Task& task);
    bool worth_waiting(const Task& task, uint32_t found) const;
    bool read_kept(Task& task, uint32_t found);
    bool waits_too_long(Task& task) const;
    double token_seconds() const;
    Task* victim_for(const Task& task) const;

    Engine& engine_;
    const text::Tokenizer& tokenizer_;
    GeneratorCounters& counters_;
    GenerationTimings& timings_;
    PrefixTree tree_;
    std::unique_ptr<PageKeeper> keeper_;  // null: no pages are kept
    FairQueue<std::unique_ptr<Task>> queue_;
    Tasks active_;
    bool waits_for_pages_ = false;
};

}  // namespace tessera::session
