#include "core/session/admission.hpp"

#include "core/plan/predict.hpp"
#include "core/session/make_sampler.hpp"
#include "core/session/task.hpp"

#include <algorithm>
#include <map>

namespace tessera::session {
namespace {

// Of a round of the queue, and what an answer counts beside its prompt, in tokens.
constexpr uint64_t kQuantum = 256;
constexpr uint64_t kAnswerCost = 256;
constexpr std::chrono::seconds kAge(60);
// What is kept of a prompt is read for as long as computing it would take, within these bounds.
constexpr double kReadSeconds = 1, kMostReadSeconds = 3600;
// With nothing else to be done: until it is seen who has come or cancelled.
constexpr std::chrono::milliseconds kKeptPause(5);

uint32_t common_prefix(std::span<const Token> a, std::span<const Token> b) {
    return static_cast<uint32_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

// What of its tokens may come from the cache: the last one is always computed, since its logits are wanted.
std::span<const Token> reusable(const Task& task) {
    return std::span(task.tokens).first(task.request.reuse ? task.tokens.size() - 1 : 0);
}

}  // namespace

Admission::Admission(Engine& engine, const text::Tokenizer& tokenizer, GeneratorCounters& counters,
                     GenerationTimings& timings, std::shared_ptr<PageStore> pages)
    : engine_(engine),
      tokenizer_(tokenizer),
      counters_(counters),
      timings_(timings),
      tree_(engine.cache()),
      keeper_(pages ? std::make_unique<PageKeeper>(engine, tree_, std::move(pages)) : nullptr),
      queue_(kQuantum, kAge) {
    active_.reserve(engine.max_sequences());
}

Admission::~Admission() {
    for (const auto& task : active_) {
        if (task->sequence) engine_.cache().remove(*task->sequence);
    }
}

void Admission::keep_in(std::shared_ptr<PageStore> pages) {
    keeper_ = std::make_unique<PageKeeper>(engine_, tree_, std::move(pages));
}

void Admission::push(std::unique_ptr<Task> task) {
    const std::string client = task->request.client;
    const uint64_t cost = task->tokens.size() + std::min<uint64_t>(task->request.max_new_tokens, kAnswerCost);
    queue_.push(client, cost, std::move(task), Clock::now());
}

std::unique_ptr<Task> Admission::take_waiting(RequestId id) {
    std::unique_ptr<Task> waiting;
    queue_.erase_if([&](const auto& task) { return task->answer.id == id; },
                    [&](std::unique_ptr<Task> task) { waiting = std::move(task); });
    return waiting;
}

Admission::Tasks Admission::take_all_waiting() {
    Tasks waiting;
    queue_.erase_if([](const auto&) { return true; },
                    [&](std::unique_ptr<Task> task) { waiting.push_back(std::move(task)); });
    return waiting;
}

void Admission::erase_done() {
    std::erase_if(active_, [](const auto& task) { return task->done; });
}

uint32_t Admission::cached(const Task& task) const {
    return session::cached(task, engine_.cache());
}

uint32_t Admission::computed(const Task& task) const {
    return session::computed(task, engine_.cache());
}

uint64_t Admission::available_pages() const {
    return engine_.cache().free_pages() + tree_.evictable();
}

size_t Admission::running() const {
    return static_cast<size_t>(std::ranges::count_if(active_, [](const auto& task) { return !task->suspended; }));
}

bool Admission::has_place() const {
    return running() < engine_.max_sequences();
}

// Whether any request of the client takes part in steps.
bool Admission::has_any(const std::string& client) const {
    return std::ranges::any_of(active_,
                               [&](const auto& task) { return !task->suspended && task->request.client == client; });
}

// Of those that available_pages() counts, those that the task takes at once.
uint64_t Admission::pages_needed(const Task& task) {
    uint64_t needed = uint64_t{pages_for(task.tokens.size())} + 1;
    if (task.sequence) {
        needed -= pages_for(cached(task));
    } else if (task.request.reuse) {
        // What is found there and not pinned counts as available, though it is about to be used.
        const auto match = tree_.find(task.request.space, std::span(task.tokens).first(task.tokens.size() - 1));
        needed -= match.node->depth_tokens() / TSR_PAGE_TOKENS;
        needed += PrefixTree::evictable_before(*match.node);
    }
    return needed;
}

// Whether the pages that the task needs at once can be had without taking any from others, and one more for each of
// those that run.
bool Admission::fits(const Task& task) {
    return running() == 0 || pages_needed(task) + running() <= available_pages();
}

// Pages that available_pages() would count if the task were suspended, and perhaps some that others share with it.
uint64_t Admission::pages_given_back(const Task& task) const {
    if (!task.sequence) return 0;
    return pages_for(cached(task)) - task.tail->depth_tokens() / TSR_PAGE_TOKENS + PrefixTree::pinned_alone(*task.tail);
}

// Those of clients that have nothing in steps go first, then the oldest.
void Admission::resume(bool steps_under_way) {
    for (const bool newcomers : {true, false}) {
        for (const auto& task : active_) {
            if (!task->suspended || (newcomers && has_any(task->request.client))) continue;
            const bool free = has_place() && fits(*task);
            if (!free && !(newcomers && make_room_for(*task, steps_under_way))) return;
            task->suspended = false;
        }
    }
}

// For a task of a client without any request in steps: a place and pages of the youngest requests of those clients that
// have the most, one of which each of them keeps; of requests that are paused, pages first. False: that would not be
// enough, and nothing has changed.
bool Admission::make_room_for(const Task& next, bool steps_under_way) {
    std::map<std::string_view, size_t> places;
    for (const auto& task : active_)
        if (!task->suspended) ++places[task->request.client];
    // Who would take part in no more steps, and who would give its pages back.
    std::vector<Task*> paused, emptied;
    uint64_t pages = available_pages();
    const auto pause_one = [&] {
        const auto most = std::ranges::max_element(places, {}, [](const auto& pair) { return pair.second; });
        if (most == places.end() || most->second < 2) return false;
        const auto youngest = std::ranges::find_if(active_.rbegin(), active_.rend(), [&](const auto& task) {
            return !task->suspended && task->request.client == most->first &&
                   std::ranges::find(paused, task.get()) == paused.end();
        });
        --most->second;
        paused.push_back(youngest->get());
        return true;
    };
    const auto empty = [&](Task& task) {
        pages += pages_given_back(task);
        emptied.push_back(&task);
    };
    if (!has_place() && !pause_one()) return false;
    const uint64_t needed = pages_needed(next);
    const auto enough = [&] { return needed + running() - paused.size() <= pages; };
    for (auto at = active_.rbegin(); at != active_.rend() && !enough(); ++at)
        if ((*at)->suspended && (*at)->sequence && at->get() != &next) empty(**at);
    for (size_t i = 0; !enough(); ++i) {
        if (i == paused.size() && !pause_one()) return false;
        empty(*paused[i]);
    }
    // No request gives up pages that steps under way write to.
    if (!emptied.empty() && steps_under_way) {
        waits_for_pages_ = true;
        return false;
    }
    for (Task* const task : paused) {
        task->suspended = true;
        ++counters_.paused;
    }
    for (Task* const task : emptied) {
        suspend(*task);
        ++counters_.preempted;
    }
    return true;
}

void Admission::admit(bool steps_under_way, const std::function<void(const Task&)>& on_admitted) {
    const auto now = Clock::now();
    const auto may = [&](const std::unique_ptr<Task>& task) {
        const Request& request = task->request;
        return request.client_running == 0 || std::ranges::count_if(active_, [&](const auto& other) {
                                                  return other->request.client == request.client;
                                              }) < std::ptrdiff_t{request.client_running};
    };
    for (;;) {
        // Whoever has nothing at all does not wait behind requests that wait for a place beside those of their client.
        queue_.prefer([&](const auto& waiting) {
            return std::ranges::none_of(
                active_, [&](const auto& task) { return task->request.client == waiting->request.client; });
        });
        std::unique_ptr<Task>* const first = queue_.front(now, may);
        if (!first) return;
        Task& next = **first;
        // Suspended requests are older; a client that has nothing at all goes before those of clients that have some in
        // steps.
        const bool newcomer = std::ranges::none_of(
            active_, [&](const auto& task) { return task->request.client == next.request.client; });
        const bool others_first = std::ranges::any_of(
            active_, [&](const auto& task) { return task->suspended && !(newcomer && has_any(task->request.client)); });
        if (others_first) return;
        const bool free = has_place() && fits(next);
        if (!free && !(newcomer && make_room_for(next, steps_under_way))) return;
        if (!next.request.sampler && !next.request.pooling)
            next.request.sampler.emplace(
                make_sampler(next.request.sampling, tokenizer_, engine_.sequence_tokens(), next.request.breakers));
        if (next.request.sampler) {
            for (const Token token : next.tokens) next.request.sampler->accept(token);
        }
        next.admitted = now;
        active_.push_back(queue_.pop(now));
        on_admitted(*active_.back());
    }
}

// Whether an older request is about to compute at least a page more of this prompt than was found.
bool Admission::worth_waiting(const Task& task, uint32_t found) const {
    const std::span<const Token> wanted = std::span(task.tokens).first(task.tokens.size() - 1);
    for (const auto& other : active_) {
        if (other.get() == &task) return false;
        if (other->suspended || other->done || other->request.space != task.request.space) continue;
        const uint32_t common = common_prefix(other->tokens, wanted) / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS;
        if (common > found && computed(*other) < common) return true;
    }
    return false;
}

// Of a prompt, as far as it is known.
double Admission::token_seconds() const {
    if (counters_.prompt_tokens >= engine_.max_rows())
        return counters_.prompt_seconds / static_cast<double>(counters_.prompt_tokens);
    const uint32_t rows = engine_.max_rows();
    return step_time(engine_.plan(), rows, 0, true).seconds / rows;
}

// Begins to read some of what was kept of the task's prompt. False: there is no more, or it is not worth it.
bool Admission::read_kept(Task& task, uint32_t found) {
    if (!keeper_ || !task.request.reuse || task.kept_over) return false;
    // Others may take what has been read before all of it is there.
    if (task.kept_until && Clock::now() > *task.kept_until) return false;
    auto reading = keeper_->begin(task.request.space, reusable(task), found, token_seconds());
    if (!reading) return false;
    task.reading.emplace(std::move(*reading));
    return true;
}

// What waits behind the readings of others takes none of its own time.
bool Admission::waits_too_long(Task& task) const {
    const KeptReading& reading = *task.reading;
    const double seconds = reading.pages.seconds();
    if (!task.kept_until && seconds > 0) {
        const double most = std::clamp(reading.computing_seconds, kReadSeconds, kMostReadSeconds);
        task.kept_until = Clock::now() + duration_of(most - seconds);
    }
    return keeper_->stuck() || (task.kept_until && Clock::now() > *task.kept_until) || reading.pages.silent();
}

void Admission::take_kept(bool steps_under_way) {
    for (const auto& task : active_) {
        if (!task->reading) continue;
        if (task->reading->pages.done()) {
            // Pages are written to on the host, between steps.
            waits_for_pages_ = waits_for_pages_ || steps_under_way;
            if (steps_under_way) continue;
            task->kept_over = !keeper_->take(task->request.space, reusable(*task), *task->reading);
        } else if (waits_too_long(*task)) {
            keeper_->give_up(*task->reading);
            task->kept_over = true;
        } else {
            continue;
        }
        task->reading.reset();
    }
}

void Admission::wait_for_kept() {
    const bool some = std::ranges::any_of(active_, [](const auto& task) { return task->reading.has_value(); });
    if (some) keeper_->wait(kKeptPause);
}

// Gives the task a sequence, of what is cached already. False: an older request is computing what it needs, or what was
// kept of it is being read, which take_kept() goes on with.
bool Admission::start(Task& task) {
    if (task.reading) return false;
    const auto wanted = reusable(task);
    const PrefixTree::Match match = tree_.find(task.request.space, wanted);
    if (task.request.reuse && worth_waiting(task, match.tokens)) return false;
    if (read_kept(task, match.tokens)) return false;
    task.sequence = engine_.cache().create(match.held(), match.tokens);
    task.tail = match.node;
    tree_.pin(*task.tail);
    if (!std::exchange(task.started, true)) {
        task.answer.reused_tokens = match.tokens;
        if (match.difference)
            task.answer.difference = {match.tokens, match.difference->first, match.difference->second};
        timings_.reused_tokens += match.tokens;
        counters_.reused_tokens += match.tokens;
    } else {
        const auto again = static_cast<uint32_t>(wanted.size() - std::min<size_t>(wanted.size(), match.tokens));
        task.answer.recomputed_tokens += again;
        counters_.recomputed_tokens += again;
    }
    return true;
}

// Its pages with that index, of the groups that hold it.
PrefixTree::Pages Admission::pages_at(const Task& task, uint32_t index) const {
    const PagedCache& cache = engine_.cache();
    PrefixTree::Pages pages;
    for (GroupIndex group = 0; group < cache.groups(); ++group) {
        const HeldPages held = cache.held(*task.sequence, group);
        pages.emplace_back();
        if (index >= held.first && index - held.first < held.pages.size())
            pages.back() = held.pages[index - held.first];
    }
    return pages;
}

// What the task has computed stays in the tree for as long as nobody needs the pages.
void Admission::suspend(Task& task) {
    task.suspended = true;
    task.reading.reset();
    task.kept_until.reset();
    task.kept_over = false;
    if (!task.sequence) return;
    remember(task, true);
    PagedCache& cache = engine_.cache();
    const uint32_t length = cache.length(*task.sequence), whole = task.tail->depth_tokens();
    if (length > whole)
        tree_.insert(*task.tail, std::span(task.tokens).subspan(whole, length - whole),
                     pages_at(task, whole / TSR_PAGE_TOKENS));
    tree_.unpin(*task.tail);
    task.tail = nullptr;
    cache.remove(*task.sequence);
    task.sequence.reset();
}

// Whole pages become available to others as soon as they have been computed; those behind tokens of which another
// request holds a page of its own, when that has ended or the task `leaves` its sequence.
void Admission::remember(Task& task, bool leaves) {
    for (uint32_t begin = task.tail->depth_tokens(); computed(task) - begin >= TSR_PAGE_TOKENS;
         begin += TSR_PAGE_TOKENS) {
        const PrefixTree::Pages pages = pages_at(task, begin / TSR_PAGE_TOKENS);
        PrefixTree::Node* const node =
            tree_.insert(*task.tail, std::span(task.tokens).subspan(begin, TSR_PAGE_TOKENS), pages);
        if (node->page() != pages.front() && !leaves) return;
        tree_.move_pin(*task.tail, *node);
        task.tail = node;
    }
}

// Who gives up its pages to `task`: of the requests that are younger than it the youngest that is paused, else the
// youngest of the client that has the most, else the youngest. Nobody where that is the only one of its client and
// `task` is one of several of another, but not the oldest of all.
Task* Admission::victim_for(const Task& task) const {
    std::map<std::string_view, size_t> holding;
    for (const auto& other : active_)
        if (other->sequence) ++holding[other->request.client];
    Task* found = nullptr;
    const auto count = [&](const Task& other) { return other.suspended ? SIZE_MAX : holding[other.request.client]; };
    for (auto at = active_.rbegin(); at->get() != &task; ++at) {
        Task& other = **at;
        if (other.sequence && (!found || count(other) > count(*found))) found = &other;
    }
    const bool spared = found && count(*found) == 1 && holding[task.request.client] > 1;
    return spared && &task != active_.front().get() ? nullptr : found;
}

// Frees pages for `rows` more tokens of `task` beyond `reserved` of each group; takes them from requests only if they
// are younger than `task`, and from none while steps are under way.
bool Admission::make_room(const Task& task, std::span<const uint64_t> reserved, uint32_t rows, bool steps_under_way) {
    const PagedCache& cache = engine_.cache();
    for (GroupIndex group = 0; group < cache.groups(); ++group) {
        // Counted anew each time: a page that the task shares with the tree need not be copied once the tree has given
        // it up, though that frees none.
        const auto fits = [&] {
            return reserved[group] + cache.pages_to_append(*task.sequence, rows, group) <= cache.free_pages(group);
        };
        while (!fits()) {
            if (group == 0 ? tree_.evict_one() : tree_.evict_window(group)) continue;
            const std::optional<PageId> shared = cache.page_to_copy(*task.sequence, rows, group);
            if (group > 0 && shared && tree_.forget_window(group, *shared)) continue;
            Task* const victim = victim_for(task);
            if (!victim || steps_under_way) return false;
            suspend(*victim);
            ++counters_.preempted;
        }
    }
    return true;
}

}  // namespace tessera::session
