// One layer of multi-head latent attention with DeepSeek's dimensions: its rows, its weights, and what attention over
// them gives, from first principles in double.
#pragma once

#include "core/run/loader.hpp"

#include <tessera/types.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tessera::test {

// Bytes aligned as tensors of a file are, so that weights can be used in place.
class WeightBytes {
  public:
    explicit WeightBytes(size_t bytes = 0)
        : size_(bytes), at_(static_cast<std::byte*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)), &std::free) {}
    std::span<std::byte> bytes() const { return {at_.get(), size_}; }
    float* floats() const { return reinterpret_cast<float*>(at_.get()); }

  private:
    size_t size_;
    std::unique_ptr<std::byte, decltype(&std::free)> at_;
};

// Queries, latent rows and their scores have a standard deviation of 1, as behind a fresh layer's norm. Row `row_of(s,
// t)` of both tables belongs to token t of sequence s; the row after all of them holds what no kernel may see.
class AttentionData : public WeightSource {
  public:
    static constexpr int64_t kNope = 128, kRope = 64, kValue = 128, kLatent = 512;
    static constexpr int64_t kKey = kNope + kRope, kCached = kLatent + kRope;
    static constexpr double kEpsilon = 1e-6, kBase = 10000;
    static const double kScale;  // 1 / sqrt(kKey)

    // Tokens of each sequence. `weights` is the element type of wkv_b. `threads` work on what is expected. Large: of
    // each token 5 numbers a head and element are kept. Every 64th element of latent rows is `outlier` times as large
    // as the rest, and of f32 weights as much smaller: keys and values stay as they are, but blocks of the cache do
    // not.
    AttentionData(int64_t heads, std::vector<int32_t> lengths, tsr_type weights, uint32_t threads, float outlier = 1);

    int64_t heads() const { return heads_; }
    tsr_type weights() const { return type_; }
    std::span<const int32_t> lengths() const { return lengths_; }
    int64_t rows() const { return rows_ + 1; }
    int32_t row_of(size_t sequence, int32_t token) const { return first_[sequence] + token; }
    int32_t poison_row() const { return static_cast<int32_t>(rows_); }
    // What the poisoned row holds: not-a-number, or large numbers for caches that cannot hold that.
    void poison_with(float value);

    // The attention of a token over itself and those before it: kValue numbers a head.
    std::span<const float> expected(size_t sequence, int32_t token) const;

    // Weights "q" [kKey * heads, rows], "kv" [kCached, rows], "kv_norm" and "wkv_b", as the source of an executor.
    void read(const std::string& name, uint64_t offset, std::span<std::byte> to) const override;
    const std::byte* mapped(const std::string& name) const override { return bytes_of(name).data(); }

  private:
    struct Sequence;

    std::span<std::byte> bytes_of(const std::string& name) const;
    void fill();
    void fill_weight();
    Sequence prepare(size_t sequence) const;
    void attend(const Sequence& sequence, int64_t head);

    int64_t heads_;
    float outlier_;
    std::vector<int32_t> lengths_, first_;
    int64_t rows_ = 0;
    tsr_type type_;
    WeightBytes q_, kv_, norm_, wkv_b_;
    std::vector<float> weight_;  // wkv_b decoded
    std::vector<float> expected_;
};

}  // namespace tessera::test
