// Real vocabularies with the texts and tokens of public test data, and with the recorded answers of the `tokenizers`
// and `sentencepiece` packages on our own texts.
#include "tests/text/goldens.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tessera::text {
namespace {

std::string read_file(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in) << path;
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Case {
    std::string name;
    std::string recorded;
};

class SharedVocabulary : public testing::TestWithParam<Case> {
    void SetUp() override {
        if (!std::filesystem::exists(TSR_VOCABULARIES)) GTEST_SKIP() << "there is no " TSR_VOCABULARIES;
    }
};

TEST_P(SharedVocabulary, GivesThePublishedTokens) {
    const std::string base = TSR_VOCABULARIES "/" + GetParam().name + ".gguf";
    const Tokenizer tokenizer(read_vocabulary(base));
    const std::string all = read_file(base + ".inp");
    std::istringstream answers(read_file(base + ".out"));
    const std::string separator = "\n__ggml_vocab_test__\n";
    size_t texts = 0;
    for (size_t at = 0; at < all.size(); ++texts) {
        const size_t end = all.find(separator, at);
        const std::string text = all.substr(at, end - at);
        std::string line;
        ASSERT_TRUE(std::getline(answers, line)) << "no answer for text " << texts;
        std::istringstream numbers(line);
        const std::vector<Token> expected{std::istream_iterator<Token>(numbers), {}};
        EXPECT_EQ(tokenizer.encode(text, {.add_special = false}), expected) << "text " << texts << ": '" << text << "'";
        at = end == std::string::npos ? all.size() : end + separator.size();
    }
    EXPECT_GE(texts, 40u);
}

TEST_P(SharedVocabulary, GivesTheRecordedTokens) {
    const Tokenizer tokenizer(read_vocabulary(TSR_VOCABULARIES "/" + GetParam().name + ".gguf"));
    expect_recorded_tokens(tokenizer, golden(GetParam().recorded), 200);
}

INSTANTIATE_TEST_SUITE_P(All, SharedVocabulary,
                         testing::Values(Case{"deepseek-llm", "deepseek_llm_ids.json"}, Case{"gpt-2", "gpt_2_ids.json"},
                                         Case{"llama-spm", "llama_spm_ids.json"}),
                         [](const auto& param) {
                             std::string name = param.param.name;
                             std::ranges::replace(name, '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace tessera::text
