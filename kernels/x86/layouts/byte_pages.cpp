#include "byte_pages.hpp"

#include <cstring>
#include <string_view>

namespace tessera::x86 {

void BytePages::write_block(const char* canonical, char* page, int64_t token, int64_t block) const noexcept {
    uint16_t scale;
    std::memcpy(&scale, canonical, sizeof scale);
    constexpr uint16_t kSign = 0x8000;
    const bool negative = (scale & kSign) != 0;
    scale &= static_cast<uint16_t>(~kSign);
    const_cast<uint16_t*>(scales(page, block))[token] = scale;
    auto* to = const_cast<int8_t*>(codes(page)) + first_code(token) + block * kBlock * kTokens;
    const auto* from = reinterpret_cast<const int8_t*>(canonical + sizeof scale);
    for (int64_t i = 0; i < kBlock; ++i) {
        const int code = negative ? -from[i] : from[i];
        to[i * kTokens] =
            static_cast<int8_t>(code > 127 ? 127 : code);  // 128 does not fit; no encoder writes negative scales
    }
}

namespace {

uint64_t group_bytes(const tsr_layout*, int64_t elements) {
    return static_cast<uint64_t>(BytePages{elements}.page_bytes());
}

void pack(const tsr_layout*, int64_t elements, int64_t groups, const void* rows, void* packed) {
    const BytePages pages{elements};
    const auto* from = static_cast<const char*>(rows);
    auto* page = static_cast<char*>(packed);
    for (int64_t group = 0; group < groups; ++group, page += pages.page_bytes()) {
        for (int64_t token = 0; token < TSR_PAGE_TOKENS; ++token) {
            for (int64_t block = 0; block < elements / BytePages::kBlock; ++block, from += BytePages::kBlockBytes)
                pages.write_block(from, page, token, block);
        }
    }
}

constexpr tsr_layout make_layout() noexcept {
    tsr_layout layout{};
    layout.struct_size = sizeof layout;
    layout.type = TSR_TYPE_Q8_0;
    layout.name = "q8_0_four_tokens";
    layout.group_rows = TSR_PAGE_TOKENS;
    layout.elements_multiple = BytePages::kBlock;
    layout.group_bytes = group_bytes;
    layout.pack = pack;
    // Not unpack, which would have to be exact: signs of scales are not kept.
    return layout;
}

constexpr tsr_layout kLayout = make_layout();

}  // namespace

const tsr_layout& byte_layout() noexcept {
    return kLayout;
}

const char* const* byte_layout_names() noexcept {
    static constexpr const char* kNames[] = {kLayout.name, "", nullptr};
    return kNames;
}

BytePages byte_pages_of(const tsr_tensor& cache) noexcept {
    if (!cache.layout || std::string_view(cache.layout) != kLayout.name) return {};
    return {takes_byte_pages(cache.type, cache.dims[0]) ? cache.dims[0] : 0};
}

}  // namespace tessera::x86
