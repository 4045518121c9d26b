// gated_ffn, moe_ffn and matmul_id.
#include "matmul_nodes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace tessera::tests {
namespace {

// Rounding is reproduced, so that only the order of additions differs, and occasionally the rounding of a hidden
// element.
constexpr double kTolerance = 1e-3;

double silu(double v) {
    return v / (1 + std::exp(-v));
}

struct Types {
    tsr_type gate, up, down;
};

// A gated linear unit other than silu(gate) * up, and of one expert the biases that there are.
struct Unit {
    const char* activation = nullptr;
    double limit = 0;

    double operator()(double gate, double up) const {
        const double most = limit > 0 ? limit : 1e30, bounded = std::clamp(up, -most, most);
        if (!activation || std::string_view(activation) == "silu") return std::min(silu(gate), most) * bounded;
        if (std::string_view(activation) == "gelu")
            return gate / 2 * (1 + std::tanh(0.7978845608028654 * (gate + 0.044715 * gate * gate * gate))) * up;
        const double g = std::min(gate, most);
        return g / (1 + std::exp(-1.702 * g)) * (bounded + 1);
    }
};
struct Biases {
    const float *gate = nullptr, *up = nullptr, *down = nullptr;
};

double biased(double sum, const float* bias, int64_t i) {
    return bias ? static_cast<double>(static_cast<float>(sum) + bias[i]) : sum;
}

// down(unit(gate x, up x)) of one expert, in double but for the rounding of activations.
std::vector<double> network(const Types& types, const float* gate, const float* up, const float* down, const float* x,
                            int64_t k, int64_t f, int64_t n, const Unit& unit = {}, const Biases& biases = {}) {
    const std::vector<float> gate_x = seen_by(types.gate, x, k), up_x = seen_by(types.up, x, k);
    std::vector<float> hidden(static_cast<size_t>(f));
    for (int64_t i = 0; i < f; ++i) {
        hidden[i] = static_cast<float>(unit(biased(product(gate + i * k, gate_x.data(), k), biases.gate, i),
                                            biased(product(up + i * k, up_x.data(), k), biases.up, i)));
    }
    hidden = seen_by(types.down, hidden.data(), f);
    std::vector<double> out(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) out[i] = biased(product(down + i * f, hidden.data(), f), biases.down, i);
    return out;
}

struct Moe {
    int64_t k = 256, f = 512, n = 40, experts = 6, used = 3, rows = 1;
    Types types{TSR_TYPE_Q4_0, TSR_TYPE_Q4_0, TSR_TYPE_Q4_0};
    bool packed = true;
    uint32_t workers = 2;
    uint32_t seed = 41;
    int32_t begin = 0;
    std::optional<int32_t> all_ids;  // else random and distinct in a row, with some -1
    bool reduced = false;            // rows of one to `used` experts, in turn
    Unit unit;
    unsigned biases = 0;  // of gate (1), up (2) and down (4)
};

struct MoeResult {
    std::vector<float> out;
    double error;
};

MoeResult run_moe(const Moe& m) {
    std::mt19937 random(m.seed);
    NodeCase node(TSR_OP_MOE_FFN);
    Operand& x = node.add(true, TSR_TYPE_F32, {m.k, m.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    Operand& ids = node.add(true, TSR_TYPE_I32, {m.used, m.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    Operand& weights = node.add(true, TSR_TYPE_F32, {m.used, m.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    for (int64_t r = m.begin; r < m.rows; ++r) {
        fill_normal(x.floats() + r * m.k, static_cast<size_t>(m.k), random);
        std::vector<int32_t> choice(static_cast<size_t>(m.experts));
        for (size_t i = 0; i < choice.size(); ++i) choice[i] = static_cast<int32_t>(i);
        std::ranges::shuffle(choice, random);
        for (int64_t s = 0; s < m.used; ++s) {
            const bool none = m.reduced ? s > r % m.used : s == m.used - 1 && r % 3 == 2;
            ids.integers()[r * m.used + s] = m.all_ids ? *m.all_ids : none ? -1 : choice[s];
            weights.floats()[r * m.used + s] = none ? 0.0f : 0.1f + static_cast<float>(random() % 100) / 100;
        }
    }
    const auto gate =
        make_weight(node.add(true, m.types.gate, {m.k, m.f, m.experts}, TSR_ROLE_WEIGHT), m.k, random, m.packed);
    const auto up =
        make_weight(node.add(true, m.types.up, {m.k, m.f, m.experts}, TSR_ROLE_WEIGHT), m.k, random, m.packed);
    const auto down =
        make_weight(node.add(true, m.types.down, {m.f, m.n, m.experts}, TSR_ROLE_WEIGHT), m.f, random, m.packed);
    const float* biases[3] = {};
    for (unsigned i = 0; (m.biases != 0 || m.unit.activation) && i < 3; ++i) {
        if ((m.biases >> i & 1) == 0) {
            node.add_absent();
            continue;
        }
        const int64_t length = i == 2 ? m.n : m.f;
        Operand& bias = node.add(true, TSR_TYPE_F32, {length, m.experts}, TSR_ROLE_WEIGHT);
        fill_normal(bias.floats(), static_cast<size_t>(length * m.experts), random);
        biases[i] = bias.floats();
    }
    if (m.unit.activation) node.attribute("activation", m.unit.activation);
    if (m.unit.limit > 0) node.attribute("limit", m.unit.limit);
    Operand& out = node.add(false, TSR_TYPE_F32, {m.n, m.rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    node.run_kernel(kernel_of(TSR_OP_MOE_FFN), m.workers, Ranges(m.begin, static_cast<int32_t>(m.rows)));
    MoeResult result;
    std::vector<double> got, wanted;
    for (int64_t r = m.begin; r < m.rows; ++r) {
        std::vector<double> sum(static_cast<size_t>(m.n));
        for (int64_t s = 0; s < m.used; ++s) {
            const int32_t e = ids.integers()[r * m.used + s];
            if (e < 0) continue;
            const auto one =
                network(m.types, gate.data() + e * m.f * m.k, up.data() + e * m.f * m.k, down.data() + e * m.n * m.f,
                        x.floats() + r * m.k, m.k, m.f, m.n, m.unit,
                        {biases[0] ? biases[0] + e * m.f : nullptr, biases[1] ? biases[1] + e * m.f : nullptr,
                         biases[2] ? biases[2] + e * m.n : nullptr});
            for (int64_t i = 0; i < m.n; ++i) sum[i] += weights.floats()[r * m.used + s] * one[i];
        }
        for (int64_t i = 0; i < m.n; ++i) {
            result.out.push_back(out.floats()[r * m.n + i]);
            got.push_back(out.floats()[r * m.n + i]);
            wanted.push_back(sum[i]);
        }
    }
    result.error = error_of(got, wanted);
    return result;
}

TEST(MoeFfn, HasBiasesAndUnits) {
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_Q8_0, TSR_TYPE_MXFP4}) {
        for (const Unit unit : {Unit{}, Unit{"silu", 0.5}, Unit{"gelu"}, Unit{"swiglu_oai", 0.7}}) {
            for (const int64_t rows : {1, 3, 29}) {
                for (const unsigned biases : {0u, 7u, 3u, 4u}) {
                    SCOPED_TRACE(testing::Message()
                                 << layout_of(type).name << ", " << (unit.activation ? unit.activation : "none")
                                 << ", rows " << rows << ", biases " << biases);
                    Moe m;
                    m.types = {type, type, type};
                    m.packed = type == TSR_TYPE_MXFP4;
                    m.n = m.packed ? 40 : 43;
                    m.rows = rows;
                    m.unit = unit;
                    m.biases = biases;
                    EXPECT_LT(run_moe(m).error, is_plain(type) ? 1e-5 : kTolerance);
                }
            }
        }
    }
}

TEST(MoeFfn, IsRightForEveryFormat) {
    for (const tsr_type type : weight_types()) {
        for (const bool packed : {true, false}) {
            for (const int64_t rows : {1, 2, 29}) {
                SCOPED_TRACE(testing::Message() << layout_of(type).name << ", packed " << packed << ", rows " << rows);
                Moe m;
                m.types = {type, type, type};
                m.packed = packed;
                m.rows = rows;
                EXPECT_LT(run_moe(m).error, is_plain(type) ? 1e-5 : kTolerance);
            }
        }
    }
}

TEST(MoeFfn, TakesMixedFormatsAndOddSizes) {
    for (const int64_t rows : {1, 3, 33}) {
        Moe m;
        m.rows = rows;
        m.types = {TSR_TYPE_Q4_K, TSR_TYPE_Q5_0, TSR_TYPE_Q6_K};
        EXPECT_LT(run_moe(m).error, kTolerance);
        m.types = {TSR_TYPE_Q4_0, TSR_TYPE_F16, TSR_TYPE_F32};
        m.f = 52;
        m.n = 13;
        m.packed = false;
        EXPECT_LT(run_moe(m).error, kTolerance);
        m.begin = rows > 1 ? 1 : 0;
        EXPECT_LT(run_moe(m).error, kTolerance);
    }
}

TEST(MoeFfn, GivesTheSameBitsForAnyNumberOfWorkers) {
    for (const int64_t rows : {1, 2, 29}) {
        Moe m;
        m.rows = rows;
        m.workers = 1;
        const std::vector<float> one = run_moe(m).out;
        for (m.workers = 2; m.workers <= 8; ++m.workers) EXPECT_EQ(one, run_moe(m).out);
    }
}

TEST(MoeFfn, TakesManyRowsOfOneExpertEvenTwiceInARow) {
    for (const int64_t rows : {1, 150}) {
        Moe m;
        m.rows = rows;
        m.f = 64;
        m.all_ids = 4;
        EXPECT_LT(run_moe(m).error, kTolerance);
    }
}

// Outputs and workspace hold not-a-number before, weights of absent experts too little to hide one.
TEST(MoeFfn, RowsMayHaveFewerExpertsInBatchesOfAnySize) {
    for (const int64_t rows : {1, 2, 3, 4, 5, 7, 8, 9, 13, 31, 32, 33, 127, 129}) {
        for (const bool packed : {true, false}) {
            SCOPED_TRACE(testing::Message() << rows << " rows, packed " << packed);
            Moe m;
            m.reduced = true;
            m.used = 4;
            m.rows = rows;
            m.packed = packed;
            m.workers = 3;
            EXPECT_LT(run_moe(m).error, kTolerance);
        }
    }
}

TEST(MoeFfn, GivesZeroWhereNoExpertIsNamed) {
    Moe m;
    m.rows = 5;
    m.all_ids = -1;
    for (const float v : run_moe(m).out) EXPECT_EQ(v, 0.0f);
}

TEST(MoeFfn, RefusesAnIdThatIsNoExpert) {
    Moe m;
    m.rows = 4;
    m.workers = 3;
    for (const int32_t id : {6, -2, 1 << 30}) {
        m.all_ids = id;
        try {
            run_moe(m);
            FAIL() << "it ran";
        } catch (const std::runtime_error& error) {
            EXPECT_NE(std::string(error.what()).find("moe_ffn"), std::string::npos) << error.what();
        }
    }
}

TEST(GatedFfn, IsRightForEveryFormat) {
    for (const tsr_type type : weight_types()) {
        for (const bool packed : {true, false}) {
            for (const int64_t rows : {1, 4, 139}) {
                SCOPED_TRACE(testing::Message() << layout_of(type).name << ", packed " << packed << ", rows " << rows);
                std::mt19937 random(51);
                constexpr int64_t kK = 256, kF = 256, kN = 24;
                NodeCase node(TSR_OP_GATED_FFN);
                Operand& x = node.add(true, TSR_TYPE_F32, {kK, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, 32);
                for (int64_t r = 0; r < rows; ++r) {
                    fill_normal(reinterpret_cast<float*>(x.data() + r * x.tensor.strides[1]), kK, random);
                }
                const auto gate = make_weight(node.add(true, type, {kK, kF}, TSR_ROLE_WEIGHT), kK, random, packed);
                const auto up = make_weight(node.add(true, type, {kK, kF}, TSR_ROLE_WEIGHT), kK, random, packed);
                const auto down = make_weight(node.add(true, type, {kF, kN}, TSR_ROLE_WEIGHT), kF, random, packed);
                Operand& out = node.add(false, TSR_TYPE_F32, {kN, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, 96);
                node.run_kernel(kernel_of(TSR_OP_GATED_FFN), 2, Ranges(0, static_cast<int32_t>(rows)));
                std::vector<double> got, wanted;
                for (int64_t r = 0; r < rows; ++r) {
                    const auto* from = reinterpret_cast<float*>(x.data() + r * x.tensor.strides[1]);
                    const auto* y = reinterpret_cast<float*>(out.data() + r * out.tensor.strides[1]);
                    const auto one = network({type, type, type}, gate.data(), up.data(), down.data(), from, kK, kF, kN);
                    wanted.insert(wanted.end(), one.begin(), one.end());
                    got.insert(got.end(), y, y + kN);
                }
                EXPECT_LT(error_of(got, wanted), is_plain(type) ? 1e-5 : kTolerance);
            }
        }
    }
}

// [workers] -> outputs of matmul_id; x has a row a slot if `slots`.
std::vector<float> run_matmul_id(tsr_type type, int64_t rows, bool slots, bool packed, uint32_t workers,
                                 double* error) {
    constexpr int64_t kK = 512, kN = 32, kExperts = 5, kUsed = 2;
    std::mt19937 random(61);
    NodeCase node(TSR_OP_MATMUL_ID);
    Operand& x = slots ? node.add(true, TSR_TYPE_F32, {kK, kUsed, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS)
                       : node.add(true, TSR_TYPE_F32, {kK, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    fill_normal(x.floats(), static_cast<size_t>(kK * rows * (slots ? kUsed : 1)), random);
    const auto w = make_weight(node.add(true, type, {kK, kN, kExperts}, TSR_ROLE_WEIGHT), kK, random, packed);
    Operand& ids = node.add(true, TSR_TYPE_I32, {kUsed, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    for (int64_t i = 0; i < kUsed * rows; ++i)
        ids.integers()[i] = i % 7 == 3 ? -1 : static_cast<int32_t>(random() % kExperts);
    Operand& out = node.add(false, TSR_TYPE_F32, {kN, kUsed, rows}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    node.run_kernel(kernel_of(TSR_OP_MATMUL_ID), workers, Ranges(0, static_cast<int32_t>(rows)));
    std::vector<double> got, wanted;
    for (int64_t p = 0; p < kUsed * rows; ++p) {
        for (int64_t i = 0; i < kN; ++i) {
            const int32_t e = ids.integers()[p];
            const float* row = x.floats() + (slots ? p : p / kUsed) * kK;
            got.push_back(out.floats()[p * kN + i]);
            wanted.push_back(e < 0 ? 0 : product(w.data() + (e * kN + i) * kK, seen_by(type, row, kK).data(), kK));
        }
    }
    *error = error_of(got, wanted);
    return {out.floats(), out.floats() + kN * kUsed * rows};
}

TEST(MatmulId, IsRightForEveryFormatAndWorkerCount) {
    for (const tsr_type type : weight_types()) {
        for (const int64_t rows : {1, 3, 60}) {
            for (const bool slots : {false, true}) {
                for (const bool packed : {false, true}) {
                    SCOPED_TRACE(testing::Message()
                                 << layout_of(type).name << ", rows " << rows << ", slots " << slots);
                    double error = 1;
                    const std::vector<float> one = run_matmul_id(type, rows, slots, packed, 1, &error);
                    EXPECT_LT(error, 1e-5);
                    EXPECT_EQ(one, run_matmul_id(type, rows, slots, packed, 5, &error));
                }
            }
        }
    }
}

}  // namespace
}  // namespace tessera::tests
