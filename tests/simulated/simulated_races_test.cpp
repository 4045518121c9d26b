// With ThreadSanitizer: it reports what no event and no wait orders, under any policy, and nothing else.
#include "simulated_gpu.hpp"

#include <algorithm>
#include <cstdlib>

namespace tessera::test {
namespace {

constexpr int kReported = 66;  // ThreadSanitizer's exit code, unless options say another

class Races : public testing::TestWithParam<tsr_simulated_policy> {
  protected:
    void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

// Numbers go from one queue to another; `omitted` is what orders them. ThreadSanitizer keeps four accesses of eight
// bytes: few and whole ones are not forgotten.
[[noreturn]] void hand_over(tsr_simulated_policy policy, tsr_simulated_operation omitted) {
    {
        Gpu gpu{options(policy)};
        if (omitted != TSR_SIMULATED_OPERATION_COUNT) failures().omit("SIM0", omitted, nullptr, 0, 1);
        const tsr_queue other = gpu.create_queue();
        const tsr_event written = gpu.create_event(), read = gpu.create_event();
        constexpr uint64_t kCount = 64, kBytes = kCount * sizeof(uint64_t);
        auto* in = gpu.pinned<uint64_t>(kCount);
        auto* out = gpu.pinned<uint64_t>(kCount);
        std::fill_n(in, kCount, 5);
        void *a = gpu.allocate(kBytes), *b = gpu.allocate(kBytes);
        gpu.put_upload(a, in, kBytes);
        gpu.record(written);
        gpu.queue_wait(written, other);
        gpu.put_copy(b, a, kBytes, other);
        gpu.put_download(out, b, kBytes, other);
        gpu.record(read, other);
        gpu.wait_event(read);
        if (std::count(out, out + kCount, uint64_t{6}) > 0) std::exit(1);  // reads them
        gpu.wait(other);
        gpu.wait();
    }
    std::exit(0);
}

TEST_P(Races, AMissingEventOrWaitIsReported) {
    for (const tsr_simulated_operation omitted :
         {TSR_SIMULATED_RECORD_EVENT, TSR_SIMULATED_QUEUE_WAIT_EVENT, TSR_SIMULATED_WAIT_EVENT}) {
        EXPECT_EXIT(hand_over(GetParam(), omitted), testing::ExitedWithCode(kReported), "data race") << omitted;
    }
}

TEST_P(Races, WorkThatIsOrderedIsNot) {
    EXPECT_EXIT(hand_over(GetParam(), TSR_SIMULATED_OPERATION_COUNT), testing::ExitedWithCode(0), "");
}

INSTANTIATE_TEST_SUITE_P(All, Races,
                         testing::Values(TSR_SIMULATED_RANDOM, TSR_SIMULATED_AT_ONCE, TSR_SIMULATED_ON_WAIT,
                                         TSR_SIMULATED_OLDEST_LAST, TSR_SIMULATED_NEWEST_LAST),
                         [](const auto& instance) { return policy_name(instance.param); });

}  // namespace
}  // namespace tessera::test
