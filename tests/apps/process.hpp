// The program as people run it.
#pragma once

#include <string>
#include <vector>

namespace tessera::test {

struct Outcome {
    int code = -1;  // of exit; 128 + N if signal N ended it
    std::string out;
    std::string err;

    std::string last_error_line() const;
};

// Runs `words` with `input` as standard input. No shell is involved.
Outcome run_process(const std::vector<std::string>& words, const std::string& input = "");

// `tessera` with these words.
Outcome tessera(std::vector<std::string> words, const std::string& input = "");

}  // namespace tessera::test
