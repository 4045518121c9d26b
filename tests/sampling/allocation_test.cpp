// After a Sampler is made it must not allocate: this program counts.
#include "core/session/sampler.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
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
    for (const int top_k : {0, 40}) {
        SamplingParameters p;
        p.top_k = top_k;
        p.typical_p = 0.9f;
        p.repetition_penalty = 1.1f;
        p.logit_bias = {{3, 1.0f}};
        Sampler sampler(p, kVocabulary);
        const size_t before = allocated_bytes;
        for (int i = 0; i < 20; ++i) sampler.accept(sampler.sample(logits));
        sampler.reset();
        EXPECT_EQ(allocated_bytes, before);
    }
    EXPECT_GT(allocated_bytes, kVocabulary * sizeof(float));  // the counter counts
}

}  // namespace
}  // namespace tessera::session
