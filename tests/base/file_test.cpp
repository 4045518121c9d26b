#include "core/base/file.hpp"

#include "core/base/error.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace tessera {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
  protected:
    fs::path write(const std::string& name, const std::string& text) { return temporary_.write(name, text); }

    static std::string text_of(std::span<const std::byte> bytes) {
        return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }

    static void expect_error(tsr_code code, const std::string& part, auto&& work) {
        try {
            work();
            FAIL() << "no error; expected one with: " << part;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), code) << error.what();
            EXPECT_THAT(error.what(), testing::HasSubstr(part));
        }
    }

    const test::TemporaryFolder temporary_;
    const fs::path& folder_ = temporary_.path();
};

TEST_F(FileTest, ReadsExactly) {
    const File file(write("a", "0123456789"));
    EXPECT_EQ(file.size(), 10u);
    std::vector<std::byte> out(4);
    file.pread_exact(3, out);
    EXPECT_EQ(text_of(out), "3456");
    file.pread_exact(10, {});
    expect_error(TSR_IO_ERROR, "the file has 10", [&] { file.pread_exact(7, out); });
    expect_error(TSR_IO_ERROR, (folder_ / "a").string(), [&] { file.pread_exact(11, {}); });
    expect_error(TSR_IO_ERROR, "the file has 10", [&] { file.pread_exact(~uint64_t{0}, out); });
}

TEST_F(FileTest, SaysThatItWasShortened) {
    const File file(write("a", "0123456789"));
    fs::resize_file(folder_ / "a", 5);
    std::vector<std::byte> out(10);
    expect_error(TSR_IO_ERROR, "shortened", [&] { file.pread_exact(0, out); });
}

TEST_F(FileTest, RefusesWhatIsNoFile) {
    expect_error(TSR_NOT_FOUND, "No such file", [&] { File(folder_ / "none"); });
    expect_error(TSR_INVALID_ARGUMENT, "a folder", [&] { File{folder_}; });
    const fs::path pipe = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    expect_error(TSR_INVALID_ARGUMENT, "pipe", [&] { File{pipe}; });  // and does not wait for a writer
}

TEST_F(FileTest, Moves) {
    File a(write("a", "aaaa"));
    File b(write("b", "bb"));
    b = std::move(a);
    EXPECT_EQ(b.size(), 4u);
    const File c(std::move(b));
    std::vector<std::byte> out(4);
    c.pread_exact(0, out);
    EXPECT_EQ(text_of(out), "aaaa");
}

TEST_F(FileTest, Maps) {
    MappedFile mapping(File(write("a", "0123456789")));
    EXPECT_EQ(text_of(mapping.bytes()), "0123456789");
    const MappedFile moved(std::move(mapping));
    EXPECT_EQ(text_of(moved.bytes()), "0123456789");
    EXPECT_TRUE(MappedFile(File(write("empty", ""))).bytes().empty());
}

// Resident pages of a mapping, as /proc/self/smaps counts them for the address.
size_t resident_kib(const void* address) {
    std::ifstream maps("/proc/self/smaps");
    const auto at = reinterpret_cast<uintptr_t>(address);
    bool inside = false;
    for (std::string line; std::getline(maps, line);) {
        uintptr_t begin = 0, end = 0;
        if (std::sscanf(line.c_str(), "%lx-%lx", &begin, &end) == 2) inside = begin <= at && at < end;
        size_t kib = 0;
        if (inside && std::sscanf(line.c_str(), "Rss: %zu kB", &kib) == 1) return kib;
    }
    return ~size_t{0};
}

TEST_F(FileTest, GivesPagesBack) {
    constexpr size_t kBytes = 4 << 20;
    const MappedFile mapping(File(write("big", std::string(kBytes, 'x'))));
    const auto touch = [&] {
        size_t sum = 0;
        for (const std::byte b : mapping.bytes()) sum += static_cast<size_t>(b);
        return sum;
    };
    EXPECT_EQ(touch(), kBytes * 'x');
    EXPECT_EQ(resident_kib(mapping.bytes().data()), kBytes >> 10);
    mapping.drop_pages(
        1, kBytes - 1);  // the first page is only partly inside; where it was mapped as a huge page it is dropped too
    EXPECT_LE(resident_kib(mapping.bytes().data()), static_cast<size_t>(::sysconf(_SC_PAGESIZE)) >> 10);
    EXPECT_EQ(touch(), kBytes * 'x');  // and they are read again
    mapping.drop_pages(0, ~uint64_t{0});
    EXPECT_EQ(resident_kib(mapping.bytes().data()), 0u);
    mapping.drop_pages(kBytes, 1);
    mapping.will_need(0, ~uint64_t{0});
    mapping.will_need(kBytes + 1, 1);
}

TEST_F(FileTest, AdviceDoesNoHarm) {
    const File file(write("a", "0123456789"));
    file.advise_will_need(0, 10);
    file.drop_cached(0, 10);
    file.drop_cached(0, 0);
    file.drop_cached(~uint64_t{0}, ~uint64_t{0});
    std::vector<std::byte> out(10);
    file.pread_exact(0, out);
    EXPECT_EQ(text_of(out), "0123456789");
}

TEST_F(FileTest, ReadsAllOfAFileOrAPipe) {
    EXPECT_EQ(read_all(write("a", "0123456789"), 10), "0123456789");
    EXPECT_EQ(read_all(write("empty", ""), 10), "");
    expect_error(TSR_DOES_NOT_FIT, "at most 9 bytes", [&] { read_all(folder_ / "a", 9); });
    expect_error(TSR_NOT_FOUND, "No such file", [&] { read_all(folder_ / "none", 9); });
    expect_error(TSR_IO_ERROR, "Is a directory", [&] { read_all(folder_, 9); });
    const fs::path pipe = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    const std::string long_text(1 << 20, 'x');
    const std::jthread writer([&] { std::ofstream(pipe) << long_text; });
    EXPECT_EQ(read_all(pipe, 1 << 20), long_text);
}

TEST_F(FileTest, ManyThreadsRead) {
    const File file(write("a", std::string(1 << 16, 'a') + std::string(1 << 16, 'b')));
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&file, t] {
            std::vector<std::byte> out(1 << 15);
            for (int i = 0; i < 50; ++i) {
                file.pread_exact(static_cast<uint64_t>(t) << 15, out);
                EXPECT_EQ(static_cast<char>(out[100]), t < 2 ? 'a' : 'b');
            }
        });
    }
}

}  // namespace
}  // namespace tessera
