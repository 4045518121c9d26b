#include "options.hpp"

#include "kernels/plain/plain.hpp"

#include <tessera/cpp/status.hpp>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace tessera::simulated {
namespace {

using sdk::Failure;

constexpr std::string_view kPolicies[] = {"random", "at_once", "on_wait", "oldest_last", "newest_last"};

struct Part {
    std::string_view name;
    uint32_t bit;
};
constexpr Part kParts[] = {
    {"recordings", TSR_SIMULATED_NO_RECORDINGS},
    {"pinned", TSR_SIMULATED_NO_PINNED},
    {"registration", TSR_SIMULATED_NO_REGISTRATION},
    {"peers", TSR_SIMULATED_NO_PEERS},
    {"memory_info", TSR_SIMULATED_NO_MEMORY_INFO},
    {"timing", TSR_SIMULATED_NO_TIMING},
    {"reach", TSR_SIMULATED_UNREACHABLE},
    {"packing", TSR_SIMULATED_NO_PACKING},
    {"layouts", TSR_SIMULATED_NO_LAYOUTS},
};
constexpr uint32_t kAllParts = 2 * TSR_SIMULATED_NO_LAYOUTS - 1;

std::vector<std::string> split(std::string_view list) {
    std::vector<std::string> names;
    while (!list.empty()) {
        const size_t comma = std::min(list.find(','), list.size());
        if (comma > 0) names.emplace_back(list.substr(0, comma));
        list.remove_prefix(std::min(comma + 1, list.size()));
    }
    return names;
}

bool is_type_name(std::string_view name) noexcept {
    constexpr std::string_view kNames[] = {
#define TSR_NAME(id, number, text, ...) text,
        TSR_TYPES(TSR_NAME)
#undef TSR_NAME
    };
    return std::ranges::find(kNames, name) != std::end(kNames);
}

std::vector<std::string> lacks_from(std::string_view list) {
    std::vector<std::string> names = split(list);
    for (const std::string& name : names) {
        if (!plain::find_op(name) && !is_type_name(name))
            throw Failure(TSR_INVALID_ARGUMENT, "lacks: expected primitive ops and element types; found " + name);
    }
    return names;
}

std::string_view variable(const char* name) noexcept {
    const char* value = std::getenv(name);
    return value ? value : "";
}

void read_number(const char* name, uint64_t& number) {
    const std::string_view text = variable(name);
    if (text.empty()) return;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size())
        throw Failure(TSR_INVALID_ARGUMENT, std::string(name) + ": expected a number; found " + std::string(text));
}

}  // namespace

bool Options::lacking(std::string_view name) const noexcept {
    return std::ranges::find(lacks, name) != lacks.end();
}

Options options_from(const tsr_simulated_options& given) {
    if (given.struct_size < sizeof given)
        throw Failure(TSR_INVALID_ARGUMENT, "tsr_simulated_options: smaller than version 1");
    if (given.policy >= std::size(kPolicies))
        throw Failure(TSR_INVALID_ARGUMENT, "policy: expected 0 to 4; found " + std::to_string(given.policy));
    if (given.without > kAllParts) throw Failure(TSR_INVALID_ARGUMENT, "without: unknown bits");
    return {.policy = given.policy,
            .seed = given.seed,
            .without = given.without,
            .lacks = lacks_from(given.lacks ? given.lacks : "")};
}

Options options_from_environment() {
    Options options;
    if (const std::string_view text = variable("TESSERA_SIMULATED_POLICY"); !text.empty()) {
        const auto* found = std::ranges::find(kPolicies, text);
        if (found == std::end(kPolicies)) {
            throw Failure(TSR_INVALID_ARGUMENT,
                          "TESSERA_SIMULATED_POLICY: expected random, at_once, on_wait, oldest_last or newest_last; "
                          "found " +
                              std::string(text));
        }
        options.policy = static_cast<uint32_t>(found - kPolicies);
    }
    read_number("TESSERA_SIMULATED_SEED", options.seed);
    read_number("TESSERA_SIMULATED_VANISH", options.vanish_after);
    for (const std::string& name : split(variable("TESSERA_SIMULATED_WITHOUT"))) {
        const auto* found = std::ranges::find(kParts, std::string_view(name), &Part::name);
        if (found == std::end(kParts)) {
            throw Failure(TSR_INVALID_ARGUMENT,
                          "TESSERA_SIMULATED_WITHOUT: expected recordings, pinned, registration, peers, memory_info, "
                          "timing, reach, packing or layouts; found " +
                              name);
        }
        options.without |= found->bit;
    }
    options.lacks = lacks_from(variable("TESSERA_SIMULATED_LACKS"));
    return options;
}

}  // namespace tessera::simulated
