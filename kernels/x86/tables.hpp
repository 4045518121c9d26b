// The plugin's table.
#pragma once

#include <tessera/plugin.h>

namespace tessera::x86 {

// What tessera_plugin_query of a plugin returns. suffix: of the kernels' names (".avx2"). Strings live as long as the
// library. The first call counts.
const tsr_plugin* plugin_table(const tsr_host* host, const char* name, const char* suffix) noexcept;

}  // namespace tessera::x86
