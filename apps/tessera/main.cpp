#include "apps/tessera/commands.hpp"
#include "apps/tessera/crash_report.hpp"
#include "apps/tessera/plugin_child.hpp"

#include <chrono>
#include <optional>
#include <string>
#include <vector>

int main(int argc, char** argv) {
    tessera::app::install_crash_report();
    const tessera::app::CallWatch watch(std::chrono::seconds(5));
    const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    tessera::app::allow_children();
    if (const std::optional<int> code = tessera::app::run_as_child(words)) return *code;
    return tessera::app::tessera_main(words);
}
