#include "core/base/pattern.hpp"

#include "core/base/error.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tessera {
namespace {

tsr_code code_of(const std::string& expression, const std::string& subject) {
    try {
        Pattern(expression).found_in(subject);
    } catch (const Error& error) {
        return error.code();
    }
    return TSR_OK;
}

TEST(Pattern, MatchesAnyPartAsPeopleWriteItForTensors) {
    EXPECT_TRUE(Pattern("exps").found_in("blk.3.ffn_gate_exps.weight"));
    EXPECT_TRUE(Pattern("blk\\.(3|[4-9])\\.ffn_.*_exps").found_in("blk.7.ffn_up_exps.weight"));
    EXPECT_FALSE(Pattern("blk\\.(3|[4-9])\\.ffn_.*_exps").found_in("blk.17.ffn_up_exps.weight"));
    EXPECT_TRUE(Pattern("^blk\\.\\d+\\.attn_(?!norm)").found_in("blk.0.attn_q.weight"));
    EXPECT_FALSE(Pattern("^blk\\.\\d+\\.attn_(?!norm)").found_in("blk.0.attn_norm.weight"));
    EXPECT_TRUE(Pattern("^[[:alpha:]]+$").found_in("output"));
    EXPECT_TRUE(Pattern("\\u0062lk").found_in("blk.0"));
    EXPECT_TRUE(Pattern("a[^]c").found_in("a\nc"));
    EXPECT_FALSE(Pattern("a[]c").found_in("ac"));
    EXPECT_TRUE(Pattern(".").found_in("\xFF"));
}

TEST(Pattern, SaysWhatIsWrongWithAnExpression) {
    try {
        Pattern("blk\\.(0|1");
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
        EXPECT_NE(std::string(error.what()).find("missing closing parenthesis"), std::string::npos) << error.what();
    }
    EXPECT_EQ(code_of(std::string(2000, '(') + std::string(2000, ')'), "a"), TSR_INVALID_ARGUMENT);
    EXPECT_EQ(code_of(std::string(1 << 20, 'a'), "a"), TSR_INVALID_ARGUMENT);
    EXPECT_EQ(code_of("*a", "a"), TSR_INVALID_ARGUMENT);
}

TEST(Pattern, BoundsBacktracking) {
    // Without a bound each takes longer than a test may.
    EXPECT_EQ(code_of("(a+)+$", std::string(60, 'a') + "!"), TSR_UNSUPPORTED);
    EXPECT_EQ(code_of("((a|aa)*)*$", std::string(60, 'a') + "!"), TSR_UNSUPPORTED);
    EXPECT_EQ(code_of("(?:.|\\n)*?(?:.|\\n)*?(?:.|\\n)*?[!?]", std::string(1 << 16, 'a')), TSR_UNSUPPORTED);
    // A long subject alone is no reason to give up, and takes no stack.
    EXPECT_TRUE(Pattern("!").found_in(std::string(1 << 22, 'a') + "!"));
}

}  // namespace
}  // namespace tessera
