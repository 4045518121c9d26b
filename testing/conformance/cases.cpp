// The cases of each op but attention: every type, odd shapes, views, in place.
#include "cases.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tessera::conformance {

double tolerance_of(tsr_type type) {
    if (type == TSR_TYPE_F32) return 1e-4;
    if (type == TSR_TYPE_F16) return 2e-3;
    if (type == TSR_TYPE_BF16) return 1e-2;
    return 2.5e-2;
}

float weight_size(int64_t row) {
    return 1 / std::sqrt(static_cast<float>(row));
}

namespace {

constexpr tsr_role kActivation = TSR_ROLE_ACTIVATION, kWeight = TSR_ROLE_WEIGHT, kInput = TSR_ROLE_INPUT;

int64_t block_of(tsr_type type) {
    return formats::listed_size(type).elements;
}

// Row lengths of a weight type: the shortest, and an odd number of blocks.
std::vector<int64_t> row_lengths(tsr_type type) {
    const int64_t block = block_of(type);
    if (block == 1) return {1, 37, 96, 256};
    return {block, block == 32 ? 11 * block : 3 * block};
}

// In products of many rows; eight blocks of 32 elements may be taken together where rows have whole eights of them.
std::vector<int64_t> lengths_of_many_rows(tsr_type type) {
    const int64_t block = block_of(type);
    if (block == 1) return {96};
    if (block == 256) return {512};
    return {3 * block, 512};
}

std::string text(const char* format, auto... values) {
    char buffer[200];
    std::snprintf(buffer, sizeof buffer, format, values...);
    return buffer;
}

struct RowShape {
    int64_t elements, inner, rows, gap;
};
constexpr RowShape kShapes[] = {{37, 3, 11, 0}, {64, 1, 17, 16}, {1, 1, 1, 0}, {200, 2, 5, 4}, {1536, 1, 3, 0}};

void pointwise(const std::string& op, const Use& use) {
    const bool two = op != TSR_OP_RMS_NORM && op != TSR_OP_HADAMARD && op != TSR_OP_SCALE;
    for (const RowShape& s : kShapes) {
        // variant 1: in place; 2: the second operand is one row; 3: in place of the second operand
        for (const int variant : {0, 1, 2, 3}) {
            const bool broadcast = variant == 2;
            if (broadcast && op != TSR_OP_ADD && op != TSR_OP_MUL) continue;
            if (variant == 3 && op != TSR_OP_SILU_MUL) continue;  // those of glu: units()
            Case c(op, text("n=%lld inner=%lld rows=%lld gap=%lld%s%s", static_cast<long long>(s.elements),
                            static_cast<long long>(s.inner), static_cast<long long>(s.rows),
                            static_cast<long long>(s.gap), variant % 2 ? " in place" : "",
                            broadcast ? " one row" : (variant == 3 ? " of the second" : "")));
            c.fill(c.input("x", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kActivation, kRows, s.gap), 2);
            if (op == TSR_OP_RMS_NORM) {
                c.fill(c.input("weight", TSR_TYPE_F32, {s.elements}, kWeight));
                c.attribute("epsilon", 1e-6);
            } else if (op == TSR_OP_SCALE) {
                c.attribute("factor", -12.3);
                c.tolerance = 1e-6;
            } else if (broadcast) {
                c.fill(c.input("b", TSR_TYPE_F32, {s.elements}, kWeight));
            } else if (two) {
                c.fill(c.input("b", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kActivation, kRows));
            }
            if (variant == 1 || variant == 3) {
                c.output_in_place(variant == 3 ? 1 : 0);
            } else {
                c.output("out", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kRows, s.gap);
            }
            c.row_ranges(static_cast<int32_t>(s.rows));
            use(c);
        }
    }
}

void rope(const std::string& op, const Use& use) {
    for (const char* mode : {"norm", "neox"}) {
        for (const int variant : {0, 1, 2, 3}) {
            for (const bool in_place : {false, true}) {
                const int64_t d = variant == 3 ? 128 : (variant == 1 ? 10 : 64), heads = 3, rows = 7;
                Case c(op,
                       text("%s d=%lld%s%s", mode, static_cast<long long>(d),
                            variant == 1 ? " factors" : (variant >= 2 ? " yarn" : ""), in_place ? " in place" : ""));
                c.fill(c.input("x", TSR_TYPE_F32, {d, heads, rows}, kActivation, kRows, in_place ? 8 : 0));
                Operand& positions = c.input("positions", TSR_TYPE_I32, {rows}, kInput, kRows);
                for (int64_t r = 0; r < rows; ++r) positions.integers(0)[r] = static_cast<int32_t>(r * r * 83);
                if (variant == 1) {
                    Operand& factors = c.input("factors", TSR_TYPE_F32, {d / 2}, kWeight);
                    for (int64_t i = 0; i < d / 2; ++i) factors.floats(0)[i] = 1 + 0.5f * static_cast<float>(i % 4);
                } else {
                    c.absent();
                }
                if (in_place) {
                    c.output_in_place(0);
                } else {
                    c.output("out", TSR_TYPE_F32, {d, heads, rows}, kRows);
                }
                c.attribute("mode", mode);
                c.attribute("base", 10000.0);
                if (variant >= 2) {
                    c.attribute("freq_scale", 0.025);
                    c.attribute("ext_factor", 1.0);
                    c.attribute("attn_factor", 1.2);
                }
                if (variant == 2) c.attribute("original_context", int64_t{4096});
                if (variant == 3) {
                    c.attribute("ramp_low", 8.09);
                    c.attribute("ramp_high", 17.4);
                }
                c.tolerance = 1e-3;  // angles in f32
                c.row_ranges(static_cast<int32_t>(rows));
                use(c);
            }
        }
    }
}

void scale_by_position(const std::string& op, const Use& use) {
    for (const RowShape& s : kShapes) {
        for (const bool in_place : {false, true}) {
            Case c(op, text("n=%lld inner=%lld%s", static_cast<long long>(s.elements), static_cast<long long>(s.inner),
                            in_place ? " in place" : ""));
            c.fill(c.input("x", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kActivation, kRows, s.gap));
            Operand& positions = c.input("positions", TSR_TYPE_I32, {s.rows}, kInput, kRows);
            for (int64_t r = 0; r < s.rows; ++r) positions.integers(0)[r] = static_cast<int32_t>(r * r * 997 + 8190);
            if (in_place) {
                c.output_in_place(0);
            } else {
                c.output("out", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kRows, s.gap);
            }
            c.attribute("scale", 0.1);
            c.attribute("length", int64_t{8192});
            if (s.inner > 1) c.attribute("offset", int64_t{1});
            c.tolerance = 1e-6;
            c.row_ranges(static_cast<int32_t>(s.rows));
            use(c);
        }
    }
}

void sigmoid_mul(const std::string& op, const Use& use) {
    for (const RowShape& s : kShapes) {
        for (const bool in_place : {false, true}) {
            Case c(op, text("n=%lld heads=%lld%s", static_cast<long long>(s.elements), static_cast<long long>(s.inner),
                            in_place ? " in place" : ""));
            c.fill(c.input("x", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kActivation, kRows, s.gap));
            c.fill(c.input("gate", TSR_TYPE_F32, {s.inner, s.rows}, kActivation, kRows, s.gap), 4);
            if (in_place) {
                c.output_in_place(0);
            } else {
                c.output("out", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kRows, s.gap);
            }
            c.tolerance = 1e-6;
            c.row_ranges(static_cast<int32_t>(s.rows));
            use(c);
        }
    }
}

void get_rows(const std::string& op, const Use& use) {
    for (const tsr_type type : weight_types()) {
        for (const int64_t n : row_lengths(type)) {
            const int64_t table_rows = 19, rows = 6;
            Case c(op, text("%s n=%lld", formats::format_name(type), static_cast<long long>(n)));
            c.fill(c.input("table", type, {n, table_rows}, kWeight));
            Operand& ids = c.input("ids", TSR_TYPE_I32, {rows}, kInput, kRows);
            for (int64_t r = 0; r < rows; ++r) ids.integers(0)[r] = static_cast<int32_t>(r * 7 % table_rows);
            c.output("out", TSR_TYPE_F32, {n, rows}, kRows);
            c.row_ranges(static_cast<int32_t>(rows));
            use(c);
        }
    }
}

// For cases of more rows than a tile of a kernel has: one type of each way to be multiplied.
constexpr tsr_type kTypesOfManyRows[] = {TSR_TYPE_F32,  TSR_TYPE_F16,    TSR_TYPE_BF16,  TSR_TYPE_Q8_0,
                                         TSR_TYPE_Q4_1, TSR_TYPE_Q2_K,   TSR_TYPE_Q3_K,  TSR_TYPE_Q4_K,
                                         TSR_TYPE_Q6_K, TSR_TYPE_IQ4_XS, TSR_TYPE_IQ3_K, TSR_TYPE_IQ1_M};

// For cases of few rows: types with kernels that read rows of a weight by vectors of 16 or 8 bytes, each with lengths
// at which both are possible, and of which the last part is not whole.
constexpr struct {
    tsr_type type;
    int64_t k;
} kRowsOfVectors[] = {{TSR_TYPE_Q4_0, 1408},  {TSR_TYPE_Q4_0, 2176}, {TSR_TYPE_Q4_0, 4608},   {TSR_TYPE_Q8_0, 1408},
                      {TSR_TYPE_Q8_0, 2560},  {TSR_TYPE_Q4_K, 2304}, {TSR_TYPE_Q6_K, 3072},   {TSR_TYPE_Q6_K, 4096},
                      {TSR_TYPE_IQ4_XS, 512}, {TSR_TYPE_Q4_K, 512},  {TSR_TYPE_IQ4_XS, 2304}, {TSR_TYPE_IQ4_XS, 4608}};

// Bytes between rows of weights: rows that begin at multiples of 16 bytes then begin at those of 8, or of 4, too, of
// which no format's own rows are made.
constexpr struct {
    tsr_type type;
    int64_t k, gap;
} kRowsApart[] = {{TSR_TYPE_Q4_0, 512, 8},   {TSR_TYPE_Q4_0, 512, 4},  {TSR_TYPE_Q8_0, 512, 8}, {TSR_TYPE_Q8_0, 512, 4},
                  {TSR_TYPE_Q4_K, 512, 8},   {TSR_TYPE_Q4_K, 512, 4},  {TSR_TYPE_Q6_K, 512, 8}, {TSR_TYPE_Q6_K, 512, 4},
                  {TSR_TYPE_IQ4_XS, 512, 8}, {TSR_TYPE_IQ4_XS, 512, 4}};

// Of activations that are 1 or -1 nothing is lost where they are quantised: what is wrong with weights shows. Few rows,
// and as many as kernels have small and large tiles for.
void signs(const std::string& op, tsr_type type, int64_t k, float size, const char* what, const Use& use) {
    for (const int64_t rows : {5, 60, 80, 100}) {
        const int64_t n = 17;
        Case c(op, text("%s %s k=%lld n=%lld rows=%lld", formats::format_name(type), what, static_cast<long long>(k),
                        static_cast<long long>(n), static_cast<long long>(rows)));
        Operand& x = c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows);
        for (size_t r = 0; r < x.rows(); ++r) {
            for (int64_t i = 0; i < k; ++i) x.floats(r)[i] = r % 4 == 0 || c.random() % 2 == 0 ? 1.f : -1.f;
        }
        c.fill(c.input("weight", type, {k, n}, kWeight), size);
        c.output("out", TSR_TYPE_F32, {n, rows}, kRows);
        c.tolerance = 4e-3;
        c.row_ranges(static_cast<int32_t>(rows));
        use(c);
    }
}

// With a NaN in one row, which kernels that quantise rows could lose.
void use_with_nan(Case& c, const Use& use) {
    Operand& x = c.operand(0);
    x.floats(x.rows() / 2)[x.tensor.dims[0] - 3] = std::numeric_limits<float>::quiet_NaN();
    c.name += " NaN";
    use(c);
}

void matmul(const std::string& op, const Use& use) {
    struct Shape {
        int64_t n, batch, rows, gap;
    };
    // Scales of this type go to 2^127, and what kernels multiply them with on the way must not take them beyond f32.
    for (const int64_t k : {64, 512}) signs(op, TSR_TYPE_MXFP4, k, 0x1p110f, "large scales", use);
    for (const tsr_type type : kTypesOfManyRows) {
        for (const int64_t k : lengths_of_many_rows(type)) {
            const int64_t n = 131, rows = 150;
            Case c(op, text("%s k=%lld n=%lld rows=%lld", formats::format_name(type), static_cast<long long>(k),
                            static_cast<long long>(n), static_cast<long long>(rows)));
            c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
            c.fill(c.input("weight", type, {k, n}, kWeight), weight_size(k));
            c.output("out", TSR_TYPE_F32, {n, rows}, kRows);
            c.tolerance = tolerance_of(type);
            c.row_ranges(static_cast<int32_t>(rows));
            use(c);
        }
    }
    for (const auto& [type, k] : kRowsOfVectors) {
        // Rows of the weight may lie apart.
        for (const Shape s :
             {Shape{13, 1, 1, 0}, Shape{13, 2, 1, 0}, Shape{29, 1, 1, 16}, Shape{37, 1, 1, 8}, Shape{9, 1, 1, 4}}) {
            Case c(op,
                   text("%s k=%lld n=%lld batch=%lld rows=%lld", formats::format_name(type), static_cast<long long>(k),
                        static_cast<long long>(s.n), static_cast<long long>(s.batch), static_cast<long long>(s.rows)));
            c.fill(c.input("x", TSR_TYPE_F32, {k, s.batch, s.rows}, kActivation, kRows));
            c.fill(c.input("weight", type, {k, s.n, s.batch}, kWeight, TSR_RANGE_FIXED, s.gap), weight_size(k));
            c.output("out", TSR_TYPE_F32, {s.n, s.batch, s.rows}, kRows);
            c.tolerance = tolerance_of(type);
            c.row_ranges(static_cast<int32_t>(s.rows));
            use(c);
        }
    }
    for (const tsr_type type : weight_types()) {
        for (const int64_t k : row_lengths(type)) {
            for (const Shape s : {Shape{17, 1, 5, 0}, Shape{48, 1, 33, 16}, Shape{8, 1, 1, 0}, Shape{16, 3, 4, 0}}) {
                Case c(op, text("%s k=%lld n=%lld batch=%lld rows=%lld", formats::format_name(type),
                                static_cast<long long>(k), static_cast<long long>(s.n), static_cast<long long>(s.batch),
                                static_cast<long long>(s.rows)));
                if (s.batch > 1) {
                    c.fill(c.input("x", TSR_TYPE_F32, {k, s.batch, s.rows}, kActivation, kRows, s.gap));
                    c.fill(c.input("weight", type, {k, s.n, s.batch}, kWeight), weight_size(k));
                    c.output("out", TSR_TYPE_F32, {s.n, s.batch, s.rows}, kRows);
                } else {
                    c.fill(c.input("x", TSR_TYPE_F32, {k, s.rows}, kActivation, kRows, s.gap));
                    c.fill(c.input("weight", type, {k, s.n}, kWeight), weight_size(k));
                    c.output("out", TSR_TYPE_F32, {s.n, s.rows}, kRows, s.gap);
                }
                c.tolerance = tolerance_of(type);
                c.row_ranges(static_cast<int32_t>(s.rows));
                use(c);
            }
        }
        // Blocks of 32 in whole eights too, which kernels may take together.
        for (int64_t k = 2 * block_of(type); block_of(type) > 1 && k <= 512; k *= 8)
            signs(op, type, k, weight_size(k), "signs", use);
        // Of each number of rows that kernels take at once.
        for (const int64_t rows : {1, 6, 13, 60, 80}) {
            const int64_t k = row_lengths(type).back(), n = 17;
            Case c(op, text("%s k=%lld n=%lld rows=%lld", formats::format_name(type), static_cast<long long>(k),
                            static_cast<long long>(n), static_cast<long long>(rows)));
            c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
            c.fill(c.input("weight", type, {k, n}, kWeight), weight_size(k));
            c.output("out", TSR_TYPE_F32, {n, rows}, kRows);
            c.tolerance = tolerance_of(type);
            c.row_ranges(static_cast<int32_t>(rows));
            use_with_nan(c, use);
        }
        // Rows that kernels read in several parts, the last of which is not whole.
        {
            const int64_t block = block_of(type), n = 9;
            const int64_t k = block == 1 ? 2061 : block == 32 ? 261 * block : 33 * block;
            for (const int64_t rows : {1, 2}) {
                Case c(op, text("%s k=%lld n=%lld rows=%lld", formats::format_name(type), static_cast<long long>(k),
                                static_cast<long long>(n), static_cast<long long>(rows)));
                c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
                c.fill(c.input("weight", type, {k, n}, kWeight), weight_size(k));
                c.output("out", TSR_TYPE_F32, {n, rows}, kRows);
                c.tolerance = tolerance_of(type);
                c.row_ranges(static_cast<int32_t>(rows));
                use(c);
            }
        }
        // Transposed: rows of the weight are as long as the output's.
        for (const int64_t batch : {1, 2}) {
            const int64_t n = block_of(type) == 1 ? 24 : block_of(type), k = 40, rows = 5;
            Case c(op, text("%s transposed k=%lld n=%lld batch=%lld", formats::format_name(type),
                            static_cast<long long>(k), static_cast<long long>(n), static_cast<long long>(batch)));
            c.fill(c.input("x", TSR_TYPE_F32, {k, batch, rows}, kActivation, kRows));
            c.fill(c.input("weight", type, {n, k, batch}, kWeight), weight_size(k));
            c.output("out", TSR_TYPE_F32, {n, batch, rows}, kRows);
            c.attribute("transpose_weight", int64_t{1});
            c.tolerance = tolerance_of(type);
            c.row_ranges(static_cast<int32_t>(rows));
            use(c);
        }
    }
}

void matmul_group(const std::string& op, const Use& use) {
    {
        // The last one reads activations in another order.
        const int64_t k = 3072, rows = 1;
        Case c(op, text("mixed k=%lld rows=%lld", static_cast<long long>(k), static_cast<long long>(rows)));
        constexpr tsr_type kTypes[] = {TSR_TYPE_Q8_0, TSR_TYPE_Q4_0, TSR_TYPE_Q6_K, TSR_TYPE_IQ4_XS};
        c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
        for (const tsr_type type : kTypes) c.fill(c.input("weight", type, {k, 9}, kWeight), weight_size(k));
        for (size_t i = 0; i < std::size(kTypes); ++i) c.output("out", TSR_TYPE_F32, {9, rows}, kRows);
        c.tolerance = tolerance_of(TSR_TYPE_Q4_0);
        c.row_ranges(static_cast<int32_t>(rows));
        use(c);
    }
    for (const tsr_type type : weight_types()) {
        const int64_t k = row_lengths(type).back();
        for (const int64_t rows : {1, 9}) {
            Case c(op, text("%s k=%lld rows=%lld", formats::format_name(type), static_cast<long long>(k),
                            static_cast<long long>(rows)));
            c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
            for (const int64_t n : {16, 40, 8}) c.fill(c.input("weight", type, {k, n}, kWeight), weight_size(k));
            for (const int64_t n : {16, 40, 8}) c.output("out", TSR_TYPE_F32, {n, rows}, kRows);
            c.tolerance = tolerance_of(type);
            c.row_ranges(static_cast<int32_t>(rows));
            use(c);
            use_with_nan(c, use);
        }
    }
}

// A gated linear unit of each kind: by the shapes of pointwise ops, in place of either operand.
struct Unit {
    const char* activation;
    double limit, alpha;  // 0: not given
};
constexpr Unit kUnits[] = {
    {"silu", 0, 0}, {"silu", 1.5, 0}, {"gelu", 0, 0}, {"swiglu_oai", 7, 0}, {"swiglu_oai", 1.25, 1.1}};

void add_unit(Case& c, const Unit& unit) {
    c.attribute("activation", unit.activation);
    if (unit.limit != 0) c.attribute("limit", unit.limit);
    if (unit.alpha != 0) c.attribute("alpha", unit.alpha);
    c.name += text(" %s %g %g", unit.activation, unit.limit, unit.alpha);
}

void units(const std::string& op, const Use& use) {
    for (const Unit& unit : kUnits) {
        for (const RowShape& s : kShapes) {
            for (const int in_place : {-1, 0, 1}) {
                Case c(op, text("n=%lld inner=%lld rows=%lld in place %d", static_cast<long long>(s.elements),
                                static_cast<long long>(s.inner), static_cast<long long>(s.rows), in_place));
                // Far past the limits, and where exponentials end.
                Operand& gate = c.input("gate", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kActivation, kRows, s.gap);
                c.fill(gate, 12);
                constexpr float kEnds[] = {-200, 200, -88, 88, 0};
                for (size_t r = 0; r < gate.rows() && r < std::size(kEnds); ++r) gate.floats(r)[0] = kEnds[r];
                c.fill(c.input("up", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kActivation, kRows), 12);
                if (in_place >= 0) {
                    c.output_in_place(static_cast<uint32_t>(in_place));
                } else {
                    c.output("out", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kRows, s.gap);
                }
                add_unit(c, unit);
                c.tolerance = 1e-5;
                c.row_ranges(static_cast<int32_t>(s.rows));
                use(c);
            }
        }
    }
}

// How rows choose experts, where there are many.
enum class Choice { kSpread, kOne, kNone };
constexpr struct {
    Choice choice;
    const char* name;
} kChoices[] = {{Choice::kSpread, "spread"}, {Choice::kOne, "one expert"}, {Choice::kNone, "none"}};

void fill_ids(Operand& ids, int64_t experts, Choice choice) {
    for (size_t r = 0; r < ids.rows(); ++r) {
        for (int64_t i = 0; i < ids.tensor.dims[0]; ++i) {
            const int64_t spread = (static_cast<int64_t>(r * r) + 2 * i) % (experts - 1);  // the last one has no rows
            ids.integers(r)[i] =
                choice == Choice::kNone ? -1 : static_cast<int32_t>(choice == Choice::kOne ? 1 : spread);
        }
        if (r % 7 == 3) ids.integers(r)[0] = -1;
        if (r % 5 == 1) ids.integers(r)[ids.tensor.dims[0] - 1] = -1;
    }
}

void fill_ids(Operand& ids, int64_t experts) {
    for (size_t r = 0; r < ids.rows(); ++r) {
        for (int64_t i = 0; i < ids.tensor.dims[0]; ++i)
            ids.integers(r)[i] = static_cast<int32_t>((static_cast<int64_t>(r) * 3 + i * 2) % experts);
        if (r % 4 == 2) ids.integers(r)[0] = -1;
        if (r % 4 == 3) ids.integers(r)[ids.tensor.dims[0] - 1] = -1;
    }
}

// Sizes of a gated_ffn; with experts and those used a row, of a moe_ffn.
struct Network {
    tsr_type type;
    int64_t k, f, n, rows, experts, used;
    int64_t gap = 0;  // bytes between rows of weights
};

// All operands, whose ids `fill` writes. biases: those of gate, up and down that there are; 0: not even places for
// them.
void add_operands(Case& c, const Network& of, bool routed, const std::function<void(Operand& ids)>& fill,
                  unsigned biases = 0) {
    c.fill(c.input("x", TSR_TYPE_F32, {of.k, of.rows}, kActivation, kRows));
    if (routed) {
        fill(c.input("ids", TSR_TYPE_I32, {of.used, of.rows}, kActivation, kRows));
        c.fill(c.input("weights", TSR_TYPE_F32, {of.used, of.rows}, kActivation, kRows));
    }
    const auto matrix = [&](const char* name, int64_t elements, int64_t count) {
        Operand& weight = routed
                              ? c.input(name, of.type, {elements, count, of.experts}, kWeight, TSR_RANGE_FIXED, of.gap)
                              : c.input(name, of.type, {elements, count}, kWeight, TSR_RANGE_FIXED, of.gap);
        c.fill(weight, weight_size(elements));
    };
    matrix("gate", of.k, of.f);
    matrix("up", of.k, of.f);
    matrix("down", of.f, of.n);
    for (unsigned i = 0; biases != 0 && i < 3; ++i) {
        const int64_t length = i == 2 ? of.n : of.f;
        if ((biases >> i & 1) == 0) {
            c.absent();
        } else {
            c.fill(routed ? c.input("bias", TSR_TYPE_F32, {length, of.experts}, kWeight)
                          : c.input("bias", TSR_TYPE_F32, {length}, kWeight));
        }
    }
    c.output("out", TSR_TYPE_F32, {of.n, of.rows}, kRows);
    c.tolerance = 2 * tolerance_of(of.type);
    c.row_ranges(static_cast<int32_t>(of.rows));
}

// gated_ffn, and moe_ffn with experts.
void feed_forward(const std::string& op, const Use& use) {
    const bool routed = op == TSR_OP_MOE_FFN;
    for (const tsr_type type : kTypesOfManyRows) {
        const int64_t block = block_of(type), k = block == 1 ? 96 : 256, f = block == 256 ? 256 : 64;
        const int64_t n = 72, experts = 3, used = 2, rows = 139;
        for (const auto& [choice, name] : kChoices) {
            if (!routed && choice != Choice::kSpread) continue;
            Case c(op, text("%s rows=%lld %s", formats::format_name(type), static_cast<long long>(rows),
                            routed ? name : ""));
            const Network network{type, k, f, n, rows, experts, used};
            add_operands(c, network, routed, [&](Operand& ids) { fill_ids(ids, experts, choice); });
            use(c);
        }
    }
    for (const auto& [type, length] : kRowsOfVectors) {
        for (const bool down : {false, true}) {
            // Rows of gate and up as long as this, or those of down.
            const int64_t k = down ? 256 : length, f = down ? length : 256, n = 13, experts = 3, used = 2;
            const int64_t rows = routed && !down ? 3 : 1;
            Case c(op, text("%s k=%lld f=%lld n=%lld rows=%lld", formats::format_name(type), static_cast<long long>(k),
                            static_cast<long long>(f), static_cast<long long>(n), static_cast<long long>(rows)));
            const Network network{type, k, f, n, rows, experts, used};
            add_operands(c, network, routed, [&](Operand& ids) { fill_ids(ids, experts); });
            use(c);
        }
    }
    for (const auto& [type, length, gap] : kRowsApart) {
        const int64_t n = 13, experts = 3, used = 2, rows = 1;
        Case c(op, text("%s k=%lld n=%lld gap=%lld", formats::format_name(type), static_cast<long long>(length),
                        static_cast<long long>(n), static_cast<long long>(gap)));
        const Network network{type, length, length, n, rows, experts, used, gap};
        add_operands(c, network, routed, [&](Operand& ids) { fill_ids(ids, experts); });
        use(c);
    }
    // Biases and units: one row, a few, many; rows that are no whole groups of lanes.
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_Q8_0, TSR_TYPE_MXFP4, TSR_TYPE_Q4_K}) {
        const int64_t block = block_of(type), k = block == 1 ? 44 : (block == 32 ? 96 : 256),
                      f = block == 1 ? 27 : block;
        for (const int64_t rows : {1, 5, 60}) {
            for (const Unit& unit : kUnits) {
                for (const unsigned biases : {7u, 4u, 3u, 8u}) {
                    if (biases != 7 && rows != 5) continue;
                    Case c(op, text("%s rows=%lld biases %u", formats::format_name(type), static_cast<long long>(rows),
                                    biases));
                    const Network network{type, k, f, 29, rows, 6, 2};
                    add_operands(
                        c, network, routed, [&](Operand& ids) { fill_ids(ids, 6); }, biases);
                    add_unit(c, unit);
                    use(c);
                }
            }
        }
    }
    for (const tsr_type type : weight_types()) {
        const int64_t block = block_of(type), k = block == 1 ? 40 : (block == 32 ? 96 : 256),
                      f = block == 1 ? 24 : block;
        const int64_t experts = 6, used = 2;
        for (const int64_t rows : {1, 13}) {
            const int64_t n = rows == 1 ? 24 : 29;
            Case c(op, text("%s k=%lld f=%lld n=%lld rows=%lld", formats::format_name(type), static_cast<long long>(k),
                            static_cast<long long>(f), static_cast<long long>(n), static_cast<long long>(rows)));
            const Network network{type, k, f, n, rows, experts, used};
            add_operands(c, network, routed, [&](Operand& ids) { fill_ids(ids, experts); });
            use(c);
            use_with_nan(c, use);
        }
    }
}

void matmul_id(const std::string& op, const Use& use) {
    for (const tsr_type type : kTypesOfManyRows) {
        const int64_t k = lengths_of_many_rows(type).back(), n = 131, experts = 3, used = 2, rows = 139;
        for (const auto& [choice, name] : kChoices) {
            Case c(op, text("%s rows=%lld %s", formats::format_name(type), static_cast<long long>(rows), name));
            c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
            c.fill(c.input("weight", type, {k, n, experts}, kWeight), weight_size(k));
            fill_ids(c.input("ids", TSR_TYPE_I32, {used, rows}, kActivation, kRows), experts, choice);
            c.output("out", TSR_TYPE_F32, {n, used, rows}, kRows);
            c.tolerance = tolerance_of(type);
            c.row_ranges(static_cast<int32_t>(rows));
            use(c);
        }
    }
    for (const auto& [type, k] : kRowsOfVectors) {
        const int64_t n = 21, experts = 3, used = 2, rows = 3;
        Case c(op, text("%s k=%lld n=%lld rows=%lld", formats::format_name(type), static_cast<long long>(k),
                        static_cast<long long>(n), static_cast<long long>(rows)));
        c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
        c.fill(c.input("weight", type, {k, n, experts}, kWeight), weight_size(k));
        fill_ids(c.input("ids", TSR_TYPE_I32, {used, rows}, kActivation, kRows), experts);
        c.output("out", TSR_TYPE_F32, {n, used, rows}, kRows);
        c.tolerance = tolerance_of(type);
        c.row_ranges(static_cast<int32_t>(rows));
        use(c);
    }
    for (const auto& [type, k, gap] : kRowsApart) {
        const int64_t n = 21, experts = 3, used = 2, rows = 2;
        Case c(op, text("%s k=%lld n=%lld gap=%lld", formats::format_name(type), static_cast<long long>(k),
                        static_cast<long long>(n), static_cast<long long>(gap)));
        c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
        c.fill(c.input("weight", type, {k, n, experts}, kWeight, TSR_RANGE_FIXED, gap), weight_size(k));
        fill_ids(c.input("ids", TSR_TYPE_I32, {used, rows}, kActivation, kRows), experts);
        c.output("out", TSR_TYPE_F32, {n, used, rows}, kRows);
        c.tolerance = tolerance_of(type);
        c.row_ranges(static_cast<int32_t>(rows));
        use(c);
    }
    for (const tsr_type type : weight_types()) {
        const int64_t k = row_lengths(type).back(), experts = 5, used = 3;
        for (const int64_t rows : {1, 7}) {
            for (const bool own_rows : {false, true}) {
                const int64_t n = own_rows ? 27 : 24;
                Case c(op,
                       text("%s k=%lld n=%lld rows=%lld%s", formats::format_name(type), static_cast<long long>(k),
                            static_cast<long long>(n), static_cast<long long>(rows), own_rows ? " a row each" : ""));
                if (own_rows) {
                    c.fill(c.input("x", TSR_TYPE_F32, {k, used, rows}, kActivation, kRows));
                } else {
                    c.fill(c.input("x", TSR_TYPE_F32, {k, rows}, kActivation, kRows));
                }
                c.fill(c.input("weight", type, {k, n, experts}, kWeight), weight_size(k));
                fill_ids(c.input("ids", TSR_TYPE_I32, {used, rows}, kActivation, kRows), experts);
                c.output("out", TSR_TYPE_F32, {n, used, rows}, kRows);
                c.tolerance = tolerance_of(type);
                c.row_ranges(static_cast<int32_t>(rows));
                use(c);
                use_with_nan(c, use);
            }
        }
    }
}

void add_id(const std::string& op, const Use& use) {
    for (const RowShape& s : kShapes) {
        for (const bool in_place : {false, true}) {
            Case c(op, text("n=%lld of %lld rows=%lld gap=%lld%s", static_cast<long long>(s.elements),
                            static_cast<long long>(s.inner), static_cast<long long>(s.rows),
                            static_cast<long long>(s.gap), in_place ? " in place" : ""));
            const int64_t experts = 5;
            c.fill(c.input("x", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kActivation, kRows, s.gap));
            c.fill(c.input("bias", TSR_TYPE_F32, {s.elements, experts}, kWeight));
            fill_ids(c.input("ids", TSR_TYPE_I32, {s.inner, s.rows}, kActivation, kRows), experts);
            if (in_place) {
                c.output_in_place(0);
            } else {
                c.output("out", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kRows);
            }
            c.tolerance = 1e-6;
            c.row_ranges(static_cast<int32_t>(s.rows));
            use(c);
        }
    }
}

void weighted_sum(const std::string& op, const Use& use) {
    for (const RowShape& s : kShapes) {
        Case c(op,
               text("n=%lld of %lld rows=%lld gap=%lld", static_cast<long long>(s.elements),
                    static_cast<long long>(s.inner), static_cast<long long>(s.rows), static_cast<long long>(s.gap)));
        c.fill(c.input("x", TSR_TYPE_F32, {s.elements, s.inner, s.rows}, kActivation, kRows, s.gap));
        c.fill(c.input("weights", TSR_TYPE_F32, {s.inner, s.rows}, kActivation, kRows));
        c.output("out", TSR_TYPE_F32, {s.elements, s.rows}, kRows);
        c.row_ranges(static_cast<int32_t>(s.rows));
        use(c);
    }
}

void moe_route(const std::string& op, const Use& use) {
    for (const char* gating : {"softmax", "sigmoid"}) {
        for (const int variant : {0, 1, 2, 3, 4}) {
            const int64_t experts = 24, used = 4, rows = 9;
            Case c(op, text("%s variant %d", gating, variant));
            c.fill(c.input("logits", TSR_TYPE_F32, {experts, rows}, kActivation, kRows), 2);
            if (variant == 1 || variant == 4) {
                c.fill(c.input("bias", TSR_TYPE_F32, {experts}, kWeight), 0.1f);
            } else {
                c.absent();
            }
            c.output("ids", TSR_TYPE_I32, {used, rows}, kRows);
            c.output("weights", TSR_TYPE_F32, {used, rows}, kRows);
            c.attribute("used", used);
            c.attribute("gating", gating);
            if (variant >= 2) c.attribute("normalize", int64_t{1});
            if (variant >= 3) {
                c.attribute("groups", int64_t{4});
                c.attribute("groups_used", int64_t{2});
                c.attribute("scale", 2.5);
            }
            if (variant == 4) {
                c.attribute("keep_at_least", int64_t{2});
                c.attribute("keep_ratio", 0.4);
            }
            c.row_ranges(static_cast<int32_t>(rows));
            use(c);
        }
    }
}

void convert(const std::string& op, const Use& use) {
    const bool transposes = op == TSR_OP_TRANSPOSE;
    for (const tsr_type from : weight_types()) {
        for (const tsr_type to : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0}) {
            // Rows of several blocks to one type alone: a block is decoded in the same way for each.
            const std::vector<int64_t> lengths = row_lengths(from);
            const int64_t k = to == TSR_TYPE_F16 ? lengths.back() : lengths.front(), n = 64, batch = 2;
            if (!transposes && k % block_of(static_cast<tsr_type>(to)) != 0) continue;
            Case c(op, text("%s to %s k=%lld", formats::format_name(from),
                            formats::format_name(static_cast<tsr_type>(to)), static_cast<long long>(k)));
            c.fill(c.input("weight", from, {k, n, batch}, kWeight));
            const auto type = static_cast<tsr_type>(to);
            if (transposes) {
                c.output("out", type, {n, k, batch}, TSR_RANGE_FIXED, 0, kWeight);
            } else {
                c.output("out", type, {k, n, batch}, TSR_RANGE_FIXED, 0, kWeight);
            }
            c.attribute("type", static_cast<int64_t>(to));
            c.tolerance = to == TSR_TYPE_F32 ? 1e-6 : (to == TSR_TYPE_Q8_0 ? 1e-2 : 5e-3);
            c.ranges.push_back({});
            use(c);
        }
    }
}

const std::map<std::string, void (*)(const std::string&, const Use&)>& makers() {
    static const std::map<std::string, void (*)(const std::string&, const Use&)> kMakers = {
        {TSR_OP_RMS_NORM, pointwise},
        {TSR_OP_ADD, pointwise},
        {TSR_OP_MUL, pointwise},
        {TSR_OP_SILU_MUL, pointwise},
        {TSR_OP_GLU, units},
        {TSR_OP_ADD_ID, add_id},
        {TSR_OP_HADAMARD, pointwise},
        {TSR_OP_SCALE, pointwise},
        {TSR_OP_ROPE, rope},
        {TSR_OP_SCALE_BY_POSITION, scale_by_position},
        {TSR_OP_SIGMOID_MUL, sigmoid_mul},
        {TSR_OP_GET_ROWS, get_rows},
        {TSR_OP_MATMUL, matmul},
        {TSR_OP_MATMUL_GROUP, matmul_group},
        {TSR_OP_GATED_FFN, feed_forward},
        {TSR_OP_MOE_FFN, feed_forward},
        {TSR_OP_MATMUL_ID, matmul_id},
        {TSR_OP_WEIGHTED_SUM, weighted_sum},
        {TSR_OP_MOE_ROUTE, moe_route},
        {TSR_OP_CONVERT, convert},
        {TSR_OP_TRANSPOSE, convert},
        {TSR_OP_CACHE_WRITE, cache_write_cases},
        {TSR_OP_FLASH_ATTENTION, attention_cases},
        {TSR_OP_TILED_ATTENTION, attention_cases},
    };
    return kMakers;
}

}  // namespace

bool for_each_case(const std::string& op, const Use& use) {
    const auto maker = makers().find(op);
    if (maker == makers().end()) return false;
    maker->second(op, use);
    return true;
}

std::vector<std::string> ops_with_cases() {
    std::vector<std::string> ops;
    for (const auto& [op, maker] : makers()) ops.push_back(op);
    return ops;
}

}  // namespace tessera::conformance
