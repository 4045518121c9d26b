// Logits that a public implementation computed (README.md), and those of an engine beside them.
#pragma once

#include "core/gguf/reader.hpp"
#include "tests/support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tessera::test {

template <typename T>
std::vector<T> values_of(const gguf::GgufFile& file, const char* name) {
    const gguf::TensorEntry& tensor = file.tensor(name);
    std::vector<T> result(tensor.bytes / sizeof(T));
    file.read(tensor, 0, std::as_writable_bytes(std::span(result)));
    return result;
}

// A recorded run: its tokens, and logits at some positions.
struct Golden {
    explicit Golden(const std::filesystem::path& path)
        : file(gguf::GgufFile::open(path)),
          model(std::filesystem::path(TSR_GOLDENS) / std::string(file.metadata().get_string("golden.model"))),
          tokens(values_of<int32_t>(file, "tokens")),
          positions(values_of<int32_t>(file, "positions")),
          logits(values_of<float>(file, "logits")),
          top1(values_of<int32_t>(file, "top1")),
          margin(values_of<float>(file, "margin")),
          router_margin(file.find_tensor("router_margin") ? values_of<float>(file, "router_margin")
                                                          : std::vector<float>(tokens.size(), 1.0f)) {
        for (const float value : logits) largest = std::max(largest, std::abs(value));
    }

    gguf::GgufFile file;
    std::filesystem::path model;
    std::vector<int32_t> tokens, positions;
    std::vector<float> logits;  // of each of `positions`
    // Of each token: the likeliest token after it, by how much its logit is the largest, and by how much the experts
    // that were chosen are ahead of those that were not.
    std::vector<int32_t> top1;
    std::vector<float> margin, router_margin;
    float largest = 0;  // of the sizes of `logits`
};

inline bool has_latent_attention(const std::filesystem::path& model) {
    return read_model_info(gguf::GgufFile::open(model), Registry::of_tables({})).latent_attention;
}

// Of every token, fed in steps of uneven length (prompt and generation rows both).
inline std::vector<std::vector<float>> logits_of(Engine& engine, const std::vector<int32_t>& tokens) {
    std::vector<std::vector<float>> logits;
    const SequenceId sequence = engine.cache().create();
    const size_t singles = std::min<size_t>(tokens.size() / 4, 24);
    for (size_t at = 0; at < tokens.size();) {
        const size_t left = tokens.size() - at;
        const size_t count =
            left <= singles ? 1 : std::min<size_t>({left - singles, engine.max_rows(), at == 0 ? 7u : ~0u});
        const BatchEntry entry{sequence, std::span(tokens).subspan(at, count), true, true};
        for (const auto row : engine.step({&entry, 1})) logits.emplace_back(row.begin(), row.end());
        at += count;
    }
    return logits;
}

// Fails the test where logits, a row for each token of the record, are further from it than `tolerance` of its largest.
inline void expect_recorded(const Golden& golden, const std::vector<std::vector<float>>& logits, double tolerance) {
    ASSERT_EQ(logits.size(), golden.tokens.size());
    const size_t vocabulary = logits.front().size();
    double worst = 0;
    size_t worst_at = 0;
    for (size_t i = 0; i < golden.positions.size(); ++i) {
        const auto position = static_cast<size_t>(golden.positions[i]);
        if (golden.router_margin[position] < 1e-3f) continue;
        for (size_t k = 0; k < vocabulary; ++k) {
            const double difference = std::abs(logits[position][k] - golden.logits[i * vocabulary + k]);
            ASSERT_FALSE(std::isnan(difference)) << "position " << position << ", token " << k;
            if (difference > worst) {
                worst = difference;
                worst_at = position;
            }
        }
    }
    size_t left_out = 0, compared = 0;
    for (size_t position = 0; position < golden.tokens.size(); ++position) {
        if (golden.router_margin[position] < 1e-3f) {
            ++left_out;
        } else if (golden.margin[position] > 2 * tolerance * golden.largest) {
            const auto best = std::ranges::max_element(logits[position]) - logits[position].begin();
            EXPECT_EQ(best, golden.top1[position]) << "position " << position;
            ++compared;
        }
    }
    testing::Test::RecordProperty("difference_of_largest_logit", std::to_string(worst / golden.largest));
    std::printf(
        "    largest difference %.2e of the largest logit (limit %.0e) at position %zu; top-1 equal at %zu of %zu\n",
        worst / golden.largest, tolerance, worst_at, compared, golden.tokens.size());
    EXPECT_LE(worst, tolerance * golden.largest) << "at position " << worst_at;
    EXPECT_LE(left_out * 20, golden.tokens.size());
    EXPECT_GE(compared * 2, golden.tokens.size());
}

}  // namespace tessera::test
