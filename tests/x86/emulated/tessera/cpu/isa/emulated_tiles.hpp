// Tile registers in plain C++, and the system that lends them: what amx_instructions.hpp beside it calls.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and volume 2 (LDTILECFG,
// STTILECFG, TILERELEASE, TILELOADD, TILESTORED, TILEZERO, TDPBSSD).
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace tessera::tests::emulated {

// What a processor would have answered with #GP, #UD or #NM.
struct TileFault : std::logic_error {
    using std::logic_error::logic_error;
};

// The system, as one process sees it, and what its threads did. Plain data: a test reaches it through the plugin.
struct TileSystem {
    std::atomic<bool> refuses{false}, permitted{false};
    std::atomic<uint64_t> configurations{0}, products{0};
    std::atomic<int64_t> in_use{0};  // threads that have a configuration, whether they live or not

    bool request() noexcept {
        if (!refuses) permitted = true;
        return !refuses;
    }
};

inline TileSystem& tile_system() noexcept {
    static TileSystem system;
    return system;
}

// Of one thread.
class TileRegisters {
  public:
    void load_configuration(const void* from) {
        Configuration c;
        std::memcpy(&c, from, sizeof c);
        if (c.palette == 0) {
            release();
            return;
        }
        if (c.palette != 1) throw TileFault("a palette that the processor does not have");
        if (c.start_row != 0) throw TileFault("a start row that nothing was interrupted at");
        for (const uint8_t b : c.reserved) {
            if (b != 0) throw TileFault("reserved bytes of a configuration are not zero");
        }
        for (int i = 0; i < 16; ++i) {
            if (i >= kCount && (c.row_bytes[i] != 0 || c.rows[i] != 0)) throw TileFault("a register past the last");
            if (c.row_bytes[i] > kRowBytes || c.rows[i] > kRows) throw TileFault("a register of more than 16 x 64");
            if ((c.row_bytes[i] == 0) != (c.rows[i] == 0)) throw TileFault("a register with rows or bytes alone");
        }
        ++tile_system().configurations;
        if (configuration_.palette == 0) ++tile_system().in_use;
        configuration_ = c;
        std::memset(data_, 0, sizeof data_);
    }
    void store_configuration(void* to) const noexcept { std::memcpy(to, &configuration_, sizeof configuration_); }
    void release() noexcept {
        if (configuration_.palette != 0) --tile_system().in_use;
        configuration_ = {};
        std::memset(data_, 0, sizeof data_);
    }

    void load(int index, const void* from, int64_t stride) {
        const Size size = used(index);
        std::memset(data_[index], 0, sizeof data_[index]);
        for (int r = 0; r < size.rows; ++r) {
            std::memcpy(data_[index][r], static_cast<const char*>(from) + r * stride, static_cast<size_t>(size.bytes));
        }
    }
    void store(int index, void* to, int64_t stride) {
        const Size size = used(index);
        for (int r = 0; r < size.rows; ++r) {
            std::memcpy(static_cast<char*>(to) + r * stride, data_[index][r], static_cast<size_t>(size.bytes));
        }
    }
    void zero(int index) {
        used(index);
        std::memset(data_[index], 0, sizeof data_[index]);
    }
    // sums += rows . lanes, of signed bytes, four at a time.
    void add_byte_products(int sums, int rows, int lanes) {
        const Size s = used(sums), r = used(rows), l = used(lanes);
        if (sums == rows || sums == lanes || rows == lanes) throw TileFault("one register twice");
        if (s.bytes % 4 != 0 || r.bytes % 4 != 0 || l.bytes % 4 != 0) throw TileFault("a row of no whole lanes");
        if (s.rows != r.rows || s.bytes != l.bytes || r.bytes / 4 != l.rows) throw TileFault("sizes that do not match");
        ++tile_system().products;
        for (int m = 0; m < s.rows; ++m) {
            for (int n = 0; n < s.bytes / 4; ++n) {
                // Sums wrap modulo 2^32, and so does the addition of unsigned numbers.
                uint32_t sum;
                std::memcpy(&sum, &data_[sums][m][4 * n], 4);
                for (int k = 0; k < l.rows; ++k) {
                    for (int i = 0; i < 4; ++i) {
                        sum += static_cast<uint32_t>(int32_t{data_[rows][m][4 * k + i]} * data_[lanes][k][4 * n + i]);
                    }
                }
                std::memcpy(&data_[sums][m][4 * n], &sum, 4);
            }
        }
    }

  private:
    static constexpr int kCount = 8, kRows = 16, kRowBytes = 64;

    struct Configuration {
        uint8_t palette = 0, start_row = 0, reserved[14] = {};
        uint16_t row_bytes[16] = {};
        uint8_t rows[16] = {};
    };
    static_assert(sizeof(Configuration) == 64);

    struct Size {
        int rows, bytes;
    };
    // The size of a register that data is moved to or from.
    Size used(int index) const {
        if (configuration_.palette == 0) throw TileFault("a tile register without a configuration");
        if (!tile_system().permitted) throw TileFault("a tile register without the system's permission");
        if (index < 0 || index >= kCount || configuration_.rows[index] == 0) {
            throw TileFault("a tile register that is not configured");
        }
        return {configuration_.rows[index], configuration_.row_bytes[index]};
    }

    Configuration configuration_;
    int8_t data_[kCount][kRows][kRowBytes] = {};
};

inline TileRegisters& tile_registers() noexcept {
    static thread_local TileRegisters registers;
    return registers;
}

}  // namespace tessera::tests::emulated
