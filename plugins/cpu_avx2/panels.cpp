#include "code.hpp"

#include <tessera/cpu/isa/avx2.hpp>
#include <tessera/cpu/isa/avx2_vnni.hpp>

namespace tessera::x86 {

constinit const PanelTable kPanels = make_panel_table<cpu::isa::Avx2>();
constinit const PanelTable kVnniPanels = make_panel_table<cpu::isa::Avx2Vnni>();

}  // namespace tessera::x86
