// Attention in f32 with a running maximum and sum (arXiv 2205.14135), for many rows of queries at a time. Both products
// are tiles of registers out of shared memory; scores and outputs stay in registers, weights pass through shared
// memory.
#pragma once

#include "kernels/cuda/attention/flash_rows.hpp"
#include "kernels/cuda/attention/flash_tiles_f32.hpp"
#include "kernels/cuda/attention/raw_rows.hpp"

namespace tessera::cuda_kernels {

// What a block works on, kept in shared memory while all registers are needed: the rows of one sequence.
struct FlashRunF32 {
    FlashRows rows;
    int32_t sequence, begin, end;  // rows of the tile
    int32_t missing[2];            // the first token without a page, by even and by odd pages
};

// A thread's part of a block's work. kTypes: of the cache.
template <class Tile, RawTypes kTypes>
class FlashF32 {
  public:
    static constexpr int kTokens = Tile::kTokens, kRows = Tile::kRows;
    static constexpr int kOwnRows = Tile::kOwnRows, kOwnTokens = Tile::kOwnTokens, kOwnColumns = Tile::kOwnColumns;
    static_assert(Tile::kThreads == kRawThreads && kDepthStride == 20);
    static_assert(kTokens == Tile::kThreads && kTokens == 2 * kPageTokens);

    SIMT_DEVICE FlashF32(const Attention& p, unsigned char* memory)
        : p_(p),
          memory_(memory),
          row_data_(reinterpret_cast<FlashRow*>(memory + Tile::kRowData)),
          run_(*reinterpret_cast<FlashRunF32*>(memory + Tile::kRun)),
          first_row_(static_cast<int>(simt::warp()) / Tile::kColumnWarps * (kRows / Tile::kRowWarps) + lane_row()),
          column_warp_(static_cast<int>(simt::warp()) % Tile::kColumnWarps) {}

    // All of a block's work: the rows of its tile, one sequence after the other.
    SIMT_DEVICE void run() {
        using namespace simt;
        const RowRange range = actual_rows(p_.rows);
        FlashRows rows{range.begin, (range.end - range.begin) * p_.group, 0};
        const int tiles = (rows.total + kRows - 1) / kRows;
        // The last rows see the most tokens: they begin first.
        const int tile = tiles - 1 - static_cast<int>(block_index().x);
        if (tile < 0) return;
        rows.first = tile * kRows;
        if (thread_index().x == 0) run_.rows = rows;
        read_flash_rows<kRows, Tile::kThreads>(p_, rows, row_data_);
        if (const int m = static_cast<int>(thread_index().x); m < kRows) {
            const int index = minimum(rows.first + m, rows.total - 1);
            query_rows()[m] = reinterpret_cast<const char*>(query_of(p_, rows, index));
        }
        sync_block();
        const int count = minimum(kRows, rows.total - rows.first);
        if (const TokenBounds all = bounds_of_flash_rows(row_data_, 0, count); all.first >= all.end) return;
        for (int begin = 0; begin < minimum(kRows, run_.rows.total - run_.rows.first); begin = run_.end) {
            attend(begin);
            write();
        }
    }

  private:
    using Keys = RawRows<kTokens, kDepth, kDepthStride, kTypes>;
    using Queries = RawRows<kRows, kDepth, kDepthStride, RawTypes::kF32>;
    using Values = RawRows<Tile::kStep, Tile::kDv, Tile::kDv, kTypes>;

    // Where rows of queries, of keys and of values of a tile begin; nullptr: zeros. In shared memory, since registers
    // are what the kernel is short of.
    SIMT_DEVICE const char** query_rows() const { return reinterpret_cast<const char**>(memory_ + Tile::kQueries); }
    SIMT_DEVICE const char** key_rows() const { return reinterpret_cast<const char**>(memory_ + Tile::kTokenRows); }
    SIMT_DEVICE const char** value_rows() const { return key_rows() + kTokens; }
    // Maximum and sum of row i of the thread, kept by the first warp of a group; of the tile, by each warp.
    SIMT_DEVICE simt::Float2* state_of(int i) const {
        return reinterpret_cast<simt::Float2*>(memory_ + Tile::kStates) + first_row_ + 4 * i;
    }
    SIMT_DEVICE simt::Float2* exchange_of(int i) const {
        return reinterpret_cast<simt::Float2*>(memory_ + Tile::kExchange) + (first_row_ + 4 * i) * Tile::kColumnWarps;
    }
    SIMT_DEVICE bool owns_rows() const { return column_warp_ == 0 && lane_column() == 0; }
    SIMT_DEVICE float* weights() const { return reinterpret_cast<float*>(memory_); }
    SIMT_DEVICE float* key_stage(int stage) const {
        return reinterpret_cast<float*>(memory_ + stage * Tile::kKeyStage);
    }
    SIMT_DEVICE float* value_stage(int stage) const {
        return reinterpret_cast<float*>(memory_ + Tile::kValues + stage * Tile::kValueStage);
    }

    // Tiles begin at multiples of kTokens, whatever rows of other positions there are, or where a window begins.
    SIMT_DEVICE int tile_begin(int token) const { return p_.window_pages > 0 ? token : token / kTokens * kTokens; }

    // Where the rows of the tile at `token` are; a thread finds one. Tokens past the end and without a page become
    // zeros: memory holds anything there, and weights of 0 times NaN would be NaN.
    SIMT_DEVICE void find_rows(const char** rows, int token, const void* cache, int64_t page_bytes,
                               int64_t token_bytes) {
        const int m = static_cast<int>(simt::thread_index().x);
        const int page = token + m < end_ ? key_page(p_, token + m, run_.sequence) : -1;
        rows[m] = page < 0 ? nullptr : at<char>(cache, page * page_bytes + m % kPageTokens * token_bytes);
        if (m % kPageTokens == 0 && page < 0 && token + m < end_ &&
            token + m + kPageTokens > row_data_[run_.begin].first) {  // pages before the windows need not be there
            int32_t* first = run_.missing + m / kPageTokens;
            *first = simt::minimum(*first, token + m);
        }
    }
    SIMT_DEVICE void find_keys(int token) { find_rows(key_rows(), token, p_.k, p_.k_page, p_.k_token); }
    SIMT_DEVICE void find_values(int token) {
        if constexpr (Tile::kPrefix) {
            find_rows(value_rows(), token, p_.k, p_.k_page, p_.k_token);
        } else {
            find_rows(value_rows(), token, p_.v, p_.v_page, p_.v_token);
        }
    }

    SIMT_DEVICE void load_keys(int step) {
        const int head = static_cast<int>(simt::block_index().y);
        keys_.load(p_.k_type, head * Tile::kDk + step * kDepth, true, [&](int row) { return key_rows()[row]; });
        queries_.load(TSR_TYPE_F32, step * kDepth, true, [&](int row) { return query_rows()[row]; });
    }
    SIMT_DEVICE void store_keys(int stage) const {
        keys_.store(p_.k_type, key_stage(stage));
        queries_.store(TSR_TYPE_F32, key_stage(stage) + kTokens * kDepthStride);
    }
    SIMT_DEVICE void load_values(int step) {
        const int first = Tile::kPrefix ? 0 : static_cast<int>(simt::block_index().y) * Tile::kDv;
        values_.load(value_type(), first, true, [&](int row) { return value_rows()[step * Tile::kStep + row]; });
    }
    SIMT_DEVICE void store_values(int stage) const { values_.store(value_type(), value_stage(stage)); }
    SIMT_DEVICE int value_type() const { return Tile::kPrefix ? p_.k_type : p_.v_type; }

    // The rows from `begin` on that are of its sequence: a run. The others compute along, and are not written.
    SIMT_DEVICE void attend(int begin) {
        using namespace simt;
        const int end = end_of_flash_run(row_data_, begin, minimum(kRows, run_.rows.total - run_.rows.first));
        const TokenBounds tokens = bounds_of_flash_rows(row_data_, begin, end);
        sync_block();  // the run before has been read
        if (thread_index().x == 0) {
            run_.sequence = row_data_[begin].sequence;
            run_.begin = begin;
            run_.end = end;
            run_.missing[0] = run_.missing[1] = kNoToken;
        }
        end_ = tokens.end;
        const int first = first_row_ - lane_row();
        busy_ = first < end && first + 4 * kOwnRows > begin;
        SIMT_UNROLL
        for (int i = 0; i < kOwnRows; ++i) {
            SIMT_UNROLL
            for (int c = 0; c < kOwnColumns; ++c) outputs_[i][c] = 0;
            if (owns_rows()) *state_of(i) = {-infinity(), 0};
        }
        if (!Tile::kPrefix && p_.window_page > 0) resume(begin, end);
        sync_block();
        if (tokens.first >= tokens.end) return;
        int token = tile_begin(tokens.first);
        find_keys(token);
        sync_block();
        load_keys(0);
        for (; token < end_; token += kTokens) {
            float scores[kOwnRows][kOwnTokens];
            find_values(token);
            multiply_keys(token, scores);
            load_values(0);
            weigh(token, scores);
            multiply_values(token);
        }
    }

    // What the windows before left.
    SIMT_DEVICE void resume(int begin, int end) {
        SIMT_UNROLL
        for (int i = 0; i < kOwnRows; ++i) {
            const int m = first_row_ + 4 * i;
            const FlashRow& row = row_data_[m];
            if (m < begin || m >= end || row.first > row.last || !resumes(p_, row.first)) continue;
            const int index = run_.rows.first + m;
            const float* y = output_of(index);
            SIMT_UNROLL
            for (int g = 0; g < kOwnColumns / 4; ++g) {
                const simt::Float4 v = float4_at(y + 32 * g);
                outputs_[i][4 * g] = v.x, outputs_[i][4 * g + 1] = v.y;
                outputs_[i][4 * g + 2] = v.z, outputs_[i][4 * g + 3] = v.w;
            }
            const float* running = running_of(p_, index / p_.group, head_of(index));
            if (owns_rows()) *state_of(i) = {running[0], running[1]};
        }
    }

    // Scores of the thread's rows and tokens: row first_row_ + 4 i, token first_token() + 8 j of the tile. Warps all of
    // whose rows or tokens nobody sees have nothing to multiply.
    SIMT_DEVICE void multiply_keys(int token, float (&scores)[kOwnRows][kOwnTokens]) {
        using namespace simt;
        SIMT_UNROLL
        for (int i = 0; i < kOwnRows; ++i) {
            SIMT_UNROLL
            for (int j = 0; j < kOwnTokens; ++j) scores[i][j] = 0;
        }
        const bool busy = busy_ && token + column_warp_ * 8 * kOwnTokens < end_;
        constexpr int kSteps = Tile::kDk / kDepth;
        SIMT_KEEP_LOOP
        for (int step = 0; step < kSteps; ++step) {
            const int stage = step % 2;
            store_keys(stage);
            sync_block();
            if (step + 1 < kSteps) load_keys(step + 1);
            if (!busy) continue;
            multiply_rows(scores, key_stage(stage) + (kTokens + first_row_) * kDepthStride,
                          key_stage(stage) + first_token() * kDepthStride);
        }
    }
    SIMT_DEVICE int first_token() const { return column_warp_ * 8 * kOwnTokens + lane_column(); }

    // Scores become weights 2^(score - maximum) in shared memory; sums and outputs follow the maximum.
    SIMT_DEVICE void weigh(int token, float (&scores)[kOwnRows][kOwnTokens]) {
        using namespace simt;
        SIMT_UNROLL
        for (int i = 0; i < kOwnRows; ++i) {
            const FlashRow row = row_data_[first_row_ + 4 * i];
            float largest = -infinity();
            SIMT_UNROLL
            for (int j = 0; j < kOwnTokens; ++j) {
                const int t = token + first_token() + 8 * j;
                scores[i][j] = t >= row.first && t <= row.last ? scores[i][j] * p_.scale_log2 : -infinity();
                largest = fmaxf(largest, scores[i][j]);
            }
            SIMT_UNROLL
            for (int mask = 2; mask <= 8; mask *= 2) largest = fmaxf(largest, shuffle_xor(largest, mask));
            if (lane_column() == 0) exchange_of(i)[column_warp_].x = largest;
        }
        sync_block();  // and keys have been read, in whose place weights are
        SIMT_UNROLL
        for (int i = 0; i < kOwnRows; ++i) {
            const float before = state_of(i)->x;
            float largest = before;
            SIMT_UNROLL
            for (int w = 0; w < Tile::kColumnWarps; ++w) largest = fmaxf(largest, exchange_of(i)[w].x);
            // A row that has seen nothing yet has no maximum.
            const float base = largest == -infinity() ? 0.f : largest, factor = exp2f(before - base);
            float sum = 0;
            float* to = weights() + (first_row_ + 4 * i) * Tile::kWeightStride + first_token();
            SIMT_UNROLL
            for (int j = 0; j < kOwnTokens; ++j) {
                const float weight = exp2f(scores[i][j] - base);
                sum += weight;
                to[8 * j] = weight;
            }
            SIMT_UNROLL
            for (int mask = 2; mask <= 8; mask *= 2) sum += shuffle_xor(sum, mask);
            if (lane_column() == 0) exchange_of(i)[column_warp_].y = sum;
            SIMT_UNROLL
            for (int c = 0; c < kOwnColumns; ++c) outputs_[i][c] *= factor;
        }
    }
    // After the barrier that follows.
    SIMT_DEVICE void add_up() const {
        if (!owns_rows()) return;
        SIMT_UNROLL
        for (int i = 0; i < kOwnRows; ++i) {
            simt::Float2* state = state_of(i);
            float largest = state->x, sum = 0;
            SIMT_UNROLL
            for (int w = 0; w < Tile::kColumnWarps; ++w) {
                const simt::Float2 of_warp = exchange_of(i)[w];
                largest = simt::fmaxf(largest, of_warp.x);
                sum += of_warp.y;
            }
            const float factor = simt::exp2f(state->x - (largest == -infinity() ? 0.f : largest));
            *state = {largest, simt::fmaf(state->y, factor, sum)};
        }
    }

    // Outputs of the thread's rows and columns: first_column() + 32 g + 0 .. 3.
    SIMT_DEVICE void multiply_values(int token) {
        using namespace simt;
        const bool more = token + kTokens < end_;
        if (more) find_keys(token + kTokens);  // which steps later are loaded from, many
        const int steps = (minimum(kTokens, end_ - token) + Tile::kStep - 1) / Tile::kStep;
        SIMT_KEEP_LOOP
        for (int step = 0; step < steps; ++step) {
            const int stage = step % 2;
            store_values(stage);
            sync_block();  // and, the first time, weights are there
            if (step == 0) add_up();
            if (step + 1 < steps) {
                load_values(step + 1);
            } else if (more) {
                load_keys(0);
            }
            if (!busy_) continue;
            multiply_columns<Tile::kStep, Tile::kWeightStride, Tile::kDv>(
                outputs_, weights() + first_row_ * Tile::kWeightStride + step * Tile::kStep,
                value_stage(stage) + first_column());
        }
        sync_block();  // keys take the place of weights and values
    }
    SIMT_DEVICE int first_column() const { return column_warp_ * 8 * kOwnColumns + lane_column() * 4; }

    SIMT_DEVICE int head_of(int index) const {
        return static_cast<int>(simt::block_index().y) * p_.group + index % p_.group;
    }
    // The thread's first columns of a row's output.
    SIMT_DEVICE float* output_of(int index) const {
        return at<float>(p_.y, head_of(index) * p_.y_head + (run_.rows.begin + index / p_.group) * p_.y_row) +
               first_column();
    }

    // The rows of the run: y where a row is not split, else the part of this split.
    SIMT_DEVICE void write() const {
        using namespace simt;
        sync_block();  // sums are there
        SIMT_UNROLL
        for (int i = 0; i < kOwnRows; ++i) {
            const int m = first_row_ + 4 * i;
            const FlashRow row = row_data_[m];
            if (m < run_.begin || m >= run_.end || row.first > row.last) continue;
            const Float2 state = *state_of(i);
            const bool whole = row.last < minimum(run_.missing[0], run_.missing[1]);
            write_row(run_.rows.first + m, state.x, whole ? state.y : bits_as<float>(0x7FFFFFFFu), outputs_[i]);
        }
    }
    SIMT_DEVICE void write_row(int index, float largest, float sum, const float (&values)[kOwnColumns]) const {
        using namespace simt;
        const int row = index / p_.group, head = head_of(index), split = static_cast<int>(block_index().z);
        const TokenSpan span = span_of_row(p_, run_.rows.begin + row, split);
        const bool window = !Tile::kPrefix && p_.window_pages > 0;
        if (span.spans == 1 || window) {
            float* y = output_of(index);
            const float factor = span.spans == 1 ? 1 / with_sink(p_, head, largest, sum) : 1.f;
            SIMT_UNROLL
            for (int g = 0; g < kOwnColumns / 4; ++g)
                store_global(y + 32 * g, Float4{values[4 * g] * factor, values[4 * g + 1] * factor,
                                                values[4 * g + 2] * factor, values[4 * g + 3] * factor});
            if (window && owns_rows()) store_global(running_of(p_, row, head), Float2{largest, sum});
            return;
        }
        auto* part =
            static_cast<float*>(p_.partial) + ((int64_t{row} * p_.heads + head) * p_.splits + split) * (Tile::kDv + 2);
        SIMT_UNROLL
        for (int g = 0; g < kOwnColumns / 4; ++g) {
            store_global(part + first_column() + 32 * g, Float2{values[4 * g], values[4 * g + 1]});
            store_global(part + first_column() + 32 * g + 2, Float2{values[4 * g + 2], values[4 * g + 3]});
        }
        if (owns_rows()) store_global(part + Tile::kDv, Float2{largest, sum});
    }

    const Attention& p_;
    unsigned char* memory_;
    FlashRow* row_data_;
    FlashRunF32& run_;
    int first_row_, column_warp_;
    int end_;    // of the tokens that rows of the run see
    bool busy_;  // whether rows of the warp are of the run
    Keys keys_;
    Queries queries_;
    Values values_;
    float outputs_[kOwnRows][kOwnColumns];
};

}  // namespace tessera::cuda_kernels

// Grid: x the tiles of rows at most, y the heads of the cache, z the splits. Dynamic shared memory: kShared of the
// tile. Rows of queries, of outputs and of caches of floats begin at multiples of 16 bytes.
#define TESSERA_FLASH_F32_KERNEL(name, Tile, types)                \
    SIMT_KERNEL(Tile::kThreads, Tile::kBlocks) name(Attention p) { \
        SIMT_DYNAMIC_SHARED(memory);                               \
        FlashF32<Tile, RawTypes::types>(p, memory).run();          \
    }

// The kernels of a tile, by what is cached.
#define TESSERA_FLASH_F32(name, Tile)                      \
    TESSERA_FLASH_F32_KERNEL(name##_f32, Tile, kF32)       \
    TESSERA_FLASH_F32_KERNEL(name##_halves, Tile, kHalves) \
    TESSERA_FLASH_F32_KERNEL(name##_blocks, Tile, kBlocks)
