// Kernels written in PTX, for tests of what executes it.
#pragma once

#include "testing/emulated_cuda/ptx/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tessera::cuda::ptx {

using Words = std::vector<uint32_t>;

// A module of one kernel `k(in, out)`. Registers %r0 to %r19, %rd0 to %rd9, %f0 to %f9, %fd0 to %fd3, %h0 to %h9 and
// %p0 to %p9 are declared; %rd0 and %rd1 are the addresses of in and out, and %r0 is the thread, for which %rd2 and
// %rd3 point to words of in and out.
inline std::string module_of(const std::string& body, const std::string& declarations = "") {
    return ".version 8.0\n.target sm_80\n.address_size 64\n" + declarations +
           ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n"
           ".reg .b32 %r<20>; .reg .b64 %rd<10>; .reg .f32 %f<10>; .reg .f64 %fd<4>; .reg .b16 %h<10>; .reg .pred "
           "%p<10>;\n"
           "ld.param.u64 %rd0, [in]; ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x;\n"
           "mul.wide.u32 %rd2, %r0, 4; add.s64 %rd3, %rd1, %rd2; add.s64 %rd2, %rd0, %rd2;\n" +
           body + "\n}\n";
}

struct Ran {
    emulator::Outcome outcome;
    Words out;
};

// Runs it with a block of `threads` for each of `blocks`; `in` and `out` are allocations of card 0.
inline Ran run(const std::string& text, Words in, Words out, uint32_t threads = 32, uint32_t blocks = 1,
               uint32_t dynamic_shared = 0, emulator::Options options = {}) {
    Module module(text);
    const Program* const program = module.kernel("k");
    emulator::Memory memory;
    memory.add(reinterpret_cast<uintptr_t>(in.data()), in.size() * 4, 0);
    memory.add(reinterpret_cast<uintptr_t>(out.data()), out.size() * 4, 0);
    for (const emulator::Range& range : *memory.ranges()) range.written->mark(0, range.bytes);
    const uint64_t addresses[2] = {reinterpret_cast<uintptr_t>(in.data()), reinterpret_cast<uintptr_t>(out.data())};
    const void* const parameters[2] = {&addresses[0], &addresses[1]};
    emulator::Launch launch;
    launch.grid[0] = blocks;
    launch.block[0] = threads;
    launch.dynamic_shared = dynamic_shared;
    launch.parameters = const_cast<void* const*>(parameters);
    launch.memory = memory.ranges();
    Ran ran{ptx::run(module, *program, launch, options), {}};
    ran.out = std::move(out);
    return ran;
}

}  // namespace tessera::cuda::ptx
