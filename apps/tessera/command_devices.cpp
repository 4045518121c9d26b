#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/plugin_child.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/wording/wording.hpp"
#include "core/registry/report.hpp"
#include "core/setup/device_memory.hpp"
#include "core/setup/machine.hpp"

#include <algorithm>

namespace tessera::app {

int devices_command(Arguments& arguments) {
    const Machine machine(read_common(arguments));
    for (const Notice& notice : machine.remarks) say(worded(notice));
    print(devices_report(machine.hardware, machine.registry, driver_memory(machine.hardware, machine.registry)));
    return kExitDone;
}

int plugins_command(Arguments& arguments) {
    const bool why = arguments.has("why") || arguments.has("verbose");
    const std::optional<std::filesystem::path> rig = read_rig(arguments);
    try_plugins_in_children(why ? TriedFirst::kEvery : TriedFirst::kUnknown, rig);
    const Machine machine(read_common(arguments), rig);
    for (const Notice& notice : machine.remarks) say(worded(notice));
    const auto is_used = [](const PluginRecord& record) { return record.state == PluginState::kChosen; };
    const bool more = !why && !std::ranges::all_of(machine.registry.plugins(), is_used);
    print(plugins_report(machine.registry, why) + (more ? "(--why shows what each needs)\n" : ""));
    return kExitDone;
}

}  // namespace tessera::app
