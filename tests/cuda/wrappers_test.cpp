// Every wrapper of simt.hpp on each card that the driver lists, against the same computed here. On an emulated card it
// tests the emulator, on a real one the instructions that the wrappers stand for: exact where both are exact.
#include "card.hpp"

#include <tessera/cuda/launch.hpp>
#include <tessera/formats/half.hpp>

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

// TSR_WRAPPERS: the module, which tests/cuda/kit.cmake compiles once for each plugin's virtual architectures.
extern const tessera::cuda::Module TSR_WRAPPERS;

namespace tessera::test {
namespace {

using Words = std::vector<uint32_t>;

struct Arguments {
    const uint32_t* in;
    uint32_t* out;
    int count;
};

Words random_words(size_t count, unsigned seed = 1) {
    std::mt19937 random(seed);
    Words words(count);
    for (uint32_t& word : words) word = static_cast<uint32_t>(random());
    return words;
}

uint32_t bits(float value) {
    return std::bit_cast<uint32_t>(value);
}
float number(uint32_t word) {
    return std::bit_cast<float>(word);
}

// Runs `body` on every card that the module has an image for.
class Wrappers : public testing::Test {
  protected:
    template <class Body>
    void on_cards(Body&& body) {
        int ran = 0;
        for (const auto& info : list_cards()) {
            if (!cuda::find_image(kModule, info->info.compute_capability)) continue;
            SCOPED_TRACE(info->id + ", " + cuda::capability_text(info->info.compute_capability));
            Card card(info->info);
            body(card);
            ++ran;
        }
        ASSERT_GT(ran, 0) << "no card here that " << kModule.name << " was built for";
    }
    static Words run(Card& card, const char* name, uint32_t threads, const Words& in, Words out, int count = 0,
                     uint32_t shared = 0, cuda::Grid grid = {}) {
        const cuda::Kernel kernel(card.device(), kModule, name, shared);
        const Arguments arguments = {card.upload(in), card.upload(out), count};
        kernel.launch(card.queue(), grid, threads, arguments, shared);
        return card.download(arguments.out, out.size());
    }
    // The virtual architecture that the card's image was made from.
    static uint32_t architecture(Card& card) {
        return cuda::instructions_for(kModule, card.device().info->compute_capability);
    }
    static const cuda::Module& kModule;
};
const cuda::Module& Wrappers::kModule = TSR_WRAPPERS;

TEST_F(Wrappers, Indices) {
    on_cards([](Card& card) {
        const Words out = run(card, "wrapper_indices", 64, {0}, Words(12 + 64), 0, 0, {3, 2, 5});
        const Words wanted = {63, 0, 0, 2, 1, 4, 64, 1, 1, 3, 2, 5};
        EXPECT_EQ(Words(out.begin(), out.begin() + 12), wanted);
        for (uint32_t t = 0; t < 64; ++t) EXPECT_EQ(out[12 + t], t % 32 | t / 32 << 8);
    });
}

TEST_F(Wrappers, SixteenBitFloats) {
    Words in = random_words(4000);
    for (uint32_t h = 0; h < 65536; h += 7) in.push_back(bits(formats::f16_to_f32(static_cast<uint16_t>(h))));
    for (const float value : {0.f, -0.f, 65504.f, 65519.9f, 65520.f, 1e-8f, 6.1e-5f, INFINITY, -INFINITY})
        in.push_back(bits(value));
    // A not-a-number stays one, with bits that nothing promises.
    std::erase_if(in, [](uint32_t word) { return std::isnan(number(word)); });
    on_cards([&](Card& card) {
        const Words out = run(card, "wrapper_floats", 128, in, Words(4 * in.size()), static_cast<int>(in.size()));
        for (size_t i = 0; i < in.size(); ++i) {
            const uint16_t half = formats::f32_to_f16(number(in[i])), brain = formats::f32_to_bf16(number(in[i]));
            ASSERT_EQ(out[4 * i], half | static_cast<uint32_t>(brain) << 16) << number(in[i]);
            ASSERT_EQ(out[4 * i + 1], bits(formats::f16_to_f32(half))) << number(in[i]);
            ASSERT_EQ(out[4 * i + 2], bits(formats::bf16_to_f32(brain))) << number(in[i]);
            ASSERT_EQ(out[4 * i + 3], bits(1.5f) ^ bits(formats::f16_to_f32(half))) << number(in[i]);
        }
    });
}

// The f16 that is nearest to a number, half way the even one.
uint16_t nearest_half(double value) {
    const uint16_t near = formats::f32_to_f16(static_cast<float>(value));
    uint16_t best = near;
    for (const int other : {near - 1, near + 1}) {
        const auto candidate = static_cast<uint16_t>(other);
        const double distance = std::abs(formats::f16_to_f32(candidate) - value),
                     least = std::abs(formats::f16_to_f32(best) - value);
        if (distance < least || (distance == least && candidate % 2 == 0)) best = candidate;
    }
    return best;
}

TEST_F(Wrappers, HalvesAreRoundedOnce) {
    // Exponents near one another, so that sums cancel and lie half way; no result is infinite.
    Words in = random_words(30000, 2);
    for (uint32_t& word : in) word = (word & 0x83FF83FFu) | (word >> 2 & 0x0C000C00u) | 0x34003400u;
    in.insert(in.end(), {0x04010401u, 0x38013801u, 0x80010001u});  // with results below 2^-14
    const size_t count = in.size() / 3;
    int twice = 0;
    for (size_t i = 0; i < count; ++i) {
        for (int shift = 0; shift < 32; shift += 16) {
            const auto of = [&](size_t k) {
                return static_cast<double>(formats::f16_to_f32(static_cast<uint16_t>(in[3 * i + k] >> shift)));
            };
            const auto product = formats::f32_to_f16(static_cast<float>(of(0) * of(1)));
            twice += formats::f32_to_f16(formats::f16_to_f32(product) + static_cast<float>(of(2))) !=
                     nearest_half(of(0) * of(1) + of(2));
        }
    }
    EXPECT_GT(twice, 1000) << "the inputs tell no rounding of products from none";
    on_cards([&](Card& card) {
        const Words out = run(card, "wrapper_halves", 128, in, Words(count), static_cast<int>(count));
        for (size_t i = 0; i < count; ++i) {
            for (int shift = 0; shift < 32; shift += 16) {
                const auto of = [&](size_t k) {
                    return static_cast<double>(formats::f16_to_f32(static_cast<uint16_t>(in[3 * i + k] >> shift)));
                };
                const uint16_t wanted = nearest_half(of(0) * of(1) + of(2));
                // Zeros may have either sign.
                if (const auto got = static_cast<uint16_t>(out[i] >> shift); got != wanted) {
                    ASSERT_EQ((got | wanted) & 0x7FFFu, 0u) << of(0) << " " << of(1) << " " << of(2);
                }
            }
        }
    });
}

TEST_F(Wrappers, SharedMemory) {
    on_cards([](Card& card) {
        const Words in = random_words(128);
        const Words out = run(card, "wrapper_shared", 128, in, Words(128), 0, 512);
        for (size_t t = 0; t < 128; ++t) {
            const size_t next = (t + 1) % 128;
            EXPECT_EQ(out[t], in[127 - next] + in[next]);
        }
    });
}

TEST_F(Wrappers, NamedBarriers) {
    on_cards([](Card& card) {
        const Words in = random_words(128);
        const Words out = run(card, "wrapper_named_barriers", 128, in, Words(64));
        for (size_t t = 0; t < 64; ++t) EXPECT_EQ(out[t], in[64 + 63 - t] * 3);
    });
}

TEST_F(Wrappers, Warps) {
    on_cards([](Card& card) {
        const Words in = random_words(32);
        const Words out = run(card, "wrapper_warp", 32, in, Words(352));
        float sums[32], maximum = -2;
        for (uint32_t i = 0; i < 32; ++i) {
            sums[i] = std::bit_cast<float>(0x3F800000u | in[i] >> 9);
            maximum = std::max(maximum, -sums[i]);
        }
        for (uint32_t mask = 16; mask > 0; mask /= 2) {
            const auto before = std::to_array(sums);
            for (uint32_t i = 0; i < 32; ++i) sums[i] = before[i] + before[i ^ mask];
        }
        uint32_t ballot = 0;
        for (uint32_t i = 0; i < 32; ++i) ballot |= (in[i] % 3 == 0 ? 1u : 0u) << i;
        for (uint32_t i = 0; i < 32; ++i) {
            EXPECT_EQ(out[11 * i], in[(i * 7 + 3) % 32]);
            EXPECT_EQ(out[11 * i + 1], in[i ^ 5]);
            EXPECT_EQ(out[11 * i + 2], in[i + 4 < 32 ? i + 4 : i]);
            EXPECT_EQ(out[11 * i + 3], 1u);
            EXPECT_EQ(out[11 * i + 4], 0u);
            EXPECT_EQ(out[11 * i + 5], ballot);
            EXPECT_EQ(out[11 * i + 6], in[31]);
            // Of the eight bytes, from the low end: byte 5, the signs of bytes 1 and 7, byte 3.
            const uint32_t a = in[i], b = ~a;
            const uint32_t first_sign = a >> 15 & 1, second_sign = b >> 31;
            EXPECT_EQ(out[11 * i + 7],
                      (b >> 8 & 255) | first_sign * 0xFF00u | second_sign * 0xFF0000u | (a >> 24) << 24);
            EXPECT_EQ(out[11 * i + 8], std::bit_cast<uint32_t>(sums[i]));
            EXPECT_EQ(out[11 * i + 9], std::bit_cast<uint32_t>(maximum));
            EXPECT_EQ(out[11 * i + 10], static_cast<uint32_t>(uint64_t{a} * (b << 7) >> 32));
        }
    });
}

int dot4(uint32_t a, uint32_t b) {
    int sum = 0;
    for (int i = 0; i < 32; i += 8) sum += static_cast<int8_t>(a >> i) * static_cast<int8_t>(b >> i);
    return sum;
}

TEST_F(Wrappers, Dp4a) {
    int with = 0;
    on_cards([&](Card& card) {
        if (architecture(card) < 610) return;
        ++with;
        Words in = random_words(600);
        in[0] = in[1] = 0x80808080;
        const Words out = run(card, "wrapper_dp4a", 128, in, Words(200), 200);
        for (size_t i = 0; i < 200; ++i)
            EXPECT_EQ(out[i], in[3 * i + 2] + static_cast<uint32_t>(dot4(in[3 * i], in[3 * i + 1])));
    });
    if (with == 0) GTEST_SKIP() << "no card here of compute capability 6.1 or later";
}

TEST_F(Wrappers, Atomics) {
    on_cards([](Card& card) {
        const Words in = random_words(128);
        const Words out =
            run(card, "wrapper_atomics", 128, in, {0, 0, 0, 0, static_cast<uint32_t>(-100), 0, 7}, 0, 0, {3, 1, 1});
        EXPECT_EQ(out[0], 3 * 128u);
        EXPECT_EQ(out[1], *std::max_element(in.begin(), in.end()));
        EXPECT_EQ(out[2], 1u);
        EXPECT_EQ(number(out[3]), 3 * 64.f);
        EXPECT_EQ(static_cast<int>(out[4]), 63);
        EXPECT_EQ(static_cast<int>(out[5]), -2 * 3 * 128);
        EXPECT_EQ(out[6], 8u);
    });
}

TEST_F(Wrappers, LoadsAndStoresOfEveryWidth) {
    on_cards([](Card& card) {
        const Words in = random_words(128);
        const Words out = run(card, "wrapper_memory", 32, in, Words(128));
        for (size_t t = 0; t < 128; t += 4) {
            EXPECT_EQ(out[t], in[t]);
            EXPECT_EQ(out[t + 1], in[t + 1]);
            EXPECT_EQ(out[t + 2], in[t + 2]);
            EXPECT_EQ(out[t + 3], in[t + 3]);
        }
    });
}

TEST_F(Wrappers, Arithmetic) {
    Words in;
    for (const float value : {0.f, 0.25f, 0.5f, 1.f, 1.5f, 2.5f, 3.f, 7.75f, 10.f, 20.5f}) in.push_back(bits(value));
    on_cards([&](Card& card) {
        const Words out = run(card, "wrapper_arithmetic", 128, in, Words(12 * in.size()), static_cast<int>(in.size()));
        for (size_t i = 0; i < in.size(); ++i) {
            const float x = number(in[i]);
            const float wanted[12] = {std::exp2(x),     std::exp(x),       1 / std::sqrt(x + 1e-3f),
                                      std::sqrt(x),     1 / (x + 1e-3f),   std::fma(x, x, -x),
                                      std::min(x, 1.f), std::max(x, 1.f),  x,
                                      std::round(x),    std::nearbyint(x), std::min(x, 2.f) + std::max(x, 3.f)};
            for (size_t k = 0; k < 12; ++k)
                EXPECT_NEAR(number(out[12 * i + k]), wanted[k], 1e-6f * std::abs(wanted[k]))
                    << "function " << k << " of " << x;
        }
    });
}

// 16-bit matrices of small whole numbers, so that sums are exact in any order.
TEST_F(Wrappers, TensorProducts) {
    int with = 0;
    std::mt19937 random(3);
    std::uniform_int_distribution<int> small(-8, 8);
    on_cards([&](Card& card) {
        if (architecture(card) < 800) return;
        ++with;
        for (const bool brain : {false, true}) {
            std::vector<uint16_t> halves((16 + 8) * 16);
            std::vector<float> values(halves.size());
            for (size_t i = 0; i < halves.size(); ++i) {
                values[i] = static_cast<float>(small(random));
                halves[i] = brain ? formats::f32_to_bf16(values[i]) : formats::f32_to_f16(values[i]);
            }
            Words in(halves.size() / 2);
            for (size_t i = 0; i < in.size(); ++i)
                in[i] = halves[2 * i] | static_cast<uint32_t>(halves[2 * i + 1]) << 16;
            const Words out = run(card, "wrapper_tensor", 32, in, Words(1088));
            const auto byte = [&](size_t i) { return static_cast<int8_t>(in[i / 4] >> 8 * (i % 4)); };
            for (size_t r = 0; r < 16; ++r) {
                for (size_t c = 0; c < 8; ++c) {
                    float sum = 0, sum8 = 0;
                    int whole = 0, first = 0;
                    for (size_t k = 0; k < 16; ++k) sum += values[16 * r + k] * values[256 + 16 * c + k];
                    for (size_t k = 0; k < 8; ++k) sum8 += values[16 * r + k] * values[256 + 16 * c + k];
                    for (size_t k = 0; k < 32; ++k) whole += byte(32 * r + k) * byte(512 + 32 * c + k);
                    for (size_t k = 0; k < 16; ++k) first += byte(32 * r + k) * byte(512 + 32 * c + k);
                    // What a lane's accumulators began with: fragments are rows lane / 4 and + 8, columns 2 (lane % 4)
                    // and + 1.
                    const size_t fragment = r / 8 * 2 + c % 2;
                    const float product = number(out[(brain ? 128 : 0) + 8 * r + c]);
                    EXPECT_EQ(product, brain ? sum : sum + static_cast<float>(fragment + 1)) << r << " " << c;
                    const float product8 = number(out[(brain ? 960 : 832) + 8 * r + c]);
                    EXPECT_EQ(product8, brain ? sum8 : sum8 + static_cast<float>(fragment + 1)) << r << " " << c;
                    EXPECT_EQ(static_cast<int>(out[256 + 8 * r + c]), whole + static_cast<int>(fragment) - 1)
                        << r << " " << c;
                    constexpr int kBegin[4] = {100, 200, -300, 400};
                    EXPECT_EQ(static_cast<int>(out[576 + 8 * r + c]), first + kBegin[fragment]) << r << " " << c;
                    EXPECT_EQ(static_cast<int>(out[704 + 8 * r + c]), whole + kBegin[fragment]) << r << " " << c;
                }
            }
            // Lane l of a transposed 8x8 matrix holds rows 2 (l % 4) and + 1 of column l / 4.
            for (size_t lane = 0; lane < 32; ++lane) {
                for (size_t m = 0; m < 4; ++m) {
                    const size_t row = m % 2 * 8 + lane % 4 * 2, column = m / 2 * 8 + lane / 4;
                    const uint32_t wanted =
                        halves[16 * row + column] | static_cast<uint32_t>(halves[16 * (row + 1) + column]) << 16;
                    EXPECT_EQ(out[384 + 4 * lane + m], wanted) << lane << " " << m;
                }
            }
            // Copies of 4, 8, 12 and no bytes, and zeros behind them.
            for (size_t i = 0; i < 16; ++i) {
                for (size_t k = 0; k < 4; ++k)
                    EXPECT_EQ(out[512 + 4 * i + k], k < (i + 1) % 4 ? in[k] : 0u) << i << " " << k;
            }
        }
    });
    if (with == 0) GTEST_SKIP() << "no card here of compute capability 8.0 or later";
}

}  // namespace
}  // namespace tessera::test
