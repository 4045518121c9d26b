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

#define TWELVE(name) ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n" name " %%zmm30, %%zmm31, %%zmm\\i\n.endr"
#define WRITTEN "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11"

int main() {
    const bool wide = __builtin_cpu_supports("avx512f");
    if (wide) asm volatile("vpxord %%zmm30, %%zmm30, %%zmm30\nvpxord %%zmm31, %%zmm31, %%zmm31" ::: "memory");
    measure("vfmadd231ps", wide, 16, [] { asm volatile(TWELVE("vfmadd231ps") : : : WRITTEN); });
    measure("vdpbf16ps", wide && __builtin_cpu_supports("avx512bf16"), 32, [] {
        asm volatile(TWELVE("vdpbf16ps") : : : WRITTEN);
    });
    measure("vpdpbusd", wide && __builtin_cpu_supports("avx512vnni"), 64, [] {
        asm volatile(TWELVE("vpdpbusd") : : : WRITTEN);
    });
    measure("vpdpwssd", wide && __builtin_cpu_supports("avx512vnni"), 32, [] {
        asm volatile(TWELVE("vpdpwssd") : : : WRITTEN);
    });
    // Whether they use different parts of a core: two of one and one of the other, as many multiply-adds each.
    measure("and vpmaddwd", wide && __builtin_cpu_supports("avx512vnni"), 32, [] {
        asm volatile(
            ".irp i,0,1,2,3,4,5,6,7\nvpdpwssd %%zmm30, %%zmm31, %%zmm\\i\n.endr\n"
            ".irp i,8,9,10,11\nvpmaddwd %%zmm30, %%zmm31, %%zmm\\i\n.endr"
            :
            :
            : WRITTEN);
    });
}
