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

enum class Signal {
    kNone,
    kInterruptOutput,  // SIGINT, once, as soon as something stands on standard output
};

// Runs `words` with `input` as standard input. No shell is involved.
Outcome run_process(const std::vector<std::string>& words, const std::string& input = "",
                    Signal signal = Signal::kNone);

// `tessera` with these words.
Outcome tessera(std::vector<std::string> words, const std::string& input = "", Signal signal = Signal::kNone);

}  // namespace tessera::test
