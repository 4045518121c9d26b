// Logits of a prompt and of the tokens that a model says after it, the likeliest each time: model_logits FILE TOKENS
// OUT, with the prompt's token numbers on standard input. OUT has float32 rows, one for each token that was fed: those
// of the prompt, then all of the TOKENS that were chosen but the last. The model may have no vocabulary.
// bench/peers/greedy.py compares them with those of bench/peers/logits.cpp.
#include "core/session/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <vector>

int main(int argc, char** argv) try {
    using namespace tessera;
    if (argc != 4) {
        std::fprintf(stderr, "usage: model_logits FILE TOKENS OUT < numbers\n");
        return 2;
    }
    const std::vector<Token> prompt{std::istream_iterator<Token>(std::cin), {}};
    const long tokens = std::atol(argv[2]);
    EngineOptions options;
    options.context = static_cast<uint32_t>(prompt.size()) + static_cast<uint32_t>(std::max(tokens, 1L));
    options.rows = options.output_rows = 64;
    options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
    const Hardware hardware = Hardware::detect();
    const Registry registry = Registry::load(Config{}, hardware);
    Engine engine(gguf::GgufFile::open(argv[1]), registry, hardware, options);
    std::ofstream out(argv[3], std::ios::binary);
    const SequenceId sequence = engine.cache().create();
    Token chosen = 0;
    const auto feed = [&](std::span<const Token> rows) {
        const BatchEntry entry{sequence, rows, true, true};
        for (const auto logits : engine.step({&entry, 1})) {
            out.write(reinterpret_cast<const char*>(logits.data()), static_cast<std::streamsize>(logits.size_bytes()));
            chosen = static_cast<Token>(std::ranges::max_element(logits) - logits.begin());
        }
    };
    for (size_t at = 0; at < prompt.size(); at += options.rows)
        feed(std::span(prompt).subspan(at, std::min<size_t>(options.rows, prompt.size() - at)));
    for (long i = 1; i < tokens; ++i) feed(std::vector{chosen});
    return out.flush() ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "model_logits: %s\n", error.what());
    return 1;
}
