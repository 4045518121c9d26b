#include "core/session/kept/page_writer.hpp"

#include "core/base/error.hpp"
#include "tests/captured_log.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>

namespace tessera::session {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr uint64_t kBytes = 96;

// While it is shut, nothing that is written comes to an end, as on a disk that does not answer.
class DoorStore final : public PageStore {
  public:
    using PageStore::PageStore;
    bool write(const PathId& parent, std::span<const int32_t> tokens, uint32_t group,
               std::span<const std::byte> bytes) override {
        ++begun;
        door.get_future().wait();
        door = {};
        return PageStore::write(parent, tokens, group, bytes);
    }
    std::promise<void> door;
    std::atomic<int> begun{0};
};

class PageWriterTest : public testing::Test {
  protected:
    template <typename Store>
    std::shared_ptr<Store> open() {
        std::vector<std::string> notes;
        return std::make_shared<Store>(temporary_.path() / "pages", 1 << 20, PageIdentity{{{"model", "small"}}},
                                       std::vector{kBytes}, notes);
    }
    static PageWriter::Page page(const PathId& parent, int32_t first) {
        PageWriter::Page page{parent, {}, std::vector<int32_t>(TSR_PAGE_TOKENS), 0, std::vector<std::byte>(kBytes)};
        std::iota(page.tokens.begin(), page.tokens.end(), first);
        page.path = path_after(parent, page.tokens);
        return page;
    }
    // Pages of one text, the last first.
    static std::vector<PathId> push_text(PageWriter& writer, PathId parent, int32_t pages, int32_t first = 0) {
        std::vector<PathId> paths;
        for (int32_t i = 0; i < pages; ++i) {
            PageWriter::Page next = page(parent, first + i);
            paths.insert(paths.begin(), parent = next.path);
            writer.push(std::move(next));
        }
        return paths;
    }
    static void wait_until_written(PageWriter& writer) {
        while (!writer.wait_until_written(100ms)) {
        }
    }
    static void wait_until_begun(const DoorStore& store) {
        while (store.begun == 0) std::this_thread::yield();
    }
    size_t files() const {
        size_t count = 0;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_.path()))
            count += entry.path().filename().string().size() > 60 ? 1 : 0;
        return count;
    }

    test::TemporaryFolder temporary_;
};

TEST_F(PageWriterTest, WritesInOrder) {
    const auto store = open<PageStore>();
    PathId last{};
    {
        PageWriter writer(store, 3 * kBytes);
        PathId parent = store->root("");
        for (int32_t i = 0; i < 20; ++i) {
            while (!writer.wait_for_room(kBytes, 100ms)) {
            }
            PageWriter::Page next = page(parent, i);
            last = parent = next.path;
            writer.push(std::move(next));
        }
        wait_until_written(writer);
        EXPECT_EQ(writer.waiting(), 0u);
    }
    EXPECT_EQ(store->status().written_pages, 20u);
    EXPECT_TRUE(store->has(last, 0));
}

TEST_F(PageWriterTest, OfAForgottenTextNothingIsWritten) {
    const auto store = open<DoorStore>();
    PageWriter writer(store, 1 << 20);
    const PathId root = store->root("");
    const auto paths = push_text(writer, root, 4);
    wait_until_begun(*store);
    const auto start = std::chrono::steady_clock::now();
    const auto forgotten = writer.forget(paths);
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "it waits for no disk";
    EXPECT_EQ(writer.waiting(), 1u) << "but the one that is being written";
    EXPECT_EQ(forgotten.wait_for(0s), std::future_status::timeout);
    store->door.set_value();
    forgotten.get();
    EXPECT_EQ(files(), 0u);
    EXPECT_EQ(store->status().pages, 0u);
    EXPECT_EQ(store->begun, 1);
}

// What is asked for again is kept again, whenever that is.
TEST_F(PageWriterTest, WhatIsGivenAfterItWasForgottenIsWritten) {
    const auto store = open<DoorStore>();
    PageWriter writer(store, 1 << 20);
    const auto paths = push_text(writer, store->root(""), 1);
    wait_until_begun(*store);
    const auto forgotten = writer.forget(paths);
    push_text(writer, store->root(""), 1);
    store->door.set_value();
    forgotten.get();
    while (store->begun < 2) std::this_thread::yield();
    store->door.set_value();
    wait_until_written(writer);
    EXPECT_TRUE(store->has(paths[0], 0));
    EXPECT_EQ(files(), 1u);
}

TEST_F(PageWriterTest, PagesThatOthersFollowStay) {
    const auto store = open<PageStore>();
    PageWriter writer(store, 1 << 20);
    const auto one = push_text(writer, store->root(""), 3);
    const auto other = push_text(writer, one.back(), 1, 100);  // follows the first
    writer.forget(one).get();
    wait_until_written(writer);
    EXPECT_FALSE(store->has(one[0], 0));
    EXPECT_FALSE(store->has(one[1], 0));
    EXPECT_TRUE(store->has(one[2], 0));
    EXPECT_TRUE(store->has(other[0], 0));
    EXPECT_EQ(files(), 2u);
}

TEST_F(PageWriterTest, AFileThatCannotBeRemovedIsSaid) {
    const auto store = open<PageStore>();
    PageWriter writer(store, 1 << 20);
    const auto paths = push_text(writer, store->root(""), 2);
    wait_until_written(writer);
    // A folder in the place of the last page.
    for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_.path())) {
        if (!entry.path().filename().string().starts_with(path_text(paths[0]))) continue;
        std::filesystem::remove(entry.path());
        std::filesystem::create_directory(entry.path());
        break;
    }
    CapturedLog log;
    const auto forgotten = writer.forget(paths);
    try {
        forgotten.get();
        ADD_FAILURE() << "a file is left";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_IO_ERROR);
        EXPECT_THAT(error.what(), HasSubstr(path_text(paths[0])));
        EXPECT_THAT(error.what(), HasSubstr("cannot remove this file"));
    }
    EXPECT_EQ(files(), 1u) << "what can be removed is";
    wait_until_written(writer);
    EXPECT_THAT(log.text(), HasSubstr("a page of the cache is not removed"));
}

TEST_F(PageWriterTest, ADiskThatDoesNotAnswerDelaysNoEnd) {
    const auto store = open<DoorStore>();
    CapturedLog log;
    auto writer = std::make_unique<PageWriter>(store, 1 << 20);
    const auto paths = push_text(*writer, store->root(""), 1);
    push_text(*writer, store->root(""), 2, 100);
    wait_until_begun(*store);
    const auto forgotten = writer->forget(paths);
    EXPECT_FALSE(writer->wait_until_written(10ms));
    const auto start = std::chrono::steady_clock::now();
    writer.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
    EXPECT_THAT(log.text(), HasSubstr("the disk does not answer"));
    // What is left of it ends when the disk answers, writes no other page, and leaves none that is forgotten.
    store->door.set_value();
    while (store.use_count() > 1) std::this_thread::yield();
    EXPECT_EQ(store->begun, 1);
    forgotten.get();
    EXPECT_EQ(files(), 0u);
}

}  // namespace
}  // namespace tessera::session
