// What a kernel, a copy and a load cost beside their work: constants of plans (kernels/cuda/card_constants.hpp).
#include "rates.hpp"
#include "topics.hpp"

#include <tessera/cuda/launch.hpp>

#include <algorithm>
#include <numeric>
#include <random>

namespace tessera::test {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median(std::vector<double> times) {
    std::ranges::nth_element(times, times.begin() + static_cast<ptrdiff_t>(times.size() / 2));
    return times[times.size() / 2];
}

class Latencies {
  public:
    Latencies(Bench& bench, const cuda::Module& module)
        : bench_(bench),
          device_(bench.card().device()),
          queue_(bench.card().queue()),
          constants_(cuda_ops::constants_of(bench.info().compute_capability)),
          small_(bench.scale().small),
          empty_(device_, module, "no_work"),
          chase_(device_, module, "chase_loads") {}

    void measure() {
        const auto launch = [&] { empty_.launch(queue_, {1, 1, 1}, 32, RateArguments{}); };
        report("graph node, empty", node_seconds(launch), nullptr);
        measure_one_row();
        launches(launch);
        round_trips(launch);
        chase("memory latency", int64_t{4} * std::max<int64_t>(static_cast<int64_t>(bench_.info().l2_bytes), 1 << 20),
              &constants_.memory_latency);
        chase("second-level cache latency", static_cast<int64_t>(bench_.info().l2_bytes) / 8, nullptr);
        bench_.forget();
    }

  private:
    void report(std::string_view what, double seconds, const cuda_ops::CardConstant* assumed) {
        bench_.report_latency(what, seconds, assumed);
    }
    void wait() { bench_.card().wait(); }

    // Of one more node in a recording.
    template <class Body>
    double node_seconds(const Body& body) {
        const int nodes = small_ ? 4 : 512;
        const auto of = [&](int count) {
            tsr_recording recording = nullptr;
            sdk::check(device_.begin_recording(&device_, queue_));
            for (int i = 0; i < count; ++i) body();
            sdk::check(device_.end_recording(&device_, queue_, &recording));
            const double seconds = repeated([&] { sdk::check(device_.replay(&device_, queue_, recording)); });
            device_.destroy_recording(&device_, recording);
            return seconds;
        };
        return (of(nodes + 1) - of(1)) / nodes;
    }

    // Of the work and the wait for it, the median.
    template <class Body>
    double repeated(const Body& body) {
        std::vector<double> times;
        for (int round = 0; round < (small_ ? 2 : 50); ++round) {
            const auto begin = Clock::now();
            body();
            wait();
            times.push_back(since(begin));
        }
        return median(times);
    }

    // A node of a plan with as little work as there is: the norm of one row.
    void measure_one_row() {
        constexpr int64_t kRow = 2048;
        Described norm(TSR_OP_RMS_NORM);
        norm.activation({kRow, 1});
        norm.weight(TSR_TYPE_F32, {kRow});
        norm.output({kRow, 1});
        norm.attribute("epsilon", 1e-6);
        std::string refusal;
        if (const auto found = bench_.measure(norm, 1, 1, Depth::kEmpty, refusal))
            report("graph node, norm of one row of 2048", found->seconds, &constants_.graph_node);
    }

    template <class Body>
    void launches(const Body& launch) {
        const int count = small_ ? 4 : 2000;
        launch();
        wait();
        const auto begin = Clock::now();
        for (int i = 0; i < count; ++i) launch();
        const double host = since(begin);
        wait();
        report("launch, the host's part", host / count, nullptr);
        report("launch, from one to the next", since(begin) / count, &constants_.launch);
    }

    template <class Body>
    void round_trips(const Body& launch) {
        report("a launch and the wait for it", repeated(launch), nullptr);
        char host[64] = {};
        void* const memory = bench_.allocate(sizeof host);
        report("an upload of 64 bytes and the wait for it",
               repeated([&] { sdk::check(device_.upload(&device_, queue_, memory, host, sizeof host)); }), nullptr);
        report("a download of 64 bytes and the wait for it",
               repeated([&] { sdk::check(device_.download(&device_, queue_, host, memory, sizeof host)); }), nullptr);
    }

    // Of one load in a random cycle through so much memory.
    void chase(std::string_view what, int64_t bytes, const cuda_ops::CardConstant* assumed) {
        constexpr int64_t kLine = 128;
        if (small_) bytes = std::min<int64_t>(bytes, 64 * kLine);
        const auto lines = static_cast<size_t>(bytes / kLine);
        if (lines < 2) return;
        std::vector<unsigned> order(lines), next(lines * (kLine / sizeof(unsigned)));
        std::iota(order.begin(), order.end(), 0u);
        std::shuffle(order.begin() + 1, order.end(), std::mt19937(1));
        constexpr unsigned kWords = kLine / sizeof(unsigned);
        for (size_t i = 0; i < lines; ++i) next[order[i] * kWords] = order[(i + 1) % lines] * kWords;
        void* const memory = bench_.allocate(static_cast<int64_t>(next.size() * sizeof(unsigned)));
        sdk::check(device_.upload(&device_, queue_, memory, next.data(), next.size() * sizeof(unsigned)));
        auto* const at = static_cast<unsigned*>(bench_.allocate(sizeof(unsigned)));
        sdk::check(device_.upload(&device_, queue_, at, order.data(), sizeof(unsigned)));  // 0
        wait();
        const auto of = [&](int steps) {
            return repeated([&] {
                chase_.launch(queue_, {1, 1, 1}, 32,
                              ChaseArguments{static_cast<const unsigned*>(memory), at, steps, 0});
            });
        };
        const int steps = small_ ? 16 : 4096;
        report(what, (of(2 * steps) - of(steps)) / steps, assumed);
    }

    Bench& bench_;
    tsr_device& device_;
    tsr_queue queue_;
    const cuda_ops::CardConstants& constants_;
    bool small_;
    cuda::Kernel empty_, chase_;
};

}  // namespace

void measure_latencies(Bench& bench, const cuda::Module* module) {
    if (!module || !cuda::find_image(*module, bench.info().compute_capability)) return;
    Latencies(bench, *module).measure();
}

}  // namespace tessera::test
