#include "code.hpp"

#include <tessera/cpu/isa/avx512.hpp>

namespace tessera::cpu_x86 {

constinit const PanelTable kPanels = make_panel_table<cpu::isa::Avx512>();
constinit const PanelTable kVnniPanels = make_panel_table<cpu::isa::Avx512Vnni>();

}  // namespace tessera::cpu_x86
