#include "code.hpp"

#include <tessera/cpu/isa/avx2.hpp>

namespace tessera::cpu_x86 {

constinit const PanelTable kPanels = make_panel_table<cpu::isa::Avx2>();

}  // namespace tessera::cpu_x86
