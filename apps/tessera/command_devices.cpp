#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/plugin_child.hpp"
#include "apps/tessera/read_settings.hpp"
#include "core/registry/report.hpp"
#include "core/setup/device_memory.hpp"
#include "core/setup/machine.hpp"

namespace tessera::app {

int devices_command(Arguments& arguments) {
    const Machine machine(read_common(arguments));
    for (const std::string& line : machine.remarks) say(line);
    print(devices_report(machine.hardware, machine.registry, driver_memory(machine.hardware, machine.registry)));
    return kExitDone;
}

int plugins_command(Arguments& arguments) {
    const bool why = arguments.has("why") || arguments.has("verbose");
    const std::optional<std::filesystem::path> rig = read_rig(arguments);
    try_plugins_in_children(why ? TriedFirst::kAll : TriedFirst::kUnknown, rig);
    const Machine machine(read_common(arguments), rig);
    for (const std::string& line : machine.remarks) say(line);
    print(plugins_report(machine.registry, why));
    return kExitDone;
}

}  // namespace tessera::app
