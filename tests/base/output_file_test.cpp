#include "core/base/output_file.hpp"

#include "core/base/error.hpp"
#include "tests/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

namespace tessera {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
  protected:
    static void put(OutputFile& out, std::string_view text) { out.append(std::as_bytes(std::span(text))); }
    static void write(const fs::path& path, std::string_view text) {
        OutputFile out(path);
        put(out, text);
        out.finish();
    }
    static std::string read(const fs::path& path) {
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    size_t files() const { return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {})); }
    static void expect_error(tsr_code code, const std::string& part, const fs::path& path) {
        try {
            OutputFile out(path);
            FAIL() << "no error; expected one with: " << part;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), code) << error.what();
            EXPECT_THAT(error.what(), testing::HasSubstr(part));
        }
    }

    const test::TemporaryFolder temporary_;
    const fs::path& folder_ = temporary_.path();
};

TEST_F(OutputFileTest, AppearsWhenItIsFinished) {
    const fs::path path = folder_ / "out";
    OutputFile out(path);
    put(out, "hello");
    EXPECT_EQ(out.size(), 5u);
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(files(), 1u);  // in the same folder, so that it can be renamed
    out.finish();
    EXPECT_EQ(read(path), "hello");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, WhatIsNotFinishedLeavesTheOldFile) {
    const fs::path path = temporary_.write("out", "old");
    {
        OutputFile out(path);
        put(out, "newer");
    }
    EXPECT_EQ(read(path), "old");
    EXPECT_EQ(files(), 1u);
    expect_error(TSR_NOT_FOUND, "cannot create", folder_ / "none" / "out");
}

TEST_F(OutputFileTest, TwoWritersOfOneNameDoNotMix) {
    const fs::path path = folder_ / "out";
    OutputFile a(path), b(path);
    put(a, "aaaa");
    put(b, "bb");
    put(a, "aaaa");
    b.finish();
    EXPECT_EQ(read(path), "bb");
    a.finish();
    EXPECT_EQ(read(path), "aaaaaaaa");
    EXPECT_EQ(files(), 1u);
}

TEST_F(OutputFileTest, FollowsLinks) {
    fs::create_directory(folder_ / "other");
    temporary_.write("other/file", "old");
    fs::create_symlink("other/file", folder_ / "link");
    fs::create_symlink("link", folder_ / "second");
    write(folder_ / "second", "new");
    EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
    EXPECT_TRUE(fs::is_symlink(folder_ / "second"));
    EXPECT_EQ(read(folder_ / "other/file"), "new");

    fs::create_symlink("other/later", folder_ / "dangling");
    write(folder_ / "dangling", "new");
    EXPECT_TRUE(fs::is_symlink(folder_ / "dangling"));
    EXPECT_EQ(read(folder_ / "other/later"), "new");

    fs::create_symlink("circle", folder_ / "circle");
    expect_error(TSR_IO_ERROR, "cannot follow", folder_ / "circle");
}

TEST_F(OutputFileTest, KeepsThePermissionsOfTheFileThatItReplaces) {
    const fs::path path = temporary_.write("out", "old");
    fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
    write(path, "new");
    EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read);
    EXPECT_EQ(read(path), "new");
}

TEST_F(OutputFileTest, WritesToDevicesAndPipes) {
    write("/dev/null", "nothing");
    EXPECT_TRUE(fs::is_character_file("/dev/null"));
    const fs::path pipe = folder_ / "pipe";
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    std::string got;
    std::jthread reader([&] { got = read(pipe); });
    write(pipe, std::string(1 << 20, 'x'));
    reader.join();
    EXPECT_EQ(got.size(), size_t{1} << 20);
    EXPECT_TRUE(fs::is_fifo(pipe));
    EXPECT_EQ(files(), 1u);
    try {
        write("/dev/full", "text");
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), testing::HasSubstr("/dev/full: cannot write: No space left on device"));
    }
}

TEST_F(OutputFileTest, WritesToOpenDescriptorsWhereTheyAre) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    write("/dev/fd/" + std::to_string(ends[1]), "text");
    char got[8] = {};
    EXPECT_EQ(::read(ends[0], got, sizeof got), 4);
    ::close(ends[0]);
    ::close(ends[1]);
    const fs::path path = temporary_.write("out", "");
    const int file = ::open(path.c_str(), O_WRONLY);
    ASSERT_EQ(::write(file, "before ", 7), 7);
    write("/proc/self/fd/" + std::to_string(file), "after");
    ::close(file);
    EXPECT_EQ(read(path), "before after");
}

TEST_F(OutputFileTest, RefusesWhatCannotBeWritten) {
    expect_error(TSR_INVALID_ARGUMENT, "found a folder", folder_);
    expect_error(TSR_INVALID_ARGUMENT, "an empty one", "");
    expect_error(TSR_IO_ERROR, "cannot open", "/dev/fd/987");
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = folder_ / "socket";
    ASSERT_LT(name.size(), sizeof address.sun_path);
    std::ranges::copy(name, address.sun_path);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    expect_error(TSR_INVALID_ARGUMENT, "found a socket", name);
    ::close(socket);
}

TEST_F(OutputFileTest, LongNamesHaveRoomForTheSuffix) {
    const fs::path path = folder_ / std::string(255, 'n');
    write(path, "text");
    EXPECT_EQ(read(path), "text");
}

TEST_F(OutputFileTest, UnfinishedFilesAreRemovedOnRequest) {
    std::vector<std::unique_ptr<OutputFile>> many;
    for (int i = 0; i < 20; ++i) many.push_back(std::make_unique<OutputFile>(folder_ / std::to_string(i)));
    many.resize(10);
    EXPECT_EQ(files(), 10u);
    OutputFile::remove_unfinished();
    EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace tessera
