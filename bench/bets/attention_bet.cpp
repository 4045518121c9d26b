// Bet 1: integer attention over a q8_0 cache, with scales of blocks against scales of rows, and over an f16 cache.
#include "attention_int16.hpp"

#include <immintrin.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>

using namespace tessera::bets;

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// The least time of several rounds of work(worker) on `threads` threads: others may use the machine meanwhile.
double least_seconds(int threads, const std::function<void(int)>& work) {
    constexpr int kRepeats = 4, kRounds = 60;
    double best = 1e9;
    for (int i = 0; i < kRounds; ++i) {
        const auto start = Clock::now();
        std::vector<std::thread> team;
        const auto repeat = [&](int w) {
            for (int r = 0; r < kRepeats; ++r) work(w);
        };
        for (int w = 1; w < threads; ++w) team.emplace_back(repeat, w);
        repeat(0);
        for (auto& t : team) t.join();
        best = std::min(best, since(start) / kRepeats);
    }
    return best;
}

struct Quantised {
    explicit Quantised(const Problem& problem, int blocks)
        : per_row(blocks),
          quants(std::size_t{kTokens} * kKeyDim),
          scales(std::size_t{kTokens} * blocks),
          decoded(std::size_t{kTokens} * kKeyDim) {
        const int width = kKeyDim / blocks;
        for (int i = 0; i < kTokens * blocks; ++i) {
            const float* x = problem.cache.data() + std::size_t(i) * width;
            float top = 0;
            for (int d = 0; d < width; ++d) top = std::max(top, std::abs(x[d]));
            scales[i] = _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtps_ph(_mm_set_ss(top / 127), 0)));
            for (int d = 0; d < width; ++d) {
                const float q = std::clamp(std::nearbyint(x[d] / scales[i]), -127.0f, 127.0f);
                quants[std::size_t(i) * width + d] = std::int8_t(q);
                decoded[std::size_t(i) * width + d] = q * scales[i];
            }
        }
    }
    int per_row;
    Aligned<std::int8_t> quants;
    Aligned<float> scales;
    Aligned<float> decoded;
};

using Scratches = std::vector<std::unique_ptr<Int16Attention::Scratch>>;

void report(const char* name, const Problem& problem, const std::vector<double>& exact,
            const std::vector<double>& decoded, Scratches& scratch, const Int16Attention& attention,
            const std::function<void(Int16Attention::Scratch&, int tile)>& load) {
    constexpr int kTiles = kTokens / Int16Attention::kTile;
    for (int threads = 1; threads <= 2; ++threads) {
        const double seconds = least_seconds(threads, [&](int worker) {
            auto& s = *scratch[worker];
            Int16Attention::begin(s);
            for (int t = worker * kTiles / threads; t < (worker + 1) * kTiles / threads; ++t) {
                load(s, t);
                attention.tile(s);
            }
        });
        std::vector<float> out(std::size_t{kHeads} * kValueDim);
        for (int h = 0; h < kHeads; ++h) {
            float top = -1e30f, sum = 0;
            for (int w = 0; w < threads; ++w) top = std::max(top, scratch[w]->top[h]);
            for (int w = 0; w < threads; ++w) sum += scratch[w]->sum[h] * std::exp(scratch[w]->top[h] - top);
            for (int d = 0; d < kValueDim; ++d) {
                const std::size_t place = std::size_t(Int16Attention::out_position(d)) * kHeads + h;
                float x = 0;
                for (int w = 0; w < threads; ++w) x += scratch[w]->out[place] * std::exp(scratch[w]->top[h] - top);
                out[std::size_t(h) * kValueDim + d] = x / sum;
            }
        }
        const double ops = 2.0 * (kKeyDim + kValueDim) * kHeads * kTokens;
        std::printf("%-44s threads %d: %7.1f G operations/s, relative error %.2e (to the stored values %.2e)\n", name,
                    threads, ops / seconds / 1e9, relative_error(out.data(), exact),
                    relative_error(out.data(), decoded));
    }
}

}  // namespace

int main() {
    Problem problem;
    const auto exact = problem.answer(problem.cache);
    const Int16Attention attention(problem);
    Scratches scratch;
    for (int i = 0; i < 2; ++i) scratch.push_back(std::make_unique<Int16Attention::Scratch>());
    constexpr std::size_t kTileElements = std::size_t{Int16Attention::kTile} * kKeyDim;
    {
        const Quantised cache(problem, kBlocks);
        report("attention: q8_0, scales of blocks", problem, exact, problem.answer(cache.decoded), scratch, attention,
               [&](auto& s, int t) {
                   Int16Attention::load_tile<true>(
                       s, cache.quants.data() + t * kTileElements,
                       cache.scales.data() + std::size_t(t) * Int16Attention::kTile * kBlocks);
               });
    }
    {
        const Quantised cache(problem, 1);
        report("attention: int8, scales of rows", problem, exact, problem.answer(cache.decoded), scratch, attention,
               [&](auto& s, int t) {
                   Int16Attention::load_tile<false>(s, cache.quants.data() + t * kTileElements,
                                                    cache.scales.data() + std::size_t(t) * Int16Attention::kTile);
               });
    }
    {
        Aligned<std::uint16_t> cache(std::size_t{kTokens} * kKeyDim);
        Aligned<float> decoded(cache.size());
        for (std::size_t i = 0; i < cache.size(); i += 8) {
            const __m128i h = _mm256_cvtps_ph(_mm256_load_ps(problem.cache.data() + i), 0);
            _mm_store_si128(reinterpret_cast<__m128i*>(cache.data() + i), h);
            _mm256_store_ps(decoded.data() + i, _mm256_cvtph_ps(h));
        }
        report("attention: f16", problem, exact, problem.answer(decoded), scratch, attention,
               [&](auto& s, int t) { Int16Attention::load_tile(s, cache.data() + t * kTileElements); });
    }
}
