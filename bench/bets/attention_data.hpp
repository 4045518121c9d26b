// The made-up problem of bet 1 and its f64 answer.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <random>
#include <vector>

namespace tessera::bets {

inline constexpr int kHeads = 16;
inline constexpr int kTokens = 4096;
inline constexpr int kKeyDim = 576;
inline constexpr int kValueDim = 512;
inline constexpr int kBlock = 32;
inline constexpr int kBlocks = kKeyDim / kBlock;

// 64-byte aligned storage, zeroed.
template <typename T>
class Aligned {
  public:
    explicit Aligned(std::size_t count)
        : data_(static_cast<T*>(::operator new (count * sizeof(T), std::align_val_t{64}))), count_(count) {
        for (std::size_t i = 0; i < count; ++i) new (data_ + i) T{};
    }
    Aligned(const Aligned&) = delete;
    Aligned& operator=(const Aligned&) = delete;
    ~Aligned() { ::operator delete (data_, std::align_val_t{64}); }
    T* data() { return data_; }
    const T* data() const { return data_; }
    std::size_t size() const { return count_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }

  private:
    T* data_;
    std::size_t count_;
};

struct Problem {
    Problem() : cache(std::size_t{kTokens} * kKeyDim), query(std::size_t{kHeads} * kKeyDim) {
        std::mt19937 random(7);
        std::normal_distribution<float> normal;
        // Channels of unequal strength, as a trained model's latents have them; the rope part is stronger.
        std::vector<float> strength(kKeyDim);
        for (int d = 0; d < kKeyDim; ++d) strength[d] = std::exp(0.5f * normal(random)) * (d < kValueDim ? 1.0f : 3.0f);
        for (int t = 0; t < kTokens; ++t)
            for (int d = 0; d < kKeyDim; ++d) cache[std::size_t(t) * kKeyDim + d] = strength[d] * normal(random);
        // Scores of standard deviation 2 before the softmax.
        double sum = 0;
        for (int d = 0; d < kKeyDim; ++d) sum += double(strength[d]) * strength[d];
        scale = float(2.0 / std::sqrt(sum));
        for (auto& q : std::vector<float*>{query.data()})
            for (int i = 0; i < kHeads * kKeyDim; ++i) q[i] = normal(random);
    }
    Aligned<float> cache;  // [token][576]
    Aligned<float> query;  // [head][576]
    float scale = 1;       // of a score

    // Attention in f64 over the given rows: [head][512].
    std::vector<double> answer(const Aligned<float>& rows) const {
        std::vector<double> out(std::size_t{kHeads} * kValueDim);
        std::vector<double> p(kTokens);
        for (int h = 0; h < kHeads; ++h) {
            double top = -1e300, sum = 0;
            for (int t = 0; t < kTokens; ++t) {
                double s = 0;
                for (int d = 0; d < kKeyDim; ++d)
                    s += double(query[std::size_t(h) * kKeyDim + d]) * rows[std::size_t(t) * kKeyDim + d];
                p[t] = s * scale;
                top = std::max(top, p[t]);
            }
            for (auto& x : p) sum += x = std::exp(x - top);
            for (int t = 0; t < kTokens; ++t)
                for (int d = 0; d < kValueDim; ++d)
                    out[std::size_t(h) * kValueDim + d] += p[t] / sum * rows[std::size_t(t) * kKeyDim + d];
        }
        return out;
    }
};

inline double relative_error(const float* got, const std::vector<double>& wanted) {
    double d = 0, n = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        d += (got[i] - wanted[i]) * (got[i] - wanted[i]);
        n += wanted[i] * wanted[i];
    }
    return std::sqrt(d / n);
}

}  // namespace tessera::bets
