// From the flags of a command line to settings.
#pragma once

#include "apps/tessera/arguments.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/settings.hpp"

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::app {

// Both throw UsageError for invalid values.
CommonSettings read_common(Arguments& arguments);
ModelSettings read_model_settings(Arguments& arguments);

// A remark for each of these flags that is given though `whole`, of which they say more, is not.
void remark_without(Arguments& arguments, std::string_view whole, std::initializer_list<std::string_view> flags);

// Lowers the threads of the settings to the CPUs of the machine, with a remark for each flag that requests more.
void cap_threads(Arguments& arguments, ModelSettings& settings, const Machine& machine);

// cap_threads(), then the settings that model and machine decide, with a remark for each notice. Throws what settle()
// of core/setup/machine.hpp throws.
void settle(Arguments& arguments, ModelSettings& settings, const OpenedModel& model, const Machine& machine);

// The file of --rig.
std::optional<std::filesystem::path> read_rig(const Arguments& arguments);

// Replaces the escapes \n, \r, \t, \\, \", \' and \xNN; any other backslash stays.
std::string unescape(std::string_view text);

// A line of -p, -n, ... that a plan does not depend on; empty if there is none.
std::string idle_in_plan(const Arguments& arguments);

}  // namespace tessera::app
