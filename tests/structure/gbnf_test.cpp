// Grammars as llama.cpp writes them: the texts that they have, and no others.
#include "apps/structure/gbnf.hpp"

#include "apps/structure/answer_grammar.hpp"
#include "apps/structure/ecma_pattern.hpp"
#include "apps/structure/gbnf_parser.hpp"
#include "apps/structure/gbnf_terminals.hpp"
#include "apps/structure/lark_parser.hpp"
#include "tests/structure/held_text.hpp"

#include <gmock/gmock.h>

#include <array>
#include <functional>
#include <random>

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

constexpr std::string_view kJson =
    "root ::= object # all of it\n"
    "value ::= object | array | string | number | (\"true\" | \"false\" | \"null\") ws\n"
    "object ::=\n  \"{\" ws ( string \":\" ws value\n    (\",\" ws string \":\" ws value)*\n  )? \"}\" ws\n"
    "array ::= \"[\" ws ( value (\",\" ws value)* )? \"]\" ws\n"
    "string ::= \"\\\"\" ( [^\"\\\\\\x7F\\x00-\\x1F] | \"\\\\\" ([\"\\\\bfnrt] | \"u\" [0-9a-fA-F]{4}) )* \"\\\"\" "
    "ws\n"
    "number ::= (\"-\"? ([0-9] | [1-9] [0-9]{0,15})) (\".\" [0-9]+)? ws\n"
    "ws ::= | \" \" | \"\\n\" [ \\t]{0,20}\n";

// A recursive grammar has its texts, whatever of them a terminal could match.
TEST_F(GbnfTest, TextsOfAGrammar) {
    EXPECT_EQ(held_to(kJson, "{\"a\": [1, -2.5, {\"b\": \"c\\n\"}], \"d\": true }"), "ok");
    EXPECT_THAT(held_to(kJson, "[1]"), StartsWith("refused"));
    EXPECT_THAT(held_to(kJson, "{\"a\": 01}"), StartsWith("refused"));
    // What a terminal of many characters would take from the one that follows.
    EXPECT_EQ(held_to("root ::= \"a\"+ \"ab\"", "aaab"), "ok");
    EXPECT_EQ(held_to("root ::= x\nx ::= \"(\" x \")\" | \"a\"+ \"ab\"", "((aaab))"), "ok");
    EXPECT_EQ(held_to("root ::= x\nx ::= \"(\" x \")\" | \"a\" \"b\" | \"ab\" \"c\"", "(ab)"), "ok");
    EXPECT_EQ(held_to("root ::= [^a-y] . \"\\u00e9\\x41\"{2,3}", "z\n\u00e9A\u00e9A"), "ok");
    EXPECT_EQ(held_to("root ::= \"a\"{2,}", "a"), "not over");
    for (const char* const none : {"{0,0}", "{0}", "{0,0}{2}"})
        EXPECT_EQ(held_to(fmt::format("root ::= \"a\"{} \"b\"", none), "b"), "ok") << none;
    EXPECT_EQ(held_to("root ::= x \"b\"\nx ::= (\"(\" x \")\"){0,0}", "b"), "ok");
    EXPECT_EQ(held_to("root ::= \"a\" |\n  \"b\"", "b"), "ok");
    EXPECT_EQ(held_to("root ::= [^\\ue000] [^\\u0000-\\ud7ff\\ue001-\\U0010ffff]", "a\ue000"), "ok");
}

// Of the kind that agents send with a tool that changes files.
constexpr std::string_view kPatch = R"(start: begin hunk+ "*** End" LF?
begin: "*** Begin" LF
hunk: "*** Add: " filename LF add_line+   // one file
    | "*** Delete: " filename LF -> delete
filename: /(.+)/
add_line: "+" /(.*)/ LF -> line
%import common.LF
)";

TEST_F(GbnfTest, GrammarsInLark) {
    const auto held_to_lark = [&](std::string_view grammar, std::string_view text, bool in_json = false) {
        try {
            Gbnf read = parse_lark(grammar);
            if (in_json) write_in_json(read);
            return held(answer_grammar({.rules = write_gbnf(std::move(read), "body", *tokenizer_, "c0")}), text);
        } catch (const Error& error) {
            return std::string(error.what());
        }
    };
    constexpr std::string_view kText = "*** Begin\n*** Add: a \"b\"\n+x\n+\n*** Delete: c\n*** End";
    EXPECT_EQ(held_to_lark(kPatch, kText), "ok");
    EXPECT_EQ(held_to_lark(kPatch, R"(*** Begin\n*** Add: a \"b\"\n+x\n+\n*** Delete: c\n*** End)", true), "ok");
    EXPECT_THAT(held_to_lark(kPatch, R"(*** Begin\n*** Add: a "b"\n+x\n*** End)", true), StartsWith("refused"));
    EXPECT_THAT(held_to_lark(kPatch, "*** Begin\n*** End"), StartsWith("refused"));
    constexpr std::string_view kSum =
        "start: expr\n?expr: expr \"+\" term | term\nterm: NUMBER | NAME | \"(\" expr \")\"\n"
        "NAME.2: /[a-z_]\\w*/i\n%import common (NUMBER, WS)\n%ignore WS\n";
    EXPECT_EQ(held_to_lark(kSum, " (1.5 + X1)+2 "), "ok");
    EXPECT_THAT(held_to_lark(kSum, "1 + + 2"), StartsWith("refused"));
    EXPECT_EQ(held_to_lark("start: \"a\"~2 \"0\"..\"7\" [B] \"c\" {0,0}\nB: \"b\"i", "aa5B"), "ok");
    for (const auto& [grammar, part] :
         {std::pair("start: x", "'x' is used"), std::pair("start: \"a", "does not end"),
          std::pair("start: \"a\n", "does not end"), std::pair("x: \"a\"", "no rule 'start'"),
          std::pair("start: /a(?=b)/", "look-around"), std::pair("start: \"a\"\n%declare X", "line 2"),
          std::pair("start: <think>", "tokens"), std::pair("%import common.NONE\nstart: NONE", "NONE"),
          std::pair("start: \"a\" )", "expected the end")})
        EXPECT_THAT(held_to_lark(grammar, "a"), HasSubstr(part)) << grammar;
}

// Each is a node within the one before, and nodes are walked by calls of functions.
TEST(LarkParser, RepetitionsThatFollowOneAnotherAreFew) {
    const auto fault_of = [](const std::string& grammar) -> std::string {
        try {
            parse_lark(grammar);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
            return error.what();
        }
        return "";
    };
    for (const std::string_view one : {"*", "+", "?", "~2", "{1,2}", " {1}"}) {
        std::string many, some;
        for (size_t i = 0; i < 40'000; ++i) many += one;
        for (size_t i = 0; i < 64; ++i) some += one;
        EXPECT_THAT(fault_of("start: \"a\"" + many), HasSubstr("repetitions follow one another")) << one;
        EXPECT_EQ(fault_of("start: \"a\"" + some), "") << one;
    }
    for (const std::string_view one : {"*", "+", "?", "*?", "{1,2}"}) {
        std::string many;
        for (size_t i = 0; i < 40'000; ++i) many += one;
        EXPECT_THAT(fault_of(fmt::format("start: /a{}/", many)), HasSubstr("repetitions follow one another")) << one;
    }
}

constexpr std::string_view kStatements =
    "root ::= statement+ \".\"\n"
    "statement ::= name \" = \" sum \";\\n\" | \"if (\" sum \") {\\n\" statement+ \"}\\n\" | name \"(\" (sum (\",\" \" "
    "\" "
    "sum)*)? \");\\n\"\n"
    "sum ::= product ((\" + \" | \" - \") product)*\n"
    "product ::= value ((\" * \" | \" / \") value)*\n"
    "value ::= name | [0-9]+ | \"-\" value | name \"(\" sum \")\" | \"(\" sum \")\"\n"
    "name ::= [a-zA-Z_] [a-zA-Z_0-9]*\n";

// Two characters that begin with one byte.
constexpr const char* kSharedByte =
    "root ::= \"(\" root \")\" | \"a\" x | \"a\\u00e9\"\n"
    "x ::= \"\\u00e8\" root | \"\\u00e8\"\n";

// A token by its number, spelt twice.
constexpr const char* kTokenTwice = "root ::= \"(\" root \")\" | \"z\" | <[300]> \"a\" root | <[0300]> \"a((\"\n";

// A grammar of few letters, most of whose rules lead back, so that terminals begin and go on alike.
std::string random_grammar(std::mt19937& random) {
    const auto below = [&](unsigned count) { return random() % count; };
    const unsigned rules = 2 + below(4);
    const std::function<std::string(unsigned)> expression = [&](unsigned depth) -> std::string {
        static constexpr std::string_view kTexts[] = {"\"a\"",      "\"b\"",           "\"ab\"", "\"ba\"", "\"aab\"",
                                                      "[ab]",       "[b-d]",           "[^a]",   "\" \"",  "\"\"",
                                                      "\"\u00e9\"", "[\u00e8-\u00ea]", "\"(\"",  "\")\"",  "\"c\""};
        const unsigned kind = depth == 0 ? below(2) : below(6);
        if (kind == 0) return fmt::format("r{}", below(rules));
        if (kind == 1) return std::string(kTexts[below(std::size(kTexts))]);
        if (kind == 2)
            return fmt::format("({}){}", expression(depth - 1),
                               std::array{"*", "+", "?", "{2}", "{0,3}", "{2,}"}[below(6)]);
        std::string made = expression(depth - 1);
        for (unsigned more = 1 + below(2); more > 0; --more) made += (kind == 3 ? " | " : " ") + expression(depth - 1);
        return kind == 3 ? "(" + made + ")" : made;
    };
    // Each has a text that ends.
    std::string made = "root ::= r0 | \"(\" root \")\" r1\n";
    for (unsigned i = 0; i < rules; ++i)
        made += fmt::format("r{} ::= {} | {}\n", i, expression(3), i % 2 ? "\"ab\"" : "[bc]");
    return made;
}

bool has_mask(session::TokenConstraint& constraint) {
    try {
        return constraint.wait(std::chrono::steady_clock::now() + std::chrono::seconds(20));
    } catch (const Error&) {
        return false;
    }
}

// Whatever is a terminal, the tokens that are allowed are those of a grammar of single characters.
TEST_F(GbnfTest, TerminalsChangeNoMask) {
    std::mt19937 random(1);
    std::vector<std::string> grammars = {std::string(kJson), std::string(kStatements), kSharedByte, kTokenTwice};
    for (int i = 0; i < 100; ++i) grammars.push_back(random_grammar(random));
    size_t compared = 0;
    for (const std::string& grammar : grammars) {
        std::shared_ptr<const Grammar> made[2];
        // llguidance has too much work with some.
        try {
            made[1] =
                helper_.compile(answer_grammar({translate_gbnf(grammar, "body", *tokenizer_, GbnfLexer::kCharacters)}));
        } catch (const Error&) {
            continue;
        }
        made[0] = helper_.compile(answer_grammar({translate_gbnf(grammar, "body", *tokenizer_)}));
        for (int walk = 0; walk < 2; ++walk) {
            const std::unique_ptr<session::TokenConstraint> held[] = {made[0]->begin(), made[1]->begin()};
            std::string text;
            for (int length = 0; length < 20; ++length) {
                if (!has_mask(*held[1])) break;
                ASSERT_TRUE(has_mask(*held[0])) << grammar << "\nbehind " << text;
                const session::TokenMask masks[] = {held[0]->allowed(), held[1]->allowed()};
                ASSERT_TRUE(std::ranges::equal(masks[0], masks[1])) << grammar << "\nbehind " << text;
                std::vector<text::Token> allowed;
                for (text::Token token = 0; static_cast<size_t>(token) < tokenizer_->size(); ++token) {
                    if (allows(*held[0], token) && !tokenizer_->ends_generation(token)) allowed.push_back(token);
                }
                ++compared;
                if (allowed.empty()) break;
                const text::Token token = allowed[random() % allowed.size()];
                text += tokenizer_->bytes(token);
                for (const auto& one : held) one->accept(std::span(&token, 1));
            }
        }
    }
    EXPECT_GT(compared, 1000u);
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
    EXPECT_THAT(held_to("root ::= \"a\"\nunused ::= <no-such-token>", ""), HasSubstr("no such token"));
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
    EXPECT_TRUE(GbnfTerminals(parse_gbnf(chain), GbnfLexer::kTerminals).is_one_terminal());
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
