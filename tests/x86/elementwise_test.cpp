// The row-wise kernels, and cache_write, against the reference: odd sizes, strided and poisoned outputs,
// ranges that do not start at 0, in place where the op allows it, any number of workers.
#include "attention_nodes.hpp"
#include "kernels/plain/plain.hpp"
#include "tests/random_rows.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace tessera::tests {
namespace {

constexpr int kFirst = 1, kRows = 9, kAll = 12;  // the range is [kFirst, kFirst + kRows) of kAll rows

struct Ranges {
    tsr_range list[TSR_RANGE_COUNT] = {{kFirst, kFirst + kRows}, {0, 0}, {0, 0}, {0, 0}};
};

// Finite numbers in all of a tensor, its gaps excepted.
void fill(Operand& o, unsigned seed, float deviation = 1) {
    std::mt19937 random(seed);
    const tsr_tensor& t = o.tensor;
    for (int64_t i3 = 0; i3 < t.dims[3]; ++i3)
        for (int64_t i2 = 0; i2 < t.dims[2]; ++i2)
            for (int64_t i1 = 0; i1 < t.dims[1]; ++i1)
                fill_normal(
                    reinterpret_cast<float*>(o.data() + i1 * t.strides[1] + i2 * t.strides[2] + i3 * t.strides[3]),
                    static_cast<size_t>(t.dims[0]), random, deviation);
}

using Make = std::function<void(NodeCase&)>;

// Runs the reference and, on a copy of the same node, the kernel; compares every byte of the outputs' storage as
// floats, poison included.
void compare(const char* op, const Make& make, double tolerance) {
    Ranges ranges;
    NodeCase wanted(op);
    make(wanted);
    tsr_kernel_plan plan{};
    plain::Work work;
    const plain::Op& reference = *plain::find_op(op);
    const tsr_node& described = wanted.node();
    reference.plan(described, 2, plan, work);
    ASSERT_TRUE(plan.supported) << plan.reason;
    wanted.run(2, plan.workspace_bytes, ranges.list, [&](const tsr_run& run) { reference.run(described, 2, run); });
    for (const uint32_t workers : {1u, 2u, 3u, 8u}) {
        NodeCase got(op);
        make(got);
        got.run_kernel(kernel_of(op), workers, ranges.list);
        for (uint32_t i = 0; i < described.output_count; ++i) {
            Operand &a = got.output(i), &b = wanted.output(i);
            ASSERT_EQ(a.storage.size(), b.storage.size());
            const size_t bytes = static_cast<size_t>(b.tensor.strides[3] * b.tensor.dims[3]);
            if (tolerance == 0 || b.tensor.type == TSR_TYPE_I32) {
                EXPECT_EQ(std::memcmp(a.data(), b.data(), bytes), 0) << workers << " workers, output " << i;
                continue;
            }
            for (size_t e = 0; e < bytes / 4; ++e) {
                const float x = a.floats()[e], y = b.floats()[e];
                if (y != y)
                    ASSERT_NE(x, x) << "written outside at " << e << " with " << workers << " workers";
                else
                    ASSERT_NEAR(x, y, tolerance * (1 + std::fabs(y)))
                        << "at " << e << " with " << workers << " workers";
            }
        }
    }
}

Operand& activation(NodeCase& node, bool input, std::initializer_list<int64_t> dims, int64_t gap = 0) {
    return node.add(input, TSR_TYPE_F32, dims, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS, gap);
}

TEST(RmsNorm, AgreesWithTheReference) {
    for (const int64_t n : {1, 7, 8, 33, 512, 2048, 5120}) {
        for (const bool in_place : {false, true}) {
            compare(
                TSR_OP_RMS_NORM,
                [&](NodeCase& node) {
                    fill(activation(node, true, {n, 3, kAll}, 20), 1, 3);
                    fill(node.add(true, TSR_TYPE_F32, {n}, TSR_ROLE_WEIGHT), 2);
                    if (in_place)
                        node.output_in_place(0);
                    else
                        activation(node, false, {n, 3, kAll}, 12);
                    node.attribute("epsilon", 1e-6);
                },
                1e-6);
        }
    }
}

TEST(RmsNorm, ZeroRowsStayZero) {
    compare(
        TSR_OP_RMS_NORM,
        [](NodeCase& node) {
            fill(activation(node, true, {40, kAll}), 1, 0);
            fill(node.add(true, TSR_TYPE_F32, {40}, TSR_ROLE_WEIGHT), 2);
            activation(node, false, {40, kAll});
            node.attribute("epsilon", 1e-6);
        },
        1e-6);
}

TEST(Pairs, AgreeWithTheReference) {
    for (const char* op : {TSR_OP_ADD, TSR_OP_MUL, TSR_OP_SILU_MUL}) {
        for (const int64_t n : {1, 5, 8, 1023, 1024, 1100, 10944}) {
            for (const bool in_place : {false, true}) {
                for (const bool broadcast : {false, true}) {
                    if (broadcast && std::string_view(op) == TSR_OP_SILU_MUL) continue;
                    compare(
                        op,
                        [&](NodeCase& node) {
                            fill(activation(node, true, {n, kAll}, 8), 1, 20);
                            if (broadcast)
                                fill(node.add(true, TSR_TYPE_F32, {n}, TSR_ROLE_WEIGHT), 2);
                            else
                                fill(activation(node, true, {n, kAll}, 4), 2);
                            if (in_place)
                                node.output_in_place(0);
                            else
                                activation(node, false, {n, kAll}, 16);
                        },
                        1e-6);
                }
            }
        }
    }
}

TEST(Pairs, OneRowThatIsItselfBounded) {
    compare(
        TSR_OP_ADD,
        [](NodeCase& node) {
            fill(activation(node, true, {kAll}), 1);
            fill(activation(node, true, {kAll}), 2);
            activation(node, false, {kAll});
        },
        1e-6);
}

TEST(SiluMul, HoldsAtTheEndsOfTheRange) {
    compare(
        TSR_OP_SILU_MUL,
        [](NodeCase& node) {
            Operand& gate = activation(node, true, {8, kAll});
            Operand& up = activation(node, true, {8, kAll});
            const float values[8] = {0.0f, -0.0f, 1e-30f, 88.0f, -88.0f, 1e4f, -1e4f, -20.0f};
            for (int r = 0; r < kAll; ++r) {
                for (int i = 0; i < 8; ++i) {
                    gate.floats()[r * 8 + i] = values[i];
                    up.floats()[r * 8 + i] = 2;
                }
            }
            activation(node, false, {8, kAll});
        },
        1e-6);
}

TEST(WeightedSum, AgreesWithTheReference) {
    for (const int64_t n : {3, 8, 2048, 2051}) {
        compare(
            TSR_OP_WEIGHTED_SUM,
            [&](NodeCase& node) {
                fill(activation(node, true, {n, 6, kAll}, 4), 1);
                fill(activation(node, true, {6, kAll}, 8), 2);
                activation(node, false, {n, kAll}, 12);
            },
            1e-6);
    }
}

TEST(Rope, AgreesWithTheReference) {
    for (const char* mode : {"norm", "neox"}) {
        for (const int64_t d : {2, 10, 64, 128}) {
            for (const int variant : {0, 1, 2}) {
                for (const bool in_place : {false, true}) {
                    compare(
                        TSR_OP_ROPE,
                        [&](NodeCase& node) {
                            fill(activation(node, true, {d, 3, kAll}, 4), 1);
                            Operand& positions = node.add(true, TSR_TYPE_I32, {kAll}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
                            for (int r = 0; r < kAll; ++r) positions.integers()[r] = r * r * 1500;
                            if (variant == 2) {
                                Operand& factors = node.add(true, TSR_TYPE_F32, {d / 2}, TSR_ROLE_WEIGHT);
                                for (int64_t i = 0; i < d / 2; ++i) factors.floats()[i] = 1 + static_cast<float>(i) / 7;
                            }
                            if (in_place)
                                node.output_in_place(0);
                            else
                                activation(node, false, {d, 3, kAll}, 8);
                            node.attribute("mode", mode);
                            node.attribute("base", 10000.0);
                            if (variant == 1) {  // YaRN
                                node.attribute("freq_scale", 0.025);
                                node.attribute("ext_factor", 1.0);
                                node.attribute("attn_factor", 1.2);
                                node.attribute("original_context", int64_t{4096});
                            }
                        },
                        1e-5);
                }
            }
        }
    }
}

TEST(Scale, AgreesWithTheReference) {
    for (const int64_t n : {3, 8, 64, 1100}) {
        for (const bool in_place : {false, true}) {
            compare(
                TSR_OP_SCALE,
                [&](NodeCase& node) {
                    fill(activation(node, true, {n, 3, kAll}, 4), 1);
                    if (in_place)
                        node.output_in_place(0);
                    else
                        activation(node, false, {n, 3, kAll}, 8);
                    node.attribute("factor", 12.7);
                },
                1e-6);
        }
    }
}

TEST(SigmoidMul, AgreesWithTheReference) {
    for (const int64_t n : {3, 8, 64, 1100}) {
        for (const bool in_place : {false, true}) {
            compare(
                TSR_OP_SIGMOID_MUL,
                [&](NodeCase& node) {
                    fill(activation(node, true, {n, 3, kAll}, 4), 1);
                    fill(activation(node, true, {3, kAll}, 4), 6);
                    if (in_place)
                        node.output_in_place(0);
                    else
                        activation(node, false, {n, 3, kAll}, 8);
                },
                1e-6);
        }
    }
}

TEST(ScaleByPosition, AgreesWithTheReference) {
    for (const int64_t n : {3, 8, 64, 1100}) {
        for (const bool in_place : {false, true}) {
            compare(
                TSR_OP_SCALE_BY_POSITION,
                [&](NodeCase& node) {
                    fill(activation(node, true, {n, 3, kAll}, 4), 1);
                    Operand& positions = node.add(true, TSR_TYPE_I32, {kAll}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
                    for (int r = 0; r < kAll; ++r) positions.integers()[r] = r * r * 1500;
                    if (in_place)
                        node.output_in_place(0);
                    else
                        activation(node, false, {n, 3, kAll}, 8);
                    node.attribute("scale", 0.1);
                    node.attribute("length", int64_t{2000});
                },
                1e-6);
        }
    }
}

TEST(GetRows, AgreesWithTheReference) {
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q4_0}) {
        const bool blocks = type == TSR_TYPE_Q8_0 || type == TSR_TYPE_Q4_0;
        // Less than a vector, parts of vectors, and more than one piece of a row.
        for (const int64_t n : {5, 32, 320, 1100, 2080}) {
            if (blocks && n % 32 != 0) continue;
            compare(
                TSR_OP_GET_ROWS,
                [&](NodeCase& node) {
                    Operand& table = node.add(true, type, {n, 11}, TSR_ROLE_WEIGHT);
                    std::mt19937 random(3);
                    std::vector<float> row(static_cast<size_t>(n));
                    for (int i = 0; i < 11; ++i) {
                        fill_normal(row.data(), row.size(), random);
                        if (i == 3) row[0] = 3e-8f, row[4] = -0.0f;  // below the normal numbers of f16
                        cpu::encode_row(type, row.data(), row.size(), table.data() + i * table.tensor.strides[1]);
                    }
                    Operand& ids = node.add(true, TSR_TYPE_I32, {kAll}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
                    for (int r = 0; r < kAll; ++r) ids.integers()[r] = r * 7 % 11;
                    activation(node, false, {n, kAll}, 4);
                },
                0);
        }
    }
}

TEST(GetRows, RefusesIdsThatTheTableDoesNotHave) {
    for (const int32_t bad : {-1, 11}) {
        Ranges ranges;
        NodeCase node(TSR_OP_GET_ROWS);
        Operand& table = node.add(true, TSR_TYPE_F32, {8, 11}, TSR_ROLE_WEIGHT);
        std::mt19937 random(3);
        fill_normal(table.floats(), 88, random);
        Operand& ids = node.add(true, TSR_TYPE_I32, {kAll}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
        for (int r = 0; r < kAll; ++r) ids.integers()[r] = 0;
        ids.integers()[kFirst + 2] = bad;
        activation(node, false, {8, kAll});
        EXPECT_THROW(node.run_kernel(kernel_of(TSR_OP_GET_ROWS), 1, ranges.list), std::exception) << bad;
    }
}

TEST(Hadamard, AgreesWithTheReference) {
    // Blocks smaller than a vector, of one vector, of every remainder of two distances at a time, and several a row.
    for (const int64_t n : {1, 3, 4, 8, 16, 24, 32, 64, 128, 192, 512, 576, 2048}) {
        for (const bool in_place : {false, true}) {
            compare(
                TSR_OP_HADAMARD,
                [&](NodeCase& node) {
                    fill(activation(node, true, {n, 3, kAll}, 8), 1, 2);
                    if (in_place)
                        node.output_in_place(0);
                    else
                        activation(node, false, {n, 3, kAll}, 4);
                },
                2e-6);
        }
    }
}

struct Routing {
    int64_t experts = 64, used = 6, groups = 1, groups_used = 1;
    bool sigmoid = false, bias = false, normalize = false;
    double keep_ratio = 0;
    int64_t keep_at_least = 0;
};

void add_route(NodeCase& node, const Routing& routing, const std::function<void(Operand&)>& change = {}) {
    Operand& logits = activation(node, true, {routing.experts, kAll}, 8);
    fill(logits, 1, 2);
    if (change) change(logits);
    if (routing.bias)
        fill(node.add(true, TSR_TYPE_F32, {routing.experts}, TSR_ROLE_WEIGHT), 2, 0.1f);
    else
        node.add_absent();
    node.add(false, TSR_TYPE_I32, {routing.used, kAll}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    node.add(false, TSR_TYPE_F32, {routing.used, kAll}, TSR_ROLE_ACTIVATION, TSR_RANGE_ROWS);
    node.attribute("used", routing.used);
    node.attribute("gating", routing.sigmoid ? "sigmoid" : "softmax");
    node.attribute("groups", routing.groups);
    node.attribute("groups_used", routing.groups_used);
    node.attribute("normalize", int64_t{routing.normalize});
    node.attribute("scale", 2.5);
    if (routing.keep_ratio > 0) {
        node.attribute("keep_ratio", routing.keep_ratio);
        node.attribute("keep_at_least", routing.keep_at_least);
    }
}

TEST(MoeRoute, AgreesWithTheReference) {
    for (const bool sigmoid : {false, true}) {
        for (const bool bias : {false, true}) {
            for (const bool normalize : {false, true}) {
                for (Routing routing : {Routing{}, Routing{.groups = 4, .groups_used = 2},
                                        Routing{.experts = 256, .used = 8, .groups = 8, .groups_used = 4},
                                        Routing{.experts = 7, .used = 7}, Routing{.experts = 1, .used = 1},
                                        Routing{.experts = 60, .used = 4},
                                        Routing{.experts = 12, .used = 2, .groups = 12, .groups_used = 5},
                                        Routing{.keep_ratio = 0.4, .keep_at_least = 2}}) {
                    routing.sigmoid = sigmoid, routing.bias = bias, routing.normalize = normalize;
                    SCOPED_TRACE(testing::Message() << "sigmoid " << sigmoid << ", bias " << bias << ", experts "
                                                    << routing.experts << ", groups " << routing.groups);
                    compare(
                        TSR_OP_MOE_ROUTE, [&](NodeCase& node) { add_route(node, routing); }, 2e-6);
                }
            }
        }
    }
}

TEST(MoeRoute, EqualScoresGoToTheFirstExperts) {
    compare(
        TSR_OP_MOE_ROUTE,
        [](NodeCase& node) {
            add_route(node, {.experts = 20, .used = 5}, [](Operand& logits) {
                for (int64_t r = 0; r < kAll; ++r) {
                    float* row = logits.floats() + r * logits.tensor.strides[1] / 4;
                    for (int i = 0; i < 20; ++i) row[i] = i % 2 == 0 ? 0.0f : -0.0f;
                    row[r] = 1;
                }
            });
        },
        1e-6);
}

TEST(MoeRoute, LogitsFarApart) {
    compare(
        TSR_OP_MOE_ROUTE,
        [](NodeCase& node) {
            add_route(node, {.experts = 20, .used = 3}, [](Operand& logits) {
                for (int64_t r = 0; r < kAll; ++r) {
                    float* row = logits.floats() + r * logits.tensor.strides[1] / 4;
                    for (int i = 0; i < 20; ++i) row[i] = static_cast<float>(i * 7 % 20) * 40 - 300;
                }
            });
        },
        1e-6);
}

// One broken logit breaks the sum that all weights are divided by, and with a bias all scores.
TEST(MoeRoute, SoftmaxOfNanIsNan) {
    compare(
        TSR_OP_MOE_ROUTE,
        [](NodeCase& node) {
            add_route(node, {.experts = 20, .used = 3, .sigmoid = false, .bias = true}, [](Operand& logits) {
                for (int64_t r = 0; r < kAll; ++r)
                    logits.floats()[r * logits.tensor.strides[1] / 4 + r] = std::numeric_limits<float>::quiet_NaN();
            });
        },
        1e-6);
}

TEST(CacheWrite, WritesTheSameBytesAsTheReference) {
    for (const tsr_type type : {TSR_TYPE_F32, TSR_TYPE_F16, TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q8_KV, TSR_TYPE_Q6_0,
                                TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q4_0, TSR_TYPE_Q4_1, TSR_TYPE_IQ4_NL}) {
        const bool blocks = type != TSR_TYPE_F32 && type != TSR_TYPE_F16 && type != TSR_TYPE_BF16;
        for (const int64_t n : {32, 96, 576}) {
            compare(
                TSR_OP_CACHE_WRITE,
                [&](NodeCase& node) {
                    Operand& x = activation(node, true, {n, kAll}, 8);
                    fill(x, 5);
                    // Ties, zeros, blocks of zeros, tiny and huge numbers.
                    float* row = x.floats() + x.tensor.strides[1] / 4 * kFirst;
                    for (int i = 0; i < 32; ++i) row[i] = 0;
                    row = x.floats() + x.tensor.strides[1] / 4 * (kFirst + 1);
                    for (int i = 0; i < 32; ++i) row[i] = static_cast<float>(i) - 15.5f;
                    row[31] = -127;
                    row = x.floats() + x.tensor.strides[1] / 4 * (kFirst + 2);
                    const float odd[] = {1e-8f,          -1e-7f,         6e4f,       -0.0f,
                                         1.00048828125f, 1.00146484375f, 3.3895e38f, 1e-40f};
                    for (int i = 0; i < 8; ++i) row[i] = blocks && std::fabs(odd[i]) > 1e5f ? 1.0f : odd[i];
                    Operand& positions = node.add(true, TSR_TYPE_I32, {kAll}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
                    Operand& sequences = node.add(true, TSR_TYPE_I32, {kAll}, TSR_ROLE_INPUT, TSR_RANGE_ROWS);
                    Operand& table = node.add(true, TSR_TYPE_I32, {3, 2}, TSR_ROLE_INPUT);
                    const int32_t pages[] = {4, 0, 2, 1, 3, 5};
                    std::copy(std::begin(pages), std::end(pages), table.integers());
                    for (int r = 0; r < kAll; ++r) {
                        positions.integers()[r] = 60 + r;
                        sequences.integers()[r] = r % 2;
                    }
                    node.add(false, type, {n, 64, 6}, TSR_ROLE_CACHE);
                },
                0);
        }
    }
}

constexpr tsr_type kTargets[] = {TSR_TYPE_F32,  TSR_TYPE_F16,  TSR_TYPE_BF16, TSR_TYPE_Q8_0, TSR_TYPE_Q6_0,
                                 TSR_TYPE_Q5_0, TSR_TYPE_Q5_1, TSR_TYPE_Q4_0, TSR_TYPE_Q4_1, TSR_TYPE_IQ4_NL};

// A weight and the same in another type. Rows of both are `gap` bytes apart.
void add_stored(NodeCase& node, tsr_type from, tsr_type to, std::initializer_list<int64_t> dims,
                std::initializer_list<int64_t> result, int64_t gap = 0) {
    Operand& weight = node.add(true, from, dims, TSR_ROLE_WEIGHT, TSR_RANGE_FIXED, gap);
    const tsr_tensor& t = weight.tensor;
    std::mt19937 random(7);
    for (int64_t r = 0; r < t.dims[1] * t.dims[2] * t.dims[3]; ++r) {
        fill_rows(from, weight.data() + r * t.strides[1], static_cast<size_t>(t.dims[0]), 1, 0.1f, random);
    }
    node.add(false, to, result, TSR_ROLE_WEIGHT, TSR_RANGE_FIXED, gap);
    node.attribute("type", int64_t{to});
}

TEST(Convert, StoresTheSameBytesAsTheReference) {
    for (const tsr_type from : weight_types()) {
        for (const tsr_type to : kTargets) {
            SCOPED_TRACE(std::string(cpu::format_name(from)) + " to " + cpu::format_name(to));
            compare(
                TSR_OP_CONVERT,
                [&](NodeCase& node) {
                    add_stored(node, from, to, {256, 5}, {256, 5});
                },
                0);
        }
    }
}

// More and less than is converted at a time, what vectors leave over, rows apart, and four dimensions.
TEST(Convert, EveryShape) {
    for (const int64_t n : {1, 5, 8, 1023, 1100}) {
        for (const auto& [from, to] :
             {std::pair{TSR_TYPE_F32, TSR_TYPE_F16}, {TSR_TYPE_F16, TSR_TYPE_BF16}, {TSR_TYPE_BF16, TSR_TYPE_F32}}) {
            compare(
                TSR_OP_CONVERT,
                [&](NodeCase& node) {
                    add_stored(node, from, to, {n, 3, 2, 2}, {n, 3, 2, 2}, 8);
                },
                0);
        }
    }
    compare(
        TSR_OP_CONVERT,
        [](NodeCase& node) {
            add_stored(node, TSR_TYPE_Q4_K, TSR_TYPE_Q8_0, {2304, 2, 3}, {2304, 2, 3}, 4);
        },
        0);
}

TEST(Transpose, StoresTheSameBytesAsTheReference) {
    for (const tsr_type from : weight_types()) {
        for (const tsr_type to : kTargets) {
            SCOPED_TRACE(std::string(cpu::format_name(from)) + " to " + cpu::format_name(to));
            compare(
                TSR_OP_TRANSPOSE,
                [&](NodeCase& node) {
                    add_stored(node, from, to, {256, 64, 2}, {64, 256, 2});
                },
                0);
        }
    }
}

// Tiles that neither rows nor columns fill.
TEST(Transpose, EveryShape) {
    for (const int64_t n : {1, 7, 8, 33, 257, 520}) {
        for (const int64_t rows : {1, 9, 31, 32, 70}) {
            for (const auto& [from, to] : {std::pair{TSR_TYPE_F32, TSR_TYPE_F16},
                                           {TSR_TYPE_F16, TSR_TYPE_BF16},
                                           {TSR_TYPE_BF16, TSR_TYPE_F32}}) {
                compare(
                    TSR_OP_TRANSPOSE,
                    [&](NodeCase& node) {
                        add_stored(node, from, to, {n, rows, 3}, {rows, n, 3}, 8);
                    },
                    0);
            }
        }
    }
    compare(
        TSR_OP_TRANSPOSE,
        [](NodeCase& node) {
            add_stored(node, TSR_TYPE_Q5_0, TSR_TYPE_Q8_0, {288, 96, 2, 2}, {96, 288, 2, 2}, 2);
        },
        0);
}

}  // namespace
}  // namespace tessera::tests
