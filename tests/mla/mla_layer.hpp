// One MLA layer for tests: its node, its weights in any of the layouts that files have, and the attention of it in
// double from first principles.
#pragma once

#include "recording_builder.hpp"

#include <complex>

namespace tessera::test {

struct MlaSizes {
    int64_t heads = 4, nope = 32, rope = 16, v = 32, latent = 64;
};

enum class Files { kWhole, kSplit, kBoth };  // wkv_b; wk_b and wv_b in 3-D; all three in 2-D

class MlaLayer {
  public:
    static constexpr int64_t kRows = 24, kPagesOfOne = 3, kSequences = 3, kPages = 11;
    static constexpr double kScale = 0.2, kEpsilon = 1e-5, kBase = 1000;

    MlaLayer(MlaSizes sizes, Files files, tsr_type type, bool q_in_heads, uint32_t seed = 1) : s(sizes), rng(seed) {
        const int64_t n = s.heads * (s.nope + s.v);
        q = q_in_heads ? make_tensor(TSR_TYPE_F32, {s.nope + s.rope, s.heads, kRows}, TSR_RANGE_ROWS)
                       : make_tensor(TSR_TYPE_F32, {(s.nope + s.rope) * s.heads, kRows}, TSR_RANGE_ROWS);
        kv = make_tensor(TSR_TYPE_F32, {s.latent + s.rope, kRows}, TSR_RANGE_ROWS);
        norm = random_floats(rng, {s.latent});
        for (int64_t i = 0; i < s.latent; ++i) norm.at(i) += 1.5f;
        positions = make_tensor(TSR_TYPE_I32, {kRows}, TSR_RANGE_ROWS);
        sequences = make_tensor(TSR_TYPE_I32, {kRows}, TSR_RANGE_ROWS);
        table = integers({kPagesOfOne, kSequences}, {7, 3, 10, 2, 0, 9, 5, 8, 1});

        if (files == Files::kSplit) {
            wk_b = random_weight(rng, type, {s.nope, s.latent, s.heads}, 0.3f);
            wv_b = random_weight(rng, type, {s.latent, s.v, s.heads}, 0.3f);
            const Tensor k = decoded(wk_b), v = decoded(wv_b);
            for (int64_t h = 0; h < s.heads; ++h) {
                for (int64_t j = 0; j < s.nope; ++j) {
                    for (int64_t c = 0; c < s.latent; ++c) key_weight.push_back(k.at(j, c, h));
                }
                for (int64_t j = 0; j < s.v; ++j) {
                    for (int64_t c = 0; c < s.latent; ++c) value_weight.push_back(v.at(c, j, h));
                }
            }
        } else {
            wkv_b = random_weight(rng, type, {s.latent, n}, 0.3f);
            const Tensor w = decoded(wkv_b);
            for (int64_t h = 0; h < s.heads; ++h) {
                for (int64_t j = 0; j < s.nope + s.v; ++j) {
                    for (int64_t c = 0; c < s.latent; ++c) {
                        (j < s.nope ? key_weight : value_weight).push_back(w.at(c, h * (s.nope + s.v) + j));
                    }
                }
            }
        }
        if (files == Files::kBoth) {
            wk_b = make_tensor(TSR_TYPE_F32, {s.nope, s.latent * s.heads});
            wv_b = make_tensor(TSR_TYPE_F32, {s.latent, s.v * s.heads});
            for (int64_t h = 0; h < s.heads; ++h) {
                for (int64_t c = 0; c < s.latent; ++c) {
                    for (int64_t j = 0; j < s.nope; ++j)
                        wk_b.at(j, h * s.latent + c) = static_cast<float>(key(h, j, c));
                    for (int64_t j = 0; j < s.v; ++j) wv_b.at(c, h * s.v + j) = static_cast<float>(value(h, j, c));
                }
            }
        }
        attributes = {sdk::attribute("heads", s.heads),      sdk::attribute("nope", s.nope),
                      sdk::attribute("rope", s.rope),        sdk::attribute("v", s.v),
                      sdk::attribute("kv_lora", s.latent),   sdk::attribute("epsilon", kEpsilon),
                      sdk::attribute("scale", kScale),       sdk::attribute("rope_base", kBase),
                      sdk::attribute("rope_freq_scale", 0.5)};
        options.struct_size = sizeof options;
        options.flash_attention = 1;
        options.max_rows = kRows;
        options.max_sequences = kSequences;
        options.max_tokens = kPagesOfOne * TSR_PAGE_TOKENS;
    }

    std::vector<Tensor> inputs() const { return {q, kv, norm, wkv_b, wk_b, wv_b, positions, sequences, table}; }

    std::unique_ptr<TestNode> node() const {
        return std::make_unique<TestNode>("mla_attention", inputs(), std::vector<Tensor>{}, attributes);
    }

    // Caches of a lowering's family, all in one type.
    std::vector<Tensor> caches(const tsr_lowering& lowering, tsr_type type) const {
        tsr_cache_component components[2] = {};
        tsr_cache_component* pointers[] = {&components[0], &components[1]};
        uint32_t count = 2;
        sdk::check(lowering.components(&lowering, &node()->node, pointers, &count));
        std::vector<Tensor> out;
        for (uint32_t i = 0; i < count; ++i) {
            out.push_back(make_tensor(type, {components[i].elements, TSR_PAGE_TOKENS, kPages}));
            out.back().desc.role = TSR_ROLE_CACHE;
        }
        return out;
    }

    // Fills the rows of one step with fresh values: a sequence, its first new position, and how many rows.
    struct Slice {
        int32_t sequence, first, rows;
    };
    int32_t fill(const std::vector<Slice>& slices) {
        const auto poison = [](Tensor& t) {
            std::fill(t.bytes->begin(), t.bytes->end(), static_cast<unsigned char>(0xFF));
        };
        for (Tensor* t : {&q, &kv, &positions, &sequences}) poison(*t);
        std::uniform_real_distribution<float> draw(-1, 1);
        const int64_t q_row = (s.nope + s.rope) * s.heads, kv_row = s.latent + s.rope;
        int32_t row = 0;
        for (const Slice& slice : slices) {
            for (int32_t i = 0; i < slice.rows; ++i, ++row) {
                positions.integers()[row] = slice.first + i;
                sequences.integers()[row] = slice.sequence;
                for (int64_t j = 0; j < q_row; ++j) q.floats()[row * q_row + j] = draw(rng);
                for (int64_t j = 0; j < kv_row; ++j) kv.floats()[row * kv_row + j] = draw(rng);
            }
        }
        return row;
    }

    // What the layer gives for the rows that fill has made, and what it remembers of them. Before anything is run: rope
    // works in place.
    std::vector<double> expected(int32_t rows) {
        std::vector<double> out;
        for (int32_t r = 0; r < rows; ++r) remember(r);
        for (int32_t r = 0; r < rows; ++r) {
            for (int64_t h = 0; h < s.heads; ++h) attend(r, h, out);
        }
        return out;
    }

    MlaSizes s;
    std::mt19937 rng;
    Tensor q, kv, norm, wkv_b, wk_b, wv_b, positions, sequences, table;
    std::vector<tsr_attribute> attributes;
    tsr_lowering_options options{};

  private:
    double key(int64_t h, int64_t j, int64_t c) const {
        return key_weight[static_cast<size_t>((h * s.nope + j) * s.latent + c)];
    }
    double value(int64_t h, int64_t j, int64_t c) const {
        return value_weight[static_cast<size_t>((h * s.v + j) * s.latent + c)];
    }

    std::vector<double> rotated(const float* x, int32_t position) const {
        std::vector<double> out;
        for (int64_t i = 0; i < s.rope / 2; ++i) {
            const double angle =
                0.5 * position * std::pow(kBase, -2.0 * static_cast<double>(i) / static_cast<double>(s.rope));
            const std::complex<double> z = std::complex<double>(x[2 * i], x[2 * i + 1]) * std::polar(1.0, angle);
            out.push_back(z.real());
            out.push_back(z.imag());
        }
        return out;
    }

    // What a token is remembered by: keys and values of all heads, and the part that all heads share.
    struct Token {
        std::vector<double> keys, values, rope;
    };

    void remember(int32_t r) {
        const float* row = kv.floats() + r * (s.latent + s.rope);
        double squares = 0;
        for (int64_t i = 0; i < s.latent; ++i) squares += double{row[i]} * row[i];
        const double scale = 1 / std::sqrt(squares / static_cast<double>(s.latent) + kEpsilon);
        std::vector<double> latent;
        for (int64_t i = 0; i < s.latent; ++i) latent.push_back(row[i] * scale * norm.at(i));
        Token token;
        const auto project = [&](const std::vector<double>& weight, std::vector<double>& to) {
            for (size_t first = 0; first < weight.size(); first += latent.size()) {
                double sum = 0;
                for (size_t c = 0; c < latent.size(); ++c) sum += weight[first + c] * latent[c];
                to.push_back(sum);
            }
        };
        project(key_weight, token.keys);
        project(value_weight, token.values);
        token.rope = rotated(row + s.latent, positions.integers()[r]);
        memory[{sequences.integers()[r], positions.integers()[r]}] = token;
    }

    void attend(int32_t r, int64_t h, std::vector<double>& out) const {
        const float* x = q.floats() + r * (s.nope + s.rope) * s.heads + h * (s.nope + s.rope);
        const int32_t position = positions.integers()[r], sequence = sequences.integers()[r];
        const std::vector<double> x_rope = rotated(x + s.nope, position);
        std::vector<double> scores, mixed(static_cast<size_t>(s.v), 0.0);
        double sum = 0;
        for (int32_t t = 0; t <= position; ++t) {
            const Token& token = memory.at({sequence, t});
            double score = 0;
            for (int64_t j = 0; j < s.nope; ++j) score += token.keys[static_cast<size_t>(h * s.nope + j)] * x[j];
            for (size_t j = 0; j < x_rope.size(); ++j) score += x_rope[j] * token.rope[j];
            scores.push_back(std::exp(score * kScale));
            sum += scores.back();
        }
        for (int32_t t = 0; t <= position; ++t) {
            const Token& token = memory.at({sequence, t});
            for (size_t j = 0; j < mixed.size(); ++j) {
                mixed[j] += scores[static_cast<size_t>(t)] / sum * token.values[static_cast<size_t>(h * s.v) + j];
            }
        }
        out.insert(out.end(), mixed.begin(), mixed.end());
    }

    std::vector<double> key_weight, value_weight;
    std::map<std::pair<int32_t, int32_t>, Token> memory;
};

}  // namespace tessera::test
