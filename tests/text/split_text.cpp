// Cuts standard input as a pre-tokenizer does, for pretokenizers_test.py: `split_text NAME` writes the numbers of bytes
// of the pre-tokens, as 32-bit integers of this machine. `split_text --names` lists the first name of every row.
#include "core/base/error.hpp"
#include "core/text/pretokenizer.hpp"
#include "core/text/utf8.hpp"

#include <cstdint>
#include <iostream>
#include <iterator>

int main(int argc, char** argv) try {
    using namespace tessera::text;
    if (argc != 2) return 2;
    const std::string_view name = argv[1];
    if (name == "--names") {
        for (const PretokenizerRow& one : known_pretokenizers()) std::cout << one.names.front() << '\n';
        return 0;
    }
    const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    if (utf8_valid_prefix(text) != text.size()) return 3;
    const PretokenizerRow* const row = find_pretokenizer(name);
    if (!row) return 4;
    Pretokenizer(row->steps).split(text, [](std::string_view pretoken) {
        const auto size = static_cast<uint32_t>(pretoken.size());
        std::cout.write(reinterpret_cast<const char*>(&size), sizeof size);
        return true;
    });
    return std::cout.flush() ? 0 : 1;
} catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
}
