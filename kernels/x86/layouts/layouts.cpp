#include "layouts.hpp"

#include "../matmul/weight_kernels.hpp"

#include <tessera/cpu/formats.hpp>

#include <vector>

namespace tessera::x86 {

namespace {

// A tsr_layout with its kernels.
struct Layout : tsr_layout {
    const WeightKernels* kernels;
    const char* names[3];  // itself, canonical, end
};

const Layout& of(const tsr_layout* self) noexcept {
    return static_cast<const Layout&>(*self);
}

uint64_t group_bytes(const tsr_layout* self, int64_t elements) {
    return kLanes * cpu::format_bytes(self->type, static_cast<size_t>(elements));
}
void pack(const tsr_layout* self, int64_t elements, int64_t groups, const void* rows, void* packed) {
    of(self).kernels->pack(elements, groups, rows, packed);
}
void unpack(const tsr_layout* self, int64_t elements, int64_t groups, const void* packed, void* rows) {
    of(self).kernels->unpack(elements, groups, packed, rows);
}

struct Tables {
    std::vector<Layout> layouts;
    std::vector<const tsr_layout*> list;

    Tables() {
        layouts.reserve(weight_kernels().size());
        for (const WeightKernels* kernels : weight_kernels()) {
            Layout& layout = layouts.emplace_back();
            layout.struct_size = sizeof(tsr_layout);
            layout.name = kernels->layout;
            layout.type = kernels->type;
            layout.group_rows = kLanes;
            layout.elements_multiple = kernels->elements_multiple;
            layout.group_bytes = group_bytes;
            layout.pack = pack;
            layout.unpack = unpack;
            layout.kernels = kernels;
            layout.names[0] = kernels->layout;
            layout.names[1] = "";
            layout.names[2] = nullptr;
            list.push_back(&layout);
        }
    }
};

const Tables& tables() {
    static const Tables kTables;
    return kTables;
}

}  // namespace

std::span<const tsr_layout* const> weight_layouts() noexcept {
    return tables().list;
}

const char* const* layouts_of(tsr_type type, bool packable) noexcept {
    for (const Layout& layout : tables().layouts) {
        if (layout.type == type) return packable ? layout.names : layout.names + 1;
    }
    return nullptr;
}

}  // namespace tessera::x86
