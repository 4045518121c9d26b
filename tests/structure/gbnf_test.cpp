// Grammars as llama.cpp writes them: the texts that they have, and no others.
#include "apps/structure/answer_grammar.hpp"
#include "apps/structure/ecma_pattern.hpp"
#include "apps/structure/gbnf_parser.hpp"
#include "apps/structure/gbnf_terminals.hpp"
#include "tests/structure/held_text.hpp"

#include <gmock/gmock.h>

namespace tessera::structure {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class GbnfTest : public StructureTest {
  protected:
    std::string held_to(std::string_view grammar, std::string_view text) {
        try {
            return held(answer_grammar(gbnf_body(grammar, *tokenizer_)), text);
        } catch (const Error& error) {
            return error.what();
        }
    }
};

// A recursive grammar has its texts, whatever of them a terminal could match.
TEST_F(GbnfTest, TextsOfAGrammar) {
    constexpr std::string_view json =
        "root ::= object # all of it\n"
        "value ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
        "object ::=\n  \"{\" ws ( string \":\" ws value\n    (\",\" ws string \":\" ws value)*\n  )? \"}\" ws\n"
        "array ::= \"[\" ws ( value (\",\" ws value)* )? \"]\" ws\n"
        "string ::= \"\\\"\" ( [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}) )* \"\\\"\" "
        "ws\n"
        "number ::= (\"-\"? ([0-9] | [1-9] [0-9]{0,15})) (\".\" [0-9]+)? ws\n"
        "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";
    EXPECT_EQ(held_to(json, "{\"a\": [1, -2.5, {\"b\": \"c\\n\"}], \"d\": true }"), "ok");
    EXPECT_THAT(held_to(json, "[1]"), StartsWith("refused"));
    EXPECT_THAT(held_to(json, "{\"a\": 01}"), StartsWith("refused"));
    // What a terminal of many characters would take from the one that follows.
    EXPECT_EQ(held_to("root ::= \"a\"+ \"ab\"", "aaab"), "ok");
    EXPECT_EQ(held_to("root ::= x\nx ::= \"(\" x \")\" | \"a\"+ \"ab\"", "((aaab))"), "ok");
    EXPECT_EQ(held_to("root ::= x\nx ::= \"(\" x \")\" | \"a\" \"b\" | \"ab\" \"c\"", "(ab)"), "ok");
    EXPECT_EQ(held_to("root ::= [^a-y] . \"\\u00e9\\x41\"{2,3}", "z\n\u00e9A\u00e9A"), "ok");
    EXPECT_EQ(held_to("root ::= \"a\"{2,}", "a"), "not over");
    EXPECT_EQ(held_to("root ::= \"a\" |\n  \"b\"", "b"), "ok");
}

TEST_F(GbnfTest, WhatIsWrongIsNamedWithItsLine) {
    EXPECT_THAT(held_to("root ::= x\n", ""), HasSubstr("'x' is used and not defined"));
    EXPECT_THAT(held_to("a ::= \"x\"\n", ""), HasSubstr("no rule 'root'"));
    EXPECT_THAT(held_to("root ::= \"x\"\n\nroot ::= \"y\"", ""),
                HasSubstr("line 3 of the grammar: the rule 'root' is defined twice"));
    EXPECT_THAT(held_to("root ::= \"x", ""), HasSubstr("ends too early"));
    EXPECT_THAT(held_to("root ::= \"\\q\"", ""), HasSubstr("\\q"));
    EXPECT_THAT(held_to("root ::= [b-a]", ""), HasSubstr("backwards"));
    EXPECT_THAT(held_to("root ::= \"a\"{3,2}", ""), HasSubstr("repetitions"));
    EXPECT_THAT(held_to("root ::= \"a\"{999999999999}", ""), HasSubstr("repetitions"));
    EXPECT_THAT(held_to("root ::= <no-such-token>", ""), HasSubstr("no such token"));
    EXPECT_THAT(held_to("root ::= !<[3]>", ""), HasSubstr("not offered"));
    EXPECT_THAT(held_to("root ::= (\"a\"", ""), HasSubstr("expected )"));
    EXPECT_THAT(held_to("root ::= \xff", ""), HasSubstr("UTF-8"));
    EXPECT_THAT(held_to("root ::= " + std::string(65, '('), ""), HasSubstr("nested deeper than 64"));
}

// What has no bound in a grammar has none in the work and the stack that it takes.
TEST_F(GbnfTest, LongGrammars) {
    EXPECT_THAT(held_to("root ::= \"a\"" + std::string(200'000, '?'), ""), HasSubstr("more than 64 repetitions"));
    EXPECT_EQ(held_to("root ::= \"a\"" + std::string(10, '?'), "a"), "ok");
    std::string chain = "root ::= r0\n";
    constexpr int kRules = 10'000;
    for (int i = 0; i < kRules; ++i) chain += fmt::format("r{} ::= r{}\n", i, i + 1);
    chain += fmt::format("r{} ::= \"a\"", kRules);
    const Gbnf parsed = parse_gbnf(chain);
    EXPECT_THAT(terminal_rules(parsed), testing::Each(true));
}

TEST(EcmaPattern, MeansTheSameOrIsRefused) {
    EXPECT_EQ(translate_pattern("^(?<year>[0-9]{4})-a?$"), "^(?:[\\x{30}-\\x{39}]{4})-a?$");
    EXPECT_EQ(translate_pattern("(?P<year>a)"), "(?:a)");
    EXPECT_EQ(translate_pattern("[a[&&]"), "[\\x{61}\\x{5b}\\x{26}\\x{26}]");
    EXPECT_EQ(translate_pattern("\\u{1F600}\\ud83d\\ude00\\/"), "\\x{1f600}\\x{1f600}\\x{2f}");
    EXPECT_EQ(translate_pattern("[^]"), "(?s:.)");
    for (const char* pattern : {"(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(a)\\1", "a\\b", "(?i)a", "a**", "*a", "[b-a]",
                                "[]", "a{", "a]", "\\q", "\\ud800", "[a", "(?<n", "\\"})
        EXPECT_THROW(translate_pattern(pattern), Error) << pattern;
}

}  // namespace
}  // namespace tessera::structure
