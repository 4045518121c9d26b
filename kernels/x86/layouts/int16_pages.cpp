#include "int16_pages.hpp"

#include <tessera/cpu/formats.hpp>
#include <tessera/cpu/rows.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace tessera::x86 {

// Parts with no larger magnitude are zero: the factor of smaller ones could overflow.
constexpr float kSmallest = 1e-30f;

// block(e): elements e .. e + kBlock.
template <class Block>
void Int16Pages::write_blocks(Block&& block, char* page, int64_t token) const noexcept {
    auto* to = reinterpret_cast<int16_t*>(page + token * row_bytes());
    auto* scales = reinterpret_cast<float*>(page + TSR_PAGE_TOKENS * row_bytes()) + token;
    for (int part = 0; part < 2; ++part) {
        const int64_t begin = part * kFirstPart, end = part == 0 ? std::min(elements, kFirstPart) : elements;
        float largest = 0, not_finite = 0;
        for (int64_t e = begin; e < end; e += kBlock) {
            const float* x = block(e);
            for (int64_t i = 0; i < kBlock; ++i) {
                largest = std::max(largest, std::fabs(x[i]));
                not_finite += x[i] * 0.0f;  // NaN where x[i] is not finite
            }
        }
        const bool finite = not_finite == 0.0f;
        if (largest < kSmallest) largest = 0;
        const float factor = finite && largest > 0 ? kLargest / largest : 0.0f;
        scales[part * TSR_PAGE_TOKENS] = finite ? largest / kLargest : std::numeric_limits<float>::quiet_NaN();
        for (int64_t e = begin; e < end; e += kBlock) {
            const float* x = block(e);
            for (int64_t i = 0; i < kBlock; ++i)
                to[place_of(e + i)] = finite ? static_cast<int16_t>(std::lrintf(x[i] * factor)) : int16_t{0};
        }
    }
}

void Int16Pages::write(const float* x, char* page, int64_t token) const noexcept {
    write_blocks([&](int64_t e) { return x + e; }, page, token);
}

void Int16Pages::write(tsr_type type, const char* from, char* page, int64_t token) const noexcept {
    float decoded[kBlock];
    const auto block = [&](int64_t e) {
        cpu::decode_elements(type, from, e, kBlock, decoded);
        return static_cast<const float*>(decoded);
    };
    write_blocks(block, page, token);
}

void Int16Pages::read(const char* page, int64_t token, int64_t begin, int64_t end, float* to) const noexcept {
    constexpr int64_t kRun = 8;  // elements that stay consecutive
    const int16_t* from = row(page, token);
    for (int64_t e = begin; e < end; e += kBlock, to += kBlock) {
        const float scale = scales(page, e < kFirstPart ? 0 : 1)[token];
        float block[kBlock];  // in the order of the row
        for (int64_t i = 0; i < kBlock; ++i) block[i] = static_cast<float>(from[e + i]) * scale;
        for (int64_t i = 0; i < kBlock; i += kRun) std::copy_n(block + place_of(i), kRun, to + i);
    }
}

namespace {

template <int kVectorLanes>
Int16Pages pages_of(int64_t elements) noexcept {
    return {elements, kVectorLanes};
}

template <int kVectorLanes>
uint64_t group_bytes(const tsr_layout*, int64_t elements) {
    return static_cast<uint64_t>(pages_of<kVectorLanes>(elements).page_bytes());
}

template <int kVectorLanes>
void pack(const tsr_layout* self, int64_t elements, int64_t groups, const void* rows, void* packed) {
    const Int16Pages pages = pages_of<kVectorLanes>(elements);
    const auto row_bytes = static_cast<int64_t>(cpu::format_bytes(self->type, static_cast<size_t>(elements)));
    const auto* from = static_cast<const char*>(rows);
    auto* page = static_cast<char*>(packed);
    for (int64_t group = 0; group < groups; ++group, page += pages.page_bytes()) {
        for (int64_t token = 0; token < TSR_PAGE_TOKENS; ++token, from += row_bytes)
            pages.write(self->type, from, page, token);
    }
}

template <int kVectorLanes>
constexpr tsr_layout layout_of(const char* name, tsr_type type) noexcept {
    tsr_layout layout{};
    layout.struct_size = sizeof layout;
    layout.type = type;
    layout.name = name;
    layout.group_rows = TSR_PAGE_TOKENS;
    layout.elements_multiple = 32;
    layout.group_bytes = group_bytes<kVectorLanes>;
    layout.pack = pack<kVectorLanes>;
    // Not unpack, which would have to be exact: packing rounds.
    return layout;
}

// Of one order of elements.
struct Layouts {
    tsr_layout f16, bf16;
    const tsr_layout* list[2];
    const char* f16_names[3];
    const char* bf16_names[3];
};

template <int kVectorLanes>
const Layouts& layouts() noexcept {
    static constexpr const char* kF16 = kVectorLanes == 8 ? "f16_int16_avx2" : "f16_int16_avx512";
    static constexpr const char* kBf16 = kVectorLanes == 8 ? "bf16_int16_avx2" : "bf16_int16_avx512";
    static constinit const Layouts kLayouts = {layout_of<kVectorLanes>(kF16, TSR_TYPE_F16),
                                               layout_of<kVectorLanes>(kBf16, TSR_TYPE_BF16),
                                               {&kLayouts.f16, &kLayouts.bf16},
                                               {kF16, "", nullptr},
                                               {kBf16, "", nullptr}};
    return kLayouts;
}

const Layouts& layouts_for(int lanes) noexcept {
    return lanes == 8 ? layouts<8>() : layouts<16>();
}

// The lanes of a layout of that name; 0: it is none of these.
int lanes_of_int16_layout(const char* name) noexcept {
    for (const int lanes : {8, 16}) {
        for (const tsr_layout* layout : layouts_for(lanes).list) {
            if (name && std::string_view(name) == layout->name) return lanes;
        }
    }
    return 0;
}

}  // namespace

std::span<const tsr_layout* const> int16_layouts(int lanes) noexcept {
    return layouts_for(lanes).list;
}

const char* const* int16_layout_names(tsr_type type, int lanes) noexcept {
    const Layouts& some = layouts_for(lanes);
    return type == TSR_TYPE_F16 ? some.f16_names : type == TSR_TYPE_BF16 ? some.bf16_names : nullptr;
}

bool has_int16_layout(const tsr_tensor& cache) noexcept {
    const int lanes = lanes_of_int16_layout(cache.layout);
    return lanes > 0 && takes_int16_pages(cache.type, cache.dims[0]) &&
           std::string_view(int16_layout_names(cache.type, lanes)[0]) == cache.layout;
}

Int16Pages int16_pages_of(const tsr_tensor& cache) noexcept {
    return {cache.dims[0], lanes_of_int16_layout(cache.layout)};
}

}  // namespace tessera::x86
