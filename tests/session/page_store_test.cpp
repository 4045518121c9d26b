#include "core/session/kept/page_store.hpp"

#include "core/base/error.hpp"
#include "tests/captured_log.hpp"
#include "tests/temporary_folder.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <utility>

namespace tessera::session {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr uint64_t kBytes = 96, kWindowBytes = 32;  // of pages of the two groups
constexpr uint64_t kRoom = 1 << 20;

using Tokens = std::vector<int32_t>;

Tokens page_of(int32_t first) {
    Tokens tokens(TSR_PAGE_TOKENS);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
}

std::vector<std::byte> bytes_of(uint64_t size, unsigned seed) {
    std::vector<std::byte> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + seed);
    return bytes;
}

PageIdentity identity(const std::string& types = "2 of f16") {
    return {{{"format", "1"}, {"model", "small 'one' 0123"}, {"cache types", types}}};
}

std::string content_of(const fs::path& file) {
    std::ifstream stream(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
}

// In which something happens when a file has been looked at, and before it is known what that means.
class InterruptedStore final : public PageStore {
  public:
    using PageStore::PageStore;
    std::function<void()> meanwhile;

  protected:
    Found read_file(const std::string& name, const PageRecord& expected, std::span<std::byte> out,
                    std::string& why) override {
        const Found found = PageStore::read_file(name, expected, out, why);
        if (meanwhile) std::exchange(meanwhile, nullptr)();
        return found;
    }
};

class PageStoreTest : public testing::Test {
  protected:
    std::unique_ptr<PageStore> open(uint64_t limit = kRoom, const PageIdentity& of = identity()) {
        notes_.clear();
        return std::make_unique<PageStore>(folder(), limit, of, std::vector{kBytes, kWindowBytes}, notes_);
    }
    fs::path folder() const { return temporary_.path() / "pages"; }
    std::vector<fs::path> page_files() const {
        std::vector<fs::path> files;
        for (const auto& entry : fs::recursive_directory_iterator(folder()))
            if (entry.path().filename().string().size() > 60) files.push_back(entry.path());
        return files;
    }
    // Pages one after the other; the path to each.
    std::vector<PathId> write_path(PageStore& store, size_t pages, int32_t first = 0, const std::string& space = {}) {
        std::vector<PathId> paths;
        PathId parent = store.root(space);
        for (size_t i = 0; i < pages; ++i) {
            const Tokens tokens = page_of(first + static_cast<int32_t>(i));
            EXPECT_TRUE(store.write(parent, tokens, 0, bytes_of(kBytes, static_cast<unsigned>(i))));
            paths.push_back(parent = path_after(parent, tokens));
        }
        return paths;
    }
    static bool read(PageStore& store, const PathId& parent, const Tokens& tokens, unsigned seed) {
        std::vector<std::byte> out(kBytes);
        return store.read(parent, tokens, 0, out) && out == bytes_of(kBytes, seed);
    }

    test::TemporaryFolder temporary_;
    std::vector<std::string> notes_;
};

TEST_F(PageStoreTest, AnotherProcessFindsWhatWasWritten) {
    PathId root;
    {
        const auto store = open();
        root = store->root("a");
        write_path(*store, 3, 0, "a");
        EXPECT_TRUE(store->write(root, page_of(0), 1, bytes_of(kWindowBytes, 9)));
        EXPECT_EQ(store->status().written_pages, 4u);
    }
    const auto store = open();
    EXPECT_TRUE(notes_.empty());
    EXPECT_EQ(store->root("a"), root);
    EXPECT_NE(store->root("b"), root) << "spaces share nothing";
    EXPECT_EQ(store->status().pages, 4u);
    EXPECT_EQ(store->status().bytes, 4 * kRecordBytes + 3 * kBytes + kWindowBytes);
    PathId parent = root;
    for (unsigned i = 0; i < 3; ++i) {
        const Tokens tokens = page_of(static_cast<int32_t>(i));
        EXPECT_TRUE(read(*store, parent, tokens, i));
        EXPECT_EQ(store->has(path_after(parent, tokens), 1), i == 0);
        parent = path_after(parent, tokens);
    }
    std::vector<std::byte> out(kWindowBytes);
    EXPECT_TRUE(store->read(root, page_of(0), 1, out));
    EXPECT_EQ(out, bytes_of(kWindowBytes, 9));
    EXPECT_FALSE(read(*store, root, page_of(1), 1)) << "the same page after another beginning is another";
    EXPECT_EQ(store->status().read_pages, 4u);
    EXPECT_EQ(store->status().damaged_pages, 0u);
}

TEST_F(PageStoreTest, FilesAreForTheirOwnerAloneAndNameNoSpace) {
    const std::string space = "the name of a space";
    write_path(*open(), 1, 0, space);
    size_t files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
        const auto others = entry.status().permissions() & (fs::perms::group_all | fs::perms::others_all);
        EXPECT_EQ(others, fs::perms::none) << entry.path();
        EXPECT_EQ(entry.path().string().find(space), std::string::npos);
        if (!entry.is_regular_file()) continue;
        EXPECT_EQ(content_of(entry.path()).find(space), std::string::npos);
        ++files;
    }
    EXPECT_EQ(files, 4u) << "the page, what it is of, the secret and the lock";
}

// Whatever a bit or the end of a file says, nothing but what was written is read.
TEST_F(PageStoreTest, EveryFlippedBitAndEveryCutIsFound) {
    const auto store = open();
    CapturedLog log;
    const PathId root = store->root("");
    const Tokens tokens = page_of(0);
    write_path(*store, 1);
    const fs::path file = page_files().at(0);
    const std::string whole = content_of(file);
    ASSERT_EQ(whole.size(), kRecordBytes + kBytes);
    uint64_t damaged = 0;
    const auto expect_dropped = [&](const std::string& content) {
        std::ofstream(file, std::ios::binary) << content;
        EXPECT_FALSE(read(*store, root, tokens, 0));
        EXPECT_FALSE(fs::exists(file));
        EXPECT_EQ(store->status().damaged_pages, ++damaged);
        EXPECT_EQ(store->status().pages, 0u);
        write_path(*store, 1);
    };
    const auto flipped = [&](size_t bit) {
        std::string content = whole;
        content[bit / 8] = static_cast<char>(content[bit / 8] ^ (1 << bit % 8));
        return content;
    };
    for (size_t bit = 0; bit < 8 * kRecordBytes; ++bit) {
        const std::string content = flipped(bit);
        EXPECT_THROW(parse_record(std::as_bytes(std::span(content)).first(kRecordBytes)), Error) << bit;
    }
    // In files a bit of each byte, since these take longer.
    for (size_t byte = 0; byte < whole.size(); ++byte) expect_dropped(flipped(8 * byte + byte % 8));
    for (size_t size = 0; size < whole.size(); size += 13) expect_dropped(whole.substr(0, size));
    expect_dropped(whole + "x");
    EXPECT_TRUE(read(*store, root, tokens, 0));
    EXPECT_THAT(log.text(), HasSubstr("dropped as damaged"));
}

TEST_F(PageStoreTest, WhatAProcessLeftUnfinishedIsRemoved) {
    write_path(*open(), 2);
    const fs::path part = page_files().at(0).parent_path() / ".part-7";
    std::ofstream(part) << "half of a page";
    fs::resize_file(page_files().at(0), 100);
    CapturedLog log;
    const auto store = open();
    EXPECT_FALSE(fs::exists(part));
    EXPECT_EQ(store->status().pages, 1u);
    EXPECT_EQ(store->status().damaged_pages, 1u);
    EXPECT_THAT(log.text(), HasSubstr("a page of 100 bytes, dropped as damaged"));
}

TEST_F(PageStoreTest, PagesOfAnotherIdentityAreRefusedWithTheReason) {
    PathId root;
    {
        const auto store = open();
        root = store->root("");
        write_path(*store, 2);
    }
    {
        const auto store = open(kRoom, identity("2 of q8_0"));
        ASSERT_EQ(notes_.size(), 1u);
        EXPECT_THAT(notes_[0], HasSubstr("2 pages (960 bytes)"));
        EXPECT_THAT(notes_[0], HasSubstr("are not used: cache types: 2 of f16, here 2 of q8_0"));
        EXPECT_EQ(store->status().pages, 0u);
        EXPECT_FALSE(read(*store, root, page_of(0), 0));
        // Even a file that was put there.
        const fs::path other = page_files().at(0);
        PathId half;
        const Digest digest = identity("2 of q8_0").digest();
        std::copy_n(digest.begin(), half.size(), half.begin());
        fs::copy_file(other, folder() / path_text(half) / other.filename());
    }
    CapturedLog log;
    const auto store = open(kRoom, identity("2 of q8_0"));
    EXPECT_EQ(store->status().pages, 1u);
    for (int32_t i = 0; i < 2; ++i)
        EXPECT_FALSE(read(*store, i == 0 ? root : path_after(root, page_of(0)), page_of(i), 0));
    EXPECT_EQ(store->status().damaged_pages, 1u);
    EXPECT_THAT(log.text(), HasSubstr("another page than its name says"));
}

TEST_F(PageStoreTest, FoldersOfOtherIdentitiesThatHoldNothingGo) {
    open(kRoom, identity("none"));
    const auto store = open();
    EXPECT_EQ(std::distance(fs::directory_iterator(folder()), fs::directory_iterator()), 1);
}

TEST_F(PageStoreTest, AboveTheLimitTheLeafUsedLongestAgoGoes) {
    constexpr uint64_t kFile = kRecordBytes + kBytes;
    const auto store = open(5 * kFile);
    const auto first = write_path(*store, 2, 0), second = write_path(*store, 2, 100);
    store->touch(first);
    const auto third = write_path(*store, 2, 200);  // one more than there is room for
    EXPECT_EQ(store->status().pages, 5u);
    EXPECT_EQ(store->status().forgotten_pages, 1u);
    EXPECT_TRUE(store->has(second[0], 0)) << "a leaf goes before what it follows";
    EXPECT_FALSE(store->has(second[1], 0));
    const auto fourth = write_path(*store, 2, 300);
    EXPECT_FALSE(store->has(second[0], 0));
    EXPECT_TRUE(store->has(first[0], 0));
    EXPECT_FALSE(store->has(first[1], 0));
    EXPECT_TRUE(store->has(third[1], 0));
    EXPECT_TRUE(store->has(fourth[1], 0));
    EXPECT_EQ(page_files().size(), 5u);
    EXPECT_LE(store->status().bytes, 5 * kFile);
}

TEST_F(PageStoreTest, OfATextBeyondTheLimitTheBeginningStays) {
    constexpr uint64_t kFile = kRecordBytes + kBytes;
    const auto store = open(4 * kFile);
    const auto old = write_path(*store, 2, 100);
    PathId parent = store->root("");
    for (int32_t i = 0; i < 9; ++i) {
        const Tokens tokens = page_of(i);
        EXPECT_EQ(store->write(parent, tokens, 0, bytes_of(kBytes, static_cast<unsigned>(i))), i < 4) << i;
        parent = path_after(parent, tokens);
    }
    EXPECT_FALSE(store->has(old[0], 0));
    EXPECT_EQ(page_files().size(), 4u);
    parent = store->root("");
    for (int32_t i = 0; i < 4; ++i) {
        EXPECT_TRUE(read(*store, parent, page_of(i), static_cast<unsigned>(i))) << i;
        parent = path_after(parent, page_of(i));
    }
}

TEST_F(PageStoreTest, OrderOfUseOutlivesTheProcess) {
    constexpr uint64_t kFile = kRecordBytes + kBytes;
    std::vector<PathId> first, second;
    {
        const auto store = open();
        first = write_path(*store, 1, 0), second = write_path(*store, 1, 100);
        store->touch(first);
        store->keep_times([] { return true; });
    }
    const auto store = open(2 * kFile);
    write_path(*store, 1, 200);
    EXPECT_TRUE(store->has(first[0], 0));
    EXPECT_FALSE(store->has(second[0], 0));
}

TEST_F(PageStoreTest, PagesOfOtherIdentitiesGoFirst) {
    constexpr uint64_t kFile = kRecordBytes + kBytes;
    write_path(*open(), 3);
    const auto store = open(4 * kFile, identity("other"));
    const auto own = write_path(*store, 3, 50);
    EXPECT_EQ(store->status().pages, 3u);
    EXPECT_EQ(page_files().size(), 4u);
    EXPECT_EQ(store->status().forgotten_pages, 2u);
}

TEST_F(PageStoreTest, ALimitBelowAPageIsRefused) {
    try {
        open(kBytes);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_DOES_NOT_FIT);
    }
}

TEST_F(PageStoreTest, TwoProcessesDoNotShareAnIdentity) {
    const auto store = open();
    try {
        open();
        FAIL();
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("another process keeps its pages there"));
    }
    const auto other = open(kRoom, identity("other"));
    EXPECT_TRUE(notes_.empty()) << "whoever has it counts it";
}

TEST_F(PageStoreTest, LinksAndOpenFoldersAreRefused) {
    const auto expect_refused = [&](const std::string& part) {
        try {
            open();
            ADD_FAILURE();
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), HasSubstr(part));
        }
    };
    write_path(*open(), 1);
    const fs::path page = page_files().at(0), own = page.parent_path();
    ::chmod(folder().c_str(), 0777);
    expect_refused("other users can write there");
    ::chmod(folder().c_str(), 0755);
    ::chmod(own.c_str(), 0750);
    expect_refused("other users can use it");
    ::chmod(own.c_str(), 0700);
    // A page that is a link to a page.
    fs::rename(page, temporary_.path() / "page");
    fs::create_symlink(temporary_.path() / "page", page);
    {
        CapturedLog log;
        EXPECT_EQ(open()->status().pages, 0u);
        EXPECT_THAT(log.text(), HasSubstr("no file of this user"));
    }
    fs::remove(page);
    fs::rename(own, temporary_.path() / "own");
    fs::create_directory_symlink(temporary_.path() / "own", own);
    expect_refused("cannot open this folder");
}

TEST_F(PageStoreTest, AFolderThatVanishesCostsAWarning) {
    const auto store = open();
    write_path(*store, 1);
    fs::remove_all(folder());
    CapturedLog log;
    EXPECT_FALSE(read(*store, store->root(""), page_of(0), 0));
    EXPECT_FALSE(store->write(store->root(""), page_of(5), 0, bytes_of(kBytes, 0)));
    EXPECT_FALSE(store->write(store->root(""), page_of(6), 0, bytes_of(kBytes, 0)));
    EXPECT_TRUE(store->waits());
    EXPECT_EQ(store->status().failures, 2u);
    EXPECT_EQ(store->status().pages, 0u);
    EXPECT_THAT(log.text(), HasSubstr("are not kept for now"));
}

// It is no longer there, but its file is: whoever forgets it is told.
TEST_F(PageStoreTest, AFileThatCannotBeReadIsRemovedWhenItsPageIsForgotten) {
    const auto store = open();
    const PathId path = write_path(*store, 1)[0];
    const fs::path file = page_files().at(0);
    fs::remove(file);
    fs::create_directory(file);
    CapturedLog log;
    EXPECT_FALSE(read(*store, store->root(""), page_of(0), 0));
    EXPECT_THAT(log.text(), HasSubstr("could not be read"));
    EXPECT_FALSE(store->has(path, 0));
    std::vector<std::string> files;
    ASSERT_TRUE(store->forget(path, files));
    ASSERT_EQ(files.size(), 1u);
    EXPECT_THROW(store->remove(files), Error);
    fs::remove(file);
    std::ofstream(file) << "a file";
    files.clear();
    ASSERT_TRUE(store->forget(path, files));
    store->remove(files);
    EXPECT_FALSE(fs::exists(file));
}

// What was found of a file that has been removed since says nothing of the one in its place, which is found, and
// removed, as others are.
TEST_F(PageStoreTest, AFileThatIsWrittenAnewWhileTheOldOneIsReadStays) {
    InterruptedStore store(folder(), kRoom, identity(), std::vector{kBytes, kWindowBytes}, notes_);
    const PathId path = write_path(store, 1)[0];
    const fs::path file = page_files().at(0);
    const std::string whole = content_of(file);
    const auto forget = [&] {
        std::vector<std::string> files;
        ASSERT_TRUE(store.forget(path, files));
        store.remove(files);
    };
    CapturedLog log;
    for (const bool damaged : {true, false}) {
        fs::remove(file);
        if (damaged) std::ofstream(file) << "damaged";
        store.meanwhile = [&] {
            forget();
            write_path(store, 1);
        };
        EXPECT_FALSE(read(store, store.root(""), page_of(0), 0));
        EXPECT_TRUE(store.has(path, 0));
        EXPECT_EQ(content_of(file), whole);
        EXPECT_TRUE(read(store, store.root(""), page_of(0), 0));
    }
    EXPECT_EQ(store.status().damaged_pages + store.status().failures, 0u);
    EXPECT_EQ(store.status().pages, 1u);
    EXPECT_EQ(log.text(), "");
    forget();
    EXPECT_FALSE(fs::exists(file));
}

TEST_F(PageStoreTest, PagesThatFollowThemselvesAreDropped) {
    fs::path page;
    {
        const auto store = open();
        write_path(*store, 2);
        page = page_files().at(0);
    }
    // A ring of one, one of two, and a page behind it.
    const std::string a(32, 'a'), b(32, 'b'), c(32, 'c'), d(32, 'd');
    for (const std::string& name : {a + "-" + a + "-0", b + "-" + c + "-0", c + "-" + b + "-0", d + "-" + c + "-0"})
        fs::copy_file(page, page.parent_path() / name);
    CapturedLog log;
    const auto store = open();
    EXPECT_EQ(store->status().pages, 2u);
    EXPECT_EQ(store->status().damaged_pages, 4u);
    EXPECT_EQ(page_files().size(), 2u);
    EXPECT_THAT(log.text(), HasSubstr("a page that follows itself"));
}

// Nanoseconds since 1970 of such a time are no number of 64 bits.
TEST_F(PageStoreTest, TimesAfter2262AreInOrder) {
    constexpr uint64_t kFile = kRecordBytes + kBytes;
    std::vector<PathId> first, second;
    {
        const auto store = open();
        first = write_path(*store, 1, 0), second = write_path(*store, 1, 100);
    }
    for (const fs::path& file : page_files()) {
        const bool is_first = file.filename().string().starts_with(path_text(first[0]));
        const timespec times[2] = {{0, UTIME_OMIT}, {is_first ? 12'000'000'000 : 1'700'000'000, 0}};
        ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
    }
    const auto store = open(2 * kFile - 1);
    EXPECT_TRUE(store->has(first[0], 0));
    EXPECT_FALSE(store->has(second[0], 0));
}

TEST(PageIdentity, SaysWhatDiffers) {
    const PageIdentity one = identity();
    EXPECT_EQ(parse_identity(one.text()).properties, one.properties);
    EXPECT_FALSE(one.difference(one));
    EXPECT_EQ(one.difference(identity("x")), "cache types: 2 of f16, here x");
    EXPECT_THROW(parse_identity("no colon\n"), Error);
    EXPECT_THROW(parse_identity("a: no end"), Error);
    EXPECT_THROW(parse_identity("a: \x1b[31m\n"), Error);
    EXPECT_THROW(parse_identity(std::string(kMaxIdentityBytes + 1, 'a')), Error);
}

TEST(PathId, IsReadAsItIsWritten) {
    const PathId path = root_path({}, "space");
    EXPECT_EQ(parse_path(path_text(path)), path);
    EXPECT_FALSE(parse_path("abc"));
    EXPECT_FALSE(parse_path(std::string(32, 'G')));
    EXPECT_FALSE(parse_path(std::string(32, 'A'))) << "a page has one name";
}

}  // namespace
}  // namespace tessera::session
