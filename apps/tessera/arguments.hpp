// Parses a command line into flags and their values.
#pragma once

#include "apps/tessera/command_words.hpp"
#include "apps/tessera/usage_error.hpp"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {

// The flags of one command line. Getters take a flag's name in the table and throw UsageError, naming the flag as
// typed, if the value is not of the expected kind. Of a flag that is given twice the last one counts, except in all()
// and list(), and of flags that set the same member the one that is given last.
class Arguments {
  public:
    // `words`: the arguments after the command. `environment`: flags that count where `words` have neither them nor
    // their opposites. Throws UsageError for unknown and refused flags and for values that are missing.
    Arguments(Command command, std::span<const std::string> words, std::span<const GivenFlag> environment = {});

    Command command() const noexcept { return command_; }
    bool has(std::string_view name) const;
    std::vector<std::string> all(std::string_view name) const;
    std::optional<std::string> text(std::string_view name) const;
    // As if the flag, which takes no value, had been given.
    void set(std::string_view name);
    // The flag as typed; its first spelling if it was not given.
    std::string_view typed(std::string_view name) const;
    // A message that begins with flags by any of their spellings ("-t 8: ...", "-p and -f contradict each other: ..."),
    // with those as typed.
    std::string as_typed(std::string_view message) const;
    // Sets the members of `object` that the given flags have setters for, in the order in which they were given last.
    template <typename Structure>
    void read_into(Structure& object) {
        set_members(&kTypeTag<Structure>, &object);
    }
    // Of a list the first number, with a remark, if the flag takes lists in benchmarks.
    std::optional<int64_t> integer(std::string_view name, int64_t minimum, int64_t maximum);
    std::optional<double> number(std::string_view name, double minimum, double maximum);
    std::optional<std::vector<double>> numbers(std::string_view name, double minimum = 0);
    // on, off, auto (which is on), 1, 0, true, false.
    std::optional<bool> on_off(std::string_view name);
    // One of the words of the flag's placeholder.
    std::optional<std::string> choice(std::string_view name);

    // All values of a flag that takes several: "1,2 -t 4" is 1, 2 and 4; "4-16", "0-4096+1024" and "1-64*2" are ranges.
    std::vector<std::string> list(std::string_view name) const;
    std::vector<int64_t> integers(std::string_view name, int64_t minimum, int64_t maximum) const;
    // These arguments once for each combination of the values of `names`, the last name changing fastest.
    std::vector<Arguments> combinations(std::span<const std::string_view> names) const;

    // Throws UsageError that names the flag, what was expected and what was found.
    [[noreturn]] void reject(std::string_view name, std::string_view expected, std::string_view found) const;

    // One line for each flag that was accepted and is ignored, in the order of the command line.
    const std::vector<std::string>& remarks() const noexcept { return remarks_; }
    // Flags that the line begins with are named as typed.
    void remark(std::string_view line);

  private:
    template <typename Parse>
    auto value_of(std::string_view name, const Parse& parse) -> std::optional<decltype(parse(std::string_view()))>;
    void set_members(const void* owner, void* object);
    void add(const GivenFlag& given);
    void remark_once(std::string line);
    std::string_view typed(std::string_view name, std::string_view otherwise) const;
    std::string single(std::string_view name, const std::string& value);

    Command command_;
    std::map<std::string, std::vector<std::string>, std::less<>> values_;  // by the flag's name in the table
    std::map<std::string, std::string, std::less<>> typed_;                // likewise
    std::map<std::string, size_t, std::less<>> places_;                    // likewise: where it was given last
    size_t given_ = 0;
    std::vector<std::string> remarks_;
};

}  // namespace tessera::app
