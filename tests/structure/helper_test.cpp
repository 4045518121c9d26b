// The helper process: what it holds answers to, and what becomes of it when it fails.
#include "apps/structure/answer_grammar.hpp"
#include "tests/structure/held_text.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

namespace tessera::structure {
namespace {

TEST_F(StructureTest, HoldsTexts) {
    const auto regex = helper_.compile(answer_grammar(regex_body("^[a-c]+[0-9]{2}$")));
    EXPECT_EQ(held(*regex, "abc12"), "ok");
    EXPECT_EQ(held(*regex, "abc1"), "not over");
    EXPECT_EQ(held(*regex, "abcd").substr(0, 7), "refused");
    const auto object = helper_.compile(answer_grammar(any_object_body()));
    EXPECT_EQ(held(*object, R"({"a": [1, true, {"b": "c"}]})"), "ok");
    EXPECT_EQ(held(*object, "[1]").substr(0, 7), "refused");
    const std::string choices[] = {"yes", "yesterday", "no"};
    const auto choice = helper_.compile(answer_grammar(choice_body(choices)));
    EXPECT_EQ(held(*choice, "yes"), "ok");
    EXPECT_EQ(held(*choice, "yesterday"), "ok");
    EXPECT_EQ(held(*choice, "yester"), "not over");
}

TEST_F(StructureTest, FindsWhatIsForced) {
    const std::string text = "The river is wide and the road is long, and nobody goes there.";
    const auto grammar = helper_.compile(answer_grammar(regex_body(text + "( Yes| No)!")));
    const auto constraint = grammar->begin();
    std::vector<text::Token> tokens;
    size_t messages = 0;
    while (wait(*constraint)) {
        const std::vector<text::Token> forced(constraint->forced().begin(), constraint->forced().end());
        if (forced.empty()) break;
        EXPECT_TRUE(allows(*constraint, forced.front()));
        tokens.insert(tokens.end(), forced.begin(), forced.end());
        constraint->accept(forced);
        ++messages;
    }
    const std::string found = tokenizer_->decode(tokens, {.drop_prefix_space = false});
    EXPECT_GE(found.size() + 12, text.size()) << found;
    EXPECT_TRUE(text.starts_with(found)) << found;
    EXPECT_LE(messages, tokens.size() / 2) << "many tokens at once";
}

TEST_F(StructureTest, RefusesWithReason) {
    const auto refusal = [&](const GrammarText& grammar) -> std::string {
        try {
            helper_.compile(grammar);
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
            return error.what();
        }
        return "";
    };
    EXPECT_NE(refusal({GrammarKind::kLark, "start: nothing"}).find("nothing"), std::string::npos);
    EXPECT_NE(refusal({GrammarKind::kRegex, "("}), "");
    EXPECT_NE(refusal({GrammarKind::kRegex, std::string("a\0b", 3)}).find("U+0000"), std::string::npos);
    EXPECT_NE(refusal({GrammarKind::kRegex, std::string(kMostGrammarBytes + 1, 'a')}).find("bytes"), std::string::npos);
}

TEST_F(StructureTest, WhyAnAnswerFailedIsSaidAgain) {
    const auto grammar = helper_.compile(answer_grammar(regex_body("[0-9]+")));
    const auto constraint = grammar->begin();
    ASSERT_TRUE(wait(*constraint));
    const text::Token letter = tokenizer_->encode("x", {.add_special = false}).back();
    constraint->accept(std::span(&letter, 1));
    std::vector<std::string> reasons;
    for (int i = 0; i < 2; ++i) {
        try {
            wait(*constraint);
            ADD_FAILURE() << "goes on with what the grammar does not have";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_INVALID_ARGUMENT);
            reasons.emplace_back(error.what());
        }
    }
    ASSERT_EQ(reasons.size(), 2u);
    EXPECT_EQ(reasons[0], reasons[1]);
}

TEST(AnswerGrammar, SizesAreCheckedBeforeUse) {
    const std::string choices[] = {std::string(800 << 10, 'a'), std::string(400 << 10, 'b')};
    EXPECT_THROW(choice_body(choices), Error);
    EXPECT_NO_THROW(choice_body(std::span(choices, 1)));
    EXPECT_THROW(regex_body(std::string((1 << 20) + 1, 'a')), Error);
}

// What takes long, or much memory, ends its own process; others go on.
TEST_F(StructureTest, HostileGrammarsAreEndedAlone) {
    const auto good = helper_.compile(answer_grammar(regex_body("[0-9]+")));
    const auto before = good->begin();
    ASSERT_TRUE(wait(*before));
    std::string nested = "start: ";
    for (int i = 0; i < 100'000; ++i) nested += '(';
    std::string wide = "start: a0\n";
    for (int i = 0; i < 40; ++i) wide += fmt::format("a{}: a{} a{}\n", i, i + 1, i + 1);
    const std::pair<GrammarKind, std::string> hostile[] = {
        {GrammarKind::kRegex, "((a{1000}){1000}){1000}"},
        {GrammarKind::kRegex, "(a|b)*a(a|b){3000}c(a|b){3000}"},
        {GrammarKind::kLark, nested},
        {GrammarKind::kLark, wide + "a40: \"a\""},
        {GrammarKind::kLark, "start: \"a\"{1000000000}"},
        {GrammarKind::kRegex, std::string(100'000, '(')},
    };
    for (const auto& [kind, text] : hostile) {
        const auto start = std::chrono::steady_clock::now();
        const std::string what = held({kind, text}, "aaaa");
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        EXPECT_LT(seconds, 8) << text.substr(0, 40);
        std::printf("%-40s %.2f s: %s\n", text.substr(0, 40).c_str(), seconds, what.substr(0, 100).c_str());
        EXPECT_EQ(held(*good, "123"), "ok");
    }
    const text::Token digit = tokenizer_->encode("7", {.add_special = false}).back();
    before->accept(std::span(&digit, 1));
    EXPECT_TRUE(wait(*before));
}

TEST_F(StructureTest, MissingLibraryIsNamed) {
    Helper none(*tokenizer_, "/proc/nowhere/tessera-constrain", "/proc/nowhere/libllguidance.so");
    EXPECT_NE(none.missing().find("/proc/nowhere/libllguidance.so"), std::string::npos);
    try {
        none.compile({GrammarKind::kRegex, "a"});
        ADD_FAILURE() << "compiled with nothing";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_NOT_FOUND);
    }
    Helper bad(*tokenizer_, "/bin/true", TSR_TEST_MODEL);
    EXPECT_THROW(bad.compile({GrammarKind::kRegex, "a"}), Error);
    // A file that is no such library is as good as none.
    const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe");
    try {
        Helper(*tokenizer_, own.parent_path() / "tessera-constrain", TSR_TEST_MODEL)
            .compile({GrammarKind::kRegex, "a"});
        ADD_FAILURE() << "compiled with a model";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_NOT_FOUND);
        EXPECT_THAT(error.what(), testing::HasSubstr("cannot load llguidance"));
    }
}

// Not a fault of the grammar, and told with its reason.
TEST_F(StructureTest, HelpersThatDoNotWork) {
    const auto fault_of = [&](const std::filesystem::path& program, const std::filesystem::path& library) {
        try {
            Helper(*tokenizer_, program, library).compile({GrammarKind::kRegex, "a"});
            return std::string();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), TSR_IO_ERROR);
            return std::string(error.what());
        }
    };
    // Takes the vocabulary, and has no process for a grammar.
    const test::TemporaryFolder folder;
    const std::string text = fmt::format(
        "#!/usr/bin/env python3\n"
        "import socket, struct\n"
        "def say(channel, word, text):\n"
        "    channel.send(struct.pack('iiiiQ', word, 0, 0, 0, 0) + text)\n"
        "channel = socket.socket(fileno={})\n"
        "socket.recv_fds(channel, 65536, 2)\n"
        "say(channel, {}, b'')\n"
        "_, files, _, _ = socket.recv_fds(channel, 65536, 2)\n"
        "say(socket.socket(fileno=files[0]), {}, b'no more processes')\n"
        "channel.recv(1)\n",
        kChannelNumber, static_cast<int>(Word::kReady), static_cast<int>(Word::kFailed));
    const std::filesystem::path script = folder.write("helper", text);
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    EXPECT_THAT(fault_of(script, TSR_TEST_MODEL), testing::HasSubstr("no more processes"));
}

// Each process has a limit of its own, which says nothing of all.
TEST_F(StructureTest, AllProcessesTogetherHaveALimit) {
    const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    const GrammarText grammar = answer_grammar(regex_body("[0-9]+"));
    const uint64_t bytes = 5 * ProcessMemory::kLeast;
    Helper helper(*tokenizer_, folder / "tessera-constrain", folder / TSR_STRUCTURED_LIBRARY, bytes);
    const auto code_of = [&](const auto& work) -> tsr_code {
        try {
            work();
            return TSR_OK;
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr("memory that they may have together"));
            return error.code();
        }
    };
    std::vector<std::shared_ptr<const Grammar>> held;
    tsr_code code = TSR_OK;
    while (code == TSR_OK && held.size() < 10) code = code_of([&] { held.push_back(helper.compile(grammar)); });
    EXPECT_EQ(code, TSR_DOES_NOT_FIT);
    ASSERT_GE(held.size(), 1u);
    ASSERT_LE(held.size(), 5u) << "each has some memory";
    // What has ended makes place.
    held.resize(held.size() - 1);
    EXPECT_EQ(code_of([&] { held.push_back(helper.compile(grammar)); }), TSR_OK);
    // Answers count as well.
    held.resize(1);
    std::vector<std::unique_ptr<session::TokenConstraint>> answers;
    while (answers.size() < 5) answers.push_back(held.front()->begin());
    EXPECT_EQ(code_of([&] { helper.compile(grammar); }), TSR_DOES_NOT_FIT);
    answers.clear();
    EXPECT_EQ(code_of([&] { helper.compile(grammar); }), TSR_OK);
}

// As a service may be started; its channel has a number of theirs then.
TEST_F(StructureTest, WithoutStandardFiles) {
    std::fflush(stdout);
    const int input = dup(STDIN_FILENO), output = dup(STDOUT_FILENO);
    close(STDIN_FILENO);
    close(STDOUT_FILENO);
    const std::string what = held({GrammarKind::kRegex, "a"}, "a");
    dup2(input, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    close(input);
    close(output);
    EXPECT_EQ(what, "ok");
}

}  // namespace
}  // namespace tessera::structure
