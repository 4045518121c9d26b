#include "core/session/kept/page_reader.hpp"

#include "tests/captured_log.hpp"
#include "tests/session/hanging_store.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <optional>

namespace tessera::session {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kBytes = 96;
constexpr int32_t kPages = 6;

class PageReaderTest : public testing::Test {
  protected:
    PageReaderTest() {
        std::vector<std::string> notes;
        store_ = std::make_shared<HangingStore>(temporary_.path() / "pages", 1 << 20,
                                                PageIdentity{{{"model", "small"}}}, std::vector{kBytes}, notes);
        PathId parent = store_->root("");
        for (int32_t i = 0; i < kPages; ++i) {
            const PageReader::Page page = this->page(parent, i);
            EXPECT_TRUE(store_->write(parent, page.tokens, 0, content(i)));
            parents_.push_back(parent);
            parent = path_after(parent, page.tokens);
        }
    }
    ~PageReaderTest() override { store_->answer(); }

    static PageReader::Page page(const PathId& parent, int32_t i) {
        PageReader::Page page{parent, std::vector<int32_t>(TSR_PAGE_TOKENS), 0, static_cast<uint32_t>(i)};
        std::iota(page.tokens.begin(), page.tokens.end(), i);
        return page;
    }
    static std::vector<std::byte> content(int32_t i) { return std::vector<std::byte>(kBytes, std::byte(7 * i + 1)); }
    std::vector<PageReader::Page> pages(int32_t begin, int32_t end) const {
        std::vector<PageReader::Page> pages;
        for (int32_t i = begin; i < end; ++i) pages.push_back(page(parents_[static_cast<size_t>(i)], i));
        return pages;
    }
    static void wait_for(PageReader& reader, const PageReader::Reading& reading) {
        while (!reading.done()) reader.wait(10s);
    }
    static void expect_read(PageReader::Reading& reading, int32_t begin, int32_t end) {
        ASSERT_EQ(reading.pages().size(), static_cast<size_t>(end - begin));
        for (const PageReader::Page& page : reading.pages()) {
            ASSERT_TRUE(page.good);
            EXPECT_EQ(page.index, static_cast<uint32_t>(begin));
            EXPECT_TRUE(std::ranges::equal(std::span(page.bytes.get(), kBytes), content(begin++)));
        }
    }
    std::filesystem::path file(int32_t i) const {
        const std::string name = path_text(path_after(parents_.at(static_cast<size_t>(i)), page({}, i).tokens));
        for (const auto& entry : std::filesystem::recursive_directory_iterator(temporary_.path()))
            if (entry.path().filename().string().starts_with(name)) return entry.path();
        return {};
    }

    test::TemporaryFolder temporary_;
    std::shared_ptr<HangingStore> store_;
    std::vector<PathId> parents_;
};

TEST_F(PageReaderTest, ReadsInTheOrderInWhichPagesWereAskedFor) {
    PageReader reader(store_, 2 * kBytes);
    auto all = reader.read(pages(0, kPages));
    auto some = reader.read(pages(2, 4));
    EXPECT_EQ(all.bytes(), kPages * kBytes) << "one has room, however large";
    wait_for(reader, all);
    expect_read(all, 0, kPages);
    EXPECT_GT(all.seconds(), 0);
    { const auto gone = std::move(all); }
    wait_for(reader, some);
    expect_read(some, 2, 4);
}

TEST_F(PageReaderTest, WhatIsDamagedOrHasVanishedIsNotGood) {
    std::filesystem::remove(file(1));
    std::fstream(file(3), std::ios::binary | std::ios::in | std::ios::out).seekp(400).put('x');
    CapturedLog log;
    PageReader reader(store_, 1 << 20);
    auto reading = reader.read(pages(0, 5));
    wait_for(reader, reading);
    std::vector<bool> good;
    for (const PageReader::Page& page : reading.pages()) good.push_back(page.good);
    EXPECT_THAT(good, testing::ElementsAre(true, false, true, false, true));
    EXPECT_EQ(store_->status().damaged_pages, 1u);
}

TEST_F(PageReaderTest, PagesThatAreForgottenWhileTheyAreReadAreReadOrNot) {
    store_->hang();
    PageReader reader(store_, 1 << 20);
    auto reading = reader.read(pages(kPages - 1, kPages));
    store_->wait_until_begun(1);
    std::vector<std::string> files;
    ASSERT_TRUE(store_->forget(path_after(parents_.back(), pages(kPages - 1, kPages)[0].tokens), files));
    store_->remove(files);
    store_->answer();
    wait_for(reader, reading);
    EXPECT_FALSE(reading.pages()[0].good);
    EXPECT_EQ(store_->status().pages, static_cast<uint64_t>(kPages - 1));
    EXPECT_EQ(store_->status().damaged_pages + store_->status().failures, 0u);
}

// Memory of what is there is held until its owner lets go of it.
TEST_F(PageReaderTest, MoreIsReadWhenThereIsRoom) {
    PageReader reader(store_, 4 * kBytes);
    std::optional first(reader.read(pages(0, 3)));
    auto second = reader.read(pages(3, 5));
    wait_for(reader, *first);
    std::this_thread::sleep_for(20ms);
    EXPECT_EQ(store_->begun, 3);
    EXPECT_EQ(second.seconds(), 0);
    first.reset();
    wait_for(reader, second);
    expect_read(second, 3, 5);
}

TEST_F(PageReaderTest, WhatNobodyWantsIsNotReadOn) {
    store_->hang();
    PageReader reader(store_, 3 * kBytes);
    const int begun = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));  // a page a thread
    {
        const auto first = reader.read(pages(0, kPages)), second = reader.read(pages(0, kPages));
        store_->wait_until_begun(begun);
        std::this_thread::sleep_for(20ms);
        EXPECT_EQ(store_->begun, begun);
    }
    auto third = reader.read(pages(1, 3));
    EXPECT_FALSE(reader.stuck()) << "nobody has given up";
    store_->answer();
    wait_for(reader, third);
    expect_read(third, 1, 3);
    EXPECT_EQ(store_->begun, begun + 2);
}

constexpr double kShort = 0.05;  // seconds of silence

bool becomes_silent(const PageReader::Reading& reading) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!reading.silent() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return reading.silent();
}

TEST_F(PageReaderTest, IsStuckUntilTheDiskAnswersWhereItWasSilent) {
    store_->hang();
    PageReader reader(store_, 1 << 20, kShort);
    auto first = reader.read(pages(0, 1)), second = reader.read(pages(1, kPages));
    store_->wait_until_begun(1);
    ASSERT_TRUE(becomes_silent(first));
    EXPECT_FALSE(reader.stuck());
    const auto start = std::chrono::steady_clock::now();
    reader.wait(5ms);
    first.give_up();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 5s) << "it waits for no disk";
    EXPECT_TRUE(reader.stuck());
    EXPECT_FALSE(second.done());
    store_->answer();
    wait_for(reader, second);
    EXPECT_FALSE(reader.stuck());
    expect_read(second, 1, kPages);
    EXPECT_FALSE(second.silent());
    EXPECT_TRUE(second.answered());
}

// All threads wait for what nobody wants any more: what comes next is begun by none.
TEST_F(PageReaderTest, IsStuckWhereWhatHangsWasCancelled) {
    store_->hang();
    PageReader reader(store_, 1 << 20, kShort);
    {
        const auto cancelled = reader.read(pages(0, kPages));
        store_->wait_until_begun(1);
        std::this_thread::sleep_for(20ms);
    }
    auto next = reader.read(pages(0, 2));
    ASSERT_TRUE(becomes_silent(next));
    EXPECT_GE(next.waited(), kShort);
    EXPECT_FALSE(next.answered());
    next.give_up();
    EXPECT_TRUE(reader.stuck());
    store_->answer();
    while (reader.stuck()) std::this_thread::yield();
    auto last = reader.read(pages(0, 2));
    wait_for(reader, last);
    expect_read(last, 0, 2);
}

TEST_F(PageReaderTest, IsNotStuckWhereTheDiskWasNotSilent) {
    store_->hang();
    PageReader reader(store_, 1 << 20);
    auto first = reader.read(pages(0, 1));
    store_->wait_until_begun(1);
    EXPECT_FALSE(first.silent());
    first.give_up();
    EXPECT_FALSE(reader.stuck()) << "its caller has waited long enough, others may wait longer";
    store_->answer();
}

// A page of so many bytes takes a slow disk longer than that.
TEST_F(PageReaderTest, LargePagesMayTakeTheirTime) {
    std::vector<std::string> notes;
    const auto large =
        std::make_shared<HangingStore>(temporary_.path() / "large", 64 << 20, PageIdentity{{{"model", "large"}}},
                                       std::vector<uint64_t>{20'000'000}, notes);
    const PathId root = large->root("");
    ASSERT_TRUE(large->write(root, page({}, 0).tokens, 0, std::vector<std::byte>(20'000'000)));
    large->hang();
    PageReader reader(large, 64 << 20, kShort);
    std::vector<PageReader::Page> one;
    one.push_back(page(root, 0));
    auto reading = reader.read(std::move(one));
    large->wait_until_begun(1);
    std::this_thread::sleep_for(200ms);
    EXPECT_GT(reading.seconds(), kShort);
    EXPECT_FALSE(reading.silent());
    large->answer();
    wait_for(reader, reading);
    EXPECT_TRUE(reading.pages()[0].good);
}

TEST_F(PageReaderTest, ADiskThatDoesNotAnswerDelaysNoEnd) {
    CapturedLog log;
    {
        PageReader reader(store_, 1 << 20);
        auto reading = reader.read(pages(0, 1));
        wait_for(reader, reading);
    }
    EXPECT_THAT(log.text(), IsEmpty());
    store_->hang();
    auto reader = std::make_unique<PageReader>(store_, 1 << 20);
    auto reading = std::make_unique<PageReader::Reading>(reader->read(pages(0, kPages)));
    store_->wait_until_begun(2);
    const auto start = std::chrono::steady_clock::now();
    reader.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - start, 10s);
    EXPECT_THAT(log.text(), HasSubstr("the disk does not answer"));
    reading.reset();
    store_->answer();
    while (store_.use_count() > 1) std::this_thread::yield();
    EXPECT_LE(store_->begun, 5) << "a page a thread, and the one before";
}

}  // namespace
}  // namespace tessera::session
