#include "core/graph/types.hpp"

#include "core/base/error.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tessera {
namespace {

TEST(Types, AreOrderedAndUnique) {
    std::set<std::string_view> names;
    const auto types = known_types();
    ASSERT_FALSE(types.empty());
    for (size_t i = 1; i < types.size(); ++i) EXPECT_LT(types[i - 1].id, types[i].id);
    for (size_t i = 0; i < types.size(); ++i) {
        EXPECT_TRUE(names.insert(types[i].name).second) << types[i].name;
        EXPECT_GT(types[i].block_elements, 0u);
        EXPECT_GT(types[i].block_bytes, 0u);
        EXPECT_EQ(find_type(types[i].id), &types[i]);
        EXPECT_EQ(find_type(types[i].name), &types[i]);
    }
}

TEST(Types, NamesIgnoreCase) {
    ASSERT_NE(find_type("Q4_k"), nullptr);
    EXPECT_EQ(find_type("Q4_k")->id, TSR_TYPE_Q4_K);
    EXPECT_EQ(find_type("q4"), nullptr);
    EXPECT_EQ(find_type(""), nullptr);
}

TEST(Types, UnknownOnesAreRefused) {
    EXPECT_EQ(find_type(tsr_type{4}), nullptr);
    EXPECT_EQ(find_type(tsr_type{TSR_TYPE_NONE}), nullptr);
    EXPECT_THROW(type_info(0xFFFFFFFF), Error);
}

TEST(Types, ThoseOfOthersAreNamed) {
    for (const auto& [id, name] : {std::pair<tsr_type, std::string>{9, "Q8_1"}, {36, "I2_S"}, {148, "Q8_K32"}}) {
        EXPECT_EQ(find_type(id), nullptr);
        try {
            type_info(id);
            ADD_FAILURE() << name;
        } catch (const Error& error) {
            EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
        }
    }
}

TEST(Types, RowsAreWholeBlocks) {
    EXPECT_EQ(row_bytes(TSR_TYPE_F32, 3), 12u);
    EXPECT_EQ(row_bytes(TSR_TYPE_Q4_0, 64), 36u);
    EXPECT_EQ(row_bytes(TSR_TYPE_Q6_K, 512), 420u);
    EXPECT_EQ(row_bytes(TSR_TYPE_IQ4_KS, 512), 4 + 2 * 136u);
    EXPECT_EQ(row_bytes(TSR_TYPE_IQ2_KS, 256), 2 + 70u);
    EXPECT_THROW(row_bytes(TSR_TYPE_Q4_0, 33), Error);
    EXPECT_THROW(row_bytes(TSR_TYPE_Q4_K, 128), Error);
    EXPECT_THROW(row_bytes(TSR_TYPE_F64, uint64_t{1} << 62), Error);
}

TEST(Types, InterleavedRowsTakeTheBytesOfPlainOnes) {
    int interleaved = 0;
    for (const TypeInfo& type : known_types()) {
        const TypeInfo& rows = type_info(type.rows_type);
        EXPECT_EQ(rows.interleaved_rows, 1u) << type.name;
        EXPECT_EQ(row_bytes(type.id, 512), row_bytes(rows.id, 512)) << type.name;
        if (type.interleaved_rows == 1) {
            EXPECT_EQ(&rows, &type) << type.name;
        } else {
            EXPECT_LT(type.id, tsr_type{TSR_TYPE_FIRST_PRIVATE}) << type.name;
            ++interleaved;
        }
    }
#define TSR_ONE(...) +1
    EXPECT_EQ(interleaved, 0 TSR_INTERLEAVED_TYPES(TSR_ONE) TSR_PACKED_TYPES(TSR_ONE));
#undef TSR_ONE
}

}  // namespace
}  // namespace tessera
