// What processes that were forked are counted by.
#include "apps/constrain/limits.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace tessera::constrain {
namespace {

constexpr size_t kBytes = 64 << 20;

std::byte* written(size_t bytes, int value) {
    void* const made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) return nullptr;
    std::memset(made, value, bytes);
    return static_cast<std::byte*>(made);
}

bool near(uint64_t bytes, uint64_t expected) {
    return bytes + Growth::kUnseen >= expected && bytes <= expected + 2 * Growth::kUnseen;
}

// 0: all is as it should be. Of a process that was just made.
int growth_in_child(std::byte* shared) {
    Growth growth;
    if (!near(growth.bytes(), 0)) return 1;
    // Copies of what is shared: the resident size stays what it was.
    std::memset(shared, 2, kBytes);
    if (!near(growth.bytes(), kBytes)) return 2;
    // New ones.
    std::byte* const own = written(kBytes, 3);
    if (!own) return 3;
    if (!near(growth.bytes(), 2 * kBytes)) return 4;
    // What was given back is no longer counted, when it is counted again.
    munmap(own, kBytes);
    std::byte* const few = written(2 * Growth::kUnseen, 4);
    if (!few) return 5;
    return near(growth.bytes(), kBytes + 2 * Growth::kUnseen) ? 0 : 6;
}

TEST(Growth, SeesPagesThatAreCopiedAfterAFork) {
    std::byte* const shared = written(kBytes, 1);
    ASSERT_NE(shared, nullptr);
    const pid_t child = fork();
    if (child == 0) _exit(growth_in_child(shared));
    ASSERT_GT(child, 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_EQ(shared[0], std::byte{1});
    munmap(shared, kBytes);
}

}  // namespace
}  // namespace tessera::constrain
