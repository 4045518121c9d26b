#include "core/run/team.hpp"

#include "core/hardware/numa.hpp"
#include "core/run/binding.hpp"
#include "core/run/own_cpus.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace tessera {
namespace {

TEST(Team, EveryWorkerRunsOnceWithANumberOfItsOwn) {
    for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
        Team team(threads);
        for (int round = 0; round < 100; ++round) {
            std::vector<std::atomic<int>> seen(threads);
            std::atomic<uint32_t> reported{0};
            auto body = [&](uint32_t worker, uint32_t workers) {
                ASSERT_LT(worker, workers);
                ASSERT_LE(workers, threads);
                ++seen[worker];
                reported = workers;
            };
            team.run(0, body);
            for (uint32_t i = 0; i < threads; ++i) EXPECT_EQ(seen[i], i < reported ? 1 : 0);
        }
    }
}

TEST(Team, AsManyWorkersAsWanted) {
    Team team(4);
    std::atomic<uint32_t> most{0};
    auto body = [&](uint32_t, uint32_t workers) { most = workers; };
    team.run(2, body);
    EXPECT_LE(most, 2u);
    team.run(1, body);
    EXPECT_EQ(most, 1u);
}

// A sum that is wrong if any worker runs ahead of a barrier.
TEST(Team, BarriersOrderPhases) {
    for (const uint32_t threads : {2u, 3u, 5u, 8u}) {
        Team team(threads);
        std::vector<int> cells(threads, 0);
        std::atomic<int> wrong{0};
        auto body = [&](uint32_t worker, uint32_t workers) {
            for (int phase = 1; phase <= 300; ++phase) {
                cells[worker] = phase;
                team.barrier();
                for (uint32_t i = 0; i < workers; ++i) wrong += cells[i] != phase;
                team.barrier();
            }
        };
        team.run(0, body);
        EXPECT_EQ(wrong, 0);
    }
}

TEST(Team, CallsWhoseWorkersPassDifferentBarriersAreFoundAndEnd) {
    Team team(5);
    for (int round = 0; round < 100; ++round) {
        std::atomic<uint32_t> same{0}, differ{0}, count{0};
        auto odd = [&](uint32_t worker, uint32_t workers) {
            count = workers;
            for (uint32_t call = 0; call < 3; ++call) {
                team.barrier();
                for (uint32_t i = 0; call == 1 && i < worker; ++i) team.barrier();
                if (!team.end_of_call()) {
                    ++differ;
                    return;
                }
                ++same;
            }
        };
        team.run(0, odd);
        if (count == 1) continue;
        EXPECT_EQ(same, count);  // the first call
        EXPECT_EQ(differ, count);
    }
}

TEST(Team, NobodyWaitsForAWorkerThatHasLeft) {
    for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
        Team team(threads);
        for (int round = 0; round < 100; ++round) {
            std::atomic<uint32_t> finished{0}, left{0}, count{0};
            auto body = [&](uint32_t worker, uint32_t workers) {
                count = workers;
                for (uint32_t call = 0; call < 4; ++call) {
                    team.barrier();
                    // The first leaves while others wait, later ones while it is gone.
                    if (worker < 2 && call == worker + 1) {
                        ++left;
                        return team.leave();
                    }
                    team.barrier();
                    EXPECT_TRUE(team.end_of_call());
                }
                ++finished;
            };
            team.run(0, body);
            EXPECT_EQ(left, std::min<uint32_t>(2, count));
            EXPECT_EQ(finished, count - left);
        }
    }
}

// Every piece is assigned to one worker, whichever is slow, in each phase; and a worker that nobody robs has its own
// share in rising order.
TEST(Team, EveryPieceIsTakenOnce) {
    for (const uint32_t threads : {1u, 2u, 3u, 8u}) {
        Team team(threads);
        constexpr uint32_t kCounts[] = {0, 1, 5, 64, 1000, Pieces::kMaximum};
        std::vector<std::atomic<uint8_t>> taken(Pieces::kMaximum);
        std::atomic<int> wrong{0};
        auto body = [&](uint32_t worker, uint32_t workers) {
            for (int phase = 0; phase < 30; ++phase) {
                const uint32_t count = kCounts[phase % 6];
                if (worker == static_cast<uint32_t>(phase) % workers) std::this_thread::yield();
                for (uint32_t i; (i = Team::piece(&team, worker, count)) != Pieces::kNone;) {
                    wrong += i >= count;
                    ++taken[i];
                }
                team.barrier();
                for (uint32_t i = 0; i < count; ++i) wrong += taken[i] != 1;
                team.barrier();
                if (worker == 0) {
                    for (auto& cell : taken) cell = 0;
                }
                team.barrier();
            }
        };
        team.run(0, body);
        EXPECT_EQ(wrong, 0) << threads;
    }
}

// Bound threads run on their CPUs, and are unbound when the team has ended.
TEST(Team, WorkersRunWhereTheyAreBound) {
    const std::vector<uint32_t> before = allowed_cpus();
    const uint32_t first = before.front(), last = before.back();
    {
        NumaPlacement placement;
        placement.cpus = {{first}, {last}, {last}};
        placement.memory_nodes = {0};
        Team team(3, placement);
        std::atomic<int> wrong{0}, seen{0};
        auto body = [&](uint32_t worker, uint32_t) {
            const std::vector<uint32_t> now = allowed_cpus();
            if (worker == 0) wrong += now != std::vector<uint32_t>{first};
            wrong += now.size() != 1;
            ++seen;
        };
        for (int i = 0; i < 20; ++i) team.run(0, body);
        EXPECT_EQ(wrong, 0);
        EXPECT_GE(seen, 20);
    }
    EXPECT_EQ(allowed_cpus(), before);
    Team team(3);
    std::atomic<int> bound{0};
    auto body = [&](uint32_t, uint32_t) { bound += allowed_cpus() != before; };
    for (int i = 0; i < 20; ++i) team.run(0, body);
    EXPECT_EQ(bound, 0);
}

TEST(ThreadBinding, AThreadThatABoundOneStartsCanBeFreed) {
    const std::vector<uint32_t> before = allowed_cpus();
    const std::vector<uint32_t> one = {before.front()};
    {
        const ThreadBinding binding(one, {});
        const ThreadBinding again(one, {});  // of two teams of one thread
        EXPECT_EQ(allowed_cpus(), one);
        std::thread([&] {
            EXPECT_EQ(allowed_cpus(), one);
            ThreadBinding::free_this_thread();
            EXPECT_EQ(allowed_cpus(), before);
            { const ThreadBinding own(one, {}); }
            EXPECT_EQ(allowed_cpus(), before);
        }).join();
        EXPECT_EQ(allowed_cpus(), one);
    }
    EXPECT_EQ(allowed_cpus(), before);
}

void run_on(const std::vector<uint32_t>& cpus) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const uint32_t cpu : cpus) CPU_SET(cpu, &set);
    ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

// A thread that does not move stays, as nothing else wants to run there; on a busy machine the system may move some.
TEST(Team, WorkersMoveToCpusOfTheirOwn) {
    const std::vector<uint32_t> allowed = allowed_cpus();
    if (allowed.size() < 2) GTEST_SKIP() << "one CPU";
    OwnCpus cpus;
    std::thread([&] {
        int tried = 0, moved = 0;
        for (int round = 0; round < 20; ++round) {
            run_on({allowed.front()});
            cpus.begin();
            run_on(allowed);
            if (current_cpu() != allowed.front()) continue;
            ++tried;
            cpus.join();
            moved += current_cpu() != allowed.front();
            EXPECT_EQ(allowed_cpus(), allowed);
        }
        EXPECT_GE(moved * 2, tried);
        run_on({allowed.front()});  // nowhere to go
        cpus.begin();
        cpus.join();
        EXPECT_EQ(allowed_cpus(), std::vector<uint32_t>{allowed.front()});
        run_on(allowed);
    }).join();
}

TEST(Pieces, OwnOnesFromTheFrontThoseOfOthersFromTheBack) {
    Pieces pieces(2);
    std::vector<uint32_t> order;
    for (uint32_t i; (i = pieces.take(7, 0, 2, 6)) != Pieces::kNone;) order.push_back(i);
    EXPECT_EQ(order, (std::vector<uint32_t>{0, 1, 2, 5, 4, 3}));
    EXPECT_EQ(pieces.take(7, 1, 2, 6), Pieces::kNone);
    EXPECT_EQ(pieces.take(8, 1, 2, 6), 3u);  // another phase
    EXPECT_EQ(pieces.take(8, 0, 2, 6), 0u);
}

// The door must shut without those that are held up elsewhere, and they must find it shut.
TEST(Team, GoesOnWithoutWorkersThatDoNotCome) {
    Team team(8);
    std::atomic<uint64_t> sum{0};
    auto body = [&](uint32_t, uint32_t) {
        sum += 1;
        team.barrier();
    };
    std::atomic<bool> stop{false};
    std::vector<std::thread> noise;
    for (int i = 0; i < 6; ++i) {
        noise.emplace_back([&] {
            while (!stop) sum.load();
        });
    }
    for (int round = 0; round < 50; ++round) team.run(0, body);
    stop = true;
    for (std::thread& thread : noise) thread.join();
    EXPECT_GE(sum, 50u);
    EXPECT_LE(sum, 50u * 8);
}

// Holds up the threads of a team but the calling one: gives them work of another team, as there are no more of them.
class HeldUp {
  public:
    explicit HeldUp(const Team& team) : HeldUp(team, team.threads() - 1) {}
    HeldUp(const Team& team, uint32_t count) : threads_(team.threads()), count_(count) {}
    ~HeldUp() { release(); }
    HeldUp(const HeldUp&) = delete;
    HeldUp& operator=(const HeldUp&) = delete;

    void begin() {
        release();
        if (holder_.joinable()) holder_.join();
        held_ = true;
        all_ = false;
        holder_ = std::jthread([this] {
            Team others(threads_);
            auto body = [&](uint32_t, uint32_t) {
                for (uint32_t call = others.next_call(); others.workers() <= count_; ++call)
                    others.end_of_call(call + 1);
                all_ = true;
                held_.wait(true);
            };
            others.run_calls(count_ + 1, body);
        });
        while (!all_) std::this_thread::yield();
    }
    void release() noexcept {
        held_ = false;
        held_.notify_all();
    }

  private:
    const uint32_t threads_, count_;  // of the team; that are held up
    std::atomic<bool> held_{false}, all_{false};
    std::jthread holder_;
};

// Each call's pieces are taken by all that take part in it; a sum that is wrong if any of them runs ahead.
TEST(Team, WorkersThatComeLateTakePartFromALaterCallOn) {
    for (const uint32_t threads : {2u, 3u}) {
        Team team(threads);
        HeldUp others(team);
        constexpr uint32_t kCalls = 10'000, kPieces = 64;
        std::vector<std::atomic<uint32_t>> taken(kCalls), seen(kCalls);
        std::atomic<int> wrong{0};
        std::atomic<uint32_t> last{0};
        auto body = [&](uint32_t worker, uint32_t workers) {
            for (uint32_t call = team.next_call(), next; call != Team::kNoCall; call = next) {
                wrong += workers != team.workers() || worker >= workers;
                ++seen[call];
                if (call == 5) others.release();
                if (worker == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                while (Team::piece(&team, worker, kPieces) != Pieces::kNone) ++taken[call];
                team.barrier();
                wrong += taken[call] != kPieces || seen[call] != workers;
                last = call;
                next = workers < threads && call + 1 < kCalls ? call + 1 : Team::kNoCall;
                if (!team.end_of_call(next)) ++wrong;
                workers = team.workers();
            }
        };
        others.begin();
        team.run_calls(0, body);
        EXPECT_EQ(wrong, 0);
        EXPECT_EQ(seen.front(), 1u);
        EXPECT_EQ(seen[5], 1u);
        EXPECT_EQ(seen[last], threads);
    }
}

// As after a failure: the workers leave though another call was to follow, to which others are admitted just then.
TEST(Team, ARegionEndsWithThoseThatAreAdmittedAsTheOthersLeave) {
    Team team(3);
    HeldUp one(team, 1);
    uint32_t admitted = 0;
    constexpr std::chrono::microseconds kShort(100);  // a busy machine gets more
    for (auto time = kShort; admitted < 20;) {
        std::atomic<uint32_t> inside{0}, late{0};
        std::atomic<bool> first{false};
        auto body = [&](uint32_t worker, uint32_t) {
            ++inside;
            if (team.next_call() == 0) {
                if (worker == 0) {
                    one.release();
                    std::this_thread::sleep_for(time);
                    first = true;
                } else {
                    while (!first) std::this_thread::yield();
                }
                team.end_of_call(1);
            } else {
                ++late;
            }
            --inside;
        };
        one.begin();
        team.run_calls(0, body);
        ASSERT_EQ(inside, 0u);
        ASSERT_LE(late, 2u);
        admitted += late;
        time = late == 0 ? 2 * time : kShort;
    }
}

// They find that no call is left, or that one has left, and the next region has them again.
TEST(Team, WorkersThatComeTooLateTakeNoPart) {
    Team team(3);
    HeldUp others(team);
    for (const bool leaves : {false, true}) {
        std::atomic<uint32_t> entered{0};
        auto body = [&](uint32_t, uint32_t) {
            ++entered;
            for (uint32_t call = team.next_call(); call < 3; ++call) {
                if (leaves && call == 1) return team.leave();
                if (!team.end_of_call(call < 2 ? call + 1 : Team::kNoCall)) return;
            }
        };
        others.begin();
        team.run_calls(0, body);
        others.release();
        EXPECT_EQ(entered, 1u);
        auto all = [&](uint32_t, uint32_t) {
            for (uint32_t call = team.next_call(); team.workers() < 3; ++call) team.end_of_call(call + 1);
        };
        team.run_calls(0, all);
    }
}

}  // namespace
}  // namespace tessera
