#include "core/gguf/reader.hpp"

#include "tests/gguf/bytes.hpp"
#include "tests/gguf/expect.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

namespace tessera::gguf {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::expect_error;
using test::preamble;

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Two tensors of 32 bytes each, filled with the first letter of their names.
Bytes file(std::string_view first, std::string_view second) {
    Bytes b =
        preamble(2, 1).u32("answer", 42).tensor(first, {32}, TSR_TYPE_I8, 0).tensor(second, {4, 8}, TSR_TYPE_I8, 64);
    b.pad(32).raw(std::string(32, first[0])).zeros(32).raw(std::string(32, second[0]));
    return b;
}

Bytes part(uint32_t number, uint32_t count, std::string_view tensor) {
    Bytes b = preamble(1, 4)
                  .u32("split.no", number)
                  .u32("split.count", count)
                  .u32("split.tensors.count", count)
                  .u32("answer", 40 + number);
    return b.tensor(tensor, {32}, TSR_TYPE_I8, 0).pad(32).raw(std::string(32, tensor[0]));
}

TEST(GgufFile, ReadsAndMapsTheSameBytes) {
    const tessera::test::TemporaryFolder folder;
    const GgufFile model = GgufFile::open(folder.write("model.gguf", file("a", "b").text));
    EXPECT_EQ(model.version(), 3u);
    EXPECT_EQ(model.file_count(), 1u);
    EXPECT_EQ(model.file_path(0), folder.path() / "model.gguf");
    EXPECT_EQ(model.file_bytes(), fs::file_size(folder.path() / "model.gguf"));
    EXPECT_EQ(model.metadata().get_u32("answer"), 42u);
    ASSERT_EQ(model.tensors().size(), 2u);
    const TensorEntry& b = model.tensor("b");
    EXPECT_EQ(&b, model.find_tensor("b"));
    std::vector<std::byte> out(b.bytes);
    model.read(b, 0, out);
    EXPECT_EQ(text_of(out), std::string(32, 'b'));
    EXPECT_EQ(text_of(model.map(b)), std::string(32, 'b'));
    EXPECT_EQ(text_of(model.map(model.tensor("a"))), std::string(32, 'a'));
    model.drop_pages(b, 0, b.bytes);
    EXPECT_EQ(text_of(model.map(b)), std::string(32, 'b'));
}

TEST(GgufFile, RefusesBytesOutsideOfATensor) {
    const tessera::test::TemporaryFolder folder;
    const GgufFile model = GgufFile::open(folder.write("model.gguf", file("a", "b").text));
    std::vector<std::byte> out(16);
    model.read(model.tensor("a"), 16, out);
    model.read(model.tensor("a"), 32, {});
    expect_error(TSR_INVALID_ARGUMENT, {"tensor 'a'", "32 bytes"}, [&] { model.read(model.tensor("a"), 17, out); });
    expect_error(TSR_INVALID_ARGUMENT, {"tensor 'a'"}, [&] { model.read(model.tensor("a"), ~uint64_t{0}, out); });
    expect_error(TSR_INVALID_ARGUMENT, {"tensor 'a'"}, [&] { model.drop_pages(model.tensor("a"), 1, 32); });
    TensorEntry foreign = model.tensor("a");
    foreign.file = 1;
    expect_error(TSR_INVALID_ARGUMENT, {"tensor 'a'"}, [&] { model.map(foreign); });
}

TEST(GgufFile, MissingTensorsAreNamed) {
    const tessera::test::TemporaryFolder folder;
    const GgufFile model = GgufFile::open(folder.write("model.gguf", file("a", "b").text));
    EXPECT_EQ(model.find_tensor("c"), nullptr);
    expect_error(TSR_NOT_FOUND, {"model.gguf", "tensor 'c'"}, [&] { model.tensor("c"); });
}

TEST(GgufFile, StaysWholeWhenMoved) {
    const tessera::test::TemporaryFolder folder;
    GgufFile first = GgufFile::open(folder.write("model.gguf", file("a", "b").text));
    const TensorEntry* const entry = first.find_tensor("b");
    const auto mapped = first.map(*entry);
    GgufFile second = std::move(first);
    EXPECT_EQ(second.find_tensor("b"), entry);
    EXPECT_EQ(text_of(mapped), std::string(32, 'b'));
    second = GgufFile::open(folder.write("other.gguf", file("x", "y").text));
    EXPECT_EQ(second.find_tensor("b"), nullptr);
    EXPECT_EQ(text_of(second.map(second.tensor("y"))), std::string(32, 'y'));
}

TEST(GgufFile, ManyThreadsMapAndRead) {
    const tessera::test::TemporaryFolder folder;
    const GgufFile model = GgufFile::open(folder.write("model.gguf", file("a", "b").text));
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&model, t] {
            const TensorEntry& tensor = model.tensors()[t % 2];
            std::vector<std::byte> out(tensor.bytes);
            for (int i = 0; i < 100; ++i) {
                model.read(tensor, 0, out);
                EXPECT_EQ(text_of(out), text_of(model.map(tensor)));
            }
        });
    }
}

TEST(GgufFile, Overrides) {
    const tessera::test::TemporaryFolder folder;
    const std::vector<Override> overrides = {parse_override("answer=int:7"), parse_override("new=str:text"),
                                             parse_override("general.alignment=int:64")};
    const GgufFile model = GgufFile::open(folder.write("model.gguf", file("a", "b").text), overrides);
    EXPECT_EQ(model.metadata().get_u32("answer"), 7u);
    EXPECT_EQ(model.metadata().get_string("new"), "text");
    EXPECT_EQ(text_of(model.map(model.tensor("a"))), std::string(32, 'a'));  // the data does not move
}

TEST(GgufFile, ErrorsNameTheFile) {
    const tessera::test::TemporaryFolder folder;
    expect_error(TSR_NOT_FOUND, {"none.gguf", "No such file"}, [&] { GgufFile::open(folder.path() / "none.gguf"); });
    expect_error(TSR_INVALID_ARGUMENT, {"a folder without one"}, [&] { GgufFile::open(folder.path()); });
    expect_error(TSR_INVALID_ARGUMENT, {"https://example.org/x.gguf: ", "nothing is downloaded"},
                 [] { GgufFile::open("https://example.org/x.gguf"); });
    std::filesystem::create_directory(folder.path() / "hf");
    folder.write("hf/model.safetensors", "x");
    expect_error(TSR_INVALID_ARGUMENT, {"safetensors", "docs/models.md"},
                 [&] { GgufFile::open(folder.path() / "hf"); });
    folder.write("hf/b.gguf", "x");
    expect_error(TSR_INVALID_ARGUMENT, {"1 GGUF file", "hf/b.gguf"}, [&] { GgufFile::open(folder.path() / "hf"); });
    expect_error(TSR_CORRUPT_DATA, {"empty.gguf: not a GGUF file: the file is empty"},
                 [&] { GgufFile::open(folder.write("empty.gguf", "")); });
    expect_error(TSR_CORRUPT_DATA, {"text.gguf: not a GGUF file", "'<html>'"},
                 [&] { GgufFile::open(folder.write("text.gguf", "<html>")); });
    const std::string whole = file("a", "b").text;
    expect_error(TSR_CORRUPT_DATA, {"cut.gguf: tensor 'b'", "download"},
                 [&] { GgufFile::open(folder.write("cut.gguf", whole.substr(0, whole.size() - 1))); });
}

TEST(GgufFile, AnyPartFindsTheRest) {
    const tessera::test::TemporaryFolder folder;
    const std::vector<std::string> names = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"};
    folder.write(names[0], part(0, 3, "a").text);
    folder.write(names[1], part(1, 3, "b").text);
    folder.write(names[2], part(2, 3, "c").text);
    for (const std::string& name : names) {
        const GgufFile model = GgufFile::open(folder.path() / name);
        EXPECT_EQ(model.file_count(), 3u);
        EXPECT_EQ(model.file_path(2), folder.path() / names[2]);
        EXPECT_EQ(model.metadata().get_u32("answer"), 40u);  // of the first part
        for (const char* tensor : {"a", "b", "c"}) {
            std::vector<std::byte> out(32);
            model.read(model.tensor(tensor), 0, out);
            EXPECT_EQ(text_of(out), std::string(32, tensor[0]));
            EXPECT_EQ(text_of(model.map(model.tensor(tensor))), std::string(32, tensor[0]));
        }
    }
}

TEST(GgufFile, SplitsFromTheFolderAboutUs) {
    const tessera::test::TemporaryFolder folder;
    folder.write("m-00001-of-00002.gguf", part(0, 2, "a").text);
    folder.write("m-00002-of-00002.gguf", part(1, 2, "b").text);
    const fs::path before = fs::current_path();
    fs::current_path(folder.path());
    const GgufFile model = GgufFile::open("m-00002-of-00002.gguf");  // no folder in the name
    fs::current_path(before);
    EXPECT_EQ(model.tensors().size(), 2u);
}

TEST(GgufFile, WrongSplits) {
    const tessera::test::TemporaryFolder folder;
    folder.write("m-00001-of-00003.gguf", part(0, 3, "a").text);
    folder.write("m-00003-of-00003.gguf", part(2, 3, "c").text);
    expect_error(TSR_NOT_FOUND, {"m-00002-of-00003.gguf", "part 2 of 3 is missing"},
                 [&] { GgufFile::open(folder.path() / "m-00003-of-00003.gguf"); });
    folder.write("m-00002-of-00003.gguf", part(0, 3, "b").text);  // the first part again
    expect_error(TSR_CORRUPT_DATA, {"m-00002-of-00003.gguf", "part 2 of 3", "part 1 of 3"},
                 [&] { GgufFile::open(folder.path() / "m-00001-of-00003.gguf"); });
    expect_error(TSR_CORRUPT_DATA, {"m-00002-of-00003.gguf", "named part 2 of 3", "part 1 of 3"},
                 [&] { GgufFile::open(folder.path() / "m-00002-of-00003.gguf"); });
    folder.write("m-00002-of-00003.gguf", file("b", "d").text);  // no part at all
    expect_error(TSR_CORRUPT_DATA, {"m-00002-of-00003.gguf", "part 1 of 1"},
                 [&] { GgufFile::open(folder.path() / "m-00001-of-00003.gguf"); });
    folder.write("m-00002-of-00003.gguf", part(1, 3, "a").text);
    expect_error(TSR_CORRUPT_DATA, {"m-00002-of-00003.gguf", "tensor 'a'", "part 1"},
                 [&] { GgufFile::open(folder.path() / "m-00001-of-00003.gguf"); });
    folder.write("m-00002-of-00003.gguf", "GGUF");
    expect_error(TSR_CORRUPT_DATA, {"m-00002-of-00003.gguf", "truncated"},
                 [&] { GgufFile::open(folder.path() / "m-00001-of-00003.gguf"); });
}

TEST(GgufFile, RenamedPartsSayWhatTheirNameMustBe) {
    const tessera::test::TemporaryFolder folder;
    expect_error(TSR_INVALID_ARGUMENT, {"renamed.gguf", "part 2 of 3", "-00002-of-00003.gguf"},
                 [&] { GgufFile::open(folder.write("renamed.gguf", part(1, 3, "b").text)); });
    // A name alone does not make a part.
    EXPECT_EQ(GgufFile::open(folder.write("x-00001-of-00002.gguf", file("a", "b").text)).tensors().size(), 2u);
}

}  // namespace
}  // namespace tessera::gguf
