// Child processes that are the same program: what may crash or hang is done there.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::conformance {

struct ChildEnd {
    int exit_code = -1;      // -1 if a signal ended it
    int signal = 0;          // that ended it, else 0
    bool timed_out = false;  // it was killed because it printed nothing for too long
    std::string errors;      // what it wrote to standard error, the last 64 KiB
};

// "exited with 3", "died of signal 11 (Segmentation fault)", "was killed: it said nothing for 30 s".
std::string describe(const ChildEnd& end);

// Runs this program with `words` as its arguments and calls `line` with each line that it prints on standard output.
// A child that prints nothing for `silence` is killed. Throws std::system_error.
ChildEnd run_child(const std::vector<std::string>& words, std::chrono::milliseconds silence,
                   const std::function<void(std::string_view)>& line);

// Runs this program with `words` on the streams of this one. Throws std::system_error.
ChildEnd run_in_place(const std::vector<std::string>& words);

}  // namespace tessera::conformance
