#include "core/session/kept/slot_file.hpp"

#include "core/base/error.hpp"
#include "tests/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace {
int lock_error = 0;  // of every flock, if not 0
}

extern "C" int flock(int descriptor, int operation) noexcept {
    if (lock_error == 0) return static_cast<int>(syscall(SYS_flock, descriptor, operation));
    errno = lock_error;
    return -1;
}

namespace tessera::session {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

size_t entries(const fs::path& folder) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(SlotFolder, WhatDeadWritersLeftGoes) {
    const test::TemporaryFolder temporary;
    const fs::path folder = temporary.path() / "new" / "slots", own = folder / std::string(32, 'a');
    open_slot_folder(folder);
    EXPECT_EQ(fs::status(folder).permissions() & fs::perms::all, fs::perms::owner_all);
    fs::create_directory(own);
    for (const fs::path& at : {folder, own}) {
        std::ofstream(at / ".part-12345") << "half of a slot";
        std::ofstream(at / "a.bin") << "a slot";
    }
    // One that is being written, by this process or another, stays.
    SlotWriter writer(folder / "b.bin", PageIdentity{{{"model", "small"}}}, 0, 0);
    open_slot_folder(folder);
    EXPECT_EQ(entries(own), 1u);
    EXPECT_EQ(entries(folder), 3u) << "a slot, a folder, and one that is being written";
    writer.finish();
    EXPECT_TRUE(fs::exists(folder / "b.bin"));
    EXPECT_EQ(entries(folder), 3u);
}

TEST(SlotFolder, TwoWritersOfOneNameDoNotMeet) {
    const test::TemporaryFolder temporary;
    const fs::path path = temporary.path() / "a.bin";
    const PageIdentity identity{{{"model", "small"}}};
    SlotWriter one(path, identity, 0, 0);
    const uint64_t bytes = SlotWriter(path, identity, 0, 0).finish();
    EXPECT_EQ(one.finish(), bytes);
    EXPECT_EQ(fs::file_size(path), bytes);
    EXPECT_EQ(fs::status(path).permissions() & fs::perms::all, fs::perms::owner_read | fs::perms::owner_write);
    EXPECT_EQ(entries(temporary.path()), 1u);
}

// As NFS without its daemon of locks, and some file systems of FUSE.
TEST(SlotFolder, OneWithoutLocksIsWritten) {
    const test::TemporaryFolder temporary;
    const fs::path path = temporary.path() / "a.bin";
    for (const int error : {ENOLCK, ENOSYS, EOPNOTSUPP, EWOULDBLOCK}) {
        lock_error = error;
        SlotWriter(path, PageIdentity{{{"model", "small"}}}, 0, 0).finish();
        lock_error = 0;
        EXPECT_EQ(entries(temporary.path()), 1u);
        EXPECT_TRUE(fs::remove(path));
    }
}

TEST(SlotFolder, OneThatCannotBeUsedIsRefused) {
    const test::TemporaryFolder temporary;
    std::ofstream(temporary.path() / "file") << "no folder";
    const auto expect_refused = [&](const fs::path& folder, const std::string& part) {
        try {
            open_slot_folder(folder);
            ADD_FAILURE() << folder;
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr(folder.string() + ": cannot"));
            EXPECT_THAT(error.what(), HasSubstr(part));
        }
    };
    expect_refused(temporary.path() / "file", "save slots in this folder: Not a directory");
    expect_refused(temporary.path() / "file" / "slots", "make this folder for slots: Not a directory");
    if (geteuid() == 0) return;  // may write everywhere
    ::chmod(temporary.path().c_str(), 0500);
    expect_refused(temporary.path(), "Permission denied");
    ::chmod(temporary.path().c_str(), 0700);
}

}  // namespace
}  // namespace tessera::session
