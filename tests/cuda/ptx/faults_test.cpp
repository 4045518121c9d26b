// What the executor of PTX finds in kernels, each with the mistake; and ways of lanes that part and meet.
#include "kernels.hpp"

namespace tessera::cuda::ptx {
namespace {

using emulator::Fault;
using testing::HasSubstr;

Words numbers(size_t count) {
    Words words(count);
    for (size_t i = 0; i < count; ++i) words[i] = static_cast<uint32_t>(i * 3 + 1);
    return words;
}

TEST(PtxFaults, AreReportedWithThreadAndLine) {
    struct Case {
        const char* body;
        Fault fault;
        const char* expected;
    };
    const Case cases[] = {
        {"ld.global.u32 %r1, [%rd2+128];", Fault::kIllegalAddress, "thread (0,0,0), line 9 of the PTX, ld.global.u32"},
        {"ld.global.u32 %r1, [%rd2+4];", Fault::kIllegalAddress, "0 bytes after the end of allocation"},
        {"ld.u32 %r1, [%rd2+4];", Fault::kIllegalAddress, "thread (31,0,0)"},
        {"st.global.u32 [%rd3+-4], %r0;", Fault::kIllegalAddress, "write of 4 bytes out of bounds"},
        {"ld.global.u32 %r1, [%rd0+2];", Fault::kMisaligned, "no multiple of it"},
        {"ld.global.v2.u32 {%r1, %r2}, [%rd0+4];", Fault::kMisaligned, "read of 8 bytes"},
        {"ld.global.u32 %r1, [0];", Fault::kIllegalAddress, "no allocation"},
        {".shared .b32 s[4]; ld.shared.u32 %r1, [s];", Fault::kLaunchFailed, "unwritten shared memory, at byte 0"},
        {".shared .b32 s[4]; st.shared.u32 [s+16], %r1;", Fault::kIllegalAddress,
         "0 bytes after the end of the shared"},
        {".shared .b32 s[4]; st.shared.u32 [s+2], %r1;", Fault::kMisaligned, "no multiple"},
        {".local .b32 l[4]; mov.u64 %rd4, l; st.local.u32 [%rd4+16], %r1;", Fault::kIllegalAddress, "local memory"},
        {"ld.param.u64 %rd4, [out+8];", Fault::kIllegalAddress, "out of bounds of the parameters"},
        {"ld.global.nc.u32 %r1, [%rd3]; st.global.u32 [%rd3], %r1;", Fault::kLaunchFailed,
         "loaded through the read-only"},
        {"st.global.u32 [%rd3], %r0; ld.global.nc.u32 %r1, [%rd3];", Fault::kLaunchFailed,
         "which the kernel has written"},
        {".shared .align 16 .b8 s[512]; mov.u32 %r2, s; mad.lo.u32 %r2, %r0, 16, %r2;\n"
         "cp.async.cg.shared.global [%r2], [%rd0], 16; cp.async.commit_group; ld.shared.u32 %r1, [%r2];",
         Fault::kLaunchFailed, "asynchronous copy has not been waited for"},
        {".shared .align 16 .b8 s[512]; mov.u32 %r2, s; mad.lo.u32 %r2, %r0, 16, %r2;\n"
         "cp.async.cg.shared.global [%r2], [%rd0], 16; cp.async.commit_group; cp.async.wait_group 1; ld.shared.u32 "
         "%r1, "
         "[%r2];",
         Fault::kLaunchFailed, "asynchronous copy has not been waited for"},
        {".shared .align 16 .b8 s[16]; mov.u32 %r2, s; cp.async.cg.shared.global [%r2], [%rd0+4], 16;",
         Fault::kMisaligned, "no multiple"},
        {"setp.lt.u32 %p1, %r0, 16; @%p1 bra L; shfl.sync.idx.b32 %r1, %r0, 0, 31, -1; ret;\n"
         "L: shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;",
         Fault::kLaunchFailed, "have not converged"},
        {"setp.lt.u32 %p1, %r0, 16; @%p1 ret; shfl.sync.idx.b32 %r1, %r0, 20, 31, -1;", Fault::kLaunchFailed,
         "has ended before"},
        {"setp.lt.u32 %p1, %r0, 16; @%p1 ret; shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xFFFF;", Fault::kLaunchFailed,
         "not in its own mask"},
        {"setp.lt.u32 %p1, %r0, 16; @!%p1 ret; shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xFFFF;", Fault::kLaunchFailed,
         "value of lane 20, which is no member"},
        {"setp.lt.u32 %p1, %r0, 16; @%p1 bar.sync 0;", Fault::kLaunchFailed, "has ended before"},
        {"bar.sync 16;", Fault::kLaunchFailed, "barriers are 0 to 15"},
        {"bar.sync 1, 64;", Fault::kLaunchFailed, "deadlock: warp 0 waits at line 9, barrier 1: 32 of 64 threads"},
        {"trap;", Fault::kLaunchFailed, "executes a trap"},
        {"L: bra L;", Fault::kTimeout, "without coming to its end"},
    };
    emulator::Options options;
    options.patience = 100000;
    for (const Case& c : cases) {
        const Ran ran = run(module_of(c.body), numbers(32), numbers(32), 32, 1, 0, options);
        EXPECT_EQ(ran.outcome.fault, c.fault) << c.body << '\n' << ran.outcome.report;
        EXPECT_THAT(ran.outcome.report, HasSubstr(c.expected)) << c.body;
    }
}

TEST(PtxFaults, OfBlocksOfSeveralWarps) {
    const std::pair<const char*, const char*> cases[] = {
        // Warps come to one barrier with different counts.
        {"setp.lt.u32 %p1, %r0, 32; @%p1 bra L; bar.sync 1, 64; ret; L: bar.sync 1, 96;", "others there expect"},
        {"setp.lt.u32 %p1, %r0, 32; @%p1 bra L; bar.sync 1, 96; ret; L: bar.arrive 1, 96;", "deadlock"},
        {"bar.arrive 1, 96; bar.arrive 1, 96;", "again before the others"},
        // Who reads what another warp is to write, without a barrier: in some order it is not there.
        {".shared .b32 s[64]; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1; st.shared.u32 [%r2], %r0;\n"
         "xor.b32 %r3, %r0, 32; mad.lo.u32 %r2, %r3, 4, %r1; ld.shared.u32 %r4, [%r2];",
         "unwritten shared memory"},
    };
    for (const auto& [body, expected] : cases)
        EXPECT_THAT(run(module_of(body), numbers(64), numbers(64), 64).outcome.report, HasSubstr(expected)) << body;
}

// In every order: the other warp may have written long before.
TEST(PtxFaults, RacesInSharedMemoryAreNamed) {
    const std::string places =
        ".shared .b32 s[64]; mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 4, %r1; xor.b32 %r3, %r0, 32;\n"
        "mad.lo.u32 %r3, %r3, 4, %r1; xor.b32 %r4, %r0, 1; mad.lo.u32 %r4, %r4, 4, %r1; st.shared.u32 [%r2], %r0;\n";
    const std::tuple<const char*, const char*> cases[] = {
        {"bar.sync 0; ld.shared.u32 %r5, [%r3]; bar.sync 0; st.shared.u32 [%r2], %r5;", ""},
        {"bar.sync 0; ld.shared.u32 %r5, [%r3]; st.shared.u32 [%r2], %r5;", "race: "},
        {"bar.sync 0; st.shared.u32 [%r3], %r0; st.shared.u32 [%r2], %r0;", "race: write of 4 bytes"},
        {"bar.warp.sync -1; ld.shared.u32 %r5, [%r4];", ""},
        {"ld.shared.u32 %r5, [%r4];", "race: read of 4 bytes at byte"},
        {"setp.lt.u32 %p1, %r0, 32; @%p1 bra L; bar.sync 1, 64; ld.shared.u32 %r5, [%r3]; ret; L: bar.arrive 1, 64;",
         ""},
        {"setp.lt.u32 %p1, %r0, 32; @%p1 bra L; bar.arrive 1, 64; ld.shared.u32 %r5, [%r3]; ret; L: bar.sync 1, 64;",
         "race: read of 4 bytes"},
    };
    for (const auto& [body, expected] : cases) {
        emulator::Options options;
        for (options.seed = 1; options.seed < 9; ++options.seed) {
            const Ran ran = run(module_of(places + body), numbers(64), numbers(64), 64, 1, 0, options);
            if (*expected)
                EXPECT_THAT(ran.outcome.report, testing::AnyOf(HasSubstr(expected), HasSubstr("unwritten"))) << body;
            else
                EXPECT_EQ(ran.outcome.report, "") << body;
        }
    }
}

// Weak accesses take effect at once here, where a card may delay them: whoever would see the difference is in a race,
// which is found in every order.
TEST(PtxFaults, WeakAccessesThatADelayWouldShowAreRaces) {
    const std::string places =
        "xor.b32 %r1, %r0, 32; xor.b32 %r2, %r0, 1; mad.wide.u32 %rd4, %r0, 4, %rd1; mad.wide.u32 %rd5, %r1, 4, %rd1;\n"
        "mad.wide.u32 %rd6, %r2, 4, %rd1; setp.lt.u32 %p1, %r0, 32;\n";
    const std::tuple<const char*, const char*> cases[] = {
        // Another warp's, with and without a barrier; another lane's.
        {"st.global.u32 [%rd4], %r0; bar.sync 0; ld.global.u32 %r3, [%rd5];", ""},
        {"st.global.u32 [%rd4], %r0; ld.global.u32 %r3, [%rd5];", "race: "},
        {"ld.global.u32 %r3, [%rd5]; st.global.u32 [%rd4], %r3;", "race: "},
        {"st.global.u32 [%rd4], %r0; bar.warp.sync -1; ld.global.u32 %r3, [%rd6];", ""},
        {"st.global.u32 [%rd4], %r0; ld.global.u32 %r3, [%rd6];", "race: "},
        {"st.global.u16 [%rd4], %h0; ld.global.u8 %h1, [%rd5];", "race: "},
        // A flag says that the data is there: with a delay it never comes, or comes before the data.
        {"@%p1 bra waits; setp.ne.u32 %p3, %r0, 32; @%p3 ret; st.global.u32 [%rd1+4], %r0; st.global.u32 [%rd1], 5; "
         "ret;\n"
         "waits: ld.global.u32 %r3, [%rd1]; setp.ne.u32 %p2, %r3, 5; @%p2 bra waits; ld.global.u32 %r3, [%rd1+4];",
         "race: "},
        {"@%p1 bra waits; setp.ne.u32 %p3, %r0, 32; @%p3 ret; st.global.u32 [%rd1+4], %r0; st.volatile.global.u32 "
         "[%rd1], 5; ret;\n"
         "waits: ld.volatile.global.u32 %r3, [%rd1]; setp.ne.u32 %p2, %r3, 5; @%p2 bra waits;\n"
         "ld.global.u32 %r3, [%rd1+4];",
         "race: "},
        // With fences the flag may order them, which is not followed.
        {"@%p1 bra waits; setp.ne.u32 %p3, %r0, 32; @%p3 ret; st.global.u32 [%rd1+4], 7; membar.cta; "
         "st.volatile.global.u32 [%rd1], 5; ret;\n"
         "waits: ld.volatile.global.u32 %r3, [%rd1]; setp.ne.u32 %p2, %r3, 5; @%p2 bra waits; membar.cta;\n"
         "ld.global.u32 %r3, [%rd1+4];",
         ""},
        {"st.volatile.global.u32 [%rd1], 5; ld.volatile.global.u32 %r3, [%rd1];", ""},
        {"red.global.add.u32 [%rd1], 1; bar.sync 0; ld.global.u32 %r3, [%rd1];", ""},
        {"red.global.add.u32 [%rd1], 1; ld.global.u32 %r3, [%rd1];", "race: "},
    };
    for (const auto& [body, expected] : cases) {
        emulator::Options options;
        for (options.seed = 1; options.seed < 9; ++options.seed) {
            const Ran ran = run(module_of(places + body), Words(64), Words(64), 64, 1, 0, options);
            if (*expected)
                EXPECT_THAT(ran.outcome.report, HasSubstr(expected)) << body;
            else
                EXPECT_EQ(ran.outcome.report, "") << body;
        }
    }
}

TEST(PtxFaults, RacesBetweenBlocksAreNamed) {
    const std::string own =
        "mov.u32 %r1, %ctaid.x; mad.wide.u32 %rd4, %r1, 128, %rd3; xor.b32 %r2, %r1, 1;\n"
        "mad.wide.u32 %rd5, %r2, 128, %rd3; st.global.u32 [%rd4], %r0;\n";
    const std::pair<const char*, const char*> cases[] = {
        {"ld.global.u32 %r3, [%rd4];", ""},
        {"ld.global.u32 %r3, [%rd5];", "race: "},
        {"st.global.u32 [%rd5], %r0;", "race: "},
        {"ld.global.u32 %r3, [%rd0]; red.global.add.u32 [%rd0+4], 1;", ""},
        {"red.global.add.u32 [%rd0], 1; ld.global.u32 %r3, [%rd0];", "race: "},
        {"membar.gl; ld.global.u32 %r3, [%rd5];", ""},
    };
    for (const auto& [body, expected] : cases) {
        const Ran ran = run(module_of(own + body), numbers(32), numbers(64), 32, 2);
        if (*expected)
            EXPECT_THAT(ran.outcome.report, HasSubstr(expected)) << body;
        else
            EXPECT_EQ(ran.outcome.report, "") << body;
    }
}

TEST(PtxLanes, PartAndMeet) {
    // Each lane loops as often as its number says, some through another way, and all shuffle behind it.
    const Ran ran = run(module_of("mov.u32 %r1, 0; mov.u32 %r2, 0;\n"
                                  "loop: setp.ge.u32 %p1, %r1, %r0; @%p1 bra done;\n"
                                  "and.b32 %r3, %r1, 1; setp.eq.u32 %p2, %r3, 0; @%p2 bra even;\n"
                                  "add.u32 %r2, %r2, 10; bra next;\n"
                                  "even: add.u32 %r2, %r2, 1;\n"
                                  "next: add.u32 %r1, %r1, 1; bra loop;\n"
                                  "done: shfl.sync.bfly.b32 %r4, %r2, 1, 31, -1; st.global.u32 [%rd3], %r4;"),
                        numbers(32), Words(32));
    ASSERT_EQ(ran.outcome.fault, Fault::kNone) << ran.outcome.report;
    for (uint32_t l = 0; l < 32; ++l) {
        const uint32_t other = l ^ 1;
        EXPECT_EQ(ran.out[l], other / 2 * 10 + (other + 1) / 2) << l;
    }
}

// A way that is laid out behind where it leads to: those who do not take it come first, and wait.
TEST(PtxLanes, WaitForThoseWhoComeFromBehind) {
    const Ran ran = run(module_of("mov.u32 %r1, 1; setp.lt.u32 %p1, %r0, 7; @%p1 bra far;\n"
                                  "near: shfl.sync.idx.b32 %r2, %r1, 3, 31, -1; st.global.u32 [%rd3], %r2; ret;\n"
                                  "far: mov.u32 %r1, 2; bra near;"),
                        numbers(32), Words(32));
    ASSERT_EQ(ran.outcome.fault, Fault::kNone) << ran.outcome.report;
    EXPECT_EQ(ran.out, Words(32, 2));
}

// A warp that waits for what another one writes without a barrier lets it go on.
TEST(PtxLanes, WarpsGoOnWhileOneWaitsInALoop) {
    emulator::Options options;
    for (options.seed = 1; options.seed < 6; ++options.seed) {
        const Ran ran = run(module_of("setp.ge.u32 %p1, %r0, 32; @%p1 bra writes;\n"
                                      "waits: ld.volatile.global.u32 %r1, [%rd1]; setp.ne.u32 %p2, %r1, 5; @%p2 bra "
                                      "waits; ret;\nwrites: mov.u32 %r1, 5; st.volatile.global.u32 [%rd1], %r1;"),
                            numbers(64), numbers(64), 64, 1, 0, options);
        EXPECT_EQ(ran.outcome.fault, Fault::kNone) << ran.outcome.report;
    }
}

TEST(PtxLanes, AskForTheirPlacesAndDynamicSharedMemory) {
    const Ran ran = run(module_of("mov.u32 %r1, memory; mad.lo.u32 %r2, %r0, 4, %r1; mov.u32 %r3, %ctaid.x;\n"
                                  "mad.lo.u32 %r4, %r3, 100, %r0; st.shared.u32 [%r2], %r4; bar.sync 0;\n"
                                  "xor.b32 %r5, %r0, 63; mad.lo.u32 %r2, %r5, 4, %r1; ld.shared.u32 %r6, [%r2];\n"
                                  "mad.wide.u32 %rd4, %r3, 256, %rd3; st.global.u32 [%rd4], %r6;",
                                  ".extern .shared .align 16 .b8 memory[];\n"),
                        numbers(1), Words(128), 64, 2, 256);
    ASSERT_EQ(ran.outcome.fault, Fault::kNone) << ran.outcome.report;
    for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(ran.out[i], i / 64 * 100 + (63 - i % 64));
}

}  // namespace
}  // namespace tessera::cuda::ptx
