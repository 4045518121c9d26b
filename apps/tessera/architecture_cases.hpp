// What `plugin-test` checks of an architecture that a plugin brings.
#pragma once

#include "core/registry/registry.hpp"

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace tessera::app {

// Cases from number `first` on, told on the descriptor as conformance::run_kernel_cases tells its own. A file without
// keys has to be refused. `model`: a file of this architecture, which is built twice, and with each of its keys changed
// to values that make no sense; empty: there is none. `only`: cases whose
// names contain one of these; empty: all. The process crashes where the plugin does. Throws Error for a
// file that cannot be read, or is of another architecture.
void run_architecture_cases(const Registry& registry, const std::string& architecture,
                            const std::filesystem::path& model, std::span<const std::string> only, size_t first,
                            int descriptor);

}  // namespace tessera::app
