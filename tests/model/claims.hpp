// What tests of changed model files share: whether one is refused, what is said about it, and what it computes.
#pragma once

#include "core/base/error.hpp"
#include "tests/model/edited_model.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::test {

namespace fs = std::filesystem;

struct Machine {
    Machine()
        : hardware(Hardware::detect()),
          registry(Registry::load(plugins_without({"cpu_avx2", "cpu_avx512"}), hardware)) {}
    Hardware hardware;
    Registry registry;
};

inline const Machine& machine() {
    static const Machine one;
    return one;
}

inline constexpr Token kTokens[] = {0, 17, 200, 45, 91, 3, 120, 7, 66, 251, 14, 33};

struct Outcome {
    std::string error;  // that refused it
    std::vector<Advice> advice;
    std::vector<std::string> notes;

    bool names(std::string_view what) const {
        return std::ranges::any_of(notes,
                                   [&](const std::string& note) { return note.find(what) != std::string::npos; });
    }
};

class Claims : public testing::Test {
  protected:
    fs::path write(const EditedModel& model) const { return model.write(folder_.path() / "model.gguf"); }

    Outcome outcome(const EditedModel& model, bool allow = false) const {
        Outcome outcome;
        GraphLimits limits;
        limits.allow_unused = allow;
        try {
            outcome.notes = build_model(gguf::GgufFile::open(write(model)), machine().registry, limits).notes;
        } catch (const Error& error) {
            outcome.error = error.what();
            outcome.advice = error.notice().advice;
        }
        return outcome;
    }

    // Of at most 16 tokens, on the plugin "reference".
    std::vector<float> logits(const EditedModel& model, bool allow = false,
                              std::span<const Token> tokens = kTokens) const {
        EngineOptions options;
        options.context = 64;
        options.rows = options.output_rows = 16;
        options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
        options.allow_unused = allow;
        Engine engine(gguf::GgufFile::open(write(model)), machine().registry, machine().hardware, options);
        const BatchEntry entry{engine.cache().create(), tokens, true, true};
        std::vector<float> all;
        for (const auto row : engine.step({&entry, 1})) all.insert(all.end(), row.begin(), row.end());
        return all;
    }

    void expect_same(const std::vector<float>& a, const std::vector<float>& b, double tolerance = 1e-5) const {
        ASSERT_EQ(a.size(), b.size());
        double largest = 0, worst = 0;
        for (size_t i = 0; i < a.size(); ++i) {
            largest = std::max(largest, std::abs(double{b[i]}));
            worst = std::max(worst, std::abs(double{a[i]} - b[i]));
        }
        EXPECT_LE(worst, tolerance * largest);
    }

    // The model refuses, says `name` (of a layer's tensor its part of that: "exp_probs_b.bias"), or computes the same
    // as before.
    void expect_honest(const EditedModel& model, const std::string& name, const std::vector<float>& before) const {
        const Outcome result = outcome(model);
        const size_t part = name.starts_with("blk.") ? name.find('.', 4) + 1 : 0;
        if (!result.error.empty() || result.names(name.substr(part))) return;
        expect_same(logits(model), before);
    }

  private:
    TemporaryFolder folder_;
};

}  // namespace tessera::test
