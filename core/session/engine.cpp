#include "core/session/engine.hpp"

#include "core/base/checked.hpp"
#include "core/base/log.hpp"
#include "core/base/seconds.hpp"
#include "core/plan/fit.hpp"
#include "core/plan/make_plan.hpp"
#include "core/plan/predict.hpp"
#include "core/run/each_on_team.hpp"
#include "core/run/worker_tuner.hpp"
#include "core/session/file_weights.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <exception>
#include <utility>

namespace tessera {
namespace {

constexpr uint32_t kDefaultContext = 4096;
// Workers of a step never sleep. Where the host alone computes and they had less than this share of its time on
// processors, other processes took part of it.
constexpr double kQuiet = 0.9;

size_t outputs_of(const BatchEntry& entry) {
    return entry.all_outputs ? entry.tokens.size() : entry.output ? 1 : 0;
}

bool has_hidden(std::span<const BatchEntry> entries) {
    return std::ranges::any_of(entries, [](const BatchEntry& entry) { return entry.hidden && outputs_of(entry) > 0; });
}

// The options with the defaults of this model.
struct Granted {
    GraphLimits limits;
    ScheduleOptions schedule;
    uint32_t sequence_tokens = 0;
    std::vector<std::string> notes;
};

Granted grant(const ModelInfo& info, const EngineOptions& asked) {
    if (asked.sequences == 0) fail(TSR_INVALID_ARGUMENT, "at least one sequence is needed");
    Granted granted;
    const uint32_t context = asked.context ? asked.context : std::min(kDefaultContext, std::max(info.context, 1u));
    if (context > info.context && info.context > 0) {
        granted.notes.push_back(
            fmt::format("the model was made for {} tokens; a sequence that grows past them may err", info.context));
    }
    // A sequence fills its last page in part: each but the first gets one more.
    const uint64_t pages = uint64_t{pages_for(context)} + asked.sequences - 1;
    const auto rows = static_cast<uint32_t>(std::clamp<uint64_t>(asked.rows, 1, pages * TSR_PAGE_TOKENS));
    if (asked.sequences > rows) {
        fail(TSR_INVALID_ARGUMENT, "{} sequences do not fit steps of {} rows", asked.sequences, rows);
    }
    granted.limits.experts = asked.experts;
    granted.limits.allow_unused = asked.allow_unused;
    granted.limits.rows = rows;
    granted.limits.hidden_states = asked.hidden_states;
    granted.limits.states = asked.states || asked.prediction;
    granted.limits.prediction = asked.prediction;
    granted.limits.output_rows = std::min(asked.output_rows ? asked.output_rows : asked.sequences, rows);
    granted.limits.sequences = asked.sequences;
    granted.limits.sequence_pages = checked_cast<uint32_t>(pages, "pages of the cache");

    ScheduleOptions& schedule = granted.schedule;
    static_cast<PlanOptions&>(schedule) = asked;
    schedule.max_rows = rows;
    schedule.max_sequences = asked.sequences;
    schedule.max_tokens = checked_cast<uint32_t>(pages * TSR_PAGE_TOKENS, "tokens of the cache");
    schedule.cache_pages = granted.limits.sequence_pages;
    // The further pages are for what sequences fill in part, not for a longer one.
    granted.sequence_tokens = pages_for(context) * TSR_PAGE_TOKENS;
    if (info.context > 0) granted.sequence_tokens = std::min(granted.sequence_tokens, std::max(info.context, context));
    if (asked.lock_memory && asked.pack_weights == PackWeights::kBetweenSteps)
        schedule.pack_weights = PackWeights::kAtLoad;
    return granted;
}

struct Threads {
    uint32_t generation, prompt;
    uint32_t most() const noexcept { return std::max(generation, prompt); }
};

Threads threads_of(const EngineOptions& options, const Hardware& hardware) {
    const uint32_t generation = options.threads ? options.threads : std::max(hardware.cpu().threads, 1u);
    return {generation, options.prompt_threads ? options.prompt_threads : generation};
}

// Empty for a machine that is only described.
NumaPlacement placement_of(const EngineOptions& options, const Hardware& hardware) {
    if (hardware.numa_nodes().empty()) return {};
    return place_on_nodes(options.numa, hardware.numa_nodes(), hardware.start_cpu(),
                          threads_of(options, hardware).most());
}

}  // namespace

PlannedModel plan_model(const gguf::GgufFile& file, const Registry& registry, const Hardware& hardware,
                        const EngineOptions& options) {
    ModelInfo info = read_model_info(file, registry);
    Granted granted = grant(info, options);
    BuiltModel model = build_model(file, registry, granted.limits);
    PlannedModel planned{std::move(info),
                         std::move(model.notes),
                         std::move(model.ops),
                         granted.schedule.cache_pages * TSR_PAGE_TOKENS,
                         granted.sequence_tokens,
                         {},
                         make_plan(model.graph, registry, hardware, granted.schedule)};
    if (options.prediction) planned.info.layers = 1;
    if (options.expand_from) planned.plan.prompt_rows_from = options.expand_from;
    auto& notes = planned.plan.notes;
    notes.insert(notes.begin(), granted.notes.begin(), granted.notes.end());
    if (NumaPlacement placement = placement_of(options, hardware); placement.notice)
        planned.notices.push_back(std::move(*placement.notice));
    return planned;
}

uint32_t largest_context(const gguf::GgufFile& file, const Registry& registry, const Hardware& hardware,
                         const EngineOptions& options) {
    const auto fits = [&](uint32_t pages) {
        EngineOptions tried = options;
        tried.context = pages * TSR_PAGE_TOKENS;
        tried.placement.first_fit = true;
        try {
            check_fit(plan_model(file, registry, hardware, tried).plan);
            return true;
        } catch (const Error& error) {
            if (error.code() == TSR_DOES_NOT_FIT) return false;
            throw;
        }
    };
    uint32_t too_large = pages_for(std::max(read_model_info(file, registry).context, 1u));
    if (fits(too_large)) return too_large * TSR_PAGE_TOKENS;
    if (too_large == 1 || !fits(1)) return 0;
    uint32_t fitting = 1;
    while (too_large - fitting > 1) {
        const uint32_t middle = fitting + (too_large - fitting) / 2;
        (fits(middle) ? fitting : too_large) = middle;
    }
    return fitting * TSR_PAGE_TOKENS;
}

namespace {

// A group of all tokens, and one for each other rule of the plan's groups; which of them each of those is.
std::vector<PagedCache::Group> groups_of(const Plan& plan, uint32_t pages, std::vector<GroupIndex>& of_plan) {
    std::vector<PagedCache::Group> groups = {{{}, pages}};
    for (const CacheGroup& group : plan.cache_groups) {
        const auto same = std::ranges::find(groups, group.rule, &PagedCache::Group::rule);
        of_plan.push_back(static_cast<GroupIndex>(same - groups.begin()));
        if (same == groups.end()) groups.push_back({group.rule, group.pages});
    }
    return groups;
}

}  // namespace

struct Engine::State {
    gguf::GgufFile file;
    ModelInfo info;
    std::shared_ptr<const OpSet> ops;
    uint32_t context, sequence_tokens;
    GraphLimits limits;
    Threads threads;
    uint32_t expand_from;
    Team team;
    WorkerTuner generation_workers{threads.generation}, prompt_workers{threads.prompt};
    FileWeights weights;
    Executor executor;
    StepComparison comparison;
    bool host_alone;                        // computes
    std::vector<GroupIndex> cached_groups;  // of the cache, for each group of the plan
    PagedCache cache;
    std::span<int32_t> tokens, positions, sequences, output_rows;
    std::span<float> given_states;  // of a layer of prediction
    // Of the last step, of each entry: its tokens, the first of its rows, and of its outputs.
    struct StatesOf {
        size_t tokens, row, output, outputs;
    };
    std::vector<StatesOf> states_of;
    bool gave_hidden = false, gave_row_states = false;  // in the last step
    std::vector<std::span<int32_t>> page_tables;        // a group of the plan each
    std::vector<PageCopy> copies;
    // Tokens that steps under way have appended: what is taken back if one fails.
    struct Appended {
        SequenceId sequence;
        uint32_t tokens;
        uint32_t length;  // of the sequence with them
    };
    std::deque<std::vector<Appended>> under_way;  // a step each

    State(gguf::GgufFile opened, PlannedModel planned, const Registry& registry, const Hardware& hardware,
          const EngineOptions& options)
        : file(std::move(opened)),
          info(std::move(planned.info)),
          ops(std::move(planned.ops)),
          context(planned.context),
          sequence_tokens(planned.sequence_tokens),
          threads(threads_of(options, hardware)),
          expand_from(planned.plan.prompt_rows_from),
          team(threads.most(), placement_of(options, hardware)),
          weights(file, planned.plan.graph, options.map_weights),
          executor(std::move(planned.plan), registry, team),
          comparison(executor.plan(), expand_from),
          host_alone(std::ranges::all_of(executor.plan().nodes, [](const PlannedNode& n) { return n.device == 0; })),
          cache(groups_of(executor.plan(), context / TSR_PAGE_TOKENS, cached_groups)) {
        bind_inputs();
        limits.rows = static_cast<uint32_t>(tokens.size());
        const Graph& graph = executor.plan().graph;
        limits.output_rows = static_cast<uint32_t>(graph.tensor(graph.find_output(kLogits)).dims[1]);
        limits.sequence_pages = context / TSR_PAGE_TOKENS;
        limits.sequences = executor.plan().options.max_sequences;
        copies.reserve(limits.sequences);
    }

    std::span<int32_t> integers(std::string_view name) {
        const std::span<std::byte> bytes = executor.input(name);
        return {reinterpret_cast<int32_t*>(bytes.data()), bytes.size() / sizeof(int32_t)};
    }

    // Where the next step's inputs are written.
    void bind_inputs() {
        tokens = integers(kTokens);
        positions = integers(kPositions);
        sequences = integers(kSequences);
        output_rows = integers(kOutputRows);
        const std::span<std::byte> given = executor.input(kGivenStates);
        given_states = {reinterpret_cast<float*>(given.data()), given.size() / sizeof(float)};
        page_tables.clear();
        for (const CacheGroup& group : executor.plan().cache_groups)
            page_tables.push_back(integers(executor.plan().graph.storage(group.page_table).name));
    }

    // Appends the entries to their sequences and takes the step, or starts it. If that fails no step is under way, and
    // all that were are rolled back.
    void take(std::span<const BatchEntry> entries, bool wait, bool states);
    void finish();
    void start(std::span<const BatchEntry> entries, bool wait, bool states);
    // The output of the graph that a step is for; empty: all of them.
    std::string_view wanted(std::span<const BatchEntry> entries, bool states) const;
    // Whether the next step is one of those that the plan predicts: of one sequence alone, and nothing beside it.
    bool is_predicted(std::span<const BatchEntry> entries, uint32_t workers) const;
    void forget_ended();
    void lose_steps();
    void check_entries(std::span<const BatchEntry> entries) const;
    bool has_room(std::span<const BatchEntry> entries) const;
    void append(std::span<const BatchEntry> entries);
    void copy_pages();
    template <typename Bytes, typename Move>
    void each_part(GroupIndex group, Bytes bytes, Move&& move);
    void roll_back(std::span<const BatchEntry> entries, size_t count);
    // Fills the inputs; returns the size of the step.
    StepSize write_inputs(std::span<const BatchEntry> entries);
};

void Engine::State::check_entries(std::span<const BatchEntry> entries) const {
    size_t rows = 0, outputs = 0;
    for (const BatchEntry& entry : entries) {
        if (entry.tokens.empty()) fail(TSR_INVALID_ARGUMENT, "sequence {} brings no tokens", entry.sequence);
        rows += entry.tokens.size();
        outputs += outputs_of(entry);
        const size_t states = given_states.empty() ? 0 : entry.tokens.size() * info.embedding;
        if (entry.states.size() != states)
            fail(TSR_INVALID_ARGUMENT, "{} values of states are given, {} needed", entry.states.size(), states);
        for (const Token token : entry.tokens) {
            if (token < 0 || static_cast<uint32_t>(token) >= info.vocabulary) {
                fail(TSR_INVALID_ARGUMENT, "token {} is outside the vocabulary of {}", token, info.vocabulary);
            }
        }
        const auto same = [&](const BatchEntry& other) { return other.sequence == entry.sequence; };
        if (std::ranges::count_if(entries, same) > 1) {
            fail(TSR_INVALID_ARGUMENT, "sequence {} occurs twice in the batch", entry.sequence);
        }
    }
    if (rows == 0 || rows > limits.rows)
        fail(TSR_INVALID_ARGUMENT, "a step of {} rows; 1 to {} are possible", rows, limits.rows);
    const bool hidden = has_hidden(entries);
    if (hidden && !executor.plan().graph.find_output(kHidden))
        fail(TSR_UNSUPPORTED, "this model was loaded without its hidden states");
    if (hidden && std::ranges::any_of(entries, [](const BatchEntry& e) { return !e.hidden && outputs_of(e) > 0; }))
        fail(TSR_INVALID_ARGUMENT, "a step has logits or hidden states");
    if (const uint32_t most = hidden ? limits.rows : limits.output_rows; outputs > most)
        fail(TSR_INVALID_ARGUMENT, "{} outputs in a step; {} are possible", outputs, most);
    if (entries.size() > limits.sequences)
        fail(TSR_INVALID_ARGUMENT, "{} sequences in a step; {} are possible", entries.size(), limits.sequences);
}

void Engine::State::copy_pages() {
    std::vector<std::pair<uint32_t, uint32_t>> pages;
    for (uint32_t group = 0; group < cached_groups.size(); ++group) {
        pages.clear();
        for (const PageCopy& copy : copies) {
            if (copy.group == cached_groups[group]) pages.emplace_back(copy.from, copy.to);
        }
        if (!pages.empty()) executor.copy_pages(group, pages);
    }
}

// Whether the entries' tokens find pages without waiting for steps under way, which give some back when they end.
bool Engine::State::has_room(std::span<const BatchEntry> entries) const {
    for (GroupIndex group = 0; group < cache.groups(); ++group) {
        uint64_t pages = 0;
        for (const BatchEntry& entry : entries)
            pages += cache.pages_to_append(entry.sequence, static_cast<uint32_t>(entry.tokens.size()), group);
        if (pages > cache.free_pages(group)) return false;
    }
    return true;
}

void Engine::State::append(std::span<const BatchEntry> entries) {
    copies.clear();
    size_t done = 0;
    // At once: a failed step must not leave a page that was given to this sequence without its contents.
    const auto copy = [&] {
        if (copies.empty()) return;
        try {
            copy_pages();
        } catch (...) {
            for (const BatchEntry& entry : entries.first(done)) {
                for (const PageCopy& one : copies) cache.share_again(entry.sequence, one);
            }
            throw;
        }
    };
    try {
        try {
            for (const BatchEntry& entry : entries) {
                cache.append(entry.sequence, static_cast<uint32_t>(entry.tokens.size()), copies);
                ++done;
            }
        } catch (...) {
            copy();
            throw;
        }
        copy();
    } catch (...) {
        roll_back(entries, done);
        throw;
    }
}

void Engine::State::roll_back(std::span<const BatchEntry> entries, size_t count) {
    for (const BatchEntry& entry : entries.first(count)) {
        cache.truncate(entry.sequence, cache.length(entry.sequence) - static_cast<uint32_t>(entry.tokens.size()));
    }
}

StepSize Engine::State::write_inputs(std::span<const BatchEntry> entries) {
    bind_inputs();
    int32_t row = 0, prompt_rows = 0;
    int64_t longest = 0;
    std::array<int64_t, TSR_RANGE_COUNT> pages{};
    std::vector<int32_t> first_row(entries.size());
    for (const bool prompt : {true, false}) {
        for (size_t slot = 0; slot < entries.size(); ++slot) {
            const BatchEntry& entry = entries[slot];
            if ((entry.tokens.size() >= expand_from) != prompt) continue;
            first_row[slot] = row;
            const uint32_t length = cache.length(entry.sequence);
            longest = std::max<int64_t>(longest, length);
            pages[prompt ? TSR_RANGE_PROMPT_ROWS : TSR_RANGE_GENERATION_ROWS] += pages_for(length);
            int32_t position = static_cast<int32_t>(length - entry.tokens.size());
            std::ranges::copy(
                entry.states,
                given_states.subspan(static_cast<size_t>(row) * entry.states.size() / entry.tokens.size()).begin());
            for (const Token token : entry.tokens) {
                tokens[row] = token;
                positions[row] = position++;
                sequences[row] = static_cast<int32_t>(slot);
                ++row;
            }
            for (size_t group = 0; group < page_tables.size(); ++group) {
                const std::span<int32_t> own =
                    page_tables[group].subspan(slot * limits.sequence_pages, limits.sequence_pages);
                const HeldPages held = cache.held(entry.sequence, cached_groups[group]);
                const auto end = std::fill_n(own.begin(), held.first, -1);
                std::fill(std::ranges::copy(held.pages, end).out, own.end(), -1);
            }
        }
        if (prompt) prompt_rows = row;
    }
    int32_t outputs = 0;
    states_of.clear();
    for (size_t slot = 0; slot < entries.size(); ++slot) {
        const auto count = static_cast<int32_t>(entries[slot].tokens.size());
        states_of.push_back({entries[slot].tokens.size(), static_cast<size_t>(first_row[slot]),
                             static_cast<size_t>(outputs), outputs_of(entries[slot])});
        const int32_t begin = entries[slot].all_outputs ? 0 : entries[slot].output ? count - 1 : count;
        for (int32_t i = begin; i < count; ++i) output_rows[outputs++] = first_row[slot] + i;
    }
    pages[TSR_RANGE_ROWS] = pages[TSR_RANGE_OUTPUT_ROWS] =
        pages[TSR_RANGE_PROMPT_ROWS] + pages[TSR_RANGE_GENERATION_ROWS];
    StepRanges ranges{};
    ranges[TSR_RANGE_ROWS] = {0, row};
    ranges[TSR_RANGE_PROMPT_ROWS] = {0, prompt_rows};
    ranges[TSR_RANGE_GENERATION_ROWS] = {prompt_rows, row};
    ranges[TSR_RANGE_OUTPUT_ROWS] = {0, outputs};
    return {ranges, longest, pages};
}

Engine::Engine(gguf::GgufFile file, const Registry& registry, const Hardware& hardware, const EngineOptions& options,
               const LoadProgress& progress) {
    PlannedModel planned = plan_model(file, registry, hardware, options);
    load(std::move(file), std::move(planned), registry, hardware, options, progress);
}

Engine::Engine(gguf::GgufFile file, PlannedModel planned, const Registry& registry, const Hardware& hardware,
               const EngineOptions& options, const LoadProgress& progress) {
    load(std::move(file), std::move(planned), registry, hardware, options, progress);
}

void Engine::load(gguf::GgufFile file, PlannedModel planned, const Registry& registry, const Hardware& hardware,
                  const EngineOptions& options, const LoadProgress& progress) {
    check_fit(planned.plan);
    state_ = std::make_unique<State>(std::move(file), std::move(planned), registry, hardware, options);
    state_->executor.load(state_->weights, progress);
    if (options.check_order) state_->executor.check_order();
    if (!state_->team.placed()) {
        log().warn(
            "the system did not allow all threads and memory to be bound to nodes: containers need the capability "
            "SYS_NICE for that");
    }
    if (options.lock_memory && !state_->executor.lock_memory()) {
        log().warn("not all memory could be locked: raise the system's limit of locked memory (RLIMIT_MEMLOCK)");
    }
}

Engine::~Engine() = default;

const ModelInfo& Engine::info() const noexcept {
    return state_->info;
}
const Plan& Engine::plan() const noexcept {
    return state_->executor.plan();
}
std::span<const std::string> Engine::notes() const noexcept {
    return state_->executor.notes();
}
const gguf::GgufFile& Engine::file() const noexcept {
    return state_->file;
}
uint32_t Engine::context() const noexcept {
    return state_->context;
}
uint32_t Engine::sequence_tokens() const noexcept {
    return state_->sequence_tokens;
}
uint32_t Engine::max_rows() const noexcept {
    return state_->limits.rows;
}
uint32_t Engine::max_sequences() const noexcept {
    return state_->limits.sequences;
}
uint32_t Engine::max_outputs() const noexcept {
    return state_->limits.output_rows;
}
uint32_t Engine::rows_as_single() const noexcept {
    const uint32_t from = state_->expand_from;  // 1: single ones are computed as rows of prompts are
    return from > 1 ? std::min(kRowsAsSingle, from - 1) : kRowsAsSingle;
}
bool Engine::rows_have_same_bits() const noexcept {
    return state_->host_alone;
}
bool Engine::gives_hidden_states() const noexcept {
    return plan().graph.find_output(kHidden) != 0;
}
void Engine::set_threads(uint32_t generation, uint32_t prompt) {
    const uint32_t most = state_->team.threads();
    if (std::max(generation, prompt) > most) {
        fail(TSR_INVALID_ARGUMENT, "{} threads asked for; the model was loaded for {}", std::max(generation, prompt),
             most);
    }
    if (generation) {
        state_->threads.generation = generation;
        state_->generation_workers = WorkerTuner(generation);
    }
    if (prompt) {
        state_->threads.prompt = prompt;
        state_->prompt_workers = WorkerTuner(prompt);
    }
}

uint64_t Engine::page_bytes(GroupIndex group) const {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < state_->cached_groups.size(); ++i) {
        if (state_->cached_groups[i] == group) bytes += state_->executor.page_bytes(i);
    }
    return bytes;
}

std::vector<uint64_t> Engine::page_bytes() const {
    std::vector<uint64_t> bytes;
    for (GroupIndex group = 0; group < cache().groups(); ++group) bytes.push_back(page_bytes(group));
    return bytes;
}

// One after the other, of the groups of the plan that share pages.
template <typename Bytes, typename Move>
void Engine::State::each_part(GroupIndex group, Bytes bytes, Move&& move) {
    for (uint32_t i = 0; i < cached_groups.size(); ++i) {
        if (cached_groups[i] != group) continue;
        const uint64_t own = executor.page_bytes(i);
        if (bytes.size() < own) fail(TSR_INVALID_ARGUMENT, "a page of {} bytes is too short", bytes.size());
        move(i, bytes.first(own));
        bytes = bytes.subspan(own);
    }
    if (!bytes.empty()) fail(TSR_INVALID_ARGUMENT, "a page has {} bytes too many", bytes.size());
}

void Engine::read_page(GroupIndex group, PageId page, std::span<std::byte> to) {
    state_->each_part(group, to, [&](uint32_t of_plan, std::span<std::byte> part) {
        state_->executor.save_page(of_plan, page, part);
    });
}
void Engine::write_page(GroupIndex group, PageId page, std::span<const std::byte> from) {
    state_->each_part(group, from, [&](uint32_t of_plan, std::span<const std::byte> part) {
        state_->executor.load_page(of_plan, page, part);
    });
}
PagedCache& Engine::cache() noexcept {
    return state_->cache;
}
const PagedCache& Engine::cache() const noexcept {
    return state_->cache;
}
void Engine::each_on_team(size_t count, const std::function<void(size_t)>& work) {
    tessera::each_on_team(state_->team, state_->generation_workers.workers(), count,
                          [&](uint32_t, size_t i) { work(i); });
}
void Engine::pack_one() {
    state_->executor.pack_one();
}
PackingProgress Engine::packing() const noexcept {
    return state_->executor.packing();
}
void Engine::cancel() noexcept {
    state_->executor.cancel();
}
StepComparisons Engine::compared() const {
    return state_->comparison.compared();
}
void Engine::measure(std::span<double> seconds) noexcept {
    state_->executor.measure(seconds);
}

void Engine::State::take(std::span<const BatchEntry> entries, bool wait, bool states) {
    try {
        check_entries(entries);
        if (!under_way.empty() && !has_room(entries)) finish();
        append(entries);
        try {
            start(entries, wait, states);
        } catch (...) {
            roll_back(entries, entries.size());
            throw;
        }
    } catch (...) {
        lose_steps();
        throw;
    }
}

void Engine::State::start(std::span<const BatchEntry> entries, bool wait, bool states) {
    const bool single = std::ranges::all_of(entries, [](const BatchEntry& e) { return e.tokens.size() == 1; });
    const bool drafted = !single && std::ranges::all_of(entries, [](const BatchEntry& e) {
        return e.tokens.size() == 1 || (e.all_outputs && !e.hidden);
    });
    const bool generation = single || drafted;
    WorkerTuner& tuner = generation ? generation_workers : prompt_workers;
    const uint32_t workers = tuner.workers();
    const StepSize size = write_inputs(entries);
    if (!wait && executor.plan().step.slots > 1) {
        std::vector<Appended> appended;
        for (const BatchEntry& entry : entries)
            appended.push_back(
                {entry.sequence, static_cast<uint32_t>(entry.tokens.size()), cache.length(entry.sequence)});
        executor.submit(size, workers, wanted(entries, states));
        under_way.push_back(std::move(appended));
    } else {
        const std::string_view output = wanted(entries, states);
        gave_row_states = output.empty();
        // Steps that give states of all rows take longer.
        const bool compare = !output.empty() && is_predicted(entries, workers);
        const auto start = std::chrono::steady_clock::now();
        const double used = compare && host_alone ? process_seconds() : 0;
        team.take_time();
        executor.run(size, workers, output);
        const Team::Time time = team.take_time();
        const double seconds = seconds_since(start);
        // Weights dominate steps of generation, rows those of prompts.
        const double work = generation ? 1 : size.ranges[TSR_RANGE_ROWS].end;
        if (!drafted) tuner.finished(seconds, work, time.seconds > 0 ? time.waiting / time.seconds : 0);
        if (compare && (!host_alone || process_seconds() - used >= kQuiet * workers * seconds)) {
            const auto rows = static_cast<uint32_t>(entries[0].tokens.size());
            comparison.finished(rows, cache.length(entries[0].sequence) - rows, seconds);
        }
    }
    forget_ended();
    if (under_way.empty()) {
        for (const BatchEntry& entry : entries) cache.give_back(entry.sequence, cache.length(entry.sequence));
    }
}

std::string_view Engine::State::wanted(std::span<const BatchEntry> entries, bool states) const {
    if (has_hidden(entries)) return kHidden;
    // States of output rows come with their logits.
    const bool rows = states && executor.plan().graph.find_output(kRowStates) != 0 &&
                      std::ranges::any_of(states_of, [](const StatesOf& one) { return one.outputs < one.tokens; });
    return rows ? std::string_view() : kLogits;
}

bool Engine::State::is_predicted(std::span<const BatchEntry> entries, uint32_t workers) const {
    if (entries.size() != 1 || workers != executor.plan().devices[0]->threads || executor.under_way() != 0)
        return false;
    const PackingProgress packing = executor.packing();
    const bool one_output = !entries[0].hidden && (entries[0].tokens.size() == 1 || !entries[0].all_outputs);
    return one_output && packing.done_bytes == packing.total_bytes;
}

// Executor waits for the oldest steps where it needs their memory. What a step that has ended has passed is not needed
// again: only those under way are rolled back.
void Engine::State::forget_ended() {
    while (under_way.size() > executor.under_way()) {
        for (const Appended& one : under_way.front()) cache.give_back(one.sequence, one.length);
        under_way.pop_front();
    }
}

void Engine::State::finish() {
    try {
        executor.finish();
    } catch (...) {
        lose_steps();
        throw;
    }
    forget_ended();
}

void Engine::State::lose_steps() {
    try {
        executor.finish();  // those before one that was refused
    } catch (const std::exception&) {
        // The caller has an error to report already.
    }
    for (const std::vector<Appended>& step : std::exchange(under_way, {})) {
        for (const Appended& one : step) cache.truncate(one.sequence, cache.length(one.sequence) - one.tokens);
    }
}

std::vector<std::span<const float>> Engine::step(std::span<const BatchEntry> entries, bool states) {
    State& s = *state_;
    s.take(entries, true, states);
    const bool hidden = has_hidden(entries);
    s.gave_hidden = hidden;
    const size_t width = hidden ? s.info.embedding : s.info.vocabulary;
    const auto* values = reinterpret_cast<const float*>(s.executor.output(hidden ? kHidden : kLogits));
    std::vector<std::span<const float>> outputs;
    size_t row = 0;
    for (const BatchEntry& entry : entries) {
        for (size_t i = 0; i < outputs_of(entry); ++i, ++row) outputs.emplace_back(values + row * width, width);
    }
    return outputs;
}

std::span<const float> Engine::states(size_t entry) const {
    const State::StatesOf& of = state_->states_of.at(entry);
    const Graph& graph = plan().graph;
    const size_t width = state_->info.embedding;
    const bool outputs = of.outputs == of.tokens;
    const char* const name = outputs || !graph.find_output(kRowStates) ? kStates : kRowStates;
    if (!graph.find_output(name) || state_->gave_hidden) return {};
    if (name == kRowStates && !state_->gave_row_states) return {};
    const auto* values = reinterpret_cast<const float*>(state_->executor.output(name));
    return name == kStates ? std::span(values + of.output * width, of.outputs * width)
                           : std::span(values + of.row * width, of.tokens * width);
}

void Engine::submit(std::span<const BatchEntry> entries) {
    if (std::ranges::any_of(entries, [](const BatchEntry& entry) { return outputs_of(entry) > 0; }))
        fail(TSR_INVALID_ARGUMENT, "a step that is not waited for cannot have outputs");
    state_->take(entries, false, false);
}

void Engine::finish() {
    state_->finish();
}

size_t Engine::under_way() const noexcept {
    return state_->under_way.size();
}

std::span<const float> Engine::prefill(SequenceId sequence, std::span<const Token> tokens,
                                       const std::function<bool(size_t, size_t)>& keep_going) {
    if (tokens.empty()) fail(TSR_INVALID_ARGUMENT, "an empty prompt");
    const uint32_t begin = state_->cache.length(sequence);
    std::span<const float> logits;
    size_t done = 0;
    bool stopped = false;
    try {
        while (done < tokens.size()) {
            const size_t count = std::min<size_t>(max_rows(), tokens.size() - done);
            const bool last = done + count == tokens.size();
            const BatchEntry entry{sequence, tokens.subspan(done, count), last, false};
            if (last) {
                logits = step({&entry, 1}).front();
            } else {
                submit({&entry, 1});
            }
            done += count;
            if (last || !keep_going || keep_going(done, tokens.size())) continue;
            finish();
            stopped = true;
            fail(TSR_CANCELLED, "stopped after {} of {} prompt tokens", done, tokens.size());
        }
    } catch (...) {
        if (!stopped) {
            state_->lose_steps();  // those before an exception of keep_going
            PagedCache& cache = state_->cache;
            cache.truncate(sequence, std::min(cache.length(sequence), begin));
        }
        throw;
    }
    if (keep_going) keep_going(done, tokens.size());
    return logits;
}

}  // namespace tessera
