#include "options.hpp"

#include "kernels/plain/plain.hpp"

#include <tessera/cpp/status.hpp>

#include <algorithm>
#include <iterator>

namespace tessera::simulated {
namespace {

using sdk::Failure;

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

}  // namespace

bool Options::lacking(std::string_view name) const noexcept {
    return std::ranges::find(lacks, name) != lacks.end();
}

Options options_from(const tsr_simulated_options& given) {
    if (given.struct_size < sizeof given)
        throw Failure(TSR_INVALID_ARGUMENT, "tsr_simulated_options: smaller than version 1");
    if (given.policy > TSR_SIMULATED_NEWEST_LAST)
        throw Failure(TSR_INVALID_ARGUMENT, "policy: expected 0 to 4; found " + std::to_string(given.policy));
    if (given.without > kAllParts) throw Failure(TSR_INVALID_ARGUMENT, "without: unknown bits");
    return {.policy = given.policy,
            .seed = given.seed,
            .without = given.without,
            .lacks = lacks_from(given.lacks ? given.lacks : "")};
}

}  // namespace tessera::simulated
