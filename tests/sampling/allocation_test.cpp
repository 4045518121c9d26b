// After a Sampler is made it must not allocate: this program counts.
#include "core/session/sampler.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>

namespace {
std::atomic<size_t> allocated_bytes{0};
}

void* operator new(size_t size) {
    allocated_bytes += size;
    if (void* memory = std::malloc(size ? size : 1)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
    std::free(memory);
}

namespace tessera::session {
namespace {

TEST(Sampler, DoesNotAllocateAfterConstruction) {
    constexpr size_t kVocabulary = 129'280;
    std::vector<float> logits(kVocabulary);
    for (size_t i = 0; i < kVocabulary; ++i) logits[i] = static_cast<float>((i * 7919) % 10007) / 1000.0f;
    for (const int variant : {0, 1, 2, 3, 4}) {
        SamplingParameters p;
        p.top_k = variant == 1 ? 40 : 0;
        p.typical_p = 0.9f;
        p.repetition_penalty = 1.1f;
        p.logit_bias = {{3, 1.0f}};
        p.dry_multiplier = 1.0f;
        p.dry_allowed_length = 0;
        p.dry_last_n = variant == 0 ? -1 : 7;
        p.top_n_sigma = 2.0f;
        p.xtc_probability = 0.5f;
        p.temperature_range = 0.5f;
        p.mirostat = std::max(variant - 2, 0);
        p.adaptive_target = variant == 2 ? 0.1f : -1.0f;
        p.min_keep = variant;
        auto breakers = std::make_shared<SequenceBreakers>();
        breakers->add(5, {6, 7});
        Sampler sampler(p, kVocabulary, {4, breakers});
        const size_t before = allocated_bytes;
        for (int i = 0; i < 10; ++i) sampler.accept(sampler.sample(logits));
        sampler.reset();
        EXPECT_EQ(allocated_bytes, before);
    }
    EXPECT_GT(allocated_bytes, kVocabulary * sizeof(float));  // the counter counts
}

}  // namespace
}  // namespace tessera::session
