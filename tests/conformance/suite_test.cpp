#include "sdk/conformance/suite.hpp"

#include <gmock/gmock.h>

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
