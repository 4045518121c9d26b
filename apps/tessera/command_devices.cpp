#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "core/registry/report.hpp"
#include "core/setup/machine.hpp"

namespace tessera::app {

int devices_command(Arguments& arguments) {
    const Machine machine(read_common(arguments));
    print(devices_report(machine.hardware, machine.registry));
    return kExitDone;
}

int plugins_command(Arguments& arguments) {
    const Machine machine(read_common(arguments));
    print(plugins_report(machine.registry, arguments.has("why") || arguments.has("verbose")));
    return kExitDone;
}

}  // namespace tessera::app
