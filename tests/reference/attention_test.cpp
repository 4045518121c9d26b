// The three variants of attention against one that forms all scores at once, in double, over caches whose unused tokens
// are not numbers.
#include "node_builder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

namespace tessera::test {
namespace {

using sdk::attribute;

// A batch: rows of sequences at positions, pages given out in a scrambled order.
struct Batch {
    std::vector<int32_t> positions, sequences;
    std::vector<int32_t> lengths;  // cached tokens of each sequence
    int64_t pages_of_one = 0, pages = 0;
    std::vector<int32_t> table;

    // Each sequence has `cached` tokens of which the last `rows` are of this batch.
    Batch(std::vector<std::pair<int, int>> cached_and_rows) {
        for (const auto& [cached, rows] : cached_and_rows) {
            for (int i = 0; i < rows; ++i) {
                positions.push_back(cached - rows + i);
                sequences.push_back(static_cast<int32_t>(lengths.size()));
            }
            lengths.push_back(cached);
            pages_of_one = std::max<int64_t>(pages_of_one, (cached + 63) / 64 + 1);
        }
        pages = pages_of_one * static_cast<int64_t>(lengths.size()) + 2;
        table.assign(static_cast<size_t>(pages_of_one) * lengths.size(), -1);
        int32_t next = static_cast<int32_t>(pages - 1);
        for (size_t p = 0; p < static_cast<size_t>(pages_of_one); ++p) {
            for (size_t s = 0; s < lengths.size(); ++s) {
                if (static_cast<int32_t>(p * 64) < lengths[s])
                    table[s * static_cast<size_t>(pages_of_one) + p] = next--;
            }
        }
    }
    // The table without pages before those that rows see which see the last `window` tokens.
    std::vector<int32_t> seen_table(int64_t window) const {
        std::vector<int32_t> seen = table;
        for (size_t s = 0; window > 0 && s < lengths.size(); ++s) {
            int64_t first = lengths[s];
            for (size_t r = 0; r < positions.size(); ++r) {
                if (sequences[r] == static_cast<int32_t>(s)) first = std::min(first, positions[r] - window + 1);
            }
            for (int64_t p = 0; p < first / 64; ++p)
                seen[s * static_cast<size_t>(pages_of_one) + static_cast<size_t>(p)] = -1;
        }
        return seen;
    }
    int32_t rows() const { return static_cast<int32_t>(positions.size()); }
    int64_t page(int64_t sequence, int64_t token) const {
        return table[static_cast<size_t>(sequence * pages_of_one + token / 64)];
    }
};

// A cache of which only the sequences' tokens hold numbers.
Tensor fill_cache(std::mt19937& rng, tsr_type type, int64_t elements, const Batch& batch) {
    Tensor cache = make_tensor(type, {elements, TSR_PAGE_TOKENS, batch.pages});
    for (size_t s = 0; s < batch.lengths.size(); ++s) {
        const Tensor rows = random_floats(rng, {elements, batch.lengths[s]});
        for (int64_t t = 0; t < batch.lengths[s]; ++t) {
            cpu::encode_row(type, &rows.at(0, t), static_cast<size_t>(elements),
                            cache.bytes->data() + t % 64 * cache.desc.strides[1] +
                                batch.page(static_cast<int64_t>(s), t) * cache.desc.strides[2]);
        }
    }
    return cache;
}

struct Dims {
    int64_t heads, kv_heads, dk, dv, latent;  // latent > 0: projected
    bool prefix;
};

std::vector<double> independent(const Dims& d, const Batch& batch, const Tensor& q, const Tensor& k, const Tensor& v,
                                const Tensor& wk, const Tensor& wv, double scale, int64_t window, const Tensor& sinks) {
    const Tensor keys = decoded(k);
    const Tensor values = v.bytes ? decoded(v) : Tensor{};
    const Tensor key_weight = wk.bytes ? decoded(wk) : Tensor{};
    const Tensor value_weight = wv.bytes ? decoded(wv) : Tensor{};
    const int64_t rope = d.latent ? k.desc.dims[0] - d.latent : 0;
    std::vector<double> out;
    for (int32_t r = 0; r < batch.rows(); ++r) {
        const int64_t sequence = batch.sequences[static_cast<size_t>(r)];
        const int64_t seen = batch.positions[static_cast<size_t>(r)] + 1;
        for (int64_t h = 0; h < d.heads; ++h) {
            const int64_t g = h / (d.heads / d.kv_heads);
            // Projected: q through wk first, so that the order of sums differs from the kernel's.
            std::vector<double> query(static_cast<size_t>(k.desc.dims[0]), 0.0);
            if (d.latent) {
                for (int64_t j = 0; j < d.dk - rope; ++j) {
                    for (int64_t c = 0; c < d.latent; ++c)
                        query[static_cast<size_t>(c)] += double{q.at(j, h, r)} * key_weight.at(c, j, h);
                }
                for (int64_t j = 0; j < rope; ++j)
                    query[static_cast<size_t>(d.latent + j)] = q.at(d.dk - rope + j, h, r);
            } else {
                for (int64_t j = 0; j < d.dk; ++j)
                    query[static_cast<size_t>((d.prefix ? 0 : g * d.dk) + j)] = q.at(j, h, r);
            }
            std::vector<double> scores;
            double largest = -1e300, sum = 0;
            const int64_t begin = window > 0 ? std::max<int64_t>(0, seen - window) : 0;
            for (int64_t t = begin; t < seen; ++t) {
                double s = 0;
                for (int64_t j = 0; j < k.desc.dims[0]; ++j) {
                    if (query[static_cast<size_t>(j)] != 0)
                        s += query[static_cast<size_t>(j)] * keys.at(j, t % 64, batch.page(sequence, t));
                }
                scores.push_back(s * scale);
                largest = std::max(largest, scores.back());
            }
            for (double& s : scores) sum += s = std::exp(s - largest);
            if (sinks.bytes) sum += std::exp(double{sinks.at(h)} - largest);
            const Tensor& source = v.bytes ? values : keys;
            std::vector<double> mixed(static_cast<size_t>(source.desc.dims[0]), 0.0);
            for (int64_t t = begin; t < seen; ++t) {
                for (size_t j = 0; j < mixed.size(); ++j) {
                    mixed[j] += scores[static_cast<size_t>(t - begin)] / sum *
                                source.at(static_cast<int64_t>(j), t % 64, batch.page(sequence, t));
                }
            }
            for (int64_t j = 0; j < d.dv; ++j) {
                if (d.latent) {
                    double value = 0;
                    for (int64_t c = 0; c < d.latent; ++c)
                        value += mixed[static_cast<size_t>(c)] * value_weight.at(c, j, h);
                    out.push_back(value);
                } else {
                    out.push_back(mixed[static_cast<size_t>((d.prefix ? 0 : g * d.dv) + j)]);
                }
            }
        }
    }
    return out;
}

struct Case {
    Dims dims;
    Batch batch;
    tsr_type type;
    tsr_type weight_type = TSR_TYPE_F32;
    uint64_t scratch = 0;
    uint32_t workers = 1;
    const char* op = "flash_attention";
    int64_t window = 0;
    bool sinks = false;
};

struct Done {
    double error;
    std::vector<unsigned char> bytes;
    tsr_kernel_plan plan;
};

Done compute(const Case& c) {
    std::mt19937 rng(7);
    const Dims& d = c.dims;
    const int64_t rows = c.batch.rows();
    const int64_t rope = d.latent ? 8 : 0;
    Tensor q = random_floats(rng, {d.dk, d.heads, rows}, TSR_RANGE_ROWS, 2);
    Tensor k = fill_cache(rng, c.type, d.latent ? d.latent + rope : d.kv_heads * d.dk, c.batch);
    Tensor v = d.prefix || d.latent ? Tensor{} : fill_cache(rng, c.type, d.kv_heads * d.dv, c.batch);
    Tensor wk = d.latent ? random_weight(rng, c.weight_type, {d.latent, d.dk - rope, d.heads}, 0.3f) : Tensor{};
    Tensor wv = d.latent ? random_weight(rng, c.weight_type, {d.latent, d.dv, d.heads}, 0.3f) : Tensor{};
    Tensor out = make_tensor(TSR_TYPE_F32, {d.dv, d.heads, rows}, TSR_RANGE_ROWS);
    const Tensor sinks = c.sinks ? random_floats(rng, {d.heads}, TSR_RANGE_FIXED, 3) : Tensor{};
    const double scale = 0.4;
    // Nothing may be read by entries that no row needs.
    const std::vector<int32_t> table = c.batch.seen_table(c.window);
    TestNode node(
        c.op,
        {q, k, v, integers({rows}, c.batch.positions, TSR_RANGE_ROWS),
         integers({rows}, c.batch.sequences, TSR_RANGE_ROWS),
         integers({c.batch.pages_of_one, static_cast<int64_t>(c.batch.lengths.size())}, table), wk, wv, sinks},
        {out},
        {attribute("scale", scale), attribute("kv_heads", d.kv_heads), attribute("head_dim_v", d.dv),
         attribute("scratch_bytes", static_cast<int64_t>(c.scratch)),
         attribute("max_tokens", c.batch.pages_of_one * 64), attribute("window", c.window)});
    node.run(Ranges::of(static_cast<int32_t>(rows)), c.workers);
    std::vector<double> got(out.floats(), out.floats() + out.bytes->size() / 4);
    return {relative_error(got, independent(d, c.batch, q, k, v, wk, wv, scale, c.window, sinks)), *out.bytes,
            node.plan(c.workers)};
}

const Dims kGrouped{6, 2, 24, 16, 0, false};
const Dims kPrefix{5, 1, 40, 32, 0, true};
const Dims kProjected{3, 3, 24, 16, 32, false};

TEST(Attention, EachFormOverEachCacheType) {
    const Batch batch({{70, 3}, {1, 1}, {200, 40}, {64, 1}});
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q8_KV, TSR_TYPE_Q6_0,
                                TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q4_0, TSR_TYPE_Q4_1, TSR_TYPE_IQ4_NL}) {
        // Quantised rows are whole blocks, but a head need not be: 4 heads of 24 in rows of 96.
        EXPECT_LT(compute({{8, 4, 24, 16, 0, false}, batch, type}).error, 2e-6) << type;
        EXPECT_LT(compute({{5, 1, 64, 32, 0, true}, batch, type}).error, 2e-6) << type;
        EXPECT_LT(compute({{3, 3, 32, 16, 56, false}, batch, type, TSR_TYPE_F16}).error, 2e-6) << type;
    }
}

TEST(Attention, LongAndShortAndOneToken) {
    for (const int tokens : {1, 2, 63, 64, 65, 128, 513}) {
        for (const int rows : {1, tokens}) {
            const Batch batch({{tokens, rows}});
            EXPECT_LT(compute({kGrouped, batch, TSR_TYPE_F32}).error, 2e-6) << tokens << " " << rows;
            EXPECT_LT(compute({kPrefix, batch, TSR_TYPE_F32}).error, 2e-6) << tokens << " " << rows;
            EXPECT_LT(compute({kProjected, batch, TSR_TYPE_F32}).error, 2e-6) << tokens << " " << rows;
        }
    }
}

TEST(Attention, ProjectsThroughQuantisedWeights) {
    const Batch batch({{90, 5}});
    for (const tsr_type type : {TSR_TYPE_Q8_0, TSR_TYPE_Q4_0, TSR_TYPE_IQ4_NL}) {
        EXPECT_LT(compute({kProjected, batch, TSR_TYPE_F32, type}).error, 5e-6) << type;
    }
    EXPECT_LT(compute({{2, 2, 24, 16, 256, false}, batch, TSR_TYPE_F32, TSR_TYPE_Q4_K}).error, 5e-6);
}

TEST(Attention, NeitherWorkersNorScratchChangeABit) {
    const Batch batch({{100, 30}, {300, 7}});
    for (const Dims& dims : {kGrouped, kPrefix, kProjected}) {
        const Done wide = compute({dims, batch, TSR_TYPE_F32});
        const uint64_t least = wide.plan.minimum_scratch_bytes;
        ASSERT_GT(least, 0u);
        EXPECT_EQ(wide.bytes, compute({dims, batch, TSR_TYPE_F32, TSR_TYPE_F32, 0, 5}).bytes);
        for (const uint64_t cap : {least, least + 1000, 3 * least, 20 * least}) {
            for (const uint32_t workers : {1u, 4u}) {
                const Done capped = compute({dims, batch, TSR_TYPE_F32, TSR_TYPE_F32, cap, workers, "tiled_attention"});
                EXPECT_LE(capped.plan.workspace_bytes, cap);
                EXPECT_EQ(capped.plan.minimum_scratch_bytes, least);
                EXPECT_EQ(wide.bytes, capped.bytes) << cap << " " << workers;
            }
        }
        EXPECT_THROW(compute({dims, batch, TSR_TYPE_F32, TSR_TYPE_F32, least - 1, 1, "tiled_attention"}),
                     std::runtime_error);
    }
}

TEST(Attention, RowsSeeAWindowAndSinksTakeWeight) {
    const Batch batch({{70, 3}, {1, 1}, {300, 140}, {64, 1}, {257, 1}});
    for (const Dims& dims : {kGrouped, kPrefix, kProjected}) {
        for (const int64_t window : {0, 1, 2, 63, 64, 65, 100, 128, 129, 1000}) {
            for (const bool sinks : {false, true}) {
                Case c{dims, batch, TSR_TYPE_F32};
                c.window = window;
                c.sinks = sinks;
                EXPECT_LT(compute(c).error, 2e-6) << window << " " << sinks;
            }
        }
    }
}

TEST(Attention, AWindowThatIsNotCrossedChangesNoBit) {
    const Batch batch({{70, 3}, {300, 140}});
    for (const Dims& dims : {kGrouped, kPrefix, kProjected}) {
        Case c{dims, batch, TSR_TYPE_F32};
        const Done without = compute(c);
        c.window = 300;
        EXPECT_EQ(compute(c).bytes, without.bytes);
    }
}

TEST(Attention, AnEmptyRangeDoesNothing) {
    Tensor out = make_tensor(TSR_TYPE_F32, {8, 1, 2}, TSR_RANGE_PROMPT_ROWS);
    std::mt19937 rng(1);
    TestNode node("tiled_attention",
                  {random_floats(rng, {8, 1, 2}, TSR_RANGE_PROMPT_ROWS), make_tensor(TSR_TYPE_F32, {8, 64, 1}),
                   Tensor{}, integers({2}, {999, 999}, TSR_RANGE_PROMPT_ROWS),
                   integers({2}, {9, 9}, TSR_RANGE_PROMPT_ROWS), integers({1, 1}, {0})},
                  {out}, {attribute("scale", 1.0), attribute("head_dim_v", int64_t{8})});
    node.run(Ranges::of(2, 0), 2);
    for (int64_t r = 0; r < 2; ++r) EXPECT_TRUE(std::isnan(out.at(0, 0, r)));
    EXPECT_THROW(node.run(Ranges::of(2, 1), 1), sdk::Failure);
}

TEST(Attention, LargeScoresDoNotOverflow) {
    // Two tokens with scores 0 and 10000: only the second counts.
    Tensor k = make_tensor(TSR_TYPE_F32, {2, 64, 1});
    k.at(0, 0) = 0, k.at(1, 0) = 5;
    k.at(0, 1) = 100, k.at(1, 1) = 7;
    Tensor out = make_tensor(TSR_TYPE_F32, {2, 1, 1});
    TestNode node(
        "flash_attention",
        {floats({2, 1, 1}, {100, 0}), k, Tensor{}, integers({1}, {1}), integers({1}, {0}), integers({1, 1}, {0})},
        {out}, {attribute("scale", 1.0), attribute("head_dim_v", int64_t{2})});
    node.run();
    EXPECT_EQ(out.at(1), 7.0f);
}

}  // namespace
}  // namespace tessera::test
