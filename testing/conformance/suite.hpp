// The tests of one plugin, run in child processes, and what came of them.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::conformance {

struct Outcome {
    // kSkipped: the kernel does not claim the case. kNotChecked: no test covers this part of the plugin. kNotRun: what
    // failed before makes it pointless.
    enum Kind { kPassed, kFailed, kSkipped, kExpectedFailure, kNotChecked, kNotRun } kind = kPassed;
    std::string group;  // "kernel matmul.q4_0", "layout", "device SIM0", "table"
    std::string name;   // of the case
    std::string text;   // why it failed or was skipped; of a pass what was not compared
    double seconds = 0;
};

// Patterns of failures that are known: lines "PLUGIN GROUP/CASE", where * stands for any characters; # begins a
// comment. A case that is listed and passes is a failure: the list is to be kept true.
class ExpectedFailures {
  public:
    ExpectedFailures() = default;
    explicit ExpectedFailures(std::string_view text);
    bool contains(std::string_view plugin, const Outcome& outcome) const;

  private:
    std::vector<std::string> patterns_;
};

// A group of cases: the words of a child that runs them from the case of a number on.
struct Group {
    std::string name;
    std::function<std::vector<std::string>(size_t first)> words;
    std::string device = {};  // on which they run; empty: on the CPU
};

// Runs each group in children. One that crashes or hangs fails its case, and another goes on with the next case; after
// `kMaxDeaths` of a group the rest of it is given up. A device that is lost is one failure: another child goes on, and
// where that cannot open the device, or loses it at once, nothing more is run on it. `done` is called after each group.
constexpr size_t kMaxDeaths = 10;
std::vector<Outcome> run_groups(const std::vector<Group>& groups, std::chrono::milliseconds silence,
                                const std::function<void(const Group&, const std::vector<Outcome>&)>& done);

// Turns failures that are expected into such, and listed cases that pass into failures.
void apply(const ExpectedFailures& expected, std::string_view plugin, std::vector<Outcome>& outcomes);

size_t count(const std::vector<Outcome>& outcomes, Outcome::Kind kind);

// One plugin and what came of it.
struct PluginOutcome {
    std::string plugin;
    std::vector<Outcome> outcomes;
};
// The format that CI systems read.
std::string junit_xml(const std::vector<PluginOutcome>& plugins);

}  // namespace tessera::conformance
