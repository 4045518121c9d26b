#include "testing/conformance/suite.hpp"

#include "testing/conformance/shapes.hpp"

#include <gmock/gmock.h>

#include <stdexcept>

namespace tessera::conformance {
namespace {

using testing::HasSubstr;

Outcome outcome(Outcome::Kind kind, const char* name, const char* text = "") {
    return {kind, "kernel a.b", name, text, 0.5};
}

TEST(ExpectedFailures, AreMatchedByPatterns) {
    const ExpectedFailures expected("# known\n\nplug kernel a.b/n=1*  # a comment\r\nplug kernel *q4_0*z\n");
    EXPECT_TRUE(expected.contains("plug", outcome(Outcome::kFailed, "n=1 rows=4")));
    EXPECT_TRUE(expected.contains("plug", outcome(Outcome::kFailed, "xq4_0 and z")));
    EXPECT_FALSE(expected.contains("plug", outcome(Outcome::kFailed, "xq4_0 and zz y")));
    EXPECT_FALSE(expected.contains("plug", outcome(Outcome::kFailed, "n=2")));
    EXPECT_FALSE(expected.contains("other", outcome(Outcome::kFailed, "n=1")));
}

TEST(ExpectedFailures, TurnFailuresAroundAndPassesToo) {
    std::vector<Outcome> outcomes = {outcome(Outcome::kFailed, "n=1"), outcome(Outcome::kPassed, "n=12"),
                                     outcome(Outcome::kFailed, "n=2"), outcome(Outcome::kSkipped, "n=13")};
    apply(ExpectedFailures("plug kernel a.b/n=1*"), "plug", outcomes);
    EXPECT_EQ(outcomes[0].kind, Outcome::kExpectedFailure);
    EXPECT_EQ(outcomes[1].kind, Outcome::kFailed);
    EXPECT_THAT(outcomes[1].text, HasSubstr("take it off the list"));
    EXPECT_EQ(outcomes[2].kind, Outcome::kFailed);
    EXPECT_EQ(outcomes[3].kind, Outcome::kSkipped);
}

TEST(Shape, IsReadAndWritten) {
    for (const char* text :
         {"matmul:q4_0:2048x512", "matmul_group:q4_K,q6_K:256x16x24", "moe_ffn:q4_K,q4_K,q6_K:512x256x8",
          "matmul_group:f16:4096x4096x1024x1024", "gated_ffn:f16:40x24", "get_rows:q8_0:64x1000", "rms_norm:f32:7"})
        EXPECT_EQ(parse_shape(text).text(), text);
    EXPECT_EQ(parse_shape("gated_ffn:f16,f16,f16:40x24").text(), "gated_ffn:f16:40x24");
}

TEST(Shape, IsRefusedWithItsReason) {
    const auto why = [](const std::string& text) -> std::string {
        try {
            return parse_shape(text).text();
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
    };
    for (const char* text : {"", "matmul", "matmul:q4_0", "conv:q4_0:1x2", "matmul:q4_0:64", "matmul_group:f32:64"})
        EXPECT_THAT(why(text), HasSubstr("expected one of matmul:TYPE:KxN"));
    EXPECT_THAT(why("matmul:q4_9:64x2"), HasSubstr("no type of weights is called 'q4_9'"));
    EXPECT_THAT(why("matmul:q4_0:64x0"), HasSubstr("'0' is no size"));
    EXPECT_THAT(why("matmul:q4_0:64x2y"), HasSubstr("'2y' is no size"));
    EXPECT_THAT(why("matmul:q4_0:65x2"), HasSubstr("rows of 65 elements are not whole blocks of q4_0 (32)"));
    EXPECT_THAT(why("moe_ffn:q4_K:256x128x4"), HasSubstr("rows of 128 elements are not whole blocks of q4_K (256)"));
    EXPECT_THAT(why("moe_ffn:q4_K,q4_K:256x256x4"), HasSubstr("expected 1 or 3 types, found 2"));
    EXPECT_THAT(why("matmul:f32:2147483648x2147483648"), HasSubstr("more than 2^31 elements"));
    EXPECT_THAT(why("matmul_group:f32:65536x16384x16385"), HasSubstr("more than 2^31 elements"));
    EXPECT_THAT(why("matmul_group:f32:2147483648x2147483648x2147483648"), HasSubstr("more than 2^31 elements"));
    EXPECT_THAT(why("add:q8_0:64"), HasSubstr("activations of f32 only"));
}

TEST(Shape, MakesCasesOfItsOpOnly) {
    const std::vector<Shape> shapes = {parse_shape("matmul:q4_0:64x5"), parse_shape("moe_ffn:f32:8x4x1"),
                                       parse_shape("matmul:f32:8192x8192")};
    std::vector<std::string> names;
    for_each_shape_case("moe_ffn", shapes, [&](Case& c) {
        names.push_back(c.name);
        EXPECT_EQ(c.operands(), 7u);
    });
    EXPECT_THAT(names, testing::ElementsAre("moe_ffn:f32:8x4x1 rows=1", "moe_ffn:f32:8x4x1 rows=6",
                                            "moe_ffn:f32:8x4x1 rows=33"));
}

TEST(Shape, OfAGroupIsAsLargeAsItsWeightsTogether) {
    const std::vector<Shape> shapes = {parse_shape("matmul_group:q4_0:1024x1024x256x256")};
    std::vector<std::string> names;
    for_each_shape_case("matmul_group", shapes, [&](Case& c) { names.push_back(c.name); });
    EXPECT_EQ(names.size(), 3u) << "the case of many rows is for all but the largest";
}

TEST(Junit, SaysWhatCameOfEachCase) {
    const std::string xml =
        junit_xml({{"plug",
                    {outcome(Outcome::kPassed, "one"), outcome(Outcome::kFailed, "two", "a < b & \"c\"\n"),
                     outcome(Outcome::kExpectedFailure, "three", "known")}}});
    EXPECT_THAT(xml, HasSubstr("<testsuite name=\"plug\" tests=\"3\" failures=\"1\" skipped=\"1\">"));
    EXPECT_THAT(xml, HasSubstr("<testcase classname=\"plug.kernel a.b\" name=\"one\" time=\"0.500\"/>"));
    EXPECT_THAT(xml, HasSubstr("<failure message=\"a &lt; b &amp; &quot;c&quot; \"/>"));
    EXPECT_THAT(xml, HasSubstr("<skipped message=\"expected failure: known\"/>"));
}

}  // namespace
}  // namespace tessera::conformance
