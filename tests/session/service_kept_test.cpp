// Requests whose pages lie in files, on a disk that may not answer, and others beside them.
#include "core/base/error.hpp"
#include "tests/captured_log.hpp"
#include "tests/session/hanging_store.hpp"
#include "tests/session/page_store_of.hpp"
#include "tests/session/service_fixture.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace tessera::session {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Clock = std::chrono::steady_clock;

class ServiceKeptTest : public ServiceTest {
  protected:
    // A prompt of several pages is kept, and of the engine's cache nothing is left.
    void SetUp() override {
        load(64, 4, 2048);
        for (int i = 0; prompt_.empty() || tokenizer_->encode(prompt_, {.add_special = true}).size() < 5 * 64 + 20; ++i)
            prompt_ += "The key of box " + std::to_string(i) + " is red. ";
        Generator generator(engine(), *tokenizer_, {.pages = test::page_store(*model_, folder_)});
        generator.add(request(prompt_, computed_));
        generator.run();
        ASSERT_EQ(generator.keep_rest([] { return true; }), 0u);
        ASSERT_GE(generator.kept()->store.pages, 5u);
    }
    std::shared_ptr<HangingStore> open() {
        std::vector<std::string> notes;
        return std::make_shared<HangingStore>(folder_.path(), uint64_t{1} << 30,
                                              identity_of(*model_->engine, *model_->registry, {}, "1"),
                                              engine().page_bytes(), notes);
    }
    // One that goes on for as long as there is room. Its prompt tells how fast prompts are computed here.
    Request endless(Result& result, std::vector<Clock::time_point>& tokens) {
        std::string prompt;
        for (int i = 0; i < 100; ++i) prompt += "Count. ";
        Request made = request(prompt, result, 1200);
        made.reuse = false;
        for (const Token end : tokenizer_->generation_ends())
            made.sampling.logit_bias.emplace_back(end, -std::numeric_limits<float>::infinity());
        made.on_text = [&tokens](std::string_view) { tokens.push_back(Clock::now()); };
        return made;
    }
    void expect_same(const Result& result) const {
        EXPECT_EQ(result.answer.reason, computed_.answer.reason) << result.answer.error;
        EXPECT_EQ(result.answer.tokens, computed_.answer.tokens);
        EXPECT_EQ(result.text, computed_.text);
    }
    // Of what the last request had; files stay.
    void forget_cached(Generator& generator) {
        generator.slots().erase("", 0, nullptr);
        ASSERT_EQ(engine().cache().free_pages(), engine().cache().page_count());
    }
    static bool step_until(Generator& generator, const std::function<bool()>& there) {
        const auto end = Clock::now() + std::chrono::seconds(60);
        while (!there() && Clock::now() < end) generator.step();
        return there();
    }

    test::TemporaryFolder folder_;
    std::string prompt_;
    Result computed_;
};

TEST_F(ServiceKeptTest, OthersGoOnWhileItAnswers) {
    const auto store = open();
    Generator generator(engine(), *tokenizer_, {.pages = store});
    std::vector<Clock::time_point> tokens;
    Result other, own;
    const RequestId stream = generator.add(endless(other, tokens));
    ASSERT_TRUE(step_until(generator, [&] { return tokens.size() >= 3; }));
    store->hang();
    generator.add(request(prompt_, own));
    // While it waits it has its place, and takes no rows.
    const size_t before = tokens.size();
    ASSERT_TRUE(step_until(generator, [&] { return tokens.size() >= before + 2; }));
    EXPECT_GT(store->begun, 0);
    ASSERT_EQ(generator.states().size(), 2u);
    EXPECT_EQ(generator.states().back().cached_tokens, 0u);
    EXPECT_FALSE(generator.states().back().paused);
    store->answer();
    ASSERT_TRUE(step_until(generator, [&] { return own.order > 0; }));
    generator.cancel(stream);
    expect_same(own);
    EXPECT_EQ(own.answer.reused_tokens, (own.answer.prompt_tokens - 1) / 64 * 64);
    EXPECT_EQ(generator.kept()->given_up, 0u);
}

TEST_F(ServiceKeptTest, WhatItDoesNotGiveInTimeIsComputed) {
    const auto store = open();
    CapturedLog log;
    Generator generator(engine(), *tokenizer_, {.pages = store, .slots = true});
    store->hang();
    // When the first has waited for its time the disk has not been silent for long; when others have, it is not asked.
    while (!generator.keeper()->stuck()) {
        Result own;
        const uint64_t before = generator.kept()->given_up;
        generator.add(request(prompt_, own));
        generator.run();
        expect_same(own);
        EXPECT_EQ(own.answer.reused_tokens, 0u);
        ASSERT_EQ(generator.kept()->given_up, before + 1);
        forget_cached(generator);
    }
    const uint64_t given_up = generator.kept()->given_up;
    EXPECT_GE(given_up, 2u);
    // Whoever had waited would have given up.
    Result next;
    generator.add(request(prompt_, next));
    generator.run();
    expect_same(next);
    EXPECT_EQ(generator.kept()->given_up, given_up);
    forget_cached(generator);
    const std::string text = log.text(), said = "pages of the cache are not read for now, but computed";
    EXPECT_THAT(text, HasSubstr(said + ": a request has waited "));
    EXPECT_THAT(text, Not(HasSubstr("waited 0.")));
    EXPECT_EQ(text.find(said), text.rfind(said)) << "once";
    EXPECT_EQ(generator.kept()->store.read_pages, 0u);
    // When it answers it is asked again.
    store->answer();
    while (generator.keeper()->stuck()) std::this_thread::yield();
    EXPECT_THAT(log.text(), Not(HasSubstr("read again")));
    Result own;
    generator.add(request(prompt_, own));
    generator.run();
    expect_same(own);
    EXPECT_EQ(own.answer.reused_tokens, (own.answer.prompt_tokens - 1) / 64 * 64);
    EXPECT_EQ(generator.kept()->given_up, given_up);
    EXPECT_THAT(log.text(), HasSubstr("pages of the cache are read again"));
}

// One that is cancelled leaves the disk silent; who comes next gives up, and nobody after it waits.
TEST_F(ServiceKeptTest, WhoComesBehindACancelledOneFindsOut) {
    const auto store = open();
    CapturedLog log;
    Generator generator(engine(), *tokenizer_, {.pages = store, .slots = true});
    store->hang();
    Result own;
    const RequestId id = generator.add(request(prompt_, own));
    const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));  // and five pages
    ASSERT_TRUE(step_until(generator, [&] { return store->begun == threads; }));
    generator.cancel(id);
    Result next;
    generator.add(request(prompt_, next));
    generator.run();
    expect_same(next);
    EXPECT_EQ(store->begun, threads);
    EXPECT_TRUE(generator.keeper()->stuck());
    EXPECT_EQ(generator.kept()->given_up, 1u);
    EXPECT_THAT(log.text(), HasSubstr("a request has waited 3."));
    store->answer();
}

// Beyond so many texts the oldest is not tried again, which is said; all of them are told once more.
TEST_F(ServiceKeptTest, TooManyTextsWhoseFilesStayAreSaid) {
    const auto store = open();
    CapturedLog log;
    Generator generator(engine(), *tokenizer_, {.pages = store, .slots = true});
    std::vector<std::byte> bytes(store->page_bytes(0));
    const auto erase = [&] {
        const Slots::Erased erased = generator.slots().erase("", 0, generator.keeper());
        for (const auto& files : erased.files) EXPECT_THROW(files.get(), Error);
        return erased.files.size();
    };
    for (size_t i = 1; i <= 17; ++i) {
        const std::vector<Token> text(TSR_PAGE_TOKENS, static_cast<Token>(i));
        ASSERT_TRUE(store->write(store->root(""), text, 0, bytes));
        const std::string name = path_text(path_after(store->root(""), text));
        std::filesystem::path file;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
            if (entry.path().filename().string().starts_with(name)) file = entry.path();
        std::filesystem::remove(file);
        std::filesystem::create_directory(file);
        generator.slots().remember("", 0, text);
        EXPECT_THAT(log.text(), Not(HasSubstr("not tried again")));
        EXPECT_EQ(erase(), i);
    }
    EXPECT_THAT(log.text(), HasSubstr("slot 0: files of a text that was erased are not tried again"));
    EXPECT_EQ(erase(), 16u);
}

// What an erase could not remove the next one tries again, and tells again.
TEST_F(ServiceKeptTest, FilesThatStayAreToldByEveryErase) {
    CapturedLog log;
    Generator generator(engine(), *tokenizer_, {.pages = open(), .slots = true});
    Result own;
    generator.add(request(prompt_, own));
    generator.run();
    ASSERT_EQ(generator.keep_rest([] { return true; }), 0u);
    // Folders in the place of files cannot be removed so.
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.path()))
        if (entry.path().filename().string().size() > 60) files.push_back(entry.path());
    ASSERT_GE(files.size(), 5u);
    for (const auto& file : files) {
        std::filesystem::remove(file);
        std::filesystem::create_directory(file);
    }
    const auto erase = [&] { return generator.slots().erase("", 0, generator.keeper()); };
    Slots::Erased erased = erase();
    EXPECT_EQ(erased.tokens, own.answer.tokens.size());
    ASSERT_EQ(erased.files.size(), 1u);
    EXPECT_THROW(erased.files[0].get(), Error);
    for (size_t i = 0; i + 1 < files.size(); ++i) std::filesystem::remove(files[i]);
    erased = erase();
    EXPECT_EQ(erased.tokens, 0u);
    ASSERT_EQ(erased.files.size(), 1u);
    EXPECT_THROW(erased.files[0].get(), Error);
    std::filesystem::remove(files.back());
    std::ofstream(files.back()) << "a file";
    erased = erase();
    ASSERT_EQ(erased.files.size(), 1u);
    EXPECT_NO_THROW(erased.files[0].get());
    EXPECT_FALSE(std::filesystem::exists(files.back()));
    EXPECT_THAT(erase().files, IsEmpty());
}

// What is cached by then is kept, what was kept before is found, and an erase of that time is made up for.
TEST_F(ServiceKeptTest, PagesMayComeLater) {
    const std::string erased = "Red. " + prompt_, other = "Blue. " + prompt_;
    Generator generator(engine(), *tokenizer_, {.pages_later = true, .slots = true});
    const auto answer = [&](const std::string& prompt, uint32_t slot) {
        Result result;
        Request made = request(prompt, result);
        made.slot = slot;
        generator.add(std::move(made));
        generator.run();
        return result;
    };
    answer(erased, 0);
    EXPECT_FALSE(generator.kept());
    EXPECT_EQ(generator.keep_rest([] { return true; }), 0u);
    Slots::Erased left = generator.erase_slot("", 0);
    ASSERT_EQ(left.files.size(), 1u);
    EXPECT_THROW(left.files[0].get(), Error);
    const Result cached = answer(other, 1);
    const auto store = open();
    const uint64_t before = store->status().pages;
    generator.keep_in(store);
    left = generator.erase_slot("", 0);
    ASSERT_EQ(left.files.size(), 1u);
    EXPECT_NO_THROW(left.files[0].get());
    const Result own = answer(prompt_, 2);
    expect_same(own);
    EXPECT_EQ(own.answer.reused_tokens, (own.answer.prompt_tokens - 1) / 64 * 64);
    ASSERT_EQ(generator.keep_rest([] { return true; }), 0u);
    const size_t pages = (cached.answer.tokens.size() - 1) / 64;
    EXPECT_EQ(store->status().written_pages, pages);
    EXPECT_EQ(store->status().pages, before + store->status().written_pages);
    PathId path = store->root("");
    for (size_t page = 0; page < pages; ++page) {
        path = path_after(path, std::span(cached.answer.tokens).subspan(page * 64, 64));
        EXPECT_TRUE(store->has(path, 0)) << page;
    }
}

// Where they do not, there is nothing that an erase could leave.
TEST_F(ServiceKeptTest, PagesMayNotComeAtAll) {
    Generator generator(engine(), *tokenizer_, {.pages_later = true, .slots = true});
    Result own;
    generator.add(request(prompt_, own));
    generator.run();
    generator.keep_in(nullptr);
    EXPECT_FALSE(generator.kept());
    EXPECT_THAT(generator.erase_slot("", 0).files, IsEmpty());
}

TEST_F(ServiceKeptTest, WhoWaitsForItCanBeCancelled) {
    const auto store = open();
    {
        Generator generator(engine(), *tokenizer_, {.pages = store});
        store->hang();
        Result own;
        const RequestId id = generator.add(request(prompt_, own));
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(generator.step());
        store->wait_until_begun(1);
        generator.cancel(id);
        EXPECT_EQ(own.answer.reason, FinishReason::kCancelled);
        EXPECT_FALSE(generator.step());
        EXPECT_EQ(engine().cache().free_pages(), engine().cache().page_count());
    }
    EXPECT_GT(store->begun, 0) << "and the generator has ended";
    store->answer();
}

}  // namespace
}  // namespace tessera::session
