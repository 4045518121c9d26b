// The logits of a small model of the architecture "llama" with all the biases that it may have, computed in f64 as
// plainly as can be: for files whose tensors are f32 or f16, without scaling of positions.
#pragma once

#include "tests/model/edited_model.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace tessera::test {

class PlainLlama {
  public:
    struct Sizes {
        size_t layers, heads, kv_heads, head, feed_forward;
        double epsilon, base;
    };

    PlainLlama(const EditedModel& model, const Sizes& sizes) : model_(model), s_(sizes) {}

    // [tokens * vocabulary], one row a token.
    std::vector<double> logits(std::span<const int32_t> tokens) const {
        const Matrix embeddings = read("token_embd.weight");
        Rows x;
        for (const int32_t token : tokens) x.push_back(row(embeddings, static_cast<size_t>(token)));
        for (size_t layer = 0; layer < s_.layers; ++layer) {
            const std::string block = "blk." + std::to_string(layer) + ".";
            add(x, linear(attention(normed(x, block + "attn_norm"), block), block + "attn_output"));
            const Rows h = normed(x, block + "ffn_norm");
            Rows gate = linear(h, block + "ffn_gate");
            const Rows up = linear(h, block + "ffn_up");
            for (size_t t = 0; t < gate.size(); ++t) {
                for (size_t i = 0; i < gate[t].size(); ++i) gate[t][i] *= up[t][i] / (1 + std::exp(-gate[t][i]));
            }
            add(x, linear(gate, block + "ffn_down"));
        }
        std::vector<double> all;
        for (const auto& one : linear(normed(x, "output_norm"), "output"))
            all.insert(all.end(), one.begin(), one.end());
        return all;
    }

  private:
    using Rows = std::vector<std::vector<double>>;
    struct Matrix {
        std::vector<double> values;
        size_t columns;
    };

    Matrix read(const std::string& name) const {
        const auto at = std::ranges::find(model_.tensors, name, &EditedModel::Tensor::name);
        if (at == model_.tensors.end()) return {};
        const bool half = at->type == TSR_TYPE_F16;
        Matrix matrix{std::vector<double>(at->bytes.size() / (half ? 2 : 4)), at->dims[0]};
        for (size_t i = 0; i < matrix.values.size(); ++i) {
            _Float16 small;
            float single;
            if (half) {
                std::memcpy(&small, at->bytes.data() + 2 * i, 2);
            } else {
                std::memcpy(&single, at->bytes.data() + 4 * i, 4);
            }
            matrix.values[i] = half ? static_cast<double>(small) : single;
        }
        return matrix;
    }
    static std::vector<double> row(const Matrix& matrix, size_t index) {
        const auto begin = matrix.values.begin() + static_cast<ptrdiff_t>(index * matrix.columns);
        return {begin, begin + static_cast<ptrdiff_t>(matrix.columns)};
    }
    static void add(Rows& to, const Rows& rows) {
        for (size_t t = 0; t < to.size(); ++t) {
            for (size_t i = 0; i < to[t].size(); ++i) to[t][i] += rows[t][i];
        }
    }

    Rows normed(const Rows& x, const std::string& name) const {
        const Matrix weight = read(name + ".weight");
        Rows out = x;
        for (auto& one : out) {
            double squares = 0;
            for (const double value : one) squares += value * value;
            const double scale = 1 / std::sqrt(squares / static_cast<double>(one.size()) + s_.epsilon);
            for (size_t i = 0; i < one.size(); ++i) one[i] *= scale * weight.values[i];
        }
        return out;
    }

    Rows linear(const Rows& x, const std::string& name) const {
        const Matrix weight = read(name + ".weight"), bias = read(name + ".bias");
        Rows out;
        for (const auto& one : x) {
            std::vector<double> sums(weight.values.size() / weight.columns);
            for (size_t n = 0; n < sums.size(); ++n) {
                for (size_t k = 0; k < weight.columns; ++k) sums[n] += weight.values[n * weight.columns + k] * one[k];
                if (!bias.values.empty()) sums[n] += bias.values[n];
            }
            out.push_back(std::move(sums));
        }
        return out;
    }

    // Pairs (2i, 2i + 1) of each head.
    void rotate(Rows& x, size_t heads) const {
        for (size_t t = 0; t < x.size(); ++t) {
            for (size_t i = 0; i < heads * s_.head; i += 2) {
                const double exponent = -static_cast<double>(i % s_.head) / static_cast<double>(s_.head);
                const double angle = static_cast<double>(t) * std::pow(s_.base, exponent);
                const double a = x[t][i], b = x[t][i + 1];
                x[t][i] = a * std::cos(angle) - b * std::sin(angle);
                x[t][i + 1] = a * std::sin(angle) + b * std::cos(angle);
            }
        }
    }

    Rows attention(const Rows& x, const std::string& block) const {
        Rows q = linear(x, block + "attn_q"), k = linear(x, block + "attn_k");
        const Rows v = linear(x, block + "attn_v");
        rotate(q, s_.heads);
        rotate(k, s_.kv_heads);
        Rows out(x.size(), std::vector<double>(s_.heads * s_.head, 0));
        for (size_t t = 0; t < x.size(); ++t) {
            for (size_t head = 0; head < s_.heads; ++head) {
                const size_t from = head * s_.head, kv = head / (s_.heads / s_.kv_heads) * s_.head;
                std::vector<double> weights(t + 1, 0);
                double sum = 0;
                for (size_t u = 0; u <= t; ++u) {
                    for (size_t i = 0; i < s_.head; ++i) weights[u] += q[t][from + i] * k[u][kv + i];
                    sum += weights[u] = std::exp(weights[u] / std::sqrt(static_cast<double>(s_.head)));
                }
                for (size_t u = 0; u <= t; ++u) {
                    for (size_t i = 0; i < s_.head; ++i) out[t][from + i] += weights[u] / sum * v[u][kv + i];
                }
            }
        }
        return out;
    }

    const EditedModel& model_;
    const Sizes s_;
};

}  // namespace tessera::test
