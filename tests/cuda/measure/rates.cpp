#include "rates.hpp"

#include "topics.hpp"

#include <tessera/cuda/launch.hpp>

#include <algorithm>

namespace tessera::test {
namespace {

struct RateKernel {
    const char* name;
    const char* unit;
    double operations;  // multiplications and additions of a warp's step of one chain
};
constexpr RateKernel kRates[] = {{"f32_rate", "f32", 2 * 32},
                                 {"dp4a_rate", "dp4a", 2 * 32 * 4},
                                 {"f16_rate", "f16", 2 * 16 * 8 * 16},
                                 {"s8_rate", "s8", 2 * 16 * 8 * 32}};

}  // namespace

void measure_rates(Bench& bench, const cuda::Module* module) {
    const int64_t bytes = bench.scale().content_bytes / 2;
    tsr_device& device = bench.card().device();
    const tsr_queue queue = bench.card().queue();
    char* const from = static_cast<char*>(bench.numbers(bytes));
    void* const to = bench.allocate(bytes);
    const double time =
        bench.seconds([&] { sdk::check(device.copy(&device, queue, to, from, static_cast<uint64_t>(bytes))); });
    bench.report_rate("copy", 2 * static_cast<double>(bytes) / time);
    bench.forget();
    if (!module || !cuda::find_image(*module, bench.info().compute_capability)) return;
    const uint32_t blocks = bench.scale().small ? 1 : 4 * std::max(bench.info().processors, 1u);
    const int steps = bench.scale().small ? 2 : 4096;
    auto* const out = static_cast<unsigned*>(bench.allocate(int64_t{4} * blocks * kRateThreads));
    {
        const int64_t once = int64_t{kReadsInFlight} * blocks * kRateThreads;
        const int64_t count = bytes / 16 / once * once;
        const cuda::Kernel kernel(device, *module, "read_rate");
        const double passed = bench.seconds([&] {
            kernel.launch(queue, {blocks, 1, 1}, kRateThreads, ReadArguments{from, out, count});
        });
        bench.report_rate("read", 16 * static_cast<double>(count) / passed);
    }
    for (const RateKernel& rate : kRates) {
        std::optional<cuda::Kernel> kernel;
        try {
            kernel.emplace(device, *module, rate.name);
        } catch (const sdk::Failure& failure) {
            if (failure.code() == TSR_DEVICE_LOST) throw;
            continue;  // made from an older virtual architecture, which has no such instruction
        }
        const double passed = bench.seconds([&] {
            kernel->launch(queue, {blocks, 1, 1}, kRateThreads, RateArguments{out, steps});
        });
        const double warps = static_cast<double>(blocks) * kRateThreads / 32;
        bench.report_rate(rate.unit, rate.operations * kRateChains * steps * warps / passed);
    }
    bench.forget();
}

}  // namespace tessera::test
