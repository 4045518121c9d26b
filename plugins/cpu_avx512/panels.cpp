#include "code.hpp"

#include <tessera/cpu/isa/avx512.hpp>

namespace tessera::x86 {

namespace {

constexpr PanelTable with_tiles(PanelTable table) noexcept {
    table.tiles = &kTiles;
    return table;
}

}  // namespace

constinit const PanelTable kPanels = make_panel_table<cpu::isa::Avx512>();
constinit const PanelTable kVnniPanels = make_panel_table<cpu::isa::Avx512Vnni>();
constinit const PanelTable kAmxPanels = with_tiles(make_panel_table<cpu::isa::Avx512Vnni>());

}  // namespace tessera::x86
