// PTX that is malformed, or that says what is not known, is refused with its line; it never ends the process.
#include "kernels.hpp"

#include <random>

namespace tessera::cuda::ptx {
namespace {

using testing::HasSubstr;

std::string refused(const std::string& text) {
    try {
        Module module(text);
        for (const std::string_view name : module.kernels()) module.kernel(name);
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

TEST(PtxRefusals, AreNamedWithTheirLine) {
    const std::pair<const char*, const char*> cases[] = {
        {"frobnicate.b32 %r1, %r2;", "line 9 of the PTX: unknown or unsupported instruction frobnicate.b32"},
        {"call.uni f, ();", "unknown or unsupported instruction call.uni"},
        {"\n\nadd.odd.s32 %r1, %r2, %r3;", "line 11 of the PTX: add.odd.s32"},
        {"add.s32 %r1, %r2;", "expected 3 operands, found 2"},
        {"add.s32 %r1, %r2, %r3, %r4;", "expected 3 operands, found 4"},
        {"add.s32 %r1, %r2, %rd3;", "an operand of 32 bits cannot be a register of 64 bits"},
        {"add.s32 %r1, %r2, %p3;", "cannot be a register of a predicate"},
        {"add.f32 %f1, %f2, 1;", "expected a floating-point number"},
        {"add.f32 %f1, %f2, 0f3F8;", "malformed number 0f3F8"},
        {"add.f16 %r1, %r2, %r3;", "cannot be a register"},
        {"add.s32 %r1, %r2, %r20;", "unknown register %r20"},
        {"add.s32 %r1, %r2, %clock;", "unknown register %clock"},
        {"mul.s32 %r1, %r2, %r3;", "expected .lo"},
        {"setp.lo.s32 %p1, %r2, %r3;", "unknown comparison .lo"},
        {"setp.lt.b32 %p1, %r2, %r3;", "bits are equal or not"},
        {"cvt.f32.s32 %f1, %r1;", "expected .rn"},
        {"cvt.s32.f32 %r1, %f1;", "expected a rounding to integers"},
        {"bra nowhere;", "no label nowhere"},
        {"here: here: ret;", "two labels here"},
        {"@%r1 ret;", "expected a predicate behind @"},
        {"ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd5];", "more than 16 bytes"},
        {"ld.global.v2.u32 {%r1, %r2, %r3}, [%rd5];", "expected 2 registers"},
        {"ld.shared.nc.u32 %r1, [%r2];", ".nc is of global memory"},
        {"ld.global.u32 %r1, [%p1];", "%p1 cannot hold an address"},
        {"ld.global.u32 %r1, [%rd1;", "expected \"]\", found \";\""},
        {"ld.global.u32 %h1, [%rd1];", "cannot be a register of 16 bits"},
        {"st.param.u32 [in], %r1;", "cannot be written"},
        {"shfl.sync.round.b32 %r1, %r2, %r3, %r4, %r5;", "unknown mode .round"},
        {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3, %r4}, {%f1, %f2, "
         "%f3, %f4};",
         "expected 4 registers, found 2"},
        {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1}, {%r1}, {%r3}, {%f1};", "a shape that is not"},
        {"mma.sync.aligned.m16n8k32.row.col.s32.s4.s4.s32 {%r1, %r2, %r3, %r4}, {%r1, %r2, %r3, %r4}, {%r1, %r2}, "
         "{%r1, %r2, %r3, %r4};",
         "not supported with these types and this shape"},
        {"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r2];", "expected 2 registers"},
        {"cp.async.cg.shared.global [%r1], [%rd1], 8;", "copies 16 bytes"},
        {"atom.global.max.f32 %f1, [%rd1], %f2;", "not supported with these types"},
        {".shared .b8 big[1000000];", "more than 256 KB of static shared memory"},
        {".local .b8 big[100000000];", "local memory of more than 1 MiB"},
        {".reg .b128 %q<2>;", "registers of the type \".b128\""},
        {".reg .b32 %q<99999999>;", "expected a number up to"},
        {".branchtargets a;", "unknown or unsupported in a kernel"},
        {".pragma \"unknown\";", "unknown pragma"},
        {"add.s32 %r1, %r2, %r3", "expected \";\""},
        {"{", "a { without its }"},
    };
    for (const auto& [body, expected] : cases) EXPECT_THAT(refused(module_of(body)), HasSubstr(expected)) << body;
}

TEST(PtxRefusals, OutsideOfKernels) {
    const std::pair<const char*, const char*> cases[] = {
        {".global .u32 a = 1.5;", "expected a number"},
        {".global .b8 a[2] = {1, 2, 3};", "more initial values than elements"},
        {".global .b8 a[99999999999];", "more than 4 GiB"},
        {".global .u32 a[];", "a has no extent"},
        {".global .align 3 .b8 a[2];", "an alignment of 3"},
        {".tex .u64 t;", "unknown or unsupported outside of kernels: \".tex\""},
        {".extern .shared .b8 a[]; .extern .shared .b8 b[];", "two arrays in dynamic shared memory"},
        {".address_size 32", "addresses of 64 bits only"},
        {".entry x(.param .u32 a) {", "a { without its }"},
        {".entry x(.param .b8 a[99999]) {}", "parameters of more than 32 KB"},
    };
    for (const auto& [text, expected] : cases) EXPECT_THAT(refused(text), HasSubstr(expected)) << text;
}

// Text that is cut off or changed anywhere is refused or means something else.
TEST(PtxRefusals, DamagedTextNeverEndsTheProcess) {
    const std::string whole = module_of(
        ".shared .align 4 .b8 s[64]; @%p1 bra L; ld.global.v2.u32 {%r1, %r2}, [%rd2+-8]; // comment\n"
        "shfl.sync.bfly.b32 %r3|%p2, %r1, 1, 31, -1; setp.eq.and.f32 %p1|%p2, %f1, 0f3F800000, !%p3;\n"
        "L: mov.b64 %rd4, {%r1, %r2}; prmt.b32 %r4, %r1, 0, 0x3210; bar.sync 1, 64; ret;",
        ".global .align 4 .b8 table[8] = {1, 2, 3};\n");
    for (size_t length = 0; length < whole.size(); ++length) refused(whole.substr(0, length));
    std::mt19937 random(1);
    for (int i = 0; i < 3000; ++i) {
        std::string text = whole;
        for (int k = 0; k < 3; ++k) text[random() % text.size()] = whole[random() % whole.size()];
        refused(text);
    }
}

// Nor does running what has become of it, whatever it does.
TEST(PtxRefusals, DamagedKernelsNeverEndTheProcess) {
    const std::string head = module_of("@@", ".extern .shared .align 16 .b8 memory[];\n");
    const std::string body =
        ".shared .align 16 .b8 s[512]; .local .align 8 .b8 l[16]; mov.u64 %rd4, l; st.local.u32 [%rd4+4], %r0;\n"
        "mov.u32 %r1, s; mad.lo.u32 %r2, %r0, 16, %r1; cp.async.cg.shared.global [%r2], [%rd0], 16, 8;\n"
        "cp.async.commit_group; cp.async.wait_group 0; bar.warp.sync -1; ld.shared.v4.u32 {%r3, %r4, %r5, %r6}, "
        "[%r2];\n"
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r7, %r8, %r9, %r10}, [%r2];\n"
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r7, %r8, %r9, %r10}, {%r3, %r4}, "
        "{%f1, %f2, %f3, %f4};\nL: setp.lt.u32 %p1, %r11, %r0; @%p1 bra M; add.u32 %r11, %r11, 7; bra L;\n"
        "M: shfl.sync.idx.b32 %r12|%p2, %r3, 5, 31, -1; red.shared.add.u32 [memory], 1; st.global.u32 [%rd3], %r12;\n"
        "cvta.shared.u64 %rd5, %rd4; ld.u32 %r13, [%rd5+8]; bar.sync 0;";
    ASSERT_EQ(refused(std::string(head).replace(head.find("@@"), 2, body)), "");
    std::mt19937 random(2);
    emulator::Options options;
    options.patience = 1000;
    int ran = 0;
    for (int i = 0; i < 4000; ++i) {
        std::string text = body;
        // Digits: other registers, numbers and sizes.
        for (int k = 0; k < 3;) {
            char& digit = text[random() % text.size()];
            if (digit < '0' || digit > '9') continue;
            digit = static_cast<char>('0' + random() % 10);
            ++k;
        }
        const std::string whole = std::string(head).replace(head.find("@@"), 2, text);
        if (!refused(whole).empty()) continue;
        ++ran;
        run(whole, Words(32, 7), Words(32), 32, 2, 64, options);
    }
    EXPECT_GT(ran, 400);
}

}  // namespace
}  // namespace tessera::cuda::ptx
