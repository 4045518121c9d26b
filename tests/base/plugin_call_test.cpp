#include "core/base/plugin_call.hpp"

#include "core/base/error.hpp"

#include <tessera/cpp/float_state.hpp>

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <stdexcept>
#include <thread>

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr PluginCall kRun = {"bad", "run", "kernel", "rms_norm.bad", "blk.0.norm"};

std::string own_call() {
    std::array<char, 500> text{};
    look_at_own_call(text.data(), text.size());
    return text.data();
}

TEST(PluginCall, IsDescribed) {
    EXPECT_EQ(describe(kRun), "plugin bad: run of kernel rms_norm.bad at node blk.0.norm");
    EXPECT_EQ(describe({"bad", "initialize"}), "plugin bad: initialize");
    EXPECT_EQ(describe({"b\x1b[31mad", "pack", "layout", "x8"}), "plugin b?[31mad: pack of layout x8");
}

TEST(PluginCall, ScopesNest) {
    EXPECT_EQ(own_call(), "");
    {
        const PluginCallScope outer({"outer", "build"});
        {
            const PluginCallScope inner(kRun);
            EXPECT_EQ(own_call(), describe(kRun));
        }
        EXPECT_EQ(own_call(), "plugin outer: build");
    }
    EXPECT_EQ(own_call(), "");
}

TEST(PluginCall, LeavesRoundingAsItWas) {
    const sdk::FloatState before = sdk::FloatState::of_this_thread();
    {
        const PluginCallScope outer({"outer", "build"});
        const PluginCallScope inner(kRun);
        __builtin_ia32_ldmxcsr(before.mxcsr | 0x6000 | 0x8040);
        constexpr uint16_t kUp = 0x0B7F;
        __asm__ volatile("fldcw %0" : : "m"(kUp));
    }
    EXPECT_EQ(sdk::FloatState::of_this_thread(), before);
    // Flags that operations set are no fault.
    __builtin_ia32_ldmxcsr(before.mxcsr | 0x20);
    EXPECT_EQ(sdk::FloatState::of_this_thread(), before);
}

TEST(PluginCall, IsSeenFromOtherThreads) {
    std::atomic<bool> inside{false}, leave{false};
    std::thread thread([&] {
        const PluginCallScope scope(kRun);
        inside = true;
        while (!leave) std::this_thread::yield();
    });
    while (!inside) std::this_thread::yield();
    size_t found = call_slots();
    std::array<char, 500> text{};
    CallState state;
    for (size_t i = 0; i < call_slots(); ++i) {
        const CallState there = look_at_call(i, text.data(), text.size());
        if (there.serial && text.data() == describe(kRun)) found = i, state = there;
    }
    ASSERT_LT(found, call_slots());
    EXPECT_FALSE(state.reported);
    mark_reported(found, state.serial);
    EXPECT_TRUE(look_at_call(found, text.data(), text.size()).reported);
    leave = true;
    thread.join();
    EXPECT_EQ(look_at_call(found, text.data(), text.size()).serial, 0u);
    // The slot serves the next thread, and its next call is another one.
    const size_t before = call_slots();
    std::thread([&] {
        const PluginCallScope scope(kRun);
        EXPECT_FALSE(look_at_call(found, text.data(), text.size()).reported);
    }).join();
    EXPECT_EQ(call_slots(), before);
}

TEST(PluginCall, ExceptionsBecomeErrorsThatNameTheCall) {
    try {
        call_plugin(kRun, []() -> int { throw std::runtime_error("on\x1b purpose"); });
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), TSR_INTERNAL);
        EXPECT_THAT(error.what(), HasSubstr(describe(kRun) + " threw an exception"));
        EXPECT_THAT(error.what(), HasSubstr("on\\x1b purpose"));
    }
    EXPECT_THROW(call_plugin(kRun, [] { throw 7; }), Error);
    EXPECT_EQ(call_plugin(kRun, [] { return 7; }), 7);
    EXPECT_EQ(own_call(), "");
}

TEST(PluginCall, StatusesBecomeErrorsThatNameTheCall) {
    static int destroyed = 0;
    tsr_status status{};
    status.struct_size = sizeof status;
    status.destroy = [](const tsr_status*) { ++destroyed; };
    const auto message_of = [&](tsr_code code, const char* message) {
        status.code = code;
        status.message = message;
        try {
            check_call(kRun, &status);
            return std::string("no error");
        } catch (const Error& error) {
            return fmt::format("{}: {}", code_name(error.code()), error.what());
        }
    };
    EXPECT_EQ(message_of(TSR_UNSUPPORTED, "not this"), "unsupported: " + describe(kRun) + ": not this");
    EXPECT_EQ(message_of(TSR_UNSUPPORTED, nullptr), "unsupported: " + describe(kRun) + ": no message");
    EXPECT_THAT(message_of(TSR_OK, "fine"), testing::StartsWith("internal error: "));
    EXPECT_THAT(message_of(static_cast<tsr_code>(777), "odd"), HasSubstr("777"));
    EXPECT_EQ(destroyed, 4);
    status.destroy = nullptr;
    EXPECT_THAT(message_of(TSR_DEVICE_ERROR, "static"), HasSubstr("static"));
    EXPECT_NO_THROW(check_call(kRun, nullptr));
}

}  // namespace
}  // namespace tessera
