// The second launch of attention, which joins the partial sums of spans: every number of spans, with every division of
// a head among blocks, against the same computed on the host. On cards, real or emulated.
#include "kernels/cuda/attention/combine.hpp"

#include "card.hpp"
#include "kernels/cuda/attention/cache.hpp"

#include <tessera/cuda/images.hpp>
#include <tessera/cuda/launch.hpp>

#include <gtest/gtest.h>

#include <cmath>
#include <random>

extern const tessera::cuda::Module tessera_cuda_module_cuda_combine_test__attention;

namespace tessera::test {
namespace {

using namespace cuda_kernels;

struct Case {
    int heads, dv, splits;
    std::vector<int> spans;  // of each row
};

class Combine : public testing::Test {
  public:
    explicit Combine(const tsr_device_info& info)
        : card_(info), kernel_(card_.device(), tessera_cuda_module_cuda_combine_test__attention, "combine") {}
    void TestBody() override {}

    // What the kernel writes with `parts` blocks to a head, rows that have one span excepted.
    std::vector<float> run(const Case& c, const std::vector<float>& partial, uint32_t parts) {
        const auto rows = static_cast<int>(c.spans.size());
        std::vector<int32_t> positions;
        for (const int spans : c.spans) positions.push_back(spans * kPageTokens - 1);
        Attention p{};
        p.positions = card_.upload(positions);
        p.sequences = card_.upload(std::vector<int32_t>(c.spans.size(), 0));
        p.position = p.sequence = sizeof(int32_t);
        p.pages.positions = kMaximumSplits;
        p.partial = card_.upload(partial);
        float* const y = card_.upload(std::vector<float>(static_cast<size_t>(rows * c.heads * c.dv), kUntouched));
        p.y = y;
        p.y_head = int64_t{4} * c.dv;
        p.y_row = p.y_head * c.heads;
        p.rows.fixed = rows;
        p.heads = c.heads;
        p.dv = c.dv;
        p.splits = c.splits;
        // Fewer blocks than rows.
        const auto grid_rows = static_cast<uint32_t>((rows + 1) / 2);
        kernel_.launch(card_.queue(), {static_cast<uint32_t>(c.heads), grid_rows, parts}, kAttentionThreads, p);
        return card_.download(y, static_cast<size_t>(rows * c.heads * c.dv));
    }

    static constexpr float kUntouched = -12345;

  private:
    Card card_;
    cuda::Kernel kernel_;
};

std::vector<float> random_partial(const Case& c) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> value(-1, 1), maximum(-20, 20), sum(1, 64);
    std::vector<float> partial(c.spans.size() * static_cast<size_t>(c.heads * c.splits * (c.dv + 2)), NAN);
    size_t at = 0;
    for (const int spans : c.spans) {
        for (int head = 0; head < c.heads; ++head) {
            for (int split = 0; split < c.splits; ++split, at += static_cast<size_t>(c.dv) + 2) {
                if (split >= spans) continue;  // of a span that the row does not have nothing is read
                for (int e = 0; e < c.dv; ++e) partial[at + static_cast<size_t>(e)] = value(random);
                partial[at + static_cast<size_t>(c.dv)] = maximum(random);
                partial[at + static_cast<size_t>(c.dv) + 1] = sum(random);
            }
        }
    }
    return partial;
}

void check(Combine& combine, const Case& c) {
    const std::vector<float> partial = random_partial(c);
    const auto parts = static_cast<uint32_t>((c.dv + kCombineColumns - 1) / kCombineColumns);
    const std::vector<float> y = combine.run(c, partial, parts);
    for (uint32_t fewer = 1; fewer < parts; fewer = 2 * fewer + 1) EXPECT_EQ(combine.run(c, partial, fewer), y);
    size_t at = 0, out = 0;
    for (const int spans : c.spans) {
        for (int head = 0; head < c.heads; ++head) {
            const auto of = [&](int split, int e) {
                return static_cast<double>(partial[at + static_cast<size_t>(split * (c.dv + 2) + e)]);
            };
            double largest = -INFINITY, divisor = 0;
            for (int s = 0; s < spans; ++s) largest = std::max(largest, of(s, c.dv));
            for (int s = 0; s < spans; ++s) divisor += std::exp2(of(s, c.dv) - largest) * of(s, c.dv + 1);
            for (int e = 0; e < c.dv; ++e, ++out) {
                if (spans == 1) {  // the launch before has written it
                    ASSERT_EQ(y[out], Combine::kUntouched);
                    continue;
                }
                double sum = 0;
                for (int s = 0; s < spans; ++s) sum += std::exp2(of(s, c.dv) - largest) * of(s, e);
                ASSERT_NEAR(y[out], sum / divisor, 2e-6) << spans << " spans, element " << e;
            }
            at += static_cast<size_t>(c.splits * (c.dv + 2));
        }
    }
}

template <class Body>
void on_each_card(Body&& body) {
    bool found = false;
    for (const auto& card : list_cards()) {
        if (!cuda::find_image(tessera_cuda_module_cuda_combine_test__attention, card->info.compute_capability))
            continue;
        found = true;
        Combine combine(card->info);
        body(combine);
    }
    EXPECT_TRUE(found) << "no card that this test was built for";
}

TEST(CombineSpans, OfEveryNumber) {
    on_each_card([](Combine& combine) {
        Case c{1, 64, kMaximumSplits, {}};
        for (int spans = 1; spans <= kMaximumSplits; ++spans) c.spans.push_back(spans);
        check(combine, c);
    });
}

TEST(CombineSpans, OfHeadsOfEverySize) {
    on_each_card([](Combine& combine) {
        for (const int dv : {512, 128, 100, 7}) check(combine, {3, dv, 37, {37, 2, 1, 5, 4, 3}});
    });
}

}  // namespace
}  // namespace tessera::test
