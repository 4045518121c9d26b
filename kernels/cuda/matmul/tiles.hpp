// Products of many rows, in tiles of rows and outputs; host and device. See tiles_mma.hpp, tiles_dp4a.hpp,
// tiles_f32.hpp.
#pragma once

#include "../arguments.hpp"
#include "../formats/block_formats.hpp"

namespace tessera::cuda_kernels {

// Activations for products in int8 are cut into segments of 64 elements, which lie in the workspace as tiles hold them
// in shared memory: 64 codes, the scale of each 32 (f32), then for tensor cores the sum of each 32 elements (two bf16),
// else of each 16 codes (int16). 80 bytes are five times 16, so that eight rows of a tile read 16 bytes each from all
// 32 banks.
//
// A scale has 21 significant bits, so that its product with kMagic is exact: the bits of kMagic plus an integer c (of
// less than 22 bits) are those of the float kMagic + c, and fma(that, scale, -kMagic * scale) is c * scale, rounded
// once.
inline constexpr int kSegmentElements = 64;
inline constexpr int kSegmentBytes = 80;
inline constexpr int kSegmentScales = 64, kSegmentSums = 72;  // where they begin
inline constexpr float kMagic = 12582912.f;                   // 1.5 * 2^23
inline constexpr int kMagicBits = 0x4B400000;

constexpr int64_t segments_of(int64_t k) {
    return (k + kSegmentElements - 1) / kSegmentElements;
}

// Activations for products by tensor cores with formats whose blocks have 256 elements: one scale for as many elements.
// Sums of a row and an output are kept in units of the scale of the block that is being worked on, so that a block
// costs one multiplication of a sum, by the ratio of the scale of the block before to its own. A block is four segments
// of 80 bytes, of which the first 64 are codes; behind the codes of the first is that ratio (f32), of the second and
// the third the sums of each 16 codes (f16, exact), of the fourth those of each 32 (f16). After the last block the
// scale of it (f32) follows.
inline constexpr int kBlockElements = 256, kBlockSegments = kBlockElements / kSegmentElements;
inline constexpr int kBlockThreads = 128;  // of a block of threads, which writes a row
constexpr int64_t blocks_of(int64_t k) {
    return (k + kBlockElements - 1) / kBlockElements;
}
constexpr int64_t blocks_bytes(int64_t k) {
    return blocks_of(k) * kBlockSegments * kSegmentBytes + 16;
}

// Activations for products with weights of f16 and bf16 by tensor cores: halves of 32 elements after another, of bf16
// in two parts (what the first leaves is the second), then the scale of the row (f32). Of f16 it is a power of two that
// brings the largest element below 2^15, of bf16 1.
inline constexpr int kHalvesElements = 32;
constexpr int half_parts(bool brain) {
    return brain ? 2 : 1;
}
constexpr int64_t halves_bytes(int64_t k, bool brain) {
    return (k + kHalvesElements - 1) / kHalvesElements * 64 * half_parts(brain) + 16;
}
inline constexpr int kHalvesThreads = 128;  // of a block, which writes a row

inline constexpr int kSegmentWarps = 4;  // of a block; each writes one segment of a row
inline constexpr int kTilesThreads = 128;
inline constexpr int kSmallTile = 64, kLargeTile = 128;  // rows of a tile
// Outputs of a tile by tensor cores, by its rows.
constexpr int tile_outputs(tsr_type weight, int rows) {
    return rows == kLargeTile && scales_by_sixteen(weight) && !multiplies_with_scales(weight) ? 64 : 128;
}
// Where tiles take blocks of a weight as they lie in memory through shared memory (tiles_staged.hpp): what 256 elements
// of a row take there. Blocks begin at multiples of their alignment, copies at those of 16 bytes; rows are odd
// multiples of 16 bytes apart, so that threads that read one row each find all banks.
inline constexpr int kStagesOfRows = 4;  // of segments of activations
inline constexpr int kStagedOutputs = 128;
struct WeightStage {
    int bytes, vectors, stride;
};
constexpr WeightStage weight_stage(tsr_type weight) {
    WeightStage stage{};
    formats::visit_block_format(weight, [&]<class Block>() {
        const int both = static_cast<int>(sizeof(Block)) | static_cast<int>(formats::kPrefixBytes<Block>);
        const int alignment = both % 16 == 0 ? 16 : both & -both;
        stage.bytes = static_cast<int>(sizeof(Block)) * (kBlockElements / Block::kElements);
        stage.vectors = (stage.bytes + 16 - alignment + 15) / 16;
        stage.stride = 16 * (stage.vectors | 1);
    });
    return stage;
}
constexpr int staged_bytes(tsr_type weight, int rows) {
    return kStagesOfRows * rows * kSegmentBytes + 2 * kStagedOutputs * weight_stage(weight).stride;
}
// The same of weights of f16 and bf16 (tiles_half_staged.hpp).
constexpr int staged_half_bytes(bool brain, int rows) {
    return kStagesOfRows * (half_parts(brain) * rows + kStagedOutputs) * 80;
}
// Tiles without tensor cores.
inline constexpr int kPlainTile = 64, kPlainTileOutputs = 64;

// How rows of x and y are numbered.
enum Numbering : int32_t {
    kAbsolute,    // as the tensor's rows, of which the range says which are actual
    kRelative,    // from the first of the actual rows
    kByPosition,  // by the order of the map, experts one after another
};

// y[row][i] = dot product of x[row] and row i of a matrix. Without a map all rows by the matrix block_index().z, with
// one by the matrix of the expert whose tile it is.
struct Tiles {
    const void* x;           // segments (int8) or f32
    const void* weights[2];  // the second is for pairs
    void* y;
    const int32_t*
        tiles;  // of the map, or nullptr: [0] how many, then from [4] on expert, first position, count of each
    const int32_t* places;  // of the map: row * slots + slot of each position
    Rows rows;
    int64_t x_row, x_slot, weight_row, weight_matrix, y_row, y_slot;  // slot: of the map, or index of the batch
    int32_t k, n;
    int32_t slots;    // of a row, of the map
    int32_t experts;  // tiles of expert `experts` are rows whose id is -1, of the next one those whose id is invalid
    Numbering x_numbering, y_numbering;
    int32_t paired;     // 1: y = silu(x by weights[0]) * (x by weights[1])
    int32_t constants;  // 1: rows of id -1 are zeros, of an invalid one not-a-number; 0: they are not written
};

// Segments of f32 rows. Rows are those of `rows` times slots, or, with a map, the positions that have an expert.
struct Segments {
    const void* x;
    void* segments;
    const int32_t* tiles;  // of a map, or nullptr
    Rows rows;
    int64_t x_row, x_slot, segments_row;
    int32_t k, slots;
    int32_t relative;  // 1: rows of x are numbered from the first of the actual ones on
    int32_t reserved;
};

// The rows that each expert has, sorted by expert and row, in tiles.
struct ExpertMap {
    const void* ids;  // i32
    int32_t* tiles;   // as in Tiles; [1]: positions that have an expert
    int32_t* places;
    Rows rows;
    int64_t ids_slot, ids_row;
    int32_t slots, experts, tile_rows, reserved;
};
inline constexpr int kSumThreads = 256, kSumElements = 1024;  // of a block

inline constexpr int kMapThreads = 1024;
inline constexpr int kMapHead = 4, kMapTile = 3;  // words of the head and of a tile
inline constexpr int kMapExperts = 2048;          // the maximum

// y[row] = the sum over slots of weight * x[row][slot], of those that have an expert; not-a-number if an id is invalid.
struct ExpertSum {
    const void *x, *weights, *ids;
    void* y;
    Rows rows;
    int64_t x_row, x_slot, weights_slot, weights_row, ids_slot, ids_row, y_row;
    int32_t n, slots, experts, reserved;
};

}  // namespace tessera::cuda_kernels
