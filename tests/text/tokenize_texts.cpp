// The tokens of texts, for real_vocabularies_test.py: `tokenize_texts VOCABULARY.gguf` reads a JSON string a line and
// writes a line of numbers for each, without BOS and EOS, control tokens not parsed. Fails unless the tokens give the
// text again (in Normalization Form C where the model has it so, which is said with --nfc).
#include "core/text/nfc.hpp"
#include "tests/text/goldens.hpp"

#include <boost/json.hpp>

#include <iostream>
#include <string>

int main(int argc, char** argv) try {
    using namespace tessera::text;
    if (argc < 2) return 2;
    const bool nfc = argc > 2 && std::string_view(argv[2]) == "--nfc";
    const Tokenizer tokenizer(read_vocabulary(argv[1]));
    for (const std::string& note : tokenizer.notes()) std::cerr << note << '\n';
    std::string line, buffer;
    while (std::getline(std::cin, line)) {
        const auto text = boost::json::value_to<std::string>(boost::json::parse(line));
        const std::vector<Token> tokens = tokenizer.encode(text, {.add_special = false});
        if (tokenizer.decode(tokens) != (nfc ? to_nfc(text, buffer) : std::string_view(text))) return 3;
        for (const Token token : tokens) std::cout << token << ' ';
        std::cout << '\n';
    }
    return std::cout.flush() ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
