// Failures of devices through the whole engine: errors name the device, nothing is leaked, and where the device still
// works the same step succeeds afterwards.
#include "core/base/error.hpp"
#include "tests/captured_log.hpp"
#include "tests/run/simulated_rig.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace tessera {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

const tsr_simulated_failures& failures() {
    return test::simulated_failures();
}

constexpr const char* kDevices[] = {"SIM0", "SIM1"};

// Attention on one device, experts on another, and some of the layers on the CPU: all kinds of copies.
class Rig {
  public:
    explicit Rig(tsr_simulated_policy policy, uint32_t without = 0)
        : first_(kDevices[0], policy, without), second_(kDevices[1], policy, without) {}

    static std::unique_ptr<test::LoadedModel> load() {
        EngineOptions options;
        options.context = 256;
        options.sequences = 2;
        options.rows = 32;
        options.placement.gpu_layers = 99;
        options.placement.rules = {{"blk\\.0\\.attn", "CPU"}, {"ffn_.*", "SIM1"}, {"attn_.*", "SIM0"}};
        return std::make_unique<test::LoadedModel>(test::golden("v3-groups.gguf"), options,
                                                   test::rig_config({860, 860}));
    }

    static uint64_t allocated() {
        uint64_t bytes = 0;
        for (const char* id : kDevices) bytes += failures().allocated_bytes(id);
        return bytes;
    }

  private:
    test::CardOptions first_, second_;
};

// A prompt in one sequence, which is thrown away afterwards.
std::vector<float> step(Engine& engine) {
    const std::vector<Token> tokens = {5, 17, 3, 42, 8, 1, 30, 12, 9};
    const SequenceId sequence = engine.cache().create();
    struct Gone {
        Engine& engine;
        SequenceId sequence;
        ~Gone() { engine.cache().remove(sequence); }
    } gone{engine, sequence};
    std::vector<float> all;
    const std::vector<BatchEntry> entries = {{sequence, tokens}};
    for (const auto row : engine.step(entries)) all.insert(all.end(), row.begin(), row.end());
    return all;
}

struct Failed {
    tsr_code code = TSR_OK;
    std::string message;
};

template <class Body>
std::optional<Failed> failure_of(Body&& body) {
    try {
        body();
    } catch (const Error& error) {
        return Failed{error.code(), error.what()};
    }
    return std::nullopt;
}

// First, somewhere in the middle, and last of `count`.
std::vector<uint64_t> some_of(uint64_t count) {
    std::vector<uint64_t> some;
    for (const uint64_t at : {uint64_t{0}, count / 2, count - 1}) {
        if (count > 0 && std::ranges::find(some, at) == some.end()) some.push_back(at);
    }
    return some;
}

class DeviceFailures : public testing::TestWithParam<tsr_simulated_policy> {};

// Operations whose failure fails a load. The engine works without the others (page-locked memory, recordings).
TEST_P(DeviceFailures, ALoadFailsWithTheDevicesNameAndLeavesNothingBehind) {
    const Rig rig(GetParam());
    std::vector<uint64_t> counts[std::size(kDevices)];
    Rig::load();
    for (size_t d = 0; d < std::size(kDevices); ++d) {
        for (tsr_simulated_operation o = 0; o < TSR_SIMULATED_OPERATION_COUNT; ++o)
            counts[d].push_back(failures().count(kDevices[d], o, nullptr));
    }
    EXPECT_EQ(Rig::allocated(), 0u);
    int tried = 0;
    for (size_t d = 0; d < std::size(kDevices); ++d) {
        for (const tsr_simulated_operation o :
             {TSR_SIMULATED_ALLOCATE, TSR_SIMULATED_CREATE_QUEUE, TSR_SIMULATED_CREATE_EVENT, TSR_SIMULATED_UPLOAD,
              TSR_SIMULATED_PACK, TSR_SIMULATED_PREPARE, TSR_SIMULATED_WAIT_EVENT, TSR_SIMULATED_RECORD_EVENT,
              TSR_SIMULATED_DOWNLOAD, TSR_SIMULATED_EXECUTE_KERNEL, TSR_SIMULATED_EXECUTE_COPY}) {
            for (const uint64_t at : some_of(counts[d][o])) {
                SCOPED_TRACE(testing::Message() << kDevices[d] << " operation " << o << " at " << at);
                failures().fail(kDevices[d], o, nullptr, at, 1);
                const auto failed = failure_of([] { Rig::load(); });
                ASSERT_TRUE(failed);
                EXPECT_THAT(failed->message, HasSubstr(kDevices[d]));
                EXPECT_THAT(failed->message, HasSubstr("injected"));
                EXPECT_EQ(Rig::allocated(), 0u);
                failures().reset(kDevices[d]);
                ++tried;
            }
        }
    }
    EXPECT_GT(tried, 25);
    Rig::load();
}

TEST_P(DeviceFailures, AFailedStepIsToldAndTheNextSucceeds) {
    const Rig rig(GetParam());
    const auto loaded = Rig::load();
    Engine& engine = *loaded->engine;
    for (const char* id : kDevices) failures().reset(id);
    const std::vector<float> wanted = step(engine);
    ASSERT_FALSE(wanted.empty());
    std::vector<uint64_t> counts[std::size(kDevices)];
    for (size_t d = 0; d < std::size(kDevices); ++d) {
        for (tsr_simulated_operation o = 0; o < TSR_SIMULATED_OPERATION_COUNT; ++o)
            counts[d].push_back(failures().count(kDevices[d], o, nullptr));
        // A step allocates nothing.
        for (const tsr_simulated_operation o :
             {TSR_SIMULATED_ALLOCATE, TSR_SIMULATED_ALLOCATE_PINNED, TSR_SIMULATED_REGISTER_HOST,
              TSR_SIMULATED_CREATE_QUEUE, TSR_SIMULATED_CREATE_EVENT, TSR_SIMULATED_PREPARE,
              TSR_SIMULATED_BEGIN_RECORDING}) {
            EXPECT_EQ(counts[d][o], 0u) << kDevices[d] << " operation " << o;
        }
    }
    int tried = 0;
    for (size_t d = 0; d < std::size(kDevices); ++d) {
        for (const tsr_simulated_operation o :
             {TSR_SIMULATED_UPLOAD, TSR_SIMULATED_DOWNLOAD, TSR_SIMULATED_COPY, TSR_SIMULATED_COPY_FROM_PEER,
              TSR_SIMULATED_ENQUEUE, TSR_SIMULATED_REPLAY, TSR_SIMULATED_RECORD_EVENT, TSR_SIMULATED_QUEUE_WAIT_EVENT,
              TSR_SIMULATED_WAIT_EVENT, TSR_SIMULATED_WAIT_QUEUE, TSR_SIMULATED_EXECUTE_COPY,
              TSR_SIMULATED_EXECUTE_KERNEL}) {
            for (const uint64_t at : some_of(counts[d][o])) {
                SCOPED_TRACE(testing::Message() << kDevices[d] << " operation " << o << " at " << at);
                failures().fail(kDevices[d], o, nullptr, at, 1);
                const auto failed = failure_of([&] { step(engine); });
                ASSERT_TRUE(failed);
                EXPECT_EQ(failed->code, uint32_t{TSR_DEVICE_ERROR}) << failed->message;
                EXPECT_THAT(failed->message, HasSubstr(kDevices[d]));
                EXPECT_THAT(failed->message, HasSubstr("injected"));
                failures().reset(kDevices[d]);
                std::vector<float> again;
                const auto second = failure_of([&] { again = step(engine); });
                ASSERT_FALSE(second) << second->message;
                EXPECT_EQ(again, wanted);
                ++tried;
            }
        }
    }
    EXPECT_GT(tried, 25);
}

TEST_P(DeviceFailures, ADeviceVanishesAtAnyTime) {
    uint64_t operations = 0;
    {
        const Rig rig(GetParam());
        const auto loaded = Rig::load();
        for (const char* id : kDevices) failures().reset(id);
        step(*loaded->engine);
        for (tsr_simulated_operation o = 0; o < TSR_SIMULATED_OPERATION_COUNT; ++o)
            operations += failures().count("SIM1", o, nullptr);
    }
    ASSERT_GT(operations, 10u);
    for (uint64_t i = 0; i < 8; ++i) {
        const uint64_t at = i * (operations - 1) / 8;
        SCOPED_TRACE(testing::Message() << "after " << at << " of " << operations << " operations");
        const Rig rig(GetParam());
        {
            const auto loaded = Rig::load();
            failures().vanish("SIM1", at);
            for (int again = 0; again < 2; ++again) {
                const auto failed = failure_of([&] { step(*loaded->engine); });
                ASSERT_TRUE(failed);
                EXPECT_EQ(failed->code, uint32_t{TSR_DEVICE_LOST}) << failed->message;
                EXPECT_THAT(failed->message, HasSubstr("SIM1"));
            }
        }
        EXPECT_EQ(Rig::allocated(), 0u);
    }
}

TEST_P(DeviceFailures, ADeviceVanishesWhileAModelIsLoaded) {
    const Rig rig(GetParam());
    for (const char* id : kDevices) failures().reset(id);
    Rig::load();
    uint64_t operations = 0;
    for (tsr_simulated_operation o = 0; o < TSR_SIMULATED_OPERATION_COUNT; ++o)
        operations += failures().count("SIM1", o, nullptr);
    int in_prepare = 0;
    constexpr uint64_t kTries = 40;
    for (uint64_t i = 0; i < kTries; ++i) {
        const uint64_t at = i * operations / kTries;
        SCOPED_TRACE(testing::Message() << "after " << at << " of " << operations << " operations");
        failures().vanish("SIM1", at);
        const auto failed = failure_of([] { Rig::load(); });
        failures().reset("SIM1");
        // What comes last gives back what loading took.
        if (!failed && i > kTries / 2) continue;
        ASSERT_TRUE(failed);
        EXPECT_EQ(failed->code, uint32_t{TSR_DEVICE_LOST}) << failed->message;
        EXPECT_THAT(failed->message, HasSubstr("SIM1 is lost: start again without it"));
        EXPECT_EQ(Rig::allocated(), 0u);
        if (failed->message.find(": prepare of") == std::string::npos) continue;
        ++in_prepare;
        EXPECT_THAT(failed->message,
                    testing::ContainsRegex("blk\\.[0-9]+\\.[a-z_.]+ \\([a-z_]+, layer [0-9]+\\) on SIM1: "));
    }
    EXPECT_GT(in_prepare, 0) << "no kernel was being prepared: the test tests less than it says";
}

// A sequence that shares a page in part gets a copy of it with its next token.
class Forked {
  public:
    explicit Forked(Engine& engine) : engine_(engine), first_(engine.cache().create()) {
        const std::vector<BatchEntry> entries = {{first_, kPrompt}};
        engine.step(entries);
        second_ = engine.cache().fork(first_, static_cast<uint32_t>(kPrompt.size()));
    }
    ~Forked() {
        for (const SequenceId sequence : {first_, second_}) engine_.cache().remove(sequence);
    }
    Forked(const Forked&) = delete;

    std::vector<float> step() {
        const std::vector<Token> token = {7};
        const std::vector<BatchEntry> entries = {{second_, token}};
        const auto row = engine_.step(entries).front();
        return {row.begin(), row.end()};
    }
    std::vector<PageId> pages() const {
        const auto pages = engine_.cache().pages(second_);
        return {pages.begin(), pages.end()};
    }

  private:
    const std::vector<Token> kPrompt = {5, 17, 3, 42, 8, 1, 30, 12, 9};
    Engine& engine_;
    SequenceId first_, second_ = 0;
};

TEST_P(DeviceFailures, ACopyOfAPageFailsAndTheSequenceIsAsBefore) {
    const Rig rig(GetParam());
    const auto loaded = Rig::load();
    Engine& engine = *loaded->engine;
    std::vector<float> wanted;
    {
        Forked forked(engine);
        failures().reset("SIM0");
        wanted = forked.step();
        ASSERT_GT(failures().count("SIM0", TSR_SIMULATED_COPY, nullptr), 0u);
    }
    Forked forked(engine);
    const std::vector<PageId> pages = forked.pages();
    const uint32_t free = engine.cache().free_pages();
    failures().reset("SIM0");
    failures().fail("SIM0", TSR_SIMULATED_COPY, nullptr, 0, 1);
    const auto failed = failure_of([&] { forked.step(); });
    ASSERT_TRUE(failed);
    EXPECT_EQ(failed->code, uint32_t{TSR_DEVICE_ERROR}) << failed->message;
    EXPECT_THAT(failed->message, HasSubstr("copy of a page of blk."));
    EXPECT_THAT(failed->message, HasSubstr("SIM0 cannot copy data"));
    EXPECT_EQ(forked.pages(), pages);
    EXPECT_EQ(engine.cache().free_pages(), free);
    EXPECT_EQ(forked.step(), wanted);
}

TEST_P(DeviceFailures, ADeviceThatIsLostInACopyOfAPageEndsEveryLaterStep) {
    const Rig rig(GetParam());
    const auto loaded = Rig::load();
    Forked forked(*loaded->engine);
    failures().vanish("SIM0", 0);
    for (int again = 0; again < 2; ++again) {
        const auto failed = failure_of([&] { forked.step(); });
        ASSERT_TRUE(failed);
        EXPECT_EQ(failed->code, uint32_t{TSR_DEVICE_LOST}) << failed->message;
        EXPECT_THAT(failed->message, HasSubstr("copy of a page of blk."));
        EXPECT_THAT(failed->message, HasSubstr("SIM0 is lost: start again without it"));
    }
}

// However the loss is found: the error of each later step is that of the first.
TEST_P(DeviceFailures, ADeviceThatIsLostBeforeACopyOfAPageIsToldInTheSameWords) {
    const Rig rig(GetParam());
    const auto loaded = Rig::load();
    Forked forked(*loaded->engine);
    failures().vanish("SIM0", 0);
    const auto first = failure_of([&] { step(*loaded->engine); });
    ASSERT_TRUE(first);
    EXPECT_THAT(first->message, HasSubstr("SIM0 is lost: start again without it"));
    const auto second = failure_of([&] { forked.step(); });
    ASSERT_TRUE(second);
    EXPECT_EQ(second->message, first->message);
}

std::string policy_name(const testing::TestParamInfo<tsr_simulated_policy>& instance) {
    constexpr const char* kNames[] = {"random", "at_once", "on_wait", "oldest_last", "newest_last"};
    return kNames[instance.param];
}

INSTANTIATE_TEST_SUITE_P(Policies, DeviceFailures,
                         testing::Values(TSR_SIMULATED_RANDOM, TSR_SIMULATED_ON_WAIT, TSR_SIMULATED_OLDEST_LAST),
                         policy_name);

bool page_lock_note(const Engine& engine) {
    return std::ranges::any_of(engine.notes(),
                               [](const std::string& note) { return note.find("page-locked") != std::string::npos; });
}

TEST(DeviceParts, PageLockedMemoryOfTheDeviceReplacesTheHostsWhereItCannotBeRegistered) {
    const auto allocations = [] { return failures().count("SIM0", TSR_SIMULATED_ALLOCATE_PINNED, nullptr); };
    std::vector<float> wanted;
    {
        const Rig rig(TSR_SIMULATED_ON_WAIT);
        const auto loaded = Rig::load();
        EXPECT_EQ(allocations(), 0u);
        EXPECT_FALSE(page_lock_note(*loaded->engine));
        wanted = step(*loaded->engine);
    }
    {
        const Rig rig(TSR_SIMULATED_ON_WAIT, TSR_SIMULATED_NO_REGISTRATION);
        const auto loaded = Rig::load();
        EXPECT_EQ(allocations(), 2u);  // activations and staging
        EXPECT_FALSE(page_lock_note(*loaded->engine));
        EXPECT_EQ(step(*loaded->engine), wanted);
    }
    {
        const Rig rig(TSR_SIMULATED_ON_WAIT);
        failures().fail("SIM0", TSR_SIMULATED_REGISTER_HOST, nullptr, 0, TSR_SIMULATED_ALWAYS);
        const auto loaded = Rig::load();
        EXPECT_EQ(allocations(), 2u);
        EXPECT_FALSE(page_lock_note(*loaded->engine));
        EXPECT_EQ(step(*loaded->engine), wanted);
    }
    {
        const Rig rig(TSR_SIMULATED_ON_WAIT, TSR_SIMULATED_NO_REGISTRATION);
        failures().fail("SIM0", TSR_SIMULATED_ALLOCATE_PINNED, nullptr, 1, TSR_SIMULATED_ALWAYS);
        const auto loaded = Rig::load();
        EXPECT_EQ(allocations(), 1u);
        EXPECT_TRUE(page_lock_note(*loaded->engine));
        EXPECT_EQ(step(*loaded->engine), wanted);
    }
}

// Optional functions that a device lacks, or refuses, cost time and change no results.
TEST(DeviceParts, AreDoneWithout) {
    std::vector<float> wanted;
    {
        const Rig rig(TSR_SIMULATED_ON_WAIT);
        wanted = step(*Rig::load()->engine);
    }
    constexpr uint32_t kMissing[] = {
        TSR_SIMULATED_NO_RECORDINGS,  TSR_SIMULATED_NO_PINNED, TSR_SIMULATED_NO_REGISTRATION, TSR_SIMULATED_NO_PEERS,
        TSR_SIMULATED_NO_MEMORY_INFO, TSR_SIMULATED_NO_TIMING, TSR_SIMULATED_UNREACHABLE,     0x7F};
    for (const uint32_t without : kMissing) {
        SCOPED_TRACE(without);
        const Rig rig(TSR_SIMULATED_ON_WAIT, without);
        EXPECT_EQ(step(*Rig::load()->engine), wanted);
    }
    for (const tsr_simulated_operation o :
         {TSR_SIMULATED_REGISTER_HOST, TSR_SIMULATED_BEGIN_RECORDING, TSR_SIMULATED_END_RECORDING}) {
        for (const uint64_t after : {0, 1}) {
            SCOPED_TRACE(testing::Message() << "operation " << o << " after " << after);
            const Rig rig(TSR_SIMULATED_RANDOM);
            failures().fail("SIM0", o, nullptr, after, TSR_SIMULATED_ALWAYS);
            EXPECT_EQ(step(*Rig::load()->engine), wanted);
        }
    }
}

TEST(DeviceParts, ThatRefuseToRecordAreWarnedOfWithTheCost) {
    for (const tsr_simulated_operation o : {TSR_SIMULATED_BEGIN_RECORDING, TSR_SIMULATED_END_RECORDING}) {
        const Rig rig(TSR_SIMULATED_RANDOM);
        failures().fail("SIM0", o, nullptr, 0, TSR_SIMULATED_ALWAYS);
        CapturedLog log;
        Rig::load();
        EXPECT_THAT(log.text(), ContainsRegex("warning. SIM0 refuses to record: .* of its [0-9]+ nodes one by one, "
                                              "which takes [0-9.e-]+ ms of a token or more"));
        EXPECT_THAT(log.text(), Not(HasSubstr("SIM1 refuses")));
    }
}

}  // namespace
}  // namespace tessera
