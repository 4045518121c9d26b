// A layout of cache pages: rows as the int16 that attention multiplies, so that nothing is converted at each token.
//
// A page is TSR_PAGE_TOKENS rows, 64 bytes aligned, of elements in the order of a vector unit (Isa::place_of), and
// after them the scales of its rows: of their first 512 elements, then of the rest. The largest magnitude of a part is
// 8128 (attention/int16_arithmetic.hpp). The rounding is that of attention over f16 rows, once instead of after the
// rounding to f16.
#pragma once

#include "../kit.hpp"

#include <tessera/tensor.h>

#include <cstdint>
#include <span>

namespace tessera::x86 {

struct Int16Pages {
    static constexpr int64_t kFirstPart = 512;  // elements that have a scale of their own
    static constexpr float kLargest = 127 * 64;

    int64_t elements = 0;  // of a row, a multiple of 32
    int lanes = 0;         // of the vector unit

    int64_t row_bytes() const noexcept { return elements * static_cast<int64_t>(sizeof(int16_t)); }
    int64_t page_bytes() const noexcept {
        return TSR_PAGE_TOKENS * (row_bytes() + 2 * static_cast<int64_t>(sizeof(float)));
    }
    const int16_t* row(const char* page, int64_t token) const noexcept {
        return reinterpret_cast<const int16_t*>(page + token * row_bytes());
    }
    // [TSR_PAGE_TOKENS], of a part of its rows (0, 1).
    const float* scales(const char* page, int part) const noexcept {
        return reinterpret_cast<const float*>(page + TSR_PAGE_TOKENS * row_bytes()) + part * TSR_PAGE_TOKENS;
    }

    // Where element e of a row is.
    constexpr int64_t place_of(int64_t e) const noexcept {
        if (lanes != 8) return e;
        const int64_t i = e % 32;
        return e - i + i / 8 % 2 * 16 + i / 16 * 8 + i % 8;
    }
    // Row `token` of a page from floats. A number that is not finite makes its part NaN.
    void write(const float* x, char* page, int64_t token) const noexcept;
    // The same from a row of a type.
    void write(tsr_type type, const char* from, char* page, int64_t token) const noexcept;
    // Elements [begin, end) of a row, whole blocks of 32, to floats.
    void read(const char* page, int64_t token, int64_t begin, int64_t end, float* to) const noexcept;

  private:
    static constexpr int64_t kBlock = 32;
    template <class Block>
    void write_blocks(Block&& block, char* page, int64_t token) const noexcept;
};

// Whether rows of a cache can be in the layout.
constexpr bool takes_int16_pages(tsr_type type, int64_t elements) noexcept {
    return (type == TSR_TYPE_F16 || type == TSR_TYPE_BF16) && elements % 32 == 0 && elements > 0;
}

// The layouts of a plugin whose vectors have so many lanes, one for each type. Live as long as the library; any thread.
std::span<const tsr_layout* const> int16_layouts(int lanes) noexcept;
// The layouts of a cache of `type`, best first, for tsr_kernel_plan.
const char* const* int16_layout_names(tsr_type type, int lanes) noexcept;
// The pages of a cache; of no lanes where it is in none of these layouts. Compares names, so not for each run.
Int16Pages int16_pages_of(const tsr_tensor& cache) noexcept;
// Whether a cache is in one of these layouts and can be.
bool has_int16_layout(const tsr_tensor& cache) noexcept;

}  // namespace tessera::x86
