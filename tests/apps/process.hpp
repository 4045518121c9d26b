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
    kInterruptOutput,  // SIGINT, once, as soon as there is output on standard output
    kTerminateOutput,  // SIGTERM likewise
};

// Runs `words` with `input` as standard input. No shell is involved.
Outcome run_process(const std::vector<std::string>& words, const std::string& input = "",
                    Signal signal = Signal::kNone);

// `tessera` with these arguments.
Outcome tessera(std::vector<std::string> words, const std::string& input = "", Signal signal = Signal::kNone);

// `script` by sh, with `tessera` as $T.
Outcome shell(const std::string& script);

// The program on a terminal of its own, 80 columns wide.
class Terminal {
  public:
    explicit Terminal(std::vector<std::string> words);
    ~Terminal();
    Terminal(const Terminal&) = delete;
    Terminal& operator=(const Terminal&) = delete;

    void type(const std::string& text);
    void resize(unsigned short columns);
    // Waits until `text` has been shown after what was waited for before. False if it is not within a minute, or the
    // program ends.
    bool shows(const std::string& text);
    // Exit code, once it has ended.
    int wait();
    const std::string& shown() const { return shown_; }

  private:
    bool read_more(int milliseconds);

    int terminal_ = -1;
    int child_ = -1;
    size_t seen_ = 0;
    std::string shown_;
};

}  // namespace tessera::test
