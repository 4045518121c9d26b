#include "tests/text/goldens.hpp"

#include "core/gguf/reader.hpp"
#include "core/text/nfc.hpp"
#include "core/text/vocabulary_from_gguf.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace tessera::text {
namespace json = boost::json;

json::value golden(const std::string& file) {
    std::ifstream in(std::string(TSR_TEXT_DATA) + "/" + file, std::ios::binary);
    if (!in) throw std::runtime_error("cannot read " + file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return json::parse(text);
}

const std::vector<std::string>& golden_texts() {
    static const auto texts = json::value_to<std::vector<std::string>>(golden("texts.json"));
    return texts;
}

VocabularyData small_bpe(const std::string& pre) {
    const json::value file = golden("small_bpe.json");
    VocabularyData data;
    data.model = "gpt2";
    data.pre = pre;
    data.tokens = json::value_to<std::vector<std::string>>(file.at("tokens"));
    data.merges = json::value_to<std::vector<std::string>>(file.at("merges"));
    return data;
}

VocabularyData small_spm() {
    const json::value file = golden("small_spm.json");
    VocabularyData data;
    data.model = "llama";
    data.tokens = json::value_to<std::vector<std::string>>(file.at("tokens"));
    data.scores = json::value_to<std::vector<float>>(file.at("scores"));
    for (const json::value& type : file.at("types").as_array())
        data.types.push_back(static_cast<TokenType>(type.as_int64()));
    data.unk = 0;
    data.bos = 1;
    data.eos = 2;
    return data;
}

VocabularyData small_gemma() {
    const json::value file = golden("small_gemma.json");
    VocabularyData data;
    data.model = "gemma4";
    data.tokens = json::value_to<std::vector<std::string>>(file.at("tokens"));
    data.merges = json::value_to<std::vector<std::string>>(file.at("merges"));
    for (const json::value& type : file.at("types").as_array())
        data.types.push_back(static_cast<TokenType>(type.as_int64()));
    data.unk = 0;
    return data;
}

std::vector<Token> to_tokens(const json::value& list) {
    return json::value_to<std::vector<Token>>(list);
}

VocabularyData read_vocabulary(const std::filesystem::path& path) {
    return vocabulary_from_gguf(gguf::GgufFile::open(path).metadata());
}

void expect_recorded_tokens(const Tokenizer& tokenizer, const json::value& recorded, size_t least) {
    const bool indexed = recorded.is_object();
    const json::array& lists = indexed ? recorded.at("ids").as_array() : recorded.as_array();
    ASSERT_GE(lists.size(), least);
    for (size_t i = 0; i < lists.size(); ++i) {
        const size_t index = indexed ? static_cast<size_t>(recorded.at("texts").at(i).as_int64()) : i;
        const std::string& text = golden_texts().at(index);
        EXPECT_EQ(tokenizer.encode(text, {.add_special = false}), to_tokens(lists[i]))
            << "text " << index << ": " << json::serialize(json::string(text));
    }
}

void expect_round_trips(const Tokenizer& tokenizer, bool nfc) {
    std::string buffer;
    for (const std::string& text : golden_texts()) {
        const std::string_view expected = nfc ? to_nfc(text, buffer) : std::string_view(text);
        EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, {.add_special = false})), expected);
    }
}

}  // namespace tessera::text
