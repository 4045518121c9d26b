#include "apps/tessera/process_flags.hpp"

#include "apps/tessera/output.hpp"
#include "core/base/error.hpp"
#include "core/base/log.hpp"

#include <sched.h>
#include <sys/resource.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <system_error>

namespace tessera::app {
namespace {

// In other programs' old numbering -lv 0 is the default; in the present one 4 and 5 are more verbose than the default.
constexpr int64_t kVerboseFrom = 4;
constexpr int kMaxCpus = CPU_SETSIZE;

// "ff", "0xff": the last digit holds CPUs 0 to 3.
cpu_set_t read_mask(const Arguments& arguments, std::string_view text) {
    const std::string whole(text);
    if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (size_t i = 0; i < text.size(); ++i) {
        unsigned digit = 0;
        const char* const at = text.data() + text.size() - 1 - i;
        if (std::from_chars(at, at + 1, digit, 16).ec != std::errc() || i * 4 + 4 > kMaxCpus)
            arguments.reject("cpu-mask", "hexadecimal digits, a bit a CPU", whole);
        for (size_t bit = 0; bit < 4; ++bit) {
            if (digit >> bit & 1) CPU_SET(i * 4 + bit, &set);
        }
    }
    return set;
}

cpu_set_t read_range(const Arguments& arguments, std::string_view text) {
    int first = 0, last = 0;
    const char* const end = text.data() + text.size();
    const auto [dash, error] = std::from_chars(text.data(), end, first);
    const bool whole = error == std::errc() && dash != end && *dash == '-' &&
                       std::from_chars(dash + 1, end, last).ptr == end && dash + 1 != end;
    if (!whole || first < 0 || last < first || last >= kMaxCpus)
        arguments.reject("cpu-range", fmt::format("FIRST-LAST, two CPUs from 0 to {}", kMaxCpus - 1), text);
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = first; cpu <= last; ++cpu) CPU_SET(static_cast<size_t>(cpu), &set);
    return set;
}

void stay_on(const Arguments& arguments, std::string_view flag, const cpu_set_t& set) {
    if (sched_setaffinity(0, sizeof set, &set) == 0) return;
    throw UsageError(fmt::format("{}: this process cannot run on these CPUs: {}", arguments.typed(flag),
                                 std::generic_category().message(errno)));
}

// -1 to 3, as nice values.
void set_priority(Arguments& arguments) {
    const auto level = arguments.integer("prio", -1, 3);
    if (!level || *level == 0) return;
    constexpr int nice_values[] = {10, 0, -5, -10, -20};
    if (setpriority(PRIO_PROCESS, 0, nice_values[*level + 1]) == 0) return;
    arguments.remark(fmt::format("{} {}: the system does not allow this priority ({})", arguments.typed("prio"), *level,
                                 std::generic_category().message(errno)));
}

}  // namespace

void apply_process_flags(Arguments& arguments) {
    if (arguments.integer("log-verbosity", -1, 100).value_or(0) >= kVerboseFrom) arguments.set("verbose");
    if (arguments.has("verbose")) log().set_level(spdlog::level::debug);
    if (arguments.has("log-disable")) {
        silence_messages();
        log().set_level(spdlog::level::err);
    }
    if (const auto file = arguments.text("log-file")) copy_messages_to(*file);
    if (const auto mask = arguments.text("cpu-mask")) stay_on(arguments, "cpu-mask", read_mask(arguments, *mask));
    if (const auto range = arguments.text("cpu-range")) stay_on(arguments, "cpu-range", read_range(arguments, *range));
    set_priority(arguments);
}

}  // namespace tessera::app
