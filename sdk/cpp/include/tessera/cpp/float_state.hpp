// What decides how a thread rounds, and whether it flushes small numbers to zero. A function of a plugin leaves it as
// it found it: results of what runs after it on the thread depend on it.
#pragma once

#include <cstdint>
#include <string>

namespace tessera::sdk {

struct FloatState {
    uint32_t mxcsr = 0;  // of SSE and AVX, without the flags that operations set
    uint16_t x87 = 0;    // the control word

    bool operator==(const FloatState&) const = default;

    static FloatState of_this_thread() noexcept {
        FloatState state;
        state.mxcsr = __builtin_ia32_stmxcsr() & ~kFlags;
        __asm__ volatile("fnstcw %0" : "=m"(state.x87));
        return state;
    }
    void restore() const noexcept {
        __builtin_ia32_ldmxcsr(mxcsr);
        __asm__ volatile("fldcw %0" : : "m"(x87));
    }

    // What differs in `after`: "rounding, flushing to zero (MXCSR 0x1f80 before, 0xbf80 after)".
    std::string difference(const FloatState& after) const {
        const uint32_t changed = mxcsr ^ after.mxcsr;
        std::string what;
        const auto add = [&what](const char* name) { what += (what.empty() ? "" : ", ") + std::string(name); };
        if (changed & 0x6000) add("rounding");
        if (changed & 0x8000) add("flushing to zero");
        if (changed & 0x0040) add("denormals as zero");
        if (changed & 0x1F80) add("exceptions");
        if (x87 != after.x87) add("the x87 control word");
        const auto hexadecimal = [](uint32_t value) {
            std::string digits;
            for (int shift = 12; shift >= 0; shift -= 4) digits += "0123456789abcdef"[value >> shift & 15];
            return "0x" + digits;
        };
        if (changed) what += " (MXCSR " + hexadecimal(mxcsr) + " before, " + hexadecimal(after.mxcsr) + " after)";
        return what;
    }

  private:
    static constexpr uint32_t kFlags = 0x3F;
};

}  // namespace tessera::sdk
