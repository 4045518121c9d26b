#include "layouts.hpp"

#include "../matmul/weight_kernels.hpp"

#include <tessera/cpu/formats/formats.hpp>

#include <array>

namespace tessera::cpu_avx2 {

namespace {

constexpr std::array kTypes = {TSR_TYPE_Q4_0,   TSR_TYPE_Q4_1,   TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q8_0,
                               TSR_TYPE_IQ4_NL, TSR_TYPE_Q2_K,   TSR_TYPE_Q3_K, TSR_TYPE_Q4_K, TSR_TYPE_Q5_K,
                               TSR_TYPE_Q6_K,   TSR_TYPE_IQ4_XS, TSR_TYPE_F32,  TSR_TYPE_F16,  TSR_TYPE_BF16};

// A tsr_layout with what it stands for.
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
    std::array<Layout, kTypes.size()> layouts{};
    std::array<const tsr_layout*, kTypes.size()> list{};

    Tables() noexcept {
        for (size_t i = 0; i < kTypes.size(); ++i) {
            const WeightKernels* kernels = find_weight_kernels(static_cast<tsr_type>(kTypes[i]));
            Layout& layout = layouts[i];
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
            list[i] = &layout;
        }
    }
};

const Tables& tables() noexcept {
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

}  // namespace tessera::cpu_avx2
