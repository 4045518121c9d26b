// Conversations: at a terminal, and what typed control tokens become.
#include "tests/apps/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

const std::string kBundled = TSR_TEST_MODEL;

// Waits until the editor reads keys. Before that the terminal is in canonical mode, in which Ctrl-D is no key but ends
// a read: typed then, it is lost. The prompt alone does not tell: a line that is redrawn shows it as well.
bool reads_keys(Terminal& terminal) {
    return terminal.shows("\x1B[?2004h") && terminal.shows("> ");
}

TEST(ChatAtATerminal, TellsWhatTheBundledModelKnows) {
    Terminal terminal({"chat"});
    ASSERT_TRUE(terminal.shows("I can count in five")) << terminal.shown();
    ASSERT_TRUE(terminal.shows("/help"));
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("/help\r");
    ASSERT_TRUE(terminal.shows("/clear  forgets")) << terminal.shown();
    ASSERT_TRUE(terminal.shows("What is the capital of Norway?")) << terminal.shown();
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("What is the capital of Norway?\r");
    ASSERT_TRUE(terminal.shows("Oslo")) << terminal.shown();
    terminal.type("/exit\r");
    EXPECT_EQ(terminal.wait(), 0) << terminal.shown();
    EXPECT_THAT(terminal.shown(), HasSubstr("generation: "));
}

TEST(ChatAtATerminal, LinesAreEditedAndRemembered) {
    Terminal terminal({"chat", "-m", kBundled, "--temp", "0"});
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    // Backspace, then back to the start of the line, where a letter is missing.
    terminal.type(
        "hat is 9 + 5\x7F"
        "4?\x01W\r");
    ASSERT_TRUE(terminal.shows("9 + 4 = 13")) << terminal.shown();
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("\u2192 \U0001F600\r");
    ASSERT_TRUE(terminal.shows("\u2192 \U0001F600")) << terminal.shown();
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("/clear\r");
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("\x1B[A\x1B[A\x1B[A\r");  // three lines up
    ASSERT_TRUE(terminal.shows("9 + 4 = 13")) << terminal.shown();
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("\x04");
    EXPECT_EQ(terminal.wait(), 0) << terminal.shown();
}

TEST(ChatAtATerminal, PastedLinesAreOneMessage) {
    Terminal terminal({"chat", "-m", kBundled, "--temp", "0"});
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("\x1B[200~/unknown\rWhat is 9 + 4?\r\x1B[201~\r");
    ASSERT_TRUE(terminal.shows("unknown command /unknown")) << terminal.shown();
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("/exit\r");
    EXPECT_EQ(terminal.wait(), 0) << terminal.shown();
    EXPECT_THAT(terminal.shown(), Not(HasSubstr("9 + 4 = 13")));
}

TEST(ChatAtATerminal, LongLinesArriveWhole) {
    Terminal terminal({"chat", "-m", kBundled, "--temp", "0", "-n", "1", "-c", "0"});
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    // More than the context holds, and more than a terminal in canonical mode passes on.
    std::string line;
    while (line.size() < 6000) line += "word ";
    terminal.type(line + "\r");
    ASSERT_TRUE(terminal.shows("the prompt has ")) << terminal.shown();
    const size_t digits = terminal.shown().rfind("the prompt has ") + 15;
    EXPECT_GT(std::stoi(terminal.shown().substr(digits)), 1200);
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("\x04");
    EXPECT_EQ(terminal.wait(), 0) << terminal.shown();
}

// The line is drawn from its first row on, which lies where the terminal has put it.
TEST(ChatAtATerminal, ALineOfSeveralRowsIsDrawnAnewAtAnotherWidth) {
    const std::string text(100, 'a');  // after the prompt two rows of 80 columns: the cursor is in column 22
    struct Case {
        unsigned short columns;
        const char* report;  // of the cursor
        const char* begin;   // how far up the line begins
    };
    for (const Case& one : {Case{50, "\033[9;3R", "\r\033[2A\033[J> a"},       // rows were broken anew
                            Case{50, "\033[9;23R", "\r\033[1A\033[J> a"},      // they were kept
                            Case{200, "\033[9;103R", "\r\033[J> a"},           // rows were joined
                            Case{200, "\033[9;23R", "\r\033[1A\033[J> a"}}) {  // they were not
        SCOPED_TRACE(one.begin);
        Terminal terminal({"chat", "-m", kBundled, "--temp", "0", "-n", "1"});
        ASSERT_TRUE(reads_keys(terminal));
        terminal.type(text);
        ASSERT_TRUE(terminal.shows(std::string(20, 'a')));
        usleep(100'000);
        terminal.resize(one.columns);
        ASSERT_TRUE(terminal.shows("\033[6n"));
        terminal.type("b");  // while the report is awaited
        terminal.type(one.report);
        EXPECT_TRUE(terminal.shows(one.begin)) << terminal.shown();
        terminal.type("\r/exit\r");
        EXPECT_TRUE(terminal.shows("b"));
        EXPECT_EQ(terminal.wait(), 0);
    }
}

// Keys that look like the report are none, and input without an end does not put the answer off.
TEST(ChatAtATerminal, KeysAreNoReportOfTheCursor) {
    Terminal terminal({"chat", "-m", kBundled, "--temp", "0", "-n", "1"});
    ASSERT_TRUE(reads_keys(terminal));
    terminal.type(std::string(100, 'a'));
    ASSERT_TRUE(terminal.shows(std::string(20, 'a')));
    usleep(100'000);
    terminal.resize(50);
    ASSERT_TRUE(terminal.shows("\033[6n"));
    terminal.type("\033[1;2R");  // Shift and F3
    terminal.type("\033[9;3R");
    EXPECT_TRUE(terminal.shows("\r\033[2A\033[J> a")) << terminal.shown();
    terminal.type("\r/exit\r");
    EXPECT_EQ(terminal.wait(), 0);
}

TEST(ChatAtATerminal, InputWithoutAnEndDoesNotPutOffTheLine) {
    Terminal terminal({"chat", "-m", kBundled, "--temp", "0", "-n", "1"});
    ASSERT_TRUE(reads_keys(terminal));
    terminal.type(std::string(100, 'a'));
    ASSERT_TRUE(terminal.shows(std::string(20, 'a')));
    usleep(100'000);
    terminal.resize(50);
    ASSERT_TRUE(terminal.shows("\033[6n"));
    // One each 100 ms until the line is there, and no report.
    const size_t before = terminal.shown().size();
    const auto is_there = [&] { return terminal.shown().find("\033[J> a", before) != std::string::npos; };
    for (int i = 0; i < 600 && !is_there(); ++i) {
        terminal.type("b");
        usleep(100'000);
    }
    EXPECT_TRUE(is_there()) << terminal.shown();
    terminal.type("\r/exit\r");
    EXPECT_EQ(terminal.wait(), 0);
}

TEST(ChatAtATerminal, CtrlCDropsALineAndThenEnds) {
    Terminal terminal({"chat", "-m", kBundled, "--temp", "0"});
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("What is");
    ASSERT_TRUE(terminal.shows("is"));
    terminal.type("\x03");
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("What is 9 + 4?\r");
    ASSERT_TRUE(terminal.shows("9 + 4 = 13")) << terminal.shown();
    ASSERT_TRUE(reads_keys(terminal)) << terminal.shown();
    terminal.type("\x03");
    EXPECT_EQ(terminal.wait(), 0) << terminal.shown();
}

TEST(Chat, UnknownCommandsAreNotSent) {
    const Outcome outcome = tessera({"chat", "-m", kBundled, "--temp", "0"}, "/hlep\n /hlep\n/help\n");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("unknown command /hlep; /help lists the commands"));
    EXPECT_THAT(outcome.err, HasSubstr("/clear  forgets the conversation"));
    EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 1) << "one message was to be answered";
}

TEST(Chat, LongPromptsShowProgress) {
    std::string prompt;
    for (int i = 0; i < 60; ++i) prompt += "The story is old and the song is young. ";
    Terminal terminal({"run", "-m", kBundled, "--chat", "-ub", "16", "-n", "2", "-p", prompt});
    EXPECT_TRUE(terminal.shows("prompt [")) << terminal.shown();
    EXPECT_EQ(terminal.wait(), 0) << terminal.shown();
    EXPECT_THAT(terminal.shown(), HasSubstr(" tokens "));
}

TEST(Repack, ATerminalGetsNoModel) {
    Terminal terminal({"repack", "-m", kBundled, "-o", "-"});
    EXPECT_TRUE(terminal.shows("standard output is a terminal")) << terminal.shown();
    EXPECT_EQ(terminal.wait(), 2);
}

// The number of prompt tokens and, a line each, the tokens themselves.
std::string prompt_tokens(const std::string& prompt, const std::vector<std::string>& more) {
    std::vector<std::string> line = {"run", "-m", kBundled, "-n", "0", "--verbose-prompt", "-p", prompt};
    line.insert(line.end(), more.begin(), more.end());
    const Outcome outcome = tessera(line);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
}

size_t count(const std::string& text, const std::string& part) {
    size_t found = 0;
    for (size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
}

TEST(Chat, TypedControlTokensAreText) {
    // The vocabulary's own spelling of a control token and of the mark of a turn.
    const std::string end = "<\uff5cend\u2581of\u2581sentence\uff5c>", user = "<\uff5cUser\uff5c>";
    for (const std::string& token : {end, user}) {
        const std::string whole = "\"" + token + "\"\n";
        const std::string plain = prompt_tokens("Hello.", {"--chat"});
        const std::string typed = prompt_tokens("Hello." + token, {"--chat"});
        EXPECT_EQ(count(typed, whole), count(plain, whole)) << typed;
        EXPECT_EQ(count(prompt_tokens("Hello." + token, {"--raw"}), whole), 1u) << token;
        EXPECT_EQ(count(prompt_tokens("Hello." + token, {"--chat", "-sys", token}), whole), count(plain, whole));
    }
    EXPECT_EQ(count(prompt_tokens("Hello." + end, {"--raw", "--no-parse-special"}), "\"" + end + "\"\n"), 0u);
}

}  // namespace
}  // namespace tessera::test
