// Blocks against what the public `gguf` package makes of them, bit for bit (tests/goldens/README.md).
#include "core/graph/types.hpp"
#include "recorded.hpp"

#include <tessera/cpu/check.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>
#include <sstream>
#include <utility>

namespace tessera::tests {
namespace {

const gguf::GgufFile& goldens() {
    static const gguf::GgufFile kFile = gguf::GgufFile::open(TSR_SOURCE_DIR "/tests/goldens/blocks.gguf");
    return kFile;
}

class Blocks : public testing::TestWithParam<std::string> {};

TEST_P(Blocks, DecodeToTheRecordedValues) {
    const TypeInfo* type = find_type(GetParam());
    ASSERT_NE(type, nullptr);
    const auto blocks = recorded<unsigned char>(goldens(), GetParam() + ".blocks");
    const auto values = recorded<float>(goldens(), GetParam() + ".values");
    const auto& shape = goldens().tensor(GetParam() + ".blocks").dims;
    const size_t elements = shape[0] / type->block_bytes * type->block_elements;
    ASSERT_TRUE(cpu::can_decode(type->id));
    EXPECT_EQ(first_difference(decoded(type->id, blocks, shape[0], elements), values), -1);
}

TEST_P(Blocks, EncodeToTheRecordedBytes) {
    const TypeInfo* type = find_type(GetParam());
    ASSERT_NE(type, nullptr);
    if (!goldens().find_tensor(GetParam() + ".quantized")) {
        std::vector<unsigned char> bytes(1024);
        const std::vector<float> zeros(256);
        EXPECT_EQ(cpu::encode_row(type->id, zeros.data(), zeros.size(), bytes.data()), cpu::can_encode_rows(type->id));
        return;
    }
    const auto rows = recorded<float>(goldens(), "rows");
    const auto wanted = recorded<unsigned char>(goldens(), GetParam() + ".quantized");
    std::vector<unsigned char> bytes(wanted.size());
    constexpr size_t kElements = 128;
    const size_t row_bytes = cpu::format_bytes(type->id, kElements);
    for (size_t r = 0; r < rows.size() / kElements; ++r) {
        ASSERT_TRUE(cpu::encode_row(type->id, &rows[r * kElements], kElements, &bytes[r * row_bytes]));
    }
    EXPECT_EQ(bytes, wanted);
}

std::set<std::string> words_of(const char* text) {
    std::istringstream words(text);
    return {std::istream_iterator<std::string>(words), {}};
}

// Every type with an encoder can be a cache, and what a weight is stored as if its blocks can be encoded alone:
// refusals must name all of them and no other.
TEST(Messages, NameTheTypesOfCaches) {
    std::set<std::string> cached, stored;
#define TSR_ADD(id, number, name, ...)                            \
    if (cpu::can_encode_rows(TSR_TYPE_##id)) cached.insert(name); \
    if (cpu::can_encode(TSR_TYPE_##id)) stored.insert(name);
    TSR_TYPES(TSR_ADD)
#undef TSR_ADD
    EXPECT_EQ(words_of(cpu::kCacheTypes), cached);
    EXPECT_EQ(words_of(cpu::kStoredTypes), stored);
}

// One scale for all of a row, the sum of its codes behind it, and what is no number is not lost.
TEST(Blocks, RowsOfQ8KvHaveAScaleOfTheirLargestMagnitude) {
    std::vector<float> row(96);
    for (size_t i = 0; i < row.size(); ++i) row[i] = 0.0133f * (static_cast<float>(i) - 40.0f);
    row[70] = -2.54f;
    std::vector<unsigned char> bytes(8 + row.size());
    ASSERT_TRUE(cpu::encode_row(TSR_TYPE_Q8_KV, row.data(), row.size(), bytes.data()));
    float scale = 0;
    int32_t sum = 0, codes = 0;
    std::memcpy(&scale, bytes.data(), 4);
    std::memcpy(&sum, &bytes[4], 4);
    EXPECT_EQ(scale, 2.54f / 127.0f);
    for (size_t i = 0; i < row.size(); ++i) {
        const auto code = static_cast<int8_t>(bytes[8 + i]);
        EXPECT_EQ(code, static_cast<int>(std::lround(row[i] / scale))) << i;
        codes += code;
    }
    EXPECT_EQ(sum, codes);
    std::vector<float> decoded(32);
    ASSERT_TRUE(cpu::decode_part(TSR_TYPE_Q8_KV, bytes.data(), 64, 32, decoded.data()));
    EXPECT_EQ(decoded[6], -127 * scale);
    for (const float odd : {INFINITY, NAN}) {
        row[5] = odd;
        ASSERT_TRUE(cpu::encode_row(TSR_TYPE_Q8_KV, row.data(), row.size(), bytes.data()));
        ASSERT_TRUE(cpu::decode_row(TSR_TYPE_Q8_KV, bytes.data(), 32, decoded.data()));
        for (const float value : decoded) EXPECT_TRUE(std::isnan(value));
    }
    EXPECT_FALSE(cpu::encode_row(TSR_TYPE_Q8_KV, row.data(), 40, bytes.data()));
}

std::vector<std::string> recorded_types() {
    std::vector<std::string> names;
    for (const gguf::TensorEntry& tensor : goldens().tensors()) {
        if (tensor.name.ends_with(".blocks")) names.push_back(tensor.name.substr(0, tensor.name.size() - 7));
    }
    return names;
}
INSTANTIATE_TEST_SUITE_P(Types, Blocks, testing::ValuesIn(recorded_types()),
                         [](const auto& type) { return type.param; });

// What is decoded is held against another implementation, for every format that files can hold: those with numbers of
// ik_llama.cpp in ik_rows_test.
TEST(Blocks, OfEveryFormatAreRecorded) {
    static const gguf::GgufFile kIkRows = gguf::GgufFile::open(TSR_SOURCE_DIR "/tests/formats/ik_rows.gguf");
#define TSR_LOOK(id, number, name, ...)                                                                    \
    if (number < TSR_TYPE_Q6_0 && cpu::can_decode(number)) {                                               \
        EXPECT_TRUE(goldens().find_tensor(name ".blocks") || kIkRows.find_tensor(name ".random")) << name; \
    }
    TSR_TYPES(TSR_LOOK)
#undef TSR_LOOK
}

// The public package has no encoders of these: as near as their steps allow, and what is decoded keeps its codes.
TEST(Blocks, EncodersOfOurOwnRoundToTheNearest) {
    for (const auto& [type, most] : {std::pair{TSR_TYPE_Q6_0, 0.023}, std::pair{TSR_TYPE_IQ4_NL, 0.08}}) {
        std::mt19937 random(1);
        std::normal_distribution<float> normal(0, 2);
        double error = 0, size = 0;
        for (int row = 0; row < 1000; ++row) {
            float x[32], y[32], z[32];
            for (float& v : x) v = normal(random);
            unsigned char block[32 * sizeof(float)];
            ASSERT_TRUE(cpu::encode_row(type, x, 32, block));
            ASSERT_TRUE(cpu::decode_row(type, block, 32, y));
            ASSERT_TRUE(cpu::encode_row(type, y, 32, block));
            ASSERT_TRUE(cpu::decode_row(type, block, 32, z));
            for (int i = 0; i < 32; ++i) {
                error += (x[i] - y[i]) * (x[i] - y[i]);
                size += x[i] * x[i];
                EXPECT_NEAR(z[i], y[i], 2e-3 * std::abs(y[i]) + 1e-6) << type << " element " << i;
            }
        }
        EXPECT_LT(std::sqrt(error / size), most) << type;
    }
}

// Sizes come from one list; the core and kernels agree on the size of a row.
TEST(Blocks, TakeWhatTheCoreSays) {
    int decodable = 0;
    for (const TypeInfo& type : known_types()) {
        const cpu::FormatSize size = cpu::format_size(type.id);
        if (size.elements == 0) continue;
        ++decodable;
        EXPECT_EQ(cpu::format_bytes(type.id, 512), row_bytes(type.id, 512)) << type.name;
        EXPECT_STREQ(cpu::format_name(type.id), std::string(type.name).c_str());
        std::vector<unsigned char> row(cpu::format_bytes(type.id, 512));
        std::vector<float> values(512, 1.0f);
        EXPECT_TRUE(cpu::decode_row(type.id, row.data(), 512, values.data())) << type.name;
        EXPECT_EQ(cpu::decode_row(type.id, row.data(), 511, values.data()), size.elements == 1) << type.name;
    }
    EXPECT_GE(decodable, 37);
}

}  // namespace
}  // namespace tessera::tests
