// Texts held against compiled grammars, token by token.
#pragma once

#include "apps/structure/helper.hpp"
#include "core/gguf/reader.hpp"
#include "core/setup/prompts.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace tessera::structure {

// The bundled model's vocabulary and a helper; tests are skipped where llguidance is not installed.
class StructureTest : public testing::Test {
  protected:
    void SetUp() override {
        if (const std::string missing = helper_.missing(); !missing.empty()) GTEST_SKIP() << missing;
    }

    // What has become of a text: "ok", "refused at N", "not over", or an error.
    std::string held(const Grammar& grammar, std::string_view text) {
        try {
            const auto constraint = grammar.begin();
            size_t at = 0;
            for (const text::Token token : tokenizer_->encode(text, {.add_special = false})) {
                if (!wait(*constraint)) return "no mask";
                if (!allows(*constraint, token)) return "refused at " + std::to_string(at);
                constraint->accept(std::span(&token, 1));
                at += tokenizer_->bytes(token).size();
            }
            if (!wait(*constraint)) return "no mask";
            return allows(*constraint, tokenizer_->generation_ends().front()) ? "ok" : "not over";
        } catch (const Error& error) {
            return error.what();
        }
    }
    std::string held(const GrammarText& grammar, std::string_view text) {
        try {
            return held(*helper_.compile(grammar), text);
        } catch (const Error& error) {
            return error.what();
        }
    }

    static bool wait(session::TokenConstraint& constraint) {
        return constraint.wait(std::chrono::steady_clock::now() + std::chrono::seconds(20));
    }
    static bool allows(session::TokenConstraint& constraint, text::Token token) {
        const auto number = static_cast<size_t>(token);
        const session::TokenMask mask = constraint.allowed();
        return number / 32 < mask.size() && (mask[number / 32] >> number % 32 & 1) != 0;
    }

    const gguf::GgufFile file_ = gguf::GgufFile::open(TSR_TEST_MODEL);
    const std::unique_ptr<text::Tokenizer> tokenizer_ = make_tokenizer(file_);
    Helper helper_{*tokenizer_};
};

}  // namespace tessera::structure
