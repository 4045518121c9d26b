#include "core/run/worker_tuner.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace tessera {
namespace {

// A machine: seconds and share of waiting of a step, by workers.
struct Machine {
    std::function<double(uint32_t)> seconds, waiting;
};

// Total seconds of so many steps; `used`: how often each number of workers was.
double run(WorkerTuner& tuner, const Machine& machine, int steps, std::vector<int>* used = nullptr, double noise = 0) {
    std::mt19937 random(3);
    std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
    double total = 0;
    for (int i = 0; i < steps; ++i) {
        const uint32_t workers = tuner.workers();
        if (used) {
            used->resize(std::max<size_t>(used->size(), workers + 1));
            ++(*used)[workers];
        }
        const double seconds = machine.seconds(workers) * factor(random);
        tuner.finished(seconds, 1, machine.waiting(workers));
        total += seconds;
    }
    return total;
}

// Speed grows with workers; they wait little.
const Machine kQuiet{[](uint32_t n) { return 0.08 / n; }, [](uint32_t) { return 0.05; }};
// Two cores, one of them busy: two workers wait for each other.
const Machine kBusy{[](uint32_t n) { return n == 1 ? 0.08 : 0.3; }, [](uint32_t n) { return n == 1 ? 0.0 : 0.8; }};

TEST(WorkerTuner, AQuietMachineIsLeftAlone) {
    WorkerTuner tuner(8);
    std::vector<int> used;
    run(tuner, kQuiet, 1000, &used, 0.2);
    EXPECT_EQ(used[8], 1000);
}

TEST(WorkerTuner, ABusyMachineGetsFewerWorkersSoon) {
    WorkerTuner tuner(2);
    run(tuner, kBusy, 10);
    EXPECT_EQ(tuner.workers(), 1u);
    std::vector<int> used;
    const double seconds = run(tuner, kBusy, 1000, &used);
    EXPECT_LT(seconds, 1000 * 0.08 * 1.06) << "trials cost at most a twentieth";
    EXPECT_GT(used[2], 0) << "it is tried whether the machine is still busy";
}

TEST(WorkerTuner, AllWorkAgainWhenTheMachineIsQuiet) {
    WorkerTuner tuner(2);
    run(tuner, kBusy, 200);
    std::vector<int> used;
    run(tuner, kQuiet, 200, &used);
    EXPECT_EQ(tuner.workers(), 2u);
    EXPECT_LT(used[1], 100);
}

TEST(WorkerTuner, ManyWorkersOfWhichAFewAreHeldUp) {
    // Sixteen cores, four of them busy.
    const Machine machine{[](uint32_t n) { return n > 12 ? 0.05 : 0.16 / n; },
                          [](uint32_t n) { return n > 12 ? 0.7 : 0.1; }};
    WorkerTuner tuner(16);
    run(tuner, machine, 300, nullptr, 0.05);
    std::vector<int> used;
    run(tuner, machine, 300, &used, 0.05);
    EXPECT_GT(used[12], 250);
}

TEST(WorkerTuner, WaitingAloneIsNoReason) {
    // Small steps: much of their time are barriers, and yet more workers are faster.
    const Machine machine{[](uint32_t n) { return 0.001 + 0.002 / n; }, [](uint32_t n) { return n == 1 ? 0.0 : 0.5; }};
    WorkerTuner tuner(4);
    std::vector<int> used;
    const double seconds = run(tuner, machine, 5000, &used, 0.1);
    EXPECT_GT(used[4], 4500);
    EXPECT_LT(seconds, 5000 * 0.0015 * 1.06);
}

TEST(WorkerTuner, OneWorkerStaysOne) {
    WorkerTuner tuner(1);
    for (int i = 0; i < 100; ++i) tuner.finished(1, 1, 1);
    EXPECT_EQ(tuner.workers(), 1u);
    WorkerTuner none(0);
    EXPECT_EQ(none.workers(), 1u);
    none.finished(0, 0, 0);
}

}  // namespace
}  // namespace tessera
