// Attention on tensor cores (mma m16n8k16, sums in f32) with a running maximum and sum (arXiv 2205.14135). Tokens pass
// through a ring of tiles in shared memory; queries, scores and outputs stay in registers.
#pragma once

#include "flash_loads.hpp"

namespace tessera::cuda_kernels {

template <class Element>
SIMT_DEVICE void multiply(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const uint32_t b[2] = {b0, b1};
    if constexpr (kIsHalf<Element>) {
        simt::mma_f16(c, a, b);
    } else {
        simt::mma_bf16(c, a, b);
    }
}

// A thread's part of a block's work. Fragments are those of the PTX ISA manual: of a tile of 16 rows a lane holds rows
// lane / 4 (half 0) and lane / 4 + 8 (half 1), and of 8 columns lane % 4 * 2 and the next.
template <class Tile, class Element>
class Flash {
  public:
    static constexpr int kTiles = Tile::kTiles, kColumns = Tile::kColumns, kTokens = Tile::kTokens;
    static constexpr int kScoreTiles = kTokens / 8;  // of 8 tokens
    // Weights are 2^(score - maximum + 15), so that f16 holds small ones; so is their sum.
    static constexpr float kWeightExponent = kFlashWeightExponent;

    SIMT_DEVICE Flash(const Attention& p, unsigned char* memory)
        : p_(p),
          memory_(memory),
          row_data_(reinterpret_cast<FlashRow*>(memory + Tile::kRowData)),
          run_(*reinterpret_cast<FlashRun*>(memory + Tile::kRun)),
          lane_(static_cast<int>(simt::lane())),
          group_(static_cast<int>(simt::warp()) / kColumns),
          column_(static_cast<int>(simt::warp()) % kColumns) {}

    // All of a block's work: the rows of its tile, one sequence after the other.
    template <FlashCache kCache>
    SIMT_DEVICE void run() {
        using namespace simt;
        const RowRange range = actual_rows(p_.rows);
        FlashRows rows{range.begin, (range.end - range.begin) * p_.group, 0};
        const int tiles = (rows.total + Tile::kRows - 1) / Tile::kRows;
        // The last rows see the most tokens: they begin first.
        const int tile = tiles - 1 - static_cast<int>(block_index().x);
        if (tile < 0) return;
        rows.first = tile * Tile::kRows;
        if (thread_index().x == 0) run_.rows = rows;
        read_flash_rows<Tile::kRows, Tile::kThreads>(p_, rows, row_data_, memory_ + Tile::kWhole);
        sync_block();
        const int count = minimum(Tile::kRows, rows.total - rows.first);
        if (const TokenBounds all = bounds_of_flash_rows(row_data_, 0, count); all.first >= all.end) return;
        for (int begin = 0; begin < minimum(Tile::kRows, run_.rows.total - run_.rows.first); begin = run_.end) {
            attend<kCache>(begin);
            write();
        }
    }

  private:
    // Row of the block's tile.
    SIMT_DEVICE int row_of(int tile, int half) const { return (group_ * kTiles + tile) * 16 + half * 8 + lane_ / 4; }
    SIMT_DEVICE void sync_group() const { simt::named_barrier_sync(static_cast<unsigned>(1 + group_), 32 * kColumns); }

    SIMT_DEVICE void take_queries() {
        load_queries<Tile, Element>(p_, run_.rows, row_data_, memory_ + Tile::kConverted);
        simt::sync_block();
        keep_queries();
    }

    // Queries leave the ring: the first steps for registers, the others for a place of their own, in the order of
    // fragments. Step i of a warp is step i * kColumns + column_ of the key.
    SIMT_DEVICE void keep_queries() {
        using namespace simt;
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            const int row = (group_ * kTiles + t) * 16 + lane_ % 16;
            SIMT_UNROLL
            for (int i = 0; i < Tile::kSteps; ++i) {
                const int vector = ((i * kColumns + column_) * 2 + lane_ / 16) ^ row % 8;
                uint32_t q[4];
                ldmatrix_x4(q, memory_ + Tile::kConverted + row * (Tile::kDk * 2) + vector * 16);
                if (i < Tile::kQInRegisters) {
                    SIMT_UNROLL
                    for (int e = 0; e < 4; ++e) queries_[t][i < Tile::kQInRegisters ? i : 0][e] = q[e];
                } else {
                    *query_place(t, i - Tile::kQInRegisters) = {q[0], q[1], q[2], q[3]};
                }
            }
        }
        sync_block();
    }
    SIMT_DEVICE simt::UInt4* query_place(int tile, int step) const {
        const int warp = group_ * kColumns + column_;
        return reinterpret_cast<simt::UInt4*>(memory_ + Tile::kQueries) +
               ((warp * kTiles + tile) * Tile::kQInShared + step) * 32 + lane_;
    }

    // The rows from `begin` on that are of its sequence: a run. The others compute along, and are not written.
    template <FlashCache kCache>
    SIMT_DEVICE void attend(int begin) {
        using namespace simt;
        const int end = end_of_flash_run(row_data_, begin, minimum(Tile::kRows, run_.rows.total - run_.rows.first));
        const TokenBounds tokens = bounds_of_flash_rows(row_data_, begin, end);
        sync_block();  // the run before has been read
        if (thread_index().x == 0) {
            run_.begin = begin;
            run_.end = end;
            run_.missing = kNoToken;
        }
        const int first = tokens.first < tokens.end ? tokens.first / kTokens * kTokens : 0;
        const int last = tokens.end;
        using Loader = FlashLoader<Tile, kCache>;
        constexpr bool kRaw = Tile::kRaw;
        static_assert(kRaw == !Loader::kDirect);
        Loader loader(p_, row_data_[begin].sequence, last, &run_.missing, memory_ + (kRaw ? Tile::kStageBytes : 0));
        loader.expect(first);
        if (!Tile::kEarly && begin == 0) take_queries();
        // Of a ring of decoded tiles one is free for the next copy while another is used; tiles as they are cached are
        // free once decoded.
        constexpr int kAhead = kRaw ? Loader::kTiles : Loader::kTiles - 1;
        SIMT_UNROLL
        for (int i = 0; i < kAhead; ++i) {
            if (first + i * kTokens < last) loader.load(first + i * kTokens, i * Loader::kBytes);
            copy_async_commit();
        }
        if (Tile::kEarly && begin == 0) take_queries();
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            SIMT_UNROLL
            for (int h = 0; h < 2; ++h) {
                maxima_[t][h] = bits_as<float>(0xFF800000u);
                sums_[t][h] = 0;
            }
            SIMT_UNROLL
            for (int n = 0; n < Tile::kOutputs; ++n) {
                SIMT_UNROLL
                for (int e = 0; e < 4; ++e) outputs_[t][n][e] = 0;
            }
        }
        if constexpr (!Tile::kPrefix) {
            if (p_.window_page > 0) resume(begin, end);
        }
        int place = 0;  // of the tile at `token` in the ring
        for (int token = first; token < last; token += kTokens) {
            copy_async_wait<kAhead - 1>();
            sync_block();  // the tile is there, and the one before has been read
            if constexpr (kRaw) {
                loader.decode(token, place, memory_);
                sync_block();
            }
            constexpr int kLast = (Loader::kTiles - 1) * Loader::kBytes;
            if (token + kAhead * kTokens < last)
                loader.load(token + kAhead * kTokens, kRaw ? place : place == 0 ? kLast : place - Loader::kBytes);
            copy_async_commit();
            step(kRaw ? memory_ : memory_ + place, token);
            place = place == kLast ? 0 : place + Loader::kBytes;
        }
        copy_async_wait<0>();
        sync_block();
    }

    // What the windows before left.
    SIMT_DEVICE void resume(int begin, int end) {
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            SIMT_UNROLL
            for (int h = 0; h < 2; ++h) {
                const int m = row_of(t, h);
                const FlashRow& row_data = row_data_[m];
                if (m < begin || m >= end || row_data.first > row_data.last || !resumes(p_, row_data.first)) continue;
                const int index = run_.rows.first + m, row = index / p_.group, head = head_of(index);
                const float* y = output_of(row, head);
                SIMT_UNROLL
                for (int n = 0; n < Tile::kOutputs; ++n) {
                    outputs_[t][n][2 * h] = y[n * 8];
                    outputs_[t][n][2 * h + 1] = y[n * 8 + 1];
                }
                const float* running = running_of(p_, row, head);
                maxima_[t][h] = running[0];
                if (lane_ % 4 == 0) sums_[t][h] = running[1];
            }
        }
    }
    SIMT_DEVICE int head_of(int index) const {
        return static_cast<int>(simt::block_index().y) * p_.group + index % p_.group;
    }
    // The warp's first columns of a row's output; `row` counts from the first of the launch.
    SIMT_DEVICE float* output_of(int row, int head) const {
        return at<float>(p_.y, head * p_.y_head + (run_.rows.begin + row) * p_.y_row) + column_ * Tile::kOutputs * 8 +
               lane_ % 4 * 2;
    }

    SIMT_DEVICE void step(const unsigned char* stage, int token) {
        float scores[kTiles][kScoreTiles][4];
        multiply_keys(stage, scores);
        uint32_t weights[kTiles][kTokens / 16][4];
        if constexpr (Tile::kScattered) {
            weigh_scattered(scores, token, weights);
        } else {
            weigh(scores[0], token, weights[0]);
        }
        multiply_values(stage, weights);
    }

    // Scores over this warp's part of the keys' elements.
    SIMT_DEVICE void multiply_keys(const unsigned char* stage, float (&scores)[kTiles][kScoreTiles][4]) const {
        using namespace simt;
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            SIMT_UNROLL
            for (int n = 0; n < kScoreTiles; ++n) {
                SIMT_UNROLL
                for (int e = 0; e < 4; ++e) scores[t][n][e] = 0;
            }
        }
        const int row = lane_ % 8 + lane_ / 16 * 8, vector = column_ * 2 + lane_ / 8 % 2;
        const unsigned char* from = stage + row * (Tile::kDk * 2);
        const int low = (vector ^ row % 8) * 16;
        SIMT_UNROLL
        for (int i = 0; i < Tile::kSteps; ++i) {
            uint32_t q[kTiles][4];
            SIMT_UNROLL
            for (int t = 0; t < kTiles; ++t) {
                if (i < Tile::kQInRegisters) {
                    SIMT_UNROLL
                    for (int e = 0; e < 4; ++e) q[t][e] = queries_[t][i < Tile::kQInRegisters ? i : 0][e];
                } else {
                    const UInt4 v = *query_place(t, i - Tile::kQInRegisters);
                    q[t][0] = v.x, q[t][1] = v.y, q[t][2] = v.z, q[t][3] = v.w;
                }
            }
            // Of vector i * 2 * kColumns + vector.
            const int place = (low ^ i * 2 * kColumns % 8 * 16) + i * 2 * kColumns / 8 * 128;
            SIMT_UNROLL
            for (int n = 0; n < kScoreTiles; n += 2) {
                uint32_t k[4];
                ldmatrix_x4(k, from + n * 8 * (Tile::kDk * 2) + place);
                SIMT_UNROLL
                for (int t = 0; t < kTiles; ++t) {
                    multiply<Element>(scores[t][n], q[t], k[0], k[1]);
                    multiply<Element>(scores[t][n + 1], q[t], k[2], k[3]);
                }
            }
        }
    }

    // Outputs of this warp's columns.
    SIMT_DEVICE void multiply_values(const unsigned char* stage, const uint32_t (&weights)[kTiles][kTokens / 16][4]) {
        using namespace simt;
        constexpr int kRow = (Tile::kPrefix ? Tile::kDk : Tile::kDv) * 2;
        // Vectors column_ * kOutputs + n + lane_ / 16.
        constexpr int kAligned = Tile::kOutputs % 8 == 0 ? 8 : Tile::kOutputs;
        const int first = column_ * Tile::kOutputs;
        const unsigned char* from = stage + (Tile::kPrefix ? 0 : Tile::kKeyBytes) + lane_ % 16 * kRow + first / 8 * 128;
        const int low = ((first % 8 + lane_ / 16) ^ lane_ % 8) * 16;
        static_assert(8 % kAligned == 0);
        SIMT_UNROLL
        for (int k = 0; k < kTokens / 16; ++k) {
            SIMT_UNROLL
            for (int n = 0; n < Tile::kOutputs; n += 2) {
                uint32_t v[4];
                ldmatrix_x4_transposed(v, from + k * 16 * kRow + (low ^ n % 8 * 16) + n / 8 * 128);
                SIMT_UNROLL
                for (int t = 0; t < kTiles; ++t) {
                    multiply<Element>(outputs_[t][n], weights[t][k], v[0], v[1]);
                    multiply<Element>(outputs_[t][n + 1], weights[t][k], v[2], v[3]);
                }
            }
        }
    }

    // A score's product with its row's scale; -infinity where the row does not see the token.
    SIMT_DEVICE static float score_of(float sum, const FlashRow& row, int token) {
        return token >= row.first && token <= row.last ? sum * row.scale : simt::bits_as<float>(0xFF800000u);
    }
    // What weights are relative to; a row that has seen nothing yet has no maximum.
    SIMT_DEVICE static float base_of(float maximum) {
        return maximum == simt::bits_as<float>(0xFF800000u) ? 0.f : maximum - kWeightExponent;
    }

    // Weights of a tile of 16 rows; every warp of the group computes all of them, so that they are fragments at once.
    SIMT_DEVICE void weigh(float (&scores)[kScoreTiles][4], int token, uint32_t (&weights)[kTokens / 16][4]) {
        using namespace simt;
        if constexpr (kColumns > 1) add_up(scores);
        float largest[2] = {maxima_[0][0], maxima_[0][1]}, factors[2], bases[2];
        // Of most tiles every row sees all tokens.
        const FlashRow rows[2] = {row_data_[row_of(0, 0)], row_data_[row_of(0, 1)]};
        const auto sees_all = [&](const FlashRow& row) {
            return token >= row.first && token + kTokens - 1 <= row.last;
        };
        const bool masked = !vote_all(sees_all(rows[0]) && sees_all(rows[1]));
        SIMT_UNROLL
        for (int h = 0; h < 2; ++h) {
            const FlashRow& row = rows[h];
            if (masked) {
                SIMT_UNROLL
                for (int i = 0; i < 2 * kScoreTiles; ++i) {
                    float& score = scores[i / 2][2 * h + i % 2];
                    score = score_of(score, row, token + i / 2 * 8 + lane_ % 4 * 2 + i % 2);
                }
            } else {
                SIMT_UNROLL
                for (int i = 0; i < 2 * kScoreTiles; ++i) scores[i / 2][2 * h + i % 2] *= row.scale;
            }
            SIMT_UNROLL
            for (int i = 0; i < 2 * kScoreTiles; ++i) largest[h] = fmaxf(largest[h], scores[i / 2][2 * h + i % 2]);
            largest[h] = fmaxf(largest[h], shuffle_xor(largest[h], 1));
            largest[h] = fmaxf(largest[h], shuffle_xor(largest[h], 2));
            bases[h] = base_of(largest[h]);
            factors[h] = exp2f(maxima_[0][h] - kWeightExponent - bases[h]);
            maxima_[0][h] = largest[h];
            sums_[0][h] *= factors[h];
        }
        rescale(0, factors);
        SIMT_UNROLL
        for (int n = 0; n < kScoreTiles; ++n) {
            SIMT_UNROLL
            for (int h = 0; h < 2; ++h) {
                const float low = exp2f(scores[n][2 * h] - bases[h]), high = exp2f(scores[n][2 * h + 1] - bases[h]);
                sums_[0][h] += low + high;
                weights[n / 2][n % 2 * 2 + h] = pack<Element>(low, high);
            }
        }
    }

    // The sum of the scores of all warps of the group, in the same order in each: pairs first.
    SIMT_DEVICE void add_up(float (&scores)[kScoreTiles][4]) const {
        using namespace simt;
        auto* exchange = reinterpret_cast<Float4*>(memory_ + Tile::kExchange);
        const auto place = [&](int column, int n) {
            return exchange + ((group_ * kColumns + column) * kScoreTiles + n) * 32 + lane_;
        };
        SIMT_UNROLL
        for (int n = 0; n < kScoreTiles; ++n)
            *place(column_, n) = {scores[n][0], scores[n][1], scores[n][2], scores[n][3]};
        sync_group();
        SIMT_UNROLL
        for (int n = 0; n < kScoreTiles; ++n) {
            add(scores[n], *place(column_ ^ 1, n));
            if constexpr (kColumns == 4) {
                const Float4 a = *place(column_ ^ 2, n), b = *place(column_ ^ 3, n);
                add(scores[n], {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w});
            }
        }
    }
    SIMT_DEVICE static void add(float (&to)[4], const simt::Float4& v) {
        to[0] += v.x, to[1] += v.y, to[2] += v.z, to[3] += v.w;
    }

    // Several tiles of rows: a warp adds up and weighs the scores of 8 tokens, and gets the others' weights as
    // fragments from shared memory.
    SIMT_DEVICE void weigh_scattered(float (&scores)[kTiles][kScoreTiles][4], int token,
                                     uint32_t (&weights)[kTiles][kTokens / 16][4]) {
        using namespace simt;
        auto* exchange = reinterpret_cast<Float4*>(memory_ + Tile::kExchange);
        auto* shared_maxima = reinterpret_cast<float*>(memory_ + Tile::kMaxima);
        unsigned char* shared_weights = memory_ + Tile::kWeights;
        // Part `source` (0 to kColumns - 2) of what `owner` adds up: from the warp that many and one columns on.
        const auto place = [&](int owner, int source, int t) {
            return exchange + (((group_ * kColumns + owner) * (kColumns - 1) + source) * kTiles + t) * 32 + lane_;
        };
        float own[kTiles][4];
        // Tested as a bit: from n == column_ compilers conclude that scores may be indexed with column_, in memory.
        const int owned = 1 << column_;
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            SIMT_UNROLL
            for (int n = 0; n < kScoreTiles; ++n) {
                if (owned >> n & 1) {
                    SIMT_UNROLL
                    for (int e = 0; e < 4; ++e) own[t][e] = scores[t][n][e];
                } else {
                    *place(n, (column_ - n + kColumns) % kColumns - 1, t) = {scores[t][n][0], scores[t][n][1],
                                                                             scores[t][n][2], scores[t][n][3]};
                }
            }
        }
        sync_group();
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            SIMT_UNROLL
            for (int s = 0; s < kColumns - 1; ++s) add(own[t], *place(column_, s, t));
            SIMT_UNROLL
            for (int h = 0; h < 2; ++h) {
                const FlashRow row = row_data_[row_of(t, h)];
                float largest = bits_as<float>(0xFF800000u);
                SIMT_UNROLL
                for (int e = 0; e < 2; ++e) {
                    float& score = own[t][2 * h + e];
                    score = score_of(score, row, token + column_ * 8 + lane_ % 4 * 2 + e);
                    largest = fmaxf(largest, score);
                }
                largest = fmaxf(largest, shuffle_xor(largest, 1));
                largest = fmaxf(largest, shuffle_xor(largest, 2));
                if (lane_ % 4 == 0) shared_maxima[row_of(t, h) * kColumns + column_] = largest;
            }
        }
        sync_group();
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            float factors[2];
            SIMT_UNROLL
            for (int h = 0; h < 2; ++h) {
                const int m = row_of(t, h);
                float largest = maxima_[t][h];
                const Float4 others = *reinterpret_cast<const Float4*>(shared_maxima + m * kColumns);
                largest = fmaxf(largest, fmaxf(fmaxf(others.x, others.y), fmaxf(others.z, others.w)));
                const float base = base_of(largest);
                factors[h] = exp2f(maxima_[t][h] - kWeightExponent - base);
                maxima_[t][h] = largest;
                const float low = exp2f(own[t][2 * h] - base), high = exp2f(own[t][2 * h + 1] - base);
                sums_[t][h] = sums_[t][h] * factors[h] + (low + high);
                *reinterpret_cast<uint32_t*>(shared_weights + m * (kTokens * 2) + weight_vector(column_, m) * 16 +
                                             lane_ % 4 * 4) = pack<Element>(low, high);
            }
            rescale(t, factors);
        }
        sync_group();
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            const int m = (group_ * kTiles + t) * 16 + lane_ % 16;
            SIMT_UNROLL
            for (int k = 0; k < kTokens / 16; ++k) {
                ldmatrix_x4(weights[t][k],
                            shared_weights + m * (kTokens * 2) + weight_vector(k * 2 + lane_ / 16, m) * 16);
            }
        }
    }
    // Where a vector of a row of weights lies, for ldmatrix to meet no conflicts: rows have 64 bytes.
    SIMT_DEVICE static int weight_vector(int vector, int row) {
        static_assert(!Tile::kScattered || (kTokens == 32 && kColumns == 4));
        return vector ^ row / 2 % 4;
    }

    SIMT_DEVICE void rescale(int tile, const float (&factors)[2]) {
        if (!simt::vote_any(factors[0] != 1 || factors[1] != 1)) return;
        SIMT_UNROLL
        for (int n = 0; n < Tile::kOutputs; ++n) {
            SIMT_UNROLL
            for (int e = 0; e < 4; ++e) outputs_[tile][n][e] *= factors[e / 2];
        }
    }

    // The rows of the run: y where a row is not split, else the part of this split.
    SIMT_DEVICE void write() {
        using namespace simt;
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            SIMT_UNROLL
            for (int h = 0; h < 2; ++h) {
                sums_[t][h] += shuffle_xor(sums_[t][h], 1);
                sums_[t][h] += shuffle_xor(sums_[t][h], 2);
            }
        }
        if constexpr (Tile::kScattered) {
            auto* shared_sums = reinterpret_cast<float*>(memory_ + Tile::kMaxima);
            SIMT_UNROLL
            for (int t = 0; t < kTiles; ++t) {
                SIMT_UNROLL
                for (int h = 0; h < 2; ++h) {
                    if (lane_ % 4 == 0) shared_sums[row_of(t, h) * kColumns + column_] = sums_[t][h];
                }
            }
            sync_group();
            SIMT_UNROLL
            for (int t = 0; t < kTiles; ++t) {
                SIMT_UNROLL
                for (int h = 0; h < 2; ++h) {
                    sums_[t][h] = 0;
                    SIMT_UNROLL
                    for (int c = 0; c < kColumns; ++c) sums_[t][h] += shared_sums[row_of(t, h) * kColumns + c];
                }
            }
            sync_block();
        }
        SIMT_UNROLL
        for (int t = 0; t < kTiles; ++t) {
            SIMT_UNROLL
            for (int h = 0; h < 2; ++h) {
                const int m = row_of(t, h);
                const FlashRow& row = row_data_[m];
                if (m < run_.begin || m >= run_.end || row.first > row.last) continue;
                write_row(m, row, maxima_[t][h], sums_[t][h], [&](int n, int e) { return outputs_[t][n][2 * h + e]; });
            }
        }
    }

    // Row m of the tile.
    template <class Value>
    SIMT_DEVICE void write_row(int m, const FlashRow& row, float largest, float sum, Value&& value) const {
        using namespace simt;
        const int index = run_.rows.first + m, row_of_q = index / p_.group, head = head_of(index);
        const int first = column_ * Tile::kOutputs * 8 + lane_ % 4 * 2;
        if (row.last >= run_.missing) sum = bits_as<float>(0x7FFFFFFFu);
        const bool whole = memory_[Tile::kWhole + m] != 0, window = !Tile::kPrefix && p_.window_pages > 0;
        if (whole || window) {
            float* y = output_of(row_of_q, head);
            const float factor = whole ? 1 / with_sink(p_, head, largest, sum) : 1.f;
            if (multiple_of(p_.y, 8) && p_.y_head % 8 == 0 && p_.y_row % 8 == 0) {
                SIMT_UNROLL
                for (int n = 0; n < Tile::kOutputs; ++n)
                    store_global(y + n * 8, Float2{value(n, 0) * factor, value(n, 1) * factor});
            } else {
                SIMT_UNROLL
                for (int n = 0; n < Tile::kOutputs; ++n) {
                    y[n * 8] = value(n, 0) * factor;
                    y[n * 8 + 1] = value(n, 1) * factor;
                }
            }
            if (window && column_ == 0 && lane_ % 4 == 0)
                store_global(running_of(p_, row_of_q, head), Float2{largest, sum});
            return;
        }
        auto* part =
            static_cast<float*>(p_.partial) +
            ((int64_t{row_of_q} * p_.heads + head) * p_.splits + static_cast<int>(block_index().z)) * (Tile::kDv + 2);
        SIMT_UNROLL
        for (int n = 0; n < Tile::kOutputs; ++n) store_global(part + first + n * 8, Float2{value(n, 0), value(n, 1)});
        if (column_ == 0 && lane_ % 4 == 0) store_global(part + Tile::kDv, Float2{largest, sum});
    }

    const Attention& p_;
    unsigned char* memory_;
    FlashRow* row_data_;
    FlashRun& run_;
    int lane_, group_, column_;
    uint32_t queries_[kTiles][Tile::kQInRegisters > 0 ? Tile::kQInRegisters : 1][4];
    float maxima_[kTiles][2], sums_[kTiles][2];
    float outputs_[kTiles][Tile::kOutputs][4];
};

}  // namespace tessera::cuda_kernels

// Grid: x the tiles of rows at most, y the heads of the cache, z the splits. Dynamic shared memory: kShared of the
// tile.
#define TESSERA_FLASH_KERNEL(name, Tile, Element, cache)                \
    SIMT_KERNEL(Tile::kThreads, Tile::kBlocks) name(Attention p) {      \
        SIMT_DYNAMIC_SHARED(memory);                                    \
        Flash<Tile, simt::Element>(p, memory).run<FlashCache::cache>(); \
    }

// The kernels of a tile, by what is cached.
#define TESSERA_FLASH_DIRECT(name, Tile)                    \
    TESSERA_FLASH_KERNEL(name##_f16, Tile, half_t, kDirect) \
    TESSERA_FLASH_KERNEL(name##_bf16, Tile, bfloat16_t, kDirect)
#define TESSERA_FLASH(name, Tile)    \
    TESSERA_FLASH_DIRECT(name, Tile) \
    TESSERA_FLASH_KERNEL(name##_decoded, Tile::Decoded, half_t, kDecoded)
