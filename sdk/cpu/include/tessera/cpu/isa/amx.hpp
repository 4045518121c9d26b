// The ISA policy of AMX-INT8 beside AVX-512 with VNNI: what products of a decoded panel with many rows need.
//
// A tile register holds up to 16 rows of 64 bytes, as the thread's configuration says. Here one holds the codes of
// 16 rows of activations, one those of 16 weight rows as a panel has them, and some the sums of 16 rows and 16 lanes.
#pragma once

#include <tessera/cpu/isa/amx_instructions.hpp>
#include <tessera/cpu/isa/avx512.hpp>

#include <cstdint>
#include <cstring>

namespace tessera::cpu::isa {

// As ldtilecfg reads it.
struct alignas(64) TileConfiguration {
    uint8_t palette;  // 1: eight registers of 16 rows of 64 bytes
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
};
static_assert(sizeof(TileConfiguration) == 64);

struct Avx512Amx : Avx512Vnni {
    static constexpr int kTileRows = 16;  // of activations
    static constexpr int kSets = 2;       // of registers for sums: one is stored while the other is computed

    // Sums of 16 rows and 16 lanes in registers 0 to 3; rows and lanes of a block of 32 codes in 4 and 5, of a group of
    // 16 in 6 and 7. So one configuration serves all products.
    static constexpr TileConfiguration kConfiguration = {
        1, 0, {}, {64, 64, 64, 64, 32, 64, 16, 64}, {16, 16, 16, 16, 16, 8, 16, 4}};

    // Whether the system lets this process use the registers; asked once.
    static bool permitted() noexcept {
        static const bool kPermitted = amx::request_permission();
        return kPermitted;
    }
    // Configures this thread's registers; false if they are.
    static bool configure() noexcept {
        TileConfiguration now;
        amx::store_configuration(&now);
        if (std::memcmp(&now, &kConfiguration, sizeof now) == 0) return false;
        amx::load_configuration(&kConfiguration);
        return true;
    }
    static void release() noexcept { amx::release(); }

    // Sums `kGroup` of set kSet = the products of a group's codes. rows: [kTileRows][32], of which 32 / kGroups are
    // the group's; lanes: [8 / kGroups][kLanes][4].
    template <int kGroups, int kSet, int kGroup>
    static void multiply_tile(const int8_t* rows, const uint8_t* lanes) noexcept {
        static_assert(kGroups <= 2 && kGroup < kGroups && kSet < kSets);
        constexpr int kSums = 2 * kSet + kGroup, kRows = kGroups == 1 ? 4 : 6;
        amx::load<kRows>(rows, 32);
        amx::load<kRows + 1>(lanes, 64);
        amx::zero<kSums>();
        amx::add_byte_products<kSums, kRows, kRows + 1>();
    }
    // to: [kTileRows][kLanes]
    template <int kSet, int kGroup>
    static void store_sums(int32_t* to) noexcept {
        amx::store<2 * kSet + kGroup>(to, 64);
    }

    static void store(void* p, Bytes v) noexcept { _mm512_storeu_si512(p, v); }
    static Bytes subtract_bytes(Bytes a, Bytes b) noexcept { return _mm512_sub_epi8(a, b); }
    static Bytes splat(int8_t v) noexcept { return _mm512_set1_epi8(v); }

    // Codes of four rows, [8 steps][4 rows][4], as rows: [4][32].
    static void separate_rows(const int8_t* interleaved, int8_t* rows) noexcept {
        const __m512i first = load(interleaved), second = load(interleaved + 64);
        const __m512i two = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
        const __m512i more = _mm512_add_epi32(two, _mm512_set1_epi32(2));
        store(rows, _mm512_permutex2var_epi32(first, two, second));
        store(rows + 64, _mm512_permutex2var_epi32(first, more, second));
    }
};

}  // namespace tessera::cpu::isa
