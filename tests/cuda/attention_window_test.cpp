// Attention of both CUDA plugins where rows see a window of tokens, and where heads have sinks, on the emulator,
// against one that forms all scores at once in double. Pages before the windows are not there, and hold what is no
// number.
#include "emulated_module.hpp"
#include "kernels/cuda/attention/cache.hpp"
#include "kernels/cuda/attention/flash_tiles.hpp"
#include "kernels/cuda/attention/flash_tiles_f32.hpp"

#include <tessera/formats/half.hpp>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>

namespace tessera::cuda::emulator {
namespace {

using namespace cuda_kernels;

constexpr int kHead = 64, kGroup = 2, kKeyHeads = 2, kHeadsOfAll = kGroup * kKeyHeads;

struct Kernel {
    const char* name;
    int rows, threads, shared;  // rows 0: the one of single rows
    float exponent = 0;         // Attention::sink_exponent
};

struct Batch {
    std::vector<int32_t> positions, sequences;
    std::vector<int32_t> lengths;
    // The last `rows` of `cached` tokens of each sequence.
    explicit Batch(std::initializer_list<std::pair<int, int>> all) {
        for (const auto& [cached, rows] : all) {
            for (int i = 0; i < rows; ++i) {
                positions.push_back(cached - rows + i);
                sequences.push_back(static_cast<int32_t>(lengths.size()));
            }
            lengths.push_back(cached);
        }
    }
};

class Node {
  public:
    Node(const Batch& batch, int window, bool sinks) : batch_(batch), window_(window) {
        std::mt19937 random(3);
        std::normal_distribution<float> normal;
        const int32_t longest = *std::ranges::max_element(batch.lengths);
        pages_of_one_ = (longest + kPageTokens - 1) / kPageTokens + 1;
        const int32_t pages = pages_of_one_ * static_cast<int32_t>(batch.lengths.size());
        const auto floats = [&](size_t count) {
            std::vector<float> made(count);
            for (float& value : made) value = normal(random);
            return made;
        };
        q_ = floats(batch.positions.size() * kHeadsOfAll * kHead);
        if (sinks) sinks_ = floats(kHeadsOfAll);
        keys_.assign(static_cast<size_t>(pages) * kPageTokens * kKeyHeads * kHead, 0x7E00);
        values_ = keys_;
        table_.assign(static_cast<size_t>(pages), -1);
        int32_t next = 0;
        for (size_t s = 0; s < batch.lengths.size(); ++s) {
            int32_t first = batch.lengths[s];
            for (size_t r = 0; r < batch.positions.size(); ++r) {
                if (batch.sequences[r] == static_cast<int32_t>(s)) first = std::min(first, first_seen(r));
            }
            for (int32_t page = first / kPageTokens; page * kPageTokens < batch.lengths[s]; ++page) {
                const int32_t id = pages - 1 - next++;
                table_[s * static_cast<size_t>(pages_of_one_) + static_cast<size_t>(page)] = id;
                for (int32_t t = page * kPageTokens; t < std::min((page + 1) * kPageTokens, batch.lengths[s]); ++t) {
                    for (int e = 0; e < kKeyHeads * kHead; ++e) {
                        keys_[place(id, t, e)] = formats::f32_to_f16(normal(random));
                        values_[place(id, t, e)] = formats::f32_to_f16(normal(random));
                    }
                }
            }
        }
    }

    std::vector<double> expected() const {
        std::vector<double> out;
        for (size_t r = 0; r < batch_.positions.size(); ++r) {
            for (int h = 0; h < kHeadsOfAll; ++h) {
                std::vector<double> sums(kHead, 0.0), scores;
                const auto element = [&](const std::vector<uint16_t>& of, int32_t t, int e) {
                    const auto page =
                        table_[static_cast<size_t>(batch_.sequences[r] * pages_of_one_ + t / kPageTokens)];
                    return static_cast<double>(formats::f16_to_f32(of[place(page, t, h / kGroup * kHead + e)]));
                };
                double largest = -INFINITY, divisor = 0;
                for (int32_t t = first_seen(r); t <= batch_.positions[r]; ++t) {
                    double score = 0;
                    for (int e = 0; e < kHead; ++e)
                        score += q_[(r * kHeadsOfAll + static_cast<size_t>(h)) * kHead + static_cast<size_t>(e)] *
                                 element(keys_, t, e);
                    scores.push_back(score * kScale);
                    largest = std::max(largest, scores.back());
                }
                for (size_t i = 0; i < scores.size(); ++i) {
                    const double weight = std::exp(scores[i] - largest);
                    divisor += weight;
                    for (int e = 0; e < kHead; ++e)
                        sums[static_cast<size_t>(e)] +=
                            weight * element(values_, first_seen(r) + static_cast<int32_t>(i), e);
                }
                if (!sinks_.empty()) divisor += std::exp(sinks_[static_cast<size_t>(h)] - largest);
                for (const double sum : sums) out.push_back(sum / divisor);
            }
        }
        return out;
    }

    std::vector<float> run(const EmulatedModule& module, const Kernel& kernel, int splits) const {
        CardMemory card;
        const auto rows = static_cast<int32_t>(batch_.positions.size());
        Attention p{};
        p.q = card.upload(q_);
        p.k = card.upload(keys_);
        p.v = card.upload(values_);
        p.positions = card.upload(batch_.positions);
        p.sequences = card.upload(batch_.sequences);
        p.position = p.sequence = sizeof(int32_t);
        auto* const y = card.allocate<float>(q_.size());
        p.y = y;
        p.partial = card.allocate<float>(static_cast<size_t>(rows * kHeadsOfAll * splits * (kHead + 2)));
        p.pages.table = card.upload(table_);
        p.pages.by_position = sizeof(int32_t);
        p.pages.by_sequence = int64_t{pages_of_one_} * 4;
        p.pages.positions = pages_of_one_;
        p.pages.sequences = static_cast<int32_t>(batch_.lengths.size());
        p.pages.pages = static_cast<int32_t>(table_.size());
        p.rows.fixed = rows;
        p.q_head = p.y_head = kHead * 4;
        p.q_row = p.y_row = kHeadsOfAll * kHead * 4;
        p.k_token = p.v_token = kKeyHeads * kHead * 2;
        p.k_page = p.v_page = p.k_token * kPageTokens;
        p.heads = kHeadsOfAll;
        p.group = kGroup;
        p.dk = p.dv = kHead;
        p.k_type = p.v_type = TSR_TYPE_F16;
        p.splits = splits;
        p.scale_log2 = static_cast<float>(kScale * std::numbers::log2e);
        p.seen_tokens = window_;
        if (!sinks_.empty()) {
            p.sinks = card.upload(sinks_);
            p.sink = sizeof(float);
            p.sink_exponent = kernel.exponent;
        }
        const auto of = [](int count) { return static_cast<uint32_t>(count); };
        std::array<uint32_t, 3> grid = {of(kKeyHeads), of(rows), of(splits)};
        if (kernel.rows > 0) grid = {of((rows * kGroup + kernel.rows - 1) / kernel.rows), of(kKeyHeads), of(splits)};
        Outcome outcome = module.run(kernel.name, grid, {of(kernel.threads), 1, 1}, card, {}, of(kernel.shared), p);
        EXPECT_EQ(outcome.fault, Fault::kNone) << outcome.report;
        if (splits > 1) {
            outcome =
                module.run("combine", {of(kHeadsOfAll), of(rows), 1}, {of(kAttentionThreads), 1, 1}, card, {}, 0, p);
            EXPECT_EQ(outcome.fault, Fault::kNone) << outcome.report;
        }
        return {y, y + q_.size()};
    }

  private:
    static constexpr double kScale = 0.2;

    int32_t first_seen(size_t row) const { return window_ == 0 ? 0 : std::max(0, batch_.positions[row] - window_ + 1); }
    static size_t place(int32_t page, int32_t token, int element) {
        return (static_cast<size_t>(page) * kPageTokens + static_cast<size_t>(token % kPageTokens)) * kKeyHeads *
                   kHead +
               static_cast<size_t>(element);
    }

    Batch batch_;
    int window_;
    int32_t pages_of_one_ = 0;
    std::vector<float> q_, sinks_;
    std::vector<uint16_t> keys_, values_;
    std::vector<int32_t> table_;
};

struct Plugin {
    const char* library;
    std::vector<Kernel> kernels;
};

const Kernel kSingle = {"attention", 0, kAttentionThreads, attention_shared_bytes(kHead, kHead)};

template <class Tile>
constexpr Kernel kernel_of(const char* name, float exponent = 0) {
    return {name, Tile::kRows, Tile::kThreads, Tile::kShared, exponent};
}

class AttentionWindow : public testing::TestWithParam<Plugin> {};

TEST_P(AttentionWindow, AgreesWithAllScoresAtOnce) {
    const EmulatedModule module(std::string(TSR_EMULATED_DIR "/") + GetParam().library);
    const Batch few({{70, 1}, {5, 1}, {400, 2}, {64, 1}}), many({{150, 40}, {65, 1}, {330, 70}});
    for (const Kernel& kernel : GetParam().kernels) {
        for (const Batch* batch : {&few, &many}) {
            for (const int window : {0, 1, 63, 64, 100, 1000}) {
                for (const int splits : {1, 3}) {
                    const Node node(*batch, window, window != 1);
                    const std::vector<double> wanted = node.expected();
                    const std::vector<float> got = node.run(module, kernel, splits);
                    double difference = 0, norm = 0;
                    for (size_t i = 0; i < wanted.size(); ++i) {
                        difference += (got[i] - wanted[i]) * (got[i] - wanted[i]);
                        norm += wanted[i] * wanted[i];
                    }
                    EXPECT_LE(std::sqrt(difference / norm), 2e-3)
                        << kernel.name << ", window " << window << ", " << splits << " splits";
                }
            }
        }
    }
}

// A window that no row crosses is as none.
TEST_P(AttentionWindow, ThatIsNotCrossedChangesNoBit) {
    const EmulatedModule module(std::string(TSR_EMULATED_DIR "/") + GetParam().library);
    const Batch batch({{150, 20}, {300, 3}});
    for (const Kernel& kernel : GetParam().kernels) {
        for (const int splits : {1, 3})
            EXPECT_EQ(Node(batch, 300, false).run(module, kernel, splits),
                      Node(batch, 0, false).run(module, kernel, splits));
    }
}

INSTANTIATE_TEST_SUITE_P(Plugins, AttentionWindow,
                         testing::Values(Plugin{"test__window.61.emulated.so",
                                                {kSingle, kernel_of<Heads64F32>("flash_many")}},
                                         Plugin{"test__window.80.emulated.so",
                                                {kSingle, kernel_of<Heads64Small>("flash_few", kFlashWeightExponent),
                                                 kernel_of<Heads64Large>("flash_many", kFlashWeightExponent)}}),
                         [](const auto& instance) { return instance.index == 0 ? "legacy" : "ampere"; });

}  // namespace
}  // namespace tessera::cuda::emulator
