// Tiles of attention in f32 for cards without tensor cores that have asynchronous copies, as the host and the kernels
// know them. Freestanding.
#pragma once

namespace tessera::cuda_kernels {

// A block of four warps attends with kRows rows of queries (row r, head h of those that share keys: row r * group + h)
// to 128 tokens at a time. Its warps are kRowWarps groups of rows; those of a group share out the tokens of scores,
// then the columns of the output. Keys and queries pass through shared memory 16 elements of all rows at a time, values
// kStep tokens at a time.
template <int Dk, int Dv, bool Prefix, int Rows, int RowWarps, int Step>
struct FlashTileF32 {
    static constexpr int kDk = Dk, kDv = Dv, kRows = Rows, kStep = Step;
    static constexpr bool kPrefix = Prefix;  // a value is the first elements of its key
    static constexpr int kTokens = 128, kWarps = 4, kThreads = 32 * kWarps, kBlocks = 2;
    static constexpr int kRowWarps = RowWarps, kColumnWarps = kWarps / RowWarps;
    // Of a thread (multiply_f32.hpp).
    static constexpr int kOwnRows = Rows / RowWarps / 4;
    static constexpr int kOwnTokens = kTokens / kColumnWarps / 8;
    static constexpr int kOwnColumns = Dv / kColumnWarps / 8;

    // Shared memory of a block, in bytes, part after part: two stages of keys and queries; in their place, later, the
    // weights of all rows and two stages of values.
    static constexpr int kWeightStride = kTokens + 8;  // four rows of eight tokens lie in all banks
    static constexpr int kKeyStage = (kTokens + Rows) * 20 * 4, kValueStage = Step * Dv * 4;
    static constexpr int kValues = Rows * kWeightStride * 4;
    static constexpr int kRowData =
        2 * kKeyStage > kValues + 2 * kValueStage ? 2 * kKeyStage : kValues + 2 * kValueStage;
    static constexpr int kQueries = kRowData + Rows * 16;         // where each row's queries are
    static constexpr int kTokenRows = kQueries + Rows * 8;        // where each token's key is, and its value
    static constexpr int kStates = kTokenRows + 2 * kTokens * 8;  // each row's maximum and sum
    static constexpr int kExchange = kStates + Rows * 8;          // those of a tile, by each warp of a group
    static constexpr int kRun = kExchange + Rows * kColumnWarps * 8;
    static constexpr int kShared = kRun + 32;

    static_assert(Dk % 16 == 0 && Rows % (4 * RowWarps) == 0 && kOwnColumns % 4 == 0);
    static_assert(64 % Step == 0 && Step % 4 == 0);
    static_assert(kShared <= 48 << 10, "as much as a block of Pascal can have");
};

// What they take says testing/cuda_code/cuda_static. The small tile has the 16 heads of one token.
using MlaSmallF32 = FlashTileF32<576, 512, true, 16, 1, 8>;
using MlaLargeF32 = FlashTileF32<576, 512, true, 32, 1, 4>;
using Heads192F32 = FlashTileF32<192, 128, false, 64, 2, 8>;
using Heads128F32 = FlashTileF32<128, 128, false, 64, 2, 8>;
using Heads64F32 = FlashTileF32<64, 64, false, 64, 2, 8>;

}  // namespace tessera::cuda_kernels
