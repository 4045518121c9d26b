// flash_attention and tiled_attention: one algorithm for both, with a running maximum and sum over pages of tokens
// (arXiv 2205.14135, section 3.1). The work is divided into tiles of heads that share keys and of rows. A query's
// arithmetic goes page by page whatever the tile is, so results depend neither on the workers nor on the limit on
// scratch memory.
#include "plain.hpp"
#include "sums.hpp"

#include <tessera/cpu/checks/attention.hpp>
#include <tessera/cpu/hadamard.hpp>
#include <tessera/cpu/page_table.hpp>

#include <cmath>
#include <limits>

namespace tessera::plain {

using namespace cpu;

// How a node is cut. A tile is `heads` x `rows` queries over one page of decoded keys and values.
struct AttentionTiles {
    int64_t heads = 1;
    int64_t rows = 1;
    uint32_t slots = 1;  // workers that can work at once
    uint64_t slot_bytes = 0;
    uint64_t minimum_bytes = 0;  // of one slot with a tile of one query
};

namespace {

constexpr int64_t kQueries = 16;         // of a tile, where memory allows
constexpr int64_t kProjectedRows = 256;  // of a tile: they share what is projected

uint64_t rounded(int64_t count, int64_t bytes) noexcept {
    return (static_cast<uint64_t>(count) * static_cast<uint64_t>(bytes) + 63) / 64 * 64;
}

// The parts of one slot, in this order.
struct SlotBytes {
    uint64_t keys, values, latent, weight, scores, state, sums;
    uint64_t total() const noexcept { return keys + values + latent + weight + scores + state + sums; }
};

SlotBytes slot_bytes(const AttentionShape& shape, int64_t queries) noexcept {
    const bool projected = shape.variant == AttentionVariant::kProjected;
    SlotBytes bytes{};
    bytes.keys = rounded(TSR_PAGE_TOKENS * shape.dk, 4);
    bytes.values = shape.variant == AttentionVariant::kPrefix ? 0 : rounded(TSR_PAGE_TOKENS * shape.dv, 4);
    bytes.latent = projected ? rounded(TSR_PAGE_TOKENS * shape.latent, 4) : 0;
    bytes.weight = projected ? rounded(shape.latent, 4) : 0;
    bytes.scores = rounded(TSR_PAGE_TOKENS, 8);
    bytes.state = rounded(queries * 2, 8);
    bytes.sums = rounded(queries * shape.dv, 8);
    return bytes;
}

}  // namespace

// `cap` 0: none. minimum_bytes > cap > 0: the node cannot be done under that cap.
AttentionTiles attention_tiles(const AttentionShape& shape, uint64_t cap, uint32_t slots) noexcept {
    AttentionTiles tiles;
    tiles.slots = std::max(1u, slots);
    tiles.minimum_bytes = slot_bytes(shape, 1).total();
    if (shape.variant == AttentionVariant::kProjected) {
        tiles.rows = std::min(kProjectedRows, shape.rows);
    } else {
        tiles.heads = std::min<int64_t>(4, shape.heads / shape.kv_heads);
        tiles.rows = std::min(kQueries / tiles.heads, shape.rows);
    }
    if (cap >= tiles.minimum_bytes) {
        tiles.slots = static_cast<uint32_t>(std::min<uint64_t>(tiles.slots, cap / tiles.minimum_bytes));
        const auto too_large = [&] { return slot_bytes(shape, tiles.heads * tiles.rows).total() > cap / tiles.slots; };
        while (tiles.rows > 1 && too_large()) tiles.rows /= 2;
        while (tiles.heads > 1 && too_large()) tiles.heads /= 2;
    }
    tiles.slot_bytes = slot_bytes(shape, tiles.heads * tiles.rows).total();
    return tiles;
}

void plan_attention(const tsr_node& node, uint32_t slots, tsr_kernel_plan& plan, Work& work) noexcept {
    Check check(node, plan);
    if (!check_attention(check, node)) return;
    const AttentionShape shape(node);
    const tsr_tensor& q = check.at(kQ);
    const bool projected = shape.variant == AttentionVariant::kProjected;
    const bool plain = shape.variant == AttentionVariant::kPlain;
    const uint64_t cap = scratch_cap(node);
    const AttentionTiles tiles = attention_tiles(shape, cap, slots);
    plan.minimum_scratch_bytes = tiles.minimum_bytes;
    if (cap != 0 && cap < tiles.minimum_bytes) {
        check.no("%s: required at most %llu bytes of scratch; supported: %llu or more; missing: %llu bytes", node.op,
                 static_cast<unsigned long long>(cap), static_cast<unsigned long long>(tiles.minimum_bytes),
                 static_cast<unsigned long long>(tiles.minimum_bytes - cap));
        return;
    }
    plan.workspace_bytes = tiles.slots * tiles.slot_bytes;

    const int64_t most =
        std::max<int64_t>(1, sdk::int_attribute(node, "max_tokens", check.at(kPageTable).dims[0] * TSR_PAGE_TOKENS));
    const double full = static_cast<double>(shape.window > 0 ? std::min(shape.window, most) : most);
    const double rows = row_count(q);
    const double pair = static_cast<double>(shape.heads) * static_cast<double>(shape.dk + shape.dv);
    const double projection = static_cast<double>(shape.heads) * static_cast<double>(shape.latent) *
                              static_cast<double>(shape.dk - shape.unprojected + shape.dv) * (projected ? 1 : 0);
    const double row_of_cache =
        tensor_bytes(check.at(kK)) / static_cast<double>(check.at(kK).dims[2]) / TSR_PAGE_TOKENS +
        (plain ? tensor_bytes(check.at(kV)) / static_cast<double>(check.at(kV).dims[2]) / TSR_PAGE_TOKENS : 0);
    const double tiles_of_rows = std::ceil(rows / static_cast<double>(tiles.rows));
    // Each of `count` rows attends to `tokens` on average; `cached` rows are read, and projected, once for each tile.
    const auto macs = [&](double count, double tokens, double cached, double passes) {
        return pair * count * tokens + projection * cached * passes;
    };
    work.macs_one_row = macs(1, 1, 1, 1);
    work.macs_all_rows = macs(rows, std::min(full, (rows + 1) / 2), rows, tiles_of_rows);
    work.macs_one_row_full = macs(1, full, full, 1);
    work.macs_all_rows_full = macs(rows, full, full, tiles_of_rows);
    work.bytes_one_row = row_of_cache + tensor_bytes(q) * 2 / rows;
    work.bytes_all_rows = row_of_cache * rows * tiles_of_rows + tensor_bytes(q) * 2;
    work.bytes_one_row_full = row_of_cache * full + tensor_bytes(q) * 2 / rows;
    work.bytes_all_rows_full = row_of_cache * full * tiles_of_rows + tensor_bytes(q) * 2;
    plan.supported = 1;
}

namespace {

// What one worker works with for the time of a run.
class Worker {
  public:
    Worker(const tsr_node& node, const tsr_run& run, const AttentionShape& shape, int64_t queries,
           char* memory) noexcept
        : shape_(shape),
          q_(input(node, run, kQ)),
          k_(input(node, run, kK)),
          positions_(input(node, run, kPositions)),
          sequences_(input(node, run, kSequences)),
          table_(node, input(node, run, kPageTable), k_.dim(2)),
          out_(output(node, run)) {
        if (shape.variant == AttentionVariant::kPlain) v_ = input(node, run, kV);
        if (sdk::has_input(node, kSinks)) sinks_ = input(node, run, kSinks).floats(0);
        if (shape.variant == AttentionVariant::kProjected) wk_ = input(node, run, kWk), wv_ = input(node, run, kWv);
        const SlotBytes bytes = slot_bytes(shape, queries);
        const auto take = [&](uint64_t size) {
            char* start = memory;
            memory += size;
            return start;
        };
        keys_ = reinterpret_cast<float*>(take(bytes.keys));
        values_ = reinterpret_cast<float*>(take(bytes.values));
        latent_ = reinterpret_cast<float*>(take(bytes.latent));
        weight_ = reinterpret_cast<float*>(take(bytes.weight));
        scores_ = reinterpret_cast<double*>(take(bytes.scores));
        state_ = reinterpret_cast<double*>(take(bytes.state));
        sums_ = reinterpret_cast<double*>(take(bytes.sums));
        value_stride_ = shape.dv;
        if (shape.variant == AttentionVariant::kPrefix) values_ = keys_, value_stride_ = shape.dk;
    }

    // Heads [h0, h1), which share keys, and rows [r0, r1) of whatever sequences.
    void tile(int64_t h0, int64_t h1, int64_t r0, int64_t r1) {
        while (r0 < r1) {
            int64_t end = r0 + 1;
            while (end < r1 && sequences_.integer(end) == sequences_.integer(r0)) ++end;
            one_sequence(h0, h1, r0, end);
            r0 = end;
        }
    }

  private:
    void one_sequence(int64_t h0, int64_t h1, int64_t r0, int64_t r1) {
        const int64_t heads = h1 - h0;
        const int64_t queries = heads * (r1 - r0);
        for (int64_t i = 0; i < queries; ++i) {
            state_[2 * i] = -std::numeric_limits<double>::infinity();
            state_[2 * i + 1] = 0;
        }
        std::fill_n(sums_, queries * shape_.dv, 0.0);
        const int64_t sequence = sequences_.integer(r0);
        int64_t last = -1, seen_first = std::numeric_limits<int64_t>::max();
        for (int64_t r = r0; r < r1; ++r) {
            const int64_t position = positions_.integer(r);
            table_.page(position, sequence);  // rejects what is out of range before anything is read
            last = std::max(last, position);
            seen_first = std::min(seen_first, shape_.first_seen(position));
        }
        for (int64_t first = seen_first / TSR_PAGE_TOKENS * TSR_PAGE_TOKENS; first <= last; first += TSR_PAGE_TOKENS) {
            const int64_t tokens = std::min<int64_t>(TSR_PAGE_TOKENS, last - first + 1);
            load(table_.page(first, sequence), tokens, h0);
            for (int64_t r = r0; r < r1; ++r) {
                const int64_t position = positions_.integer(r);
                const int64_t begin = std::max<int64_t>(0, shape_.first_seen(position) - first);
                const int64_t end = std::min<int64_t>(tokens, position - first + 1);
                if (begin >= end) continue;
                for (int64_t h = h0; h < h1; ++h) query((r - r0) * heads + h - h0, q_.floats(h, r), begin, end);
            }
        }
        for (int64_t r = r0; r < r1; ++r) {
            for (int64_t h = h0; h < h1; ++h) {
                const int64_t i = (r - r0) * heads + h - h0;
                if (sinks_) state_[2 * i + 1] += std::exp(double{sinks_[h]} - state_[2 * i]);
                float* to = out_.floats(h, r);
                for (int64_t j = 0; j < shape_.dv; ++j)
                    to[j] = static_cast<float>(sums_[i * shape_.dv + j] / state_[2 * i + 1]);
            }
        }
    }

    // Decodes or projects the keys and values of the first `tokens` of a page for the heads that share head h's. What
    // lies past them is not read.
    void load(int64_t page, int64_t tokens, int64_t h) {
        const int64_t kv_head = h / (shape_.heads / shape_.kv_heads);
        for (int64_t t = 0; t < tokens; ++t) {
            const char* row = k_.row(t, page);
            float* key = keys_ + t * shape_.dk;
            switch (shape_.variant) {
                case AttentionVariant::kPlain:
                    decode_elements(k_.tensor->type, row, kv_head * shape_.dk, shape_.dk, key);
                    decode_elements(v_.tensor->type, v_.row(t, page), kv_head * shape_.dv, shape_.dv,
                                    values_ + t * shape_.dv);
                    break;
                case AttentionVariant::kPrefix:
                    decode_elements(k_.tensor->type, row, 0, shape_.dk, key);
                    break;
                case AttentionVariant::kProjected:
                    decode_elements(k_.tensor->type, row, 0, shape_.latent, latent_ + t * shape_.latent);
                    decode_elements(k_.tensor->type, row, shape_.latent, shape_.unprojected,
                                    key + shape_.dk - shape_.unprojected);
                    break;
            }
        }
        if (shape_.variant != AttentionVariant::kProjected) return;
        project(wk_, h, shape_.dk - shape_.unprojected, tokens, keys_, shape_.dk);
        project(wv_, h, shape_.dv, tokens, values_, shape_.dv);
    }

    void project(const View& weight, int64_t h, int64_t outputs, int64_t tokens, float* to, int64_t stride) {
        for (int64_t o = 0; o < outputs; ++o) {
            decode_elements(weight.tensor->type, weight.row(o, h), 0, shape_.latent, weight_);
            if (shape_.hadamard) hadamard(weight_, shape_.latent);
            for (int64_t t = 0; t < tokens; ++t) {
                to[t * stride + o] = static_cast<float>(dot(weight_, latent_ + t * shape_.latent, shape_.latent));
            }
        }
    }

    // Tokens [begin, end) of the page.
    void query(int64_t i, const float* q, int64_t begin, int64_t end) noexcept {
        double& maximum = state_[2 * i];
        double& sum = state_[2 * i + 1];
        double* values = sums_ + i * shape_.dv;
        double largest = maximum;
        for (int64_t t = begin; t < end; ++t) {
            scores_[t] = shape_.scale * dot(q, keys_ + t * shape_.dk, shape_.dk);
            largest = std::max(largest, scores_[t]);
        }
        if (largest > maximum) {
            const double factor = std::exp(maximum - largest);
            sum *= factor;
            for (int64_t j = 0; j < shape_.dv; ++j) values[j] *= factor;
            maximum = largest;
        }
        for (int64_t t = begin; t < end; ++t) {
            const double weight = std::exp(scores_[t] - maximum);
            const float* value = values_ + t * value_stride_;
            sum += weight;
            for (int64_t j = 0; j < shape_.dv; ++j) values[j] += weight * static_cast<double>(value[j]);
        }
    }

    const AttentionShape& shape_;
    View q_, k_, v_, positions_, sequences_;
    PageTable table_;
    View wk_, wv_, out_;
    const float* sinks_ = nullptr;  // of each head
    float *keys_, *values_, *latent_, *weight_;
    double* scores_;  // of one query over one page
    double* state_;   // maximum and sum of each query
    double* sums_;    // weighted values of each query
    int64_t value_stride_;
};

}  // namespace

void run_attention(const tsr_node& node, uint32_t slots, const tsr_run& run) {
    const AttentionShape shape(node);
    const AttentionTiles tiles = attention_tiles(shape, scratch_cap(node), slots);
    const tsr_range rows = sdk::actual_rows(*node.inputs[kQ], run);
    const int64_t group = shape.heads / shape.kv_heads;
    const int64_t head_tiles = (group + tiles.heads - 1) / tiles.heads;
    const int64_t row_tiles = (std::max(0, rows.end - rows.begin) + tiles.rows - 1) / tiles.rows;
    const Share part = share(shape.kv_heads * head_tiles * row_tiles, run.worker, std::min(tiles.slots, run.workers));
    if (part.begin == part.end) return;
    Worker worker(node, run, shape, tiles.heads * tiles.rows,
                  static_cast<char*>(run.workspace) + tiles.slot_bytes * run.worker);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t kv_head = item / (head_tiles * row_tiles);
        const int64_t h0 = kv_head * group + item / row_tiles % head_tiles * tiles.heads;
        const int64_t r0 = rows.begin + item % row_tiles * tiles.rows;
        worker.tile(h0, std::min(h0 + tiles.heads, (kv_head + 1) * group), r0,
                    std::min<int64_t>(r0 + tiles.rows, rows.end));
    }
}

}  // namespace tessera::plain
