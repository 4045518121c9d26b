#include "suite.hpp"

#include "process.hpp"

#include <algorithm>
#include <cstdio>
#include <set>

namespace tessera::conformance {
namespace {

using Clock = std::chrono::steady_clock;

bool matches(std::string_view pattern, std::string_view text) {
    size_t p = 0, t = 0, star = std::string_view::npos, mark = 0;
    while (t < text.size()) {
        if (p < pattern.size() && pattern[p] == '*') {
            star = p++;
            mark = t;
        } else if (p < pattern.size() && pattern[p] == text[t]) {
            ++p;
            ++t;
        } else if (star != std::string_view::npos) {
            p = star + 1;
            t = ++mark;
        } else {
            return false;
        }
    }
    while (p < pattern.size() && pattern[p] == '*') ++p;
    return p == pattern.size();
}

std::string last_line(const std::string& text) {
    std::string line;
    size_t begin = 0;
    for (size_t end; begin < text.size(); begin = end + 1) {
        end = std::min(text.find('\n', begin), text.size());
        if (end > begin) line = text.substr(begin, end - begin);
    }
    return line;
}

std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            default:
                out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
        }
    }
    return out;
}

// The cases of a group, over as many children as it takes.
class GroupRun {
  public:
    // `lost`: devices on which nothing is to be run any more.
    GroupRun(const Group& group, std::chrono::milliseconds silence, std::set<std::string>& lost)
        : group_(group), silence_(silence), lost_devices_(lost) {}

    std::vector<Outcome> run() {
        if (lost_devices_.contains(group_.device)) {
            give_up("the device " + group_.device + " is lost");
            return std::move(outcomes_);
        }
        for (size_t deaths = 0; !ended_;) {
            const size_t before = next_;
            fault_.clear();
            open_ = lost_ = false;
            gone_.clear();
            const ChildEnd end = run_child(group_.words(next_), silence_, [&](std::string_view line) { take(line); });
            if (ended_) break;
            if (!gone_.empty() || lost_again_) {
                lost_devices_.insert(group_.device);
                if (outcomes_.empty()) {
                    current_ = {Outcome::kFailed, group_.name, "start", "", 0};
                    finish(Outcome::kFailed, gone_);
                }
                give_up(gone_.empty() ? "the device is lost again" : "the device cannot be opened any more: " + gone_);
                break;
            }
            if (lost_) continue;
            std::string why = fault_.empty() ? "the process " + describe(end) : fault_;
            if (const std::string said = last_line(end.errors); fault_.empty() && !said.empty()) why += ": " + said;
            if (end.timed_out)
                why = "it did not come back and was ended after " + std::to_string(silence_.count() / 1000) + " s";
            if (!open_)
                current_ = {Outcome::kFailed, group_.name, next_ == before && next_ == 0 ? "start" : "between cases",
                            "", 0};
            finish(Outcome::kFailed, why);
            if (!open_was_) break;  // it dies without a case: nothing more can be learnt
            if (++deaths == kMaxDeaths) {
                current_ = {Outcome::kFailed, group_.name, "the rest", "", 0};
                finish(Outcome::kFailed, "given up after " + std::to_string(kMaxDeaths) + " crashes");
                break;
            }
        }
        return std::move(outcomes_);
    }

  private:
    void take(std::string_view line) {
        const size_t tab = line.find('\t');
        const std::string_view word = line.substr(0, tab);
        const std::string text(tab == std::string_view::npos ? "" : line.substr(tab + 1));
        if (word == "begin") {
            current_ = {Outcome::kPassed, group_.name, text, "", 0};
            began_ = Clock::now();
            open_ = true;
            ++next_;
        } else if (word == "pass") {
            lost_last_ = false;
            finish(Outcome::kPassed, text);
        } else if (word == "skip") {
            finish(Outcome::kSkipped, text);
        } else if (word == "fail") {
            finish(Outcome::kFailed, text);
        } else if (word == "lost") {
            // Once is the case's own failure; twice in a row is that of the device.
            lost_again_ = lost_last_ && open_;
            finish(lost_again_ ? Outcome::kNotRun : Outcome::kFailed, text);
            lost_ = lost_last_ = true;
            return;
        } else if (word == "gone") {
            gone_ = text;
        } else if (word == "fault") {
            fault_ = text;
        } else if (word == "end") {
            ended_ = true;
        }
    }
    void give_up(const std::string& why) {
        current_ = {Outcome::kNotRun, group_.name, "the rest", "", 0};
        finish(Outcome::kNotRun, why);
    }
    void finish(Outcome::Kind kind, const std::string& text) {
        current_.kind = kind;
        current_.text = text;
        current_.seconds = open_ ? std::chrono::duration<double>(Clock::now() - began_).count() : 0;
        outcomes_.push_back(current_);
        open_was_ = open_;
        open_ = false;
    }

    const Group& group_;
    std::chrono::milliseconds silence_;
    std::set<std::string>& lost_devices_;
    std::vector<Outcome> outcomes_;
    Outcome current_;
    Clock::time_point began_;
    std::string fault_;
    size_t next_ = 0;
    bool ended_ = false, open_ = false, open_was_ = false;
    std::string gone_;  // why the child could not open the device
    // The device was lost in this child, in the last case that was run on it, and in two in a row.
    bool lost_ = false, lost_last_ = false, lost_again_ = false;
};

}  // namespace

ExpectedFailures::ExpectedFailures(std::string_view text) {
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, std::min(end, text.substr(0, end).find('#')));
        while (!line.empty() && (line.back() == ' ' || line.back() == '\r' || line.back() == '\t'))
            line.remove_suffix(1);
        if (!line.empty()) patterns_.emplace_back(line);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

bool ExpectedFailures::contains(std::string_view plugin, const Outcome& outcome) const {
    const std::string name = std::string(plugin) + ' ' + outcome.group + '/' + outcome.name;
    return std::ranges::any_of(patterns_, [&](const std::string& pattern) { return matches(pattern, name); });
}

std::vector<Outcome> run_groups(const std::vector<Group>& groups, std::chrono::milliseconds silence,
                                const std::function<void(const Group&, const std::vector<Outcome>&)>& done) {
    std::vector<Outcome> all;
    std::set<std::string> lost;
    for (const Group& group : groups) {
        std::vector<Outcome> outcomes = GroupRun(group, silence, lost).run();
        done(group, outcomes);
        std::ranges::move(outcomes, std::back_inserter(all));
    }
    return all;
}

void apply(const ExpectedFailures& expected, std::string_view plugin, std::vector<Outcome>& outcomes) {
    for (Outcome& outcome : outcomes) {
        if (outcome.kind == Outcome::kSkipped || outcome.kind == Outcome::kNotChecked ||
            outcome.kind == Outcome::kNotRun)
            continue;
        if (!expected.contains(plugin, outcome)) continue;
        if (outcome.kind == Outcome::kFailed) {
            outcome.kind = Outcome::kExpectedFailure;
        } else {
            outcome.kind = Outcome::kFailed;
            outcome.text = "it is listed as an expected failure, and passes: take it off the list";
        }
    }
}

size_t count(const std::vector<Outcome>& outcomes, Outcome::Kind kind) {
    return static_cast<size_t>(std::ranges::count(outcomes, kind, &Outcome::kind));
}

std::string junit_xml(const std::vector<PluginOutcome>& plugins) {
    std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n";
    char number[32];
    for (const PluginOutcome& plugin : plugins) {
        xml += "  <testsuite name=\"" + escaped(plugin.plugin) + "\" tests=\"" +
               std::to_string(plugin.outcomes.size()) + "\" failures=\"" +
               std::to_string(count(plugin.outcomes, Outcome::kFailed)) + "\" skipped=\"" +
               std::to_string(count(plugin.outcomes, Outcome::kSkipped) +
                              count(plugin.outcomes, Outcome::kExpectedFailure) +
                              count(plugin.outcomes, Outcome::kNotChecked) + count(plugin.outcomes, Outcome::kNotRun)) +
               "\">\n";
        for (const Outcome& outcome : plugin.outcomes) {
            std::snprintf(number, sizeof number, "%.3f", outcome.seconds);
            xml += "    <testcase classname=\"" + escaped(plugin.plugin + "." + outcome.group) + "\" name=\"" +
                   escaped(outcome.name) + "\" time=\"" + number + "\"";
            switch (outcome.kind) {
                case Outcome::kPassed:
                    xml += "/>\n";
                    break;
                case Outcome::kFailed:
                    xml += "><failure message=\"" + escaped(outcome.text) + "\"/></testcase>\n";
                    break;
                case Outcome::kSkipped:
                case Outcome::kNotChecked:
                case Outcome::kNotRun:
                    xml += "><skipped message=\"" + escaped(outcome.text) + "\"/></testcase>\n";
                    break;
                case Outcome::kExpectedFailure:
                    xml += "><skipped message=\"expected failure: " + escaped(outcome.text) + "\"/></testcase>\n";
                    break;
            }
        }
        xml += "  </testsuite>\n";
    }
    return xml + "</testsuites>\n";
}

}  // namespace tessera::conformance
