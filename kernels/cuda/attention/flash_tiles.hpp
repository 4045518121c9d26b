// Tiles of attention on tensor cores, as the host and the kernels know them. Freestanding.
#pragma once

#include <stdint.h>

namespace tessera::cuda_kernels {

// Weights are relative to the maximum of scores less this, so that small ones are normal numbers of f16.
inline constexpr float kFlashWeightExponent = 15;

// Bytes in shared memory of a row of q8_0, which has the most of the blocks that are cached. A token's only row lies
// right behind the one before; of others each begins where it did modulo 16.
constexpr int raw_row_bytes(int elements, bool only) {
    const int bytes = elements / 32 * 34;
    return only ? bytes : (bytes + 30) / 16 * 16;
}

// A block attends with kRows rows of queries (row r, head h of those that share keys: row r * group + h) to kTokens
// tokens at a time. Its warps are kGroups groups, each of 16 * kTiles rows, of kColumns warps: a warp computes, for the
// rows of its group, scores over one part of the key's elements, and its part of the output's columns.
// A `Raw` tile is for caches of blocks: a ring of tiles as they are cached, and one place for the decoded tile.
template <int Dk, int Dv, bool Prefix, int Groups, int Tiles, int Columns, int Tokens, int Stages, int QInRegisters,
          int Blocks, bool Raw = false>
struct FlashTile {
    using Decoded = FlashTile<Dk, Dv, Prefix, Groups, Tiles, Columns, Tokens, Stages, QInRegisters, Blocks, true>;
    static constexpr bool kRaw = Raw;
    static constexpr int kDk = Dk, kDv = Dv, kGroups = Groups, kTiles = Tiles, kColumns = Columns;
    static constexpr int kTokens = Tokens, kStages = Stages, kBlocks = Blocks;
    static constexpr bool kPrefix = Prefix;  // a value is the first elements of its key
    static constexpr int kRows = Groups * Tiles * 16;
    static constexpr int kWarps = Groups * Columns, kThreads = 32 * kWarps;
    static constexpr int kSteps = Dk / 16 / Columns;   // products of 16 elements of the key, of one warp
    static constexpr int kOutputs = Dv / 8 / Columns;  // of 8 columns of the output, of one warp
    // Of the steps, those whose queries stay in registers, and those that are read from shared memory.
    static constexpr int kQInRegisters = QInRegisters, kQInShared = kSteps - QInRegisters;
    // Several tiles of rows: a warp adds up the scores of its part of the tokens, and weights go through shared memory.
    // One: every warp of a group adds up all of them.
    static constexpr bool kScattered = Columns > 1 && Tiles > 1;

    // Shared memory of a block, in bytes, part after part.
    static constexpr int kKeyBytes = Tokens * Dk * 2, kValueBytes = Prefix ? 0 : Tokens * Dv * 2;
    static constexpr int kStageBytes = kKeyBytes + kValueBytes;
    // Of rows as they are cached at most (q8_0, and what rows that begin anywhere take to be copied by 16 bytes).
    static constexpr int kRawStages = Stages;
    static constexpr int kRawKeyRow = raw_row_bytes(Dk, Prefix), kRawValueRow = Prefix ? 0 : raw_row_bytes(Dv, Prefix);
    static constexpr int kRawKeyBytes = Tokens * kRawKeyRow, kRawBytes = kRawKeyBytes + Tokens * kRawValueRow;
    static constexpr int kRing = Raw ? kStageBytes + kRawStages * kRawBytes : Stages * kStageBytes;
    static constexpr int kQueries = kRing > kRows* Dk * 2 ? kRing : kRows* Dk * 2;
    // Where queries are converted: where no tile is copied to in the meantime, if there is room.
    static constexpr bool kEarly = Groups * Tiles * 16 * Dk * 2 <= kStageBytes;
    static constexpr int kConverted = kEarly && !Raw ? (Stages - 1) * kStageBytes : 0;
    static constexpr int kExchange = kQueries + kWarps * Tiles * kQInShared * 512;
    static constexpr int kWeights = kExchange + (Columns == 1 ? 0
                                                 : kScattered ? kWarps * (Columns - 1) * Tiles * 512
                                                              : kWarps * (Tokens / 8) * 512);
    static constexpr int kMaxima = kWeights + (kScattered ? kRows * Tokens * 2 : 0);
    static constexpr int kRowData = kMaxima + (kScattered ? Columns * kRows * 4 : 0);
    static constexpr int kWhole = kRowData + kRows * 16;
    static constexpr int kRun = kWhole + kRows;
    static constexpr int kShared = kRun + 32;

    static_assert(Dk % (16 * Columns) == 0 && Dv % (16 * Columns) == 0 && Dk % 64 == 0 && Dv % 64 == 0);
    static_assert(Tokens % 16 == 0 && 64 % Tokens == 0, "a tile lies within a page");
    static_assert(Stages >= 2 && (!Prefix || Dv <= Dk));
    static_assert(kRawKeyBytes % 16 == 0 && kRawBytes % 16 == 0);
    static_assert(!kScattered || Tokens / 8 == Columns, "a warp owns 8 tokens");
};

// Small tiles are for few rows, whose time is that of reading the cache; large ones for prompts. Wide ones are for
// cards where a block can have 160 KB of shared memory: there tensor cores are so fast that reading shared memory
// bounds the others. What they take says testing/cuda_code/cuda_static.
using MlaSmall = FlashTile<576, 512, true, 1, 1, 4, 16, 2, 9, 2>;
using MlaSmallWide = FlashTile<576, 512, true, 1, 1, 4, 32, 2, 9, 2>;
using MlaLarge = FlashTile<576, 512, true, 4, 1, 2, 16, 4, 14, 1>;
using MlaLargeWide = FlashTile<576, 512, true, 2, 2, 4, 32, 2, 4, 1>;

// Two blocks of half as many rows a multiprocessor: one computes weights while the other multiplies.
using MlaLargeTwice = FlashTile<576, 512, true, 1, 2, 4, 32, 2, 4, 2>;

using Heads192Small = FlashTile<192, 128, false, 1, 1, 4, 32, 2, 3, 2>;
using Heads192Large = FlashTile<192, 128, false, 4, 1, 1, 32, 2, 12, 2>;
using Heads128Small = FlashTile<128, 128, false, 1, 1, 4, 32, 2, 2, 2>;
using Heads128Large = FlashTile<128, 128, false, 4, 1, 1, 32, 2, 8, 2>;
using Heads64Small = FlashTile<64, 64, false, 1, 1, 4, 64, 2, 1, 2>;
using Heads64Large = FlashTile<64, 64, false, 4, 1, 1, 64, 2, 4, 3>;

// As testing/cuda_code/cuda_static has them.
static_assert(MlaSmall::kShared == 41264 && MlaSmallWide::kShared == 82224);
static_assert(MlaSmall::kStageBytes * (MlaSmall::kStages - 1) == 18432);
static_assert(MlaSmallWide::kStageBytes * (MlaSmallWide::kStages - 1) == 36864);

}  // namespace tessera::cuda_kernels
