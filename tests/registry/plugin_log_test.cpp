// The lines that plugins log: none waits, none is torn, those that find no room are counted.
#include "core/registry/plugin_log.hpp"

#include "tests/captured_log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tessera::test {
namespace {

struct Taken {
    std::vector<std::string> lines;
    uint64_t dropped = 0;
};

Taken take_all(PluginLog& log) {
    Taken taken;
    log.take([&](const PluginLog::Line& line) { taken.lines.push_back(line.message.data()); },
             [&](uint64_t count) { taken.dropped += count; });
    return taken;
}

TEST(PluginLog, KeepsTheOrder) {
    PluginLog log;
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(log.put(TSR_LOG_INFO, "p", std::to_string(i).c_str()));
    const Taken taken = take_all(log);
    EXPECT_EQ(taken.lines, (std::vector<std::string>{"0", "1", "2"}));
    EXPECT_EQ(taken.dropped, 0u);
    EXPECT_TRUE(take_all(log).lines.empty());
}

TEST(PluginLog, CutsLongMessages) {
    PluginLog log;
    log.put(TSR_LOG_INFO, "p", std::string(1000, 'x').c_str());
    log.put(TSR_LOG_INFO, "p", nullptr);
    const Taken taken = take_all(log);
    ASSERT_EQ(taken.lines.size(), 2u);
    EXPECT_EQ(taken.lines[0], std::string(255, 'x'));
    EXPECT_EQ(taken.lines[1], "");
}

TEST(PluginLog, CountsWhatItHasNoRoomFor) {
    PluginLog log;
    for (int round = 0; round < 3; ++round) {
        for (uint32_t i = 0; i < PluginLog::kLines + 10; ++i) {
            EXPECT_EQ(log.put(TSR_LOG_INFO, "p", std::to_string(i).c_str()), i < PluginLog::kLines);
        }
        const Taken taken = take_all(log);
        ASSERT_EQ(taken.lines.size(), PluginLog::kLines);
        EXPECT_EQ(taken.lines.front(), "0");
        EXPECT_EQ(taken.lines.back(), std::to_string(PluginLog::kLines - 1));
        EXPECT_EQ(taken.dropped, 10u);
    }
}

// Also built with ThreadSanitizer, as a program of its own.
TEST(PluginLog, ManyThreads) {
    constexpr int kThreads = 4, kEach = 2000;
    PluginLog log;
    std::atomic<bool> done{false};
    uint64_t lines = 0, dropped = 0;
    std::vector<int> last(kThreads, -1);
    const auto take = [&] {
        log.take(
            [&](const PluginLog::Line& line) {
                int thread = -1, number = -1;
                char tail[8] = "";
                ASSERT_EQ(std::sscanf(line.message.data(), "%d %d %7s", &thread, &number, tail), 3)
                    << line.message.data();
                ASSERT_STREQ(tail, "end");
                ASSERT_LT(last.at(static_cast<size_t>(thread)), number);  // each thread's lines in their order
                last[static_cast<size_t>(thread)] = number;
                ++lines;
            },
            [&](uint64_t count) { dropped += count; });
    };
    std::thread taker([&] {
        while (!done) take();
    });
    std::vector<std::thread> threads;
    std::atomic<uint64_t> refused{0};
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < kEach; ++i) {
                char text[64];
                std::snprintf(text, sizeof text, "%d %d end", t, i);
                if (!log.put(TSR_LOG_DEBUG, "p", text)) ++refused;
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    done = true;
    taker.join();
    take();
    EXPECT_EQ(lines + dropped, uint64_t{kThreads} * kEach);
    EXPECT_EQ(dropped, refused);
}

TEST(PluginLog, WorkersInAStepOnlyLeaveTheirLines) {
    CapturedLog captured;
    log_for_plugin(TSR_LOG_WARNING, "early", "printed at once");
    EXPECT_NE(captured.text().find("early: printed at once"), std::string::npos);
    {
        const WorkerInStep in_step;
        for (uint32_t i = 0; i < PluginLog::kLines + 3; ++i) log_for_plugin(TSR_LOG_ERROR, "worker", "printed later");
        EXPECT_EQ(captured.text().find("worker"), std::string::npos);
    }
    print_plugin_log();
    EXPECT_NE(captured.text().find("worker: printed later"), std::string::npos);
    EXPECT_NE(captured.text().find("3 lines that plugins logged were dropped"), std::string::npos);
}

}  // namespace
}  // namespace tessera::test
