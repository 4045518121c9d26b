#include "apps/tessera/commands.hpp"
#include "apps/tessera/setup.hpp"
#include "core/registry/report.hpp"

#include <cstdio>

namespace tessera::app {

int devices_command(Arguments& arguments) {
    const Machine machine(read_common(arguments));
    std::fputs(devices_report(machine.hardware, machine.registry).c_str(), stdout);
    return kExitDone;
}

int plugins_command(Arguments& arguments) {
    const Machine machine(read_common(arguments));
    std::fputs(plugins_report(machine.registry, arguments.has("why") || arguments.has("verbose")).c_str(), stdout);
    return kExitDone;
}

}  // namespace tessera::app
