// The products of one weight format, with the format behind a table: ops are written once over it.
#pragma once

#include "rows.hpp"

#include <tessera/tensor.h>

#include <cstdint>
#include <span>

namespace tessera::x86 {

inline constexpr int kLanes = 8;         // weight rows in a group
inline constexpr int kPrepareStep = 32;  // elements of a row that are prepared at a time

// Receives results: called with kLanes consecutive outputs, of which those past the weight's last row are undefined.
class Sink {
  public:
    template <class F>
    explicit Sink(const F& f) noexcept
        : object_(&f), call_([](const void* object, int64_t row, int64_t group, const float* lanes) {
              (*static_cast<const F*>(object))(row, group, lanes);
          }) {}
    void operator()(int64_t row, int64_t group, const float* lanes) const noexcept {
        call_(object_, row, group, lanes);
    }

  private:
    const void* object_;
    void (*call_)(const void*, int64_t, int64_t, const float*);
};

struct WeightKernels {
    tsr_type type;
    const char* name;            // of the type
    const char* layout;          // of packed rows
    ActivationKind activations;  // groups 0: rows stay f32
    uint32_t elements_multiple;  // of a row
    uint64_t scratch_bytes;      // of one worker, 64-byte aligned
    bool takes_tiles;            // products of many rows are by tile registers, where the processor has them

    // Prepares steps [begin, end) of kPrepareStep elements of row `row`; x are those elements.
    void (*prepare)(const ActivationRows& to, int64_t row, const float* x, int64_t begin, int64_t end);
    // Groups [begin, end) of the weight times all rows. panels: of the processor that runs it.
    void (*multiply)(const PanelTable& panels, const WeightRows& weight, int64_t begin, int64_t end,
                     const ActivationRows& x, void* scratch, const Sink& sink);
    // tsr_layout's.
    void (*pack)(int64_t elements, int64_t groups, const void* rows, void* packed);
    void (*unpack)(int64_t elements, int64_t groups, const void* packed, void* rows);
};

// Of every type that can be decoded. Any thread.
std::span<const WeightKernels* const> weight_kernels() noexcept;
// nullptr for a type without kernels. Any thread.
const WeightKernels* find_weight_kernels(tsr_type type) noexcept;

// The products of any format along columns (transpose_weight), in f32.
struct ColumnKernels {
    ActivationKind activations;
    uint64_t scratch_bytes;
    void (*prepare)(const ActivationRows& to, int64_t row, const float* x, int64_t begin, int64_t end);
    void (*multiply)(tsr_type type, const WeightRows& weight, int64_t outputs, int64_t begin, int64_t end,
                     const ActivationRows& x, void* scratch, const Sink& sink);
};

// One table for each type. Those of floats are defined by each plugin, for its vectors; the others in sources that the
// build writes from the list of types (kernels/x86/CMakeLists.txt).
#define TSR_DECLARE(id, Name) extern const WeightKernels k##Name;
TSR_FLOAT_TYPES(TSR_DECLARE)
TSR_BLOCK_TYPES(TSR_DECLARE)
#undef TSR_DECLARE
extern const ColumnKernels kColumns;

// Bytes of one prepared row of `elements`.
inline uint64_t prepared_row_bytes(ActivationKind kind, int64_t elements) noexcept {
    return kind.division.groups == 0 ? static_cast<uint64_t>(elements) * sizeof(float)
                                     : activation_row_bytes(kind, elements);
}

}  // namespace tessera::x86
