// How many multiply-adds a core does a second, in registers alone, by instruction: what kernels can hope for.
#include <chrono>
#include <cstdint>
#include <cstdio>

namespace {

constexpr int64_t kTurns = 30'000'000;
constexpr int kChains = 12;  // hides the latency of any of them

template <class F>
void measure(const char* name, bool here, int products, F&& turn) {
    if (!here) {
        std::printf("%-12s not on this processor\n", name);
        return;
    }
    double best = 1e30;
    for (int round = 0; round < 5; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        for (int64_t i = 0; i < kTurns; ++i) turn();
        const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        best = s < best ? s : best;
    }
    std::printf("%-12s %6.1f G multiply-adds/s a core\n", name,
                static_cast<double>(kTurns) * kChains * products / best / 1e9);
}

}  // namespace

#define CHAIN(name, v, i) name " %%" v "30, %%" v "31, %%" v #i "\n"
#define CHAINS(name, v)                                                                                         \
    CHAIN(name, v, 0)                                                                                           \
    CHAIN(name, v, 1)                                                                                           \
    CHAIN(name, v, 2)                                                                                           \
    CHAIN(name, v, 3)                                                                                           \
    CHAIN(name, v, 4) CHAIN(name, v, 5) CHAIN(name, v, 6) CHAIN(name, v, 7) CHAIN(name, v, 8) CHAIN(name, v, 9) \
        CHAIN(name, v, 10) CHAIN(name, v, 11)
#define CLOBBERED "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11"

int main() {
    const bool wide = __builtin_cpu_supports("avx512f");
    if (wide) asm volatile("vpxord %%zmm30, %%zmm30, %%zmm30\nvpxord %%zmm31, %%zmm31, %%zmm31" ::: "memory");
    measure("vfmadd231ps", wide, 16, [] { asm volatile(CHAINS("vfmadd231ps", "zmm")::: CLOBBERED); });
    measure("vdpbf16ps", wide && __builtin_cpu_supports("avx512bf16"), 32, [] {
        asm volatile(CHAINS("vdpbf16ps", "zmm")::: CLOBBERED);
    });
    measure("vpdpbusd", wide && __builtin_cpu_supports("avx512vnni"), 64, [] {
        asm volatile(CHAINS("vpdpbusd", "zmm")::: CLOBBERED);
    });
}
