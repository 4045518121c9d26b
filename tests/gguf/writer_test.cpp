#include "core/gguf/writer.hpp"

#include "core/gguf/reader.hpp"
#include "tests/gguf/bytes.hpp"
#include "tests/gguf/expect.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

namespace tessera::gguf {
namespace {

namespace fs = std::filesystem;
using test::expect_error;

std::vector<std::pair<std::string, Value>> one_of_each() {
    StringArray strings;
    for (const auto text : {std::string_view("one"), std::string_view(""), std::string_view("\0\xFF", 2)})
        strings.push_back(text);
    return {{"u8", uint8_t{255}},
            {"i8", int8_t{-128}},
            {"u16", uint16_t{65535}},
            {"i16", int16_t{-32768}},
            {"u32", std::numeric_limits<uint32_t>::max()},
            {"i32", std::numeric_limits<int32_t>::min()},
            {"f32", 1.25f},
            {"bool", true},
            {"string", std::string("gr\xC3\xBC\xC3\x9F")},
            {"u64", std::numeric_limits<uint64_t>::max()},
            {"i64", std::numeric_limits<int64_t>::min()},
            {"f64", 1e300},
            {"a.u8", Array(std::vector<uint8_t>{1, 2})},
            {"a.i8", Array(std::vector<int8_t>{-1})},
            {"a.u16", Array(std::vector<uint16_t>{})},
            {"a.i16", Array(std::vector<int16_t>{-3, 3})},
            {"a.u32", Array(std::vector<uint32_t>{1u << 31})},
            {"a.i32", Array(std::vector<int32_t>{-5, 6, 7})},
            {"a.f32", Array(std::vector<float>{0.5f, -1})},
            {"a.bool", Array(std::vector<bool>{true, false, true})},
            {"a.string", Array(strings)},
            {"a.u64", Array(std::vector<uint64_t>{~uint64_t{0}})},
            {"a.i64", Array(std::vector<int64_t>{-8})},
            {"a.f64", Array(std::vector<double>{0.125})}};
}

constexpr std::array<uint64_t, 1> kVector = {5};
constexpr std::array<uint64_t, 3> kCube = {32, 3, 2};

std::vector<std::byte> counting(size_t bytes, int start) {
    std::vector<std::byte> out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<std::byte>(static_cast<size_t>(start) + i);
    return out;
}

class WriterTest : public testing::TestWithParam<uint32_t> {};

TEST_P(WriterTest, RoundTrips) {
    const uint32_t alignment = GetParam();
    const tessera::test::TemporaryFolder folder;
    const fs::path path = folder.path() / "out.gguf";
    const auto pairs = one_of_each();
    const auto first = counting(20, 1), second = counting(6 * 18, 100);
    {
        Writer writer(path);
        for (const auto& [key, value] : pairs) writer.add(key, value);
        if (alignment != kDefaultAlignment) writer.add("general.alignment", alignment);
        writer.add_tensor("vector", TSR_TYPE_F32, kVector);
        writer.add_tensor("cube", TSR_TYPE_Q4_0, kCube);
        // In writes that do not end where tensors do.
        std::vector<std::byte> all = first;
        all.insert(all.end(), second.begin(), second.end());
        for (size_t at = 0; at < all.size(); at += 7)
            writer.write(std::span(all).subspan(at, std::min<size_t>(7, all.size() - at)));
        EXPECT_FALSE(fs::exists(path));
        writer.finish();
    }
    const GgufFile model = GgufFile::open(path);
    const auto entries = model.metadata().entries();
    ASSERT_GE(entries.size(), pairs.size());
    for (size_t i = 0; i < pairs.size(); ++i) {
        EXPECT_EQ(entries[i].key, pairs[i].first);
        EXPECT_EQ(entries[i].value, pairs[i].second) << entries[i].key;
    }
    ASSERT_EQ(model.tensors().size(), 2u);
    const TensorEntry& cube = model.tensor("cube");
    EXPECT_EQ(cube.rank, 3u);
    EXPECT_EQ(cube.dims, (std::array<uint64_t, 4>{32, 3, 2, 1}));
    EXPECT_EQ(cube.offset % alignment, 0u);
    const auto got_first = model.map(model.tensor("vector")), got_second = model.map(cube);
    EXPECT_TRUE(std::ranges::equal(got_first, first));
    EXPECT_TRUE(std::ranges::equal(got_second, second));
    EXPECT_EQ(model.file_bytes() % alignment, 0u);  // the last tensor is padded too
}

INSTANTIATE_TEST_SUITE_P(Alignments, WriterTest, testing::Values(1, 8, 32, 4096));

TEST(Writer, WithoutTensors) {
    const tessera::test::TemporaryFolder folder;
    Writer writer(folder.path() / "out.gguf");
    writer.add("general.architecture", std::string("llama"));
    writer.finish();
    const GgufFile model = GgufFile::open(folder.path() / "out.gguf");
    EXPECT_EQ(model.metadata().get_string("general.architecture"), "llama");
    EXPECT_TRUE(model.tensors().empty());
}

TEST(Writer, CountsBytes) {
    const tessera::test::TemporaryFolder folder;
    const fs::path path = folder.path() / "out.gguf";
    {
        Writer writer(path);
        writer.add_tensor("vector", TSR_TYPE_F32, kVector);
        writer.write(counting(19, 0));
        expect_error(TSR_INVALID_ARGUMENT, {"out.gguf", "tensor 'vector'", "19 of its 20 bytes"},
                     [&] { writer.finish(); });
        expect_error(TSR_INVALID_ARGUMENT, {"out.gguf", "1 bytes more"}, [&] { writer.write(counting(2, 0)); });
    }
    EXPECT_TRUE(fs::is_empty(folder.path()));  // nothing half done stays behind
}

TEST(Writer, RefusesWhatTheReaderWould) {
    const tessera::test::TemporaryFolder folder;
    const auto begin = [&](auto&& declare) {
        Writer writer(folder.path() / "out.gguf");
        declare(writer);
        writer.write({});
    };
    const auto shape = [](std::vector<uint64_t> dims, tsr_type type = TSR_TYPE_F32, std::string name = "w") {
        return [=](Writer& w) { w.add_tensor(name, type, dims); };
    };
    begin(shape({1, 1, 1, 1}));
    expect_error(TSR_INVALID_ARGUMENT, {"'w'", "found 0"}, [&] { begin(shape({})); });
    expect_error(TSR_INVALID_ARGUMENT, {"'w'", "found 5"}, [&] { begin(shape({1, 1, 1, 1, 1})); });
    expect_error(TSR_CORRUPT_DATA, {"'w'", "dimension 1 is 0"}, [&] { begin(shape({1, 0})); });
    expect_error(TSR_CORRUPT_DATA, {"33 elements"}, [&] { begin(shape({33}, TSR_TYPE_Q4_0)); });
    expect_error(TSR_UNSUPPORTED, {"type 4"}, [&] { begin(shape({32}, 4)); });
    expect_error(TSR_CORRUPT_DATA, {"overflows"}, [&] { begin(shape({uint64_t{1} << 40, uint64_t{1} << 40})); });
    expect_error(TSR_CORRUPT_DATA, {"empty"}, [&] { begin(shape({1}, TSR_TYPE_F32, "")); });
    expect_error(TSR_CORRUPT_DATA, {"256 bytes"}, [&] { begin(shape({1}, TSR_TYPE_F32, std::string(256, 'x'))); });
    expect_error(TSR_CORRUPT_DATA, {"UTF-8"}, [&] { begin([](Writer& w) { w.add("\xFF", true); }); });
    expect_error(TSR_CORRUPT_DATA, {"power of two"},
                 [&] { begin([](Writer& w) { w.add("general.alignment", uint32_t{0}); }); });
    expect_error(TSR_UNSUPPORTED, {"arrays of arrays"},
                 [&] { begin([](Writer& w) { w.add("a", Array(NoNesting())); }); });
    expect_error(TSR_CORRUPT_DATA, {"'a'", "twice"}, [&] {
        begin([](Writer& w) {
            w.add("a", true);
            w.add("a", true);
        });
    });
    expect_error(TSR_CORRUPT_DATA, {"'w'", "twice"}, [&] {
        begin([&](Writer& w) {
            shape({1})(w);
            shape({1})(w);
        });
    });
}

}  // namespace
}  // namespace tessera::gguf
