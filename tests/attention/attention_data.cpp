#include "attention_data.hpp"

#include "tests/random_rows.hpp"

#include <tessera/cpu/formats.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <thread>

namespace tessera::test {
namespace {

constexpr int64_t kOutlierEvery = 64;

constexpr int64_t kPanel = 4;     // columns that a tile of a product has
constexpr int64_t kTileRows = 4;  // rows of it
using Columns = double __attribute__((vector_size(8 * kPanel)));

template <int64_t kRows>
void multiply_tile(const double* a, int64_t k, const double* panel, double* c, int64_t c_row, int64_t columns) {
    Columns sums[kRows] = {};
    for (int64_t i = 0; i < k; ++i) {
        Columns b;
        std::memcpy(&b, panel + kPanel * i, sizeof b);
        for (int64_t r = 0; r < kRows; ++r) sums[r] += a[r * k + i] * b;
    }
    for (int64_t r = 0; r < kRows; ++r) {
        for (int64_t j = 0; j < columns; ++j) c[r * c_row + j] = sums[r][j];
    }
}

// c [m, n] = a [m, k] times b [k, n]; rows of b and c have the strides b_row and c_row, those of a are dense.
void multiply(const double* a, const double* b, int64_t b_row, double* c, int64_t c_row, int64_t m, int64_t n,
              int64_t k) {
    std::vector<double> panel(static_cast<size_t>(k * kPanel));
    for (int64_t j = 0; j < n; j += kPanel) {
        const int64_t columns = std::min(kPanel, n - j);
        std::ranges::fill(panel, 0.0);
        for (int64_t i = 0; i < k; ++i)
            std::copy_n(b + i * b_row + j, columns, &panel[static_cast<size_t>(i * kPanel)]);
        const int64_t whole = m / kTileRows * kTileRows;
        for (int64_t r = 0; r < whole; r += kTileRows) {
            multiply_tile<kTileRows>(a + r * k, k, panel.data(), c + r * c_row + j, c_row, columns);
        }
        for (int64_t r = whole; r < m; ++r)
            multiply_tile<1>(a + r * k, k, panel.data(), c + r * c_row + j, c_row, columns);
    }
}

// Rotates pairs (2i, 2i + 1) by the token's angle: floats of `x` to `to`, whose elements have the stride `stride`.
void rotate(const float* x, int32_t token, double* to, int64_t stride) {
    for (int64_t i = 0; i < AttentionData::kRope / 2; ++i) {
        const double angle = token * std::pow(AttentionData::kBase, -2.0 * static_cast<double>(i) /
                                                                        static_cast<double>(AttentionData::kRope));
        const double c = std::cos(angle), s = std::sin(angle), a = x[2 * i], b = x[2 * i + 1];
        to[2 * i * stride] = a * c - b * s;
        to[(2 * i + 1) * stride] = a * s + b * c;
    }
}

}  // namespace

const double AttentionData::kScale = 1 / std::sqrt(static_cast<double>(kKey));

// What all heads share of a sequence, a column for each token.
struct AttentionData::Sequence {
    size_t index;
    int64_t tokens;
    std::vector<double> latent;  // [kLatent, tokens], normed
    std::vector<double> rotary;  // [kRope, tokens]
};

AttentionData::AttentionData(int64_t heads, std::vector<int32_t> lengths, tsr_type weights, uint32_t threads,
                             float outlier)
    : heads_(heads), outlier_(outlier), lengths_(std::move(lengths)), type_(weights) {
    for (const int32_t length : lengths_) {
        first_.push_back(static_cast<int32_t>(rows_));
        rows_ += length;
    }
    q_ = WeightBytes(static_cast<size_t>(rows() * heads_ * kKey) * sizeof(float));
    kv_ = WeightBytes(static_cast<size_t>(rows() * kCached) * sizeof(float));
    norm_ = WeightBytes(kLatent * sizeof(float));
    wkv_b_ = WeightBytes(cpu::format_bytes(type_, kLatent) * static_cast<size_t>(heads_ * (kNope + kValue)));
    fill();
    fill_weight();
    expected_.resize(static_cast<size_t>(rows_ * heads_ * kValue));

    std::vector<Sequence> sequences;
    for (size_t s = 0; s < lengths_.size(); ++s) sequences.push_back(prepare(s));
    const int64_t units = static_cast<int64_t>(sequences.size()) * heads_;
    std::atomic<int64_t> next{0};
    const auto work = [&] {
        for (int64_t unit; (unit = next++) < units;)
            attend(sequences[static_cast<size_t>(unit / heads_)], unit % heads_);
    };
    std::vector<std::jthread> others;
    for (uint32_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
}

void AttentionData::fill() {
    std::mt19937 random(7);
    std::normal_distribution<float> draw;
    std::generate_n(q_.floats(), rows() * heads_ * kKey, [&] { return draw(random); });
    std::generate_n(kv_.floats(), rows() * kCached, [&] { return draw(random); });
    for (int64_t i = 0; i < kLatent; ++i) norm_.floats()[i] = 1 + 0.1f * draw(random);
    for (int64_t i = 0; i < kLatent; i += kOutlierEvery) norm_.floats()[i] *= outlier_;
    poison_with(std::nanf(""));
}

// Keys and values get a standard deviation of 1, too.
void AttentionData::fill_weight() {
    std::mt19937 random(11);
    const float deviation = 1 / std::sqrt(static_cast<float>(kLatent));
    const int64_t count = heads_ * (kNope + kValue);
    const size_t row_bytes = cpu::format_bytes(type_, kLatent);
    weight_.resize(static_cast<size_t>(count * kLatent));
    auto* bytes = reinterpret_cast<unsigned char*>(wkv_b_.bytes().data());
    tests::fill_rows(type_, bytes, kLatent, static_cast<size_t>(count), deviation, random);
    for (int64_t i = 0; type_ == TSR_TYPE_F32 && i < count * kLatent; i += kOutlierEvery)
        wkv_b_.floats()[i] /= outlier_;
    for (int64_t r = 0; r < count; ++r) {
        cpu::decode_row(type_, bytes + static_cast<size_t>(r) * row_bytes, kLatent,
                        &weight_[static_cast<size_t>(r * kLatent)]);
    }
}

void AttentionData::poison_with(float value) {
    std::fill_n(kv_.floats() + rows_ * kCached, kCached, value);
}

std::span<const float> AttentionData::expected(size_t sequence, int32_t token) const {
    const auto width = static_cast<size_t>(heads_ * kValue);
    return {&expected_[static_cast<size_t>(row_of(sequence, token)) * width], width};
}

std::span<std::byte> AttentionData::bytes_of(const std::string& name) const {
    return (name == "q" ? q_ : name == "kv" ? kv_ : name == "kv_norm" ? norm_ : wkv_b_).bytes();
}

void AttentionData::read(const std::string& name, uint64_t offset, std::span<std::byte> to) const {
    std::ranges::copy(bytes_of(name).subspan(offset, to.size()), to.begin());
}

AttentionData::Sequence AttentionData::prepare(size_t index) const {
    const int64_t tokens = lengths_[index];
    Sequence s{index, tokens, std::vector<double>(static_cast<size_t>(kLatent * tokens)),
               std::vector<double>(static_cast<size_t>(kRope * tokens))};
    for (int64_t t = 0; t < tokens; ++t) {
        const float* row = kv_.floats() + row_of(index, static_cast<int32_t>(t)) * kCached;
        double squares = 0;
        for (int64_t i = 0; i < kLatent; ++i) squares += double{row[i]} * row[i];
        const double factor = 1 / std::sqrt(squares / kLatent + kEpsilon);
        for (int64_t i = 0; i < kLatent; ++i)
            s.latent[static_cast<size_t>(i * tokens + t)] = row[i] * factor * norm_.floats()[i];
        rotate(row + kLatent, static_cast<int32_t>(t), &s.rotary[static_cast<size_t>(t)], tokens);
    }
    return s;
}

void AttentionData::attend(const Sequence& s, int64_t head) {
    constexpr int64_t kRows = 32;  // that share a pass over keys and values
    const auto count = [&](int64_t n) { return static_cast<size_t>(n * s.tokens); };
    const float* w = &weight_[static_cast<size_t>(head * (kNope + kValue) * kLatent)];
    const std::vector<double> weight(w, w + (kNope + kValue) * kLatent);
    std::vector<double> keys(count(kKey)), columns(count(kValue)), values(count(kValue));
    multiply(weight.data(), s.latent.data(), s.tokens, keys.data(), s.tokens, kNope, s.tokens, kLatent);
    std::ranges::copy(s.rotary, keys.begin() + static_cast<ptrdiff_t>(count(kNope)));
    multiply(&weight[kNope * kLatent], s.latent.data(), s.tokens, columns.data(), s.tokens, kValue, s.tokens, kLatent);
    for (int64_t i = 0; i < kValue; ++i) {
        for (int64_t t = 0; t < s.tokens; ++t)
            values[static_cast<size_t>(t * kValue + i)] = columns[count(i) + static_cast<size_t>(t)];
    }

    std::vector<double> q(kRows * kKey), scores(count(kRows)), out(kRows * kValue);
    for (int64_t first = 0; first < s.tokens; first += kRows) {
        const int64_t rows = std::min(kRows, s.tokens - first), seen = first + rows;
        for (int64_t r = 0; r < rows; ++r) {
            const auto token = static_cast<int32_t>(first + r);
            const float* from = q_.floats() + (row_of(s.index, token) * heads_ + head) * kKey;
            std::copy_n(from, kNope, &q[static_cast<size_t>(r * kKey)]);
            rotate(from + kNope, token, &q[static_cast<size_t>(r * kKey + kNope)], 1);
        }
        multiply(q.data(), keys.data(), s.tokens, scores.data(), seen, rows, seen, kKey);
        for (int64_t r = 0; r < rows; ++r) {
            double* row = &scores[static_cast<size_t>(r * seen)];
            const int64_t own = first + r + 1;
            const double largest = *std::max_element(row, row + own);
            double sum = 0;
            for (int64_t t = 0; t < own; ++t) sum += row[t] = std::exp(kScale * (row[t] - largest));
            for (int64_t t = 0; t < own; ++t) row[t] /= sum;
            std::fill(row + own, row + seen, 0.0);
        }
        multiply(scores.data(), values.data(), kValue, out.data(), kValue, rows, kValue, seen);
        for (int64_t r = 0; r < rows; ++r) {
            float* to = &expected_[static_cast<size_t>(
                (row_of(s.index, static_cast<int32_t>(first + r)) * heads_ + head) * kValue)];
            for (int64_t i = 0; i < kValue; ++i) to[i] = static_cast<float>(out[static_cast<size_t>(r * kValue + i)]);
        }
    }
}

}  // namespace tessera::test
