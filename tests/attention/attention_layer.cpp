#include "attention_layer.hpp"

#include "core/cache/paged_cache.hpp"
#include "core/graph/graph.hpp"
#include "core/plan/make_plan.hpp"
#include "core/plan/plan.hpp"
#include "core/run/executor.hpp"

#include <tessera/cpu/formats.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace tessera::test {
namespace {

using Data = AttentionData;

constexpr int32_t kLeastRows = TSR_PAGE_TOKENS, kMostRows = 256;  // of a step
constexpr int32_t kGenerated =
    5;  // tokens at the end of a sequence that are computed one at a time, if it has that many
constexpr uint32_t kSparePages = 2;

// New tokens of one sequence in a step.
struct Slice {
    size_t sequence;
    int32_t first, rows;
    bool prompt;
};
using Step = std::vector<Slice>;

// Every sequence starts a step after the one before it, brings its prompt in chunks and then generates: prompts of some
// meet generation of others. A sequence of one token generates or is a prompt in turn.
std::vector<Step> make_steps(std::span<const int32_t> lengths, int32_t max_rows) {
    std::vector<Step> steps;
    std::vector<int32_t> done(lengths.size(), 0);
    const int32_t room = max_rows / static_cast<int32_t>(lengths.size());
    for (size_t number = 0; !std::ranges::equal(done, lengths); ++number) {
        Step prompts, generation;
        for (size_t s = 0; s < std::min(lengths.size(), number + 1); ++s) {
            const int32_t length = lengths[s];
            const int32_t generated = length == 1 ? (s % 2 == 0 ? 1 : 0) : std::min(kGenerated, length / 3);
            const int32_t prompt = length - generated;
            if (done[s] == length) continue;
            if (done[s] < prompt) {
                const int32_t rows = std::min({prompt - done[s], prompt / 2 + 1, room});
                prompts.push_back({s, done[s], rows, true});
                done[s] += rows;
            } else {
                generation.push_back({s, done[s]++, 1, false});
            }
        }
        prompts.insert(prompts.end(), generation.begin(), generation.end());
        if (!prompts.empty()) steps.push_back(std::move(prompts));
    }
    return steps;
}

Graph make_graph(const Data& data, const OpSet& ops, int64_t max_rows, int64_t sequences, int64_t pages_of_one) {
    using sdk::attribute;
    const int64_t h = data.heads();
    Graph graph(ops);
    const Value tokens = graph.input("tokens", {TSR_TYPE_I32, {max_rows}, TSR_RANGE_ROWS});
    const Value positions = graph.input("positions", {TSR_TYPE_I32, {max_rows}, TSR_RANGE_ROWS});
    const Value slots = graph.input("sequences", {TSR_TYPE_I32, {max_rows}, TSR_RANGE_ROWS});
    const Value page_table = graph.input("page_table", {TSR_TYPE_I32, {pages_of_one, sequences}});
    graph.set_layer(0);
    const Value q =
        graph.add_one("get_rows", "q", {graph.weight("q", {TSR_TYPE_F32, {Data::kKey * h, data.rows()}}), tokens});
    const Value kv =
        graph.add_one("get_rows", "kv", {graph.weight("kv", {TSR_TYPE_F32, {Data::kCached, data.rows()}}), tokens});
    const Value norm = graph.weight("kv_norm", {TSR_TYPE_F32, {Data::kLatent}});
    const Value wkv_b = graph.weight("wkv_b", {data.weights(), {Data::kLatent, h * (Data::kNope + Data::kValue)}});
    graph.set_output(
        "hidden", graph.add_one("mla_attention", "attn", {q, kv, norm, wkv_b, 0, 0, positions, slots, page_table},
                                {attribute("heads", h), attribute("nope", Data::kNope), attribute("rope", Data::kRope),
                                 attribute("v", Data::kValue), attribute("kv_lora", Data::kLatent),
                                 attribute("epsilon", Data::kEpsilon), attribute("scale", Data::kScale),
                                 attribute("rope_base", Data::kBase)}));
    return graph;
}

class Runner {
  public:
    Runner(Data& data, size_t sequences, const AttentionCase& asked, const AttentionBackend& backend)
        : data_(data),
          lengths_(data.lengths().first(sequences)),
          backend_(backend),
          max_rows_(std::clamp(std::ranges::max(lengths_), kLeastRows, kMostRows)),
          pages_of_one_(pages(std::ranges::max(lengths_))),
          all_pages_(total_pages()),
          cache_(all_pages_),
          executor_(make(asked), *backend.registry, *backend.team) {
        data_.poison_with(cpu::format_size(asked.cache).elements > 1 ? 3e4f : std::nanf(""));
        executor_.load(data_);
        tokens_ = integers("tokens");
        positions_ = integers("positions");
        slots_ = integers("sequences");
        page_table_ = integers("page_table");
        poison();
    }

    AttentionResult run() {
        const auto start = std::chrono::steady_clock::now();
        std::vector<SequenceId> ids;
        for (size_t s = 0; s < lengths_.size(); ++s) ids.push_back(cache_.create());
        for (const Step& step : make_steps(lengths_, max_rows_)) take(step, ids);
        AttentionResult result;
        result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        result.error = std::sqrt(error_ / norm_);
        const Plan& plan = executor_.plan();
        result.notes = plan.notes;
        for (const LoweringChoice& choice : plan.lowerings) {
            if (choice.op == "mla_attention") result.lowering = choice.lowering;
        }
        for (const PlannedNode& planned : plan.nodes) {
            const Node& node = plan.graph.nodes()[planned.node];
            if (!node.op.ends_with("_attention")) continue;
            result.nodes.push_back(
                {node.name, node.op, backend_.registry->owner(*planned.kernel).manifest.name, planned.workspace_bytes});
        }
        return result;
    }

  private:
    static uint32_t pages(int32_t tokens) {
        return static_cast<uint32_t>((tokens + TSR_PAGE_TOKENS - 1) / TSR_PAGE_TOKENS);
    }

    uint32_t total_pages() const {
        uint32_t sum = kSparePages;
        for (const int32_t length : lengths_) sum += pages(length);
        return sum;
    }

    Plan make(const AttentionCase& asked) {
        for (const tsr_operator* op : backend_.registry->operators())
            ops_.add(op, backend_.registry->owner(*op).table->name);
        ScheduleOptions options;
        options.max_rows = static_cast<uint32_t>(max_rows_);
        options.max_sequences = static_cast<uint32_t>(lengths_.size());
        options.max_tokens = pages_of_one_ * TSR_PAGE_TOKENS;
        options.cache_pages = all_pages_;
        options.cache_type_k = options.cache_type_v = asked.cache;
        options.hadamard_keys = options.hadamard_values = asked.hadamard;
        options.flash_attention = asked.flash;
        options.scratch_bytes = asked.scratch_bytes;
        options.lowerings["mla_attention"] = asked.variant;
        return make_plan(make_graph(data_, ops_, max_rows_, static_cast<int64_t>(lengths_.size()), pages_of_one_),
                         *backend_.registry, *backend_.hardware, options);
    }

    std::span<int32_t> integers(const char* name) {
        const std::span<std::byte> bytes = executor_.input(name);
        return {reinterpret_cast<int32_t*>(bytes.data()), bytes.size() / sizeof(int32_t)};
    }

    void run_rows(int32_t rows, int32_t prompt_rows) {
        std::array<tsr_range, TSR_RANGE_COUNT> ranges{};
        ranges[TSR_RANGE_ROWS] = {0, rows};
        ranges[TSR_RANGE_PROMPT_ROWS] = {0, prompt_rows};
        ranges[TSR_RANGE_GENERATION_ROWS] = {prompt_rows, rows};
        executor_.run(ranges);
    }

    // One page of poison, and copies of it everywhere else.
    void poison() {
        std::ranges::fill(page_table_, -1);
        page_table_[0] = 0;
        for (int32_t i = 0; i < TSR_PAGE_TOKENS; ++i) {
            tokens_[static_cast<size_t>(i)] = data_.poison_row();
            positions_[static_cast<size_t>(i)] = i;
            slots_[static_cast<size_t>(i)] = 0;
        }
        run_rows(TSR_PAGE_TOKENS, TSR_PAGE_TOKENS);
        std::vector<std::pair<uint32_t, uint32_t>> copies;
        for (uint32_t page = 1; page < all_pages_; ++page) copies.emplace_back(0, page);
        executor_.copy_pages(0, copies);
    }

    void take(const Step& step, const std::vector<SequenceId>& ids) {
        size_t row = 0;
        int32_t prompt_rows = 0;
        std::ranges::fill(page_table_, -1);
        std::vector<PageCopy> copies;
        for (const Slice& slice : step) {
            cache_.append(ids[slice.sequence], static_cast<uint32_t>(slice.rows), copies);
            const auto pages = cache_.pages(ids[slice.sequence]);
            std::ranges::copy(pages, page_table_.begin() + static_cast<ptrdiff_t>(slice.sequence * pages_of_one_));
            for (int32_t i = 0; i < slice.rows; ++i, ++row) {
                tokens_[row] = data_.row_of(slice.sequence, slice.first + i);
                positions_[row] = slice.first + i;
                slots_[row] = static_cast<int32_t>(slice.sequence);
            }
            if (slice.prompt) prompt_rows = static_cast<int32_t>(row);
        }
        run_rows(static_cast<int32_t>(row), prompt_rows);
        const auto* got = reinterpret_cast<const float*>(executor_.output("hidden"));
        for (const Slice& slice : step) {
            for (int32_t i = 0; i < slice.rows; ++i) {
                for (const float wanted : data_.expected(slice.sequence, slice.first + i)) {
                    const double difference = double{*got++} - wanted;
                    error_ += difference * difference;
                    norm_ += double{wanted} * wanted;
                }
            }
        }
    }

    Data& data_;
    std::span<const int32_t> lengths_;
    const AttentionBackend& backend_;
    int32_t max_rows_;
    uint32_t pages_of_one_, all_pages_;
    PagedCache cache_;
    OpSet ops_;
    Executor executor_;
    std::span<int32_t> tokens_, positions_, slots_, page_table_;
    double error_ = 0, norm_ = 0;
};

}  // namespace

AttentionResult run_attention(AttentionData& data, size_t sequences, const AttentionCase& asked,
                              const AttentionBackend& backend) {
    return Runner(data, sequences, asked, backend).run();
}

double attention_limit(tsr_type cache) {
    switch (cache) {
        case TSR_TYPE_F32:
            return 1e-4;
        case TSR_TYPE_F16:
            return 3e-3;
        case TSR_TYPE_BF16:
        case TSR_TYPE_Q8_0:
        case TSR_TYPE_Q8_KV:
            return 1e-2;
        case TSR_TYPE_Q6_0:
            return 4e-2;
        case TSR_TYPE_Q5_0:
        case TSR_TYPE_Q5_1:
            return 8e-2;
        default:
            return 1.5e-1;
    }
}

std::vector<int32_t> attention_lengths(int32_t tokens) {
    return {tokens, std::max(1, tokens * 5 / 8), tokens / 3 + 1};
}

std::string lowering_of(const AttentionCase& asked) {
    return asked.variant == "3" && !asked.flash ? "2" : asked.variant;
}

std::string op_of(const AttentionCase& asked, const AttentionNode& node) {
    const bool tiles = !asked.flash || (asked.variant == "2" && node.name.ends_with("attend_absorbed"));
    return tiles ? "tiled_attention" : "flash_attention";
}

}  // namespace tessera::test
