#include "rows.hpp"

#include <tessera/cpp/status.hpp>
#include <tessera/cpu/isa/avx2_vectors.hpp>
#include <tessera/cpu/rows.hpp>

#include <algorithm>
#include <cstring>
#include <string>

namespace tessera::x86 {
namespace {

using Isa = cpu::isa::Avx2Vectors;

// Elements that one worker decodes at a time: whole blocks of every format.
constexpr int64_t kPiece = 1024;
static_assert(kPiece % cpu::kSuperBlock == 0);

template <float (*kOne)(uint16_t) noexcept>
void widen(const char* from, int64_t count, float* to, Isa::Floats (*load)(const uint16_t*) noexcept) noexcept {
    int64_t i = 0;
    for (; i + Isa::kLanes <= count; i += Isa::kLanes) {
        Isa::store(to + i, load(reinterpret_cast<const uint16_t*>(from) + i));
    }
    for (; i < count; ++i) {
        uint16_t bits;
        std::memcpy(&bits, from + 2 * i, sizeof bits);
        to[i] = kOne(bits);
    }
}

// Elements first .. first + count of a row; `first` is the start of a block.
void decode(tsr_type type, const char* row, int64_t first, int64_t count, float* to) noexcept {
    switch (type) {
        case TSR_TYPE_F32:
            std::memcpy(to, row + 4 * first, static_cast<size_t>(count) * 4);
            return;
        case TSR_TYPE_F16:
            widen<cpu::f16_to_f32>(row + 2 * first, count, to, Isa::from_f16);
            return;
        case TSR_TYPE_BF16:
            widen<cpu::bf16_to_f32>(row + 2 * first, count, to, Isa::from_bf16);
            return;
        default:
            cpu::decode_part(type, row, static_cast<size_t>(first), static_cast<size_t>(count), to);
    }
}

}  // namespace

void run_get_rows(const tsr_node& node, const tsr_run& run) {
    const cpu::View table = cpu::input(node, run, 0);
    const cpu::View ids = cpu::input(node, run, 1);
    const cpu::View out = cpu::output(node, run);
    const int64_t n = table.dim(0);
    const int64_t pieces = (n + kPiece - 1) / kPiece;
    const tsr_range rows = sdk::actual_rows(*ids.tensor, run);
    const cpu::Share part = cpu::share(std::max(0, rows.end - rows.begin) * pieces, run);
    for (int64_t item = part.begin; item < part.end; ++item) {
        const int64_t r = rows.begin + item / pieces;
        const int64_t first = item % pieces * kPiece;
        const int32_t id = ids.integer(r);
        if (id < 0 || id >= table.dim(1)) {
            throw sdk::Failure(TSR_INVALID_ARGUMENT,
                               std::string("get_rows ") + (node.name ? node.name : "") + ": expected a row from 0 to " +
                                   std::to_string(table.dim(1) - 1) + ", found " + std::to_string(id));
        }
        decode(table.tensor->type, table.row(id), first, std::min(kPiece, n - first), out.floats(r) + first);
    }
}

}  // namespace tessera::x86
