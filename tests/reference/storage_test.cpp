// convert, transpose and cache_write.
#include "node_builder.hpp"

#include <gtest/gtest.h>

namespace tessera::test {
namespace {

using sdk::attribute;

TEST(Convert, EveryTargetFromAViewOfAnything) {
    std::mt19937 rng(1);
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q4_0, TSR_TYPE_Q4_1,
                                TSR_TYPE_Q5_0, TSR_TYPE_Q5_1}) {
        Tensor w = random_weight(rng, TSR_TYPE_Q3_K, {768, 6, 2});
        w.desc.dims[1] = 4;
        w.desc.offset = w.desc.strides[1];
        TestNode node("convert", {w}, {make_tensor(type, {768, 4, 2})}, {attribute("type", int64_t{type})});
        node.run(Ranges::of(0), 3);
        const Tensor plain = decoded(w);
        std::vector<unsigned char> wanted(node.operand(1).bytes->size());
        for (int64_t r = 0; r < 8; ++r) {
            cpu::encode_row(type, plain.floats() + r * 768, 768,
                            wanted.data() + static_cast<size_t>(r) * wanted.size() / 8);
        }
        EXPECT_EQ(*node.operand(1).bytes, wanted) << cpu::format_name(type);
    }
}

TEST(Transpose, TurnsEveryMatrixOfABatch) {
    std::mt19937 rng(2);
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_Q8_0}) {
        Tensor w = random_weight(rng, TSR_TYPE_Q4_0, {288, 70, 3});
        w.desc.dims[1] = 64;
        w.desc.offset = 3 * w.desc.strides[1];
        TestNode node("transpose", {w}, {make_tensor(type, {64, 288, 3})}, {attribute("type", int64_t{type})});
        node.run(Ranges::of(0), 4);
        const Tensor plain = decoded(w);
        const Tensor got = decoded(node.operand(1));
        // Half of a step of q8_0 over the largest value of a block.
        const double tolerance = type == TSR_TYPE_F32 ? 0 : 1.5 / 254 + 1e-3;
        for (int64_t b = 0; b < 3; ++b) {
            for (int64_t i = 0; i < 288; ++i) {
                for (int64_t j = 0; j < 64; ++j)
                    ASSERT_NEAR(got.at(j, i, b), plain.at(i, j, b), tolerance) << i << " " << j;
            }
        }
    }
}

TEST(CacheWrite, PutsRowsWhereTheirTokensAre) {
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q8_KV, TSR_TYPE_Q6_0,
                                TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q4_0, TSR_TYPE_Q4_1, TSR_TYPE_IQ4_NL}) {
        std::mt19937 rng(3);
        Tensor x = random_floats(rng, {64, 4}, TSR_RANGE_ROWS);
        Tensor cache = make_tensor(type, {64, TSR_PAGE_TOKENS, 5});
        // Two sequences of three pages.
        TestNode node("cache_write",
                      {x, integers({4}, {63, 64, 0, 130}, TSR_RANGE_ROWS), integers({4}, {0, 0, 1, 1}, TSR_RANGE_ROWS),
                       integers({3, 2}, {4, 1, -1, 2, -1, 0})},
                      {cache});
        node.run(Ranges::of(4), 3);
        const auto token = [&](int64_t t, int64_t page) {
            return cache.bytes->data() + t * cache.desc.strides[1] + page * cache.desc.strides[2];
        };
        const auto bytes = static_cast<size_t>(cache.desc.strides[1]);
        const std::pair<int64_t, int64_t> places[] = {{63, 4}, {0, 1}, {0, 2}, {2, 0}};
        for (int64_t r = 0; r < 4; ++r) {
            std::vector<unsigned char> wanted(bytes);
            cpu::encode_row(type, &x.at(0, r), 64, wanted.data());
            EXPECT_EQ(0, std::memcmp(wanted.data(), token(places[r].first, places[r].second), bytes)) << r;
        }
        size_t touched = 0;
        for (const unsigned char b : *cache.bytes) touched += b != 0xFF;
        EXPECT_LE(touched, 4 * bytes);
        EXPECT_EQ(*token(1, 4), 0xFF);
    }
}

TEST(CacheWrite, APageThatIsNotThereIsAnError) {
    std::mt19937 rng(4);
    Tensor x = random_floats(rng, {8, 1});
    for (const auto& [position, sequence, page] :
         {std::tuple{64, 0, 0}, {0, 1, 0}, {0, -1, 0}, {-1, 0, 0}, {0, 0, 2}, {0, 0, -1}}) {
        TestNode node("cache_write",
                      {x, integers({1}, {position}), integers({1}, {sequence}), integers({1, 1}, {page})},
                      {make_tensor(TSR_TYPE_F32, {8, TSR_PAGE_TOKENS, 2})});
        EXPECT_THROW(node.run(), sdk::Failure) << position << " " << sequence << " " << page;
    }
}

}  // namespace
}  // namespace tessera::test
