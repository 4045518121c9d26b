// Processor flags from CPUID, as /proc/cpuinfo names them. Sources: Intel 64 and IA-32 Architectures Software
// Developer's Manual, volume 2 (CPUID) and volume 1, chapter 13 (XCR0); AMD64 Architecture Programmer's Manual, volume
// 3, appendix E.
#include "core/hardware/cpu_flags.hpp"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace tessera {
namespace {

enum Register : uint8_t { kEax, kEbx, kEcx, kEdx };

// State that the operating system must save for a flag to be of use: bits of XCR0.
constexpr uint64_t kNone = 0;
constexpr uint64_t kAvx = 0x6;      // SSE and upper halves of ymm
constexpr uint64_t kAvx512 = 0xE6;  // and mask registers, upper halves of zmm0-15, zmm16-31
constexpr uint64_t kAmx = 0x60000;  // tile configuration and data

struct Flag {
    const char* name;
    uint32_t leaf;
    uint32_t subleaf;
    Register where;
    uint8_t bit;
    uint64_t state;
};

constexpr Flag kFlags[] = {
    {"sse", 1, 0, kEdx, 25, kNone},
    {"sse2", 1, 0, kEdx, 26, kNone},
    {"pni", 1, 0, kEcx, 0, kNone},
    {"pclmulqdq", 1, 0, kEcx, 1, kNone},
    {"ssse3", 1, 0, kEcx, 9, kNone},
    {"fma", 1, 0, kEcx, 12, kAvx},
    {"cx16", 1, 0, kEcx, 13, kNone},
    {"sse4_1", 1, 0, kEcx, 19, kNone},
    {"sse4_2", 1, 0, kEcx, 20, kNone},
    {"movbe", 1, 0, kEcx, 22, kNone},
    {"popcnt", 1, 0, kEcx, 23, kNone},
    {"aes", 1, 0, kEcx, 25, kNone},
    {"avx", 1, 0, kEcx, 28, kAvx},
    {"f16c", 1, 0, kEcx, 29, kAvx},
    {"abm", 0x80000001, 0, kEcx, 5, kNone},
    {"bmi1", 7, 0, kEbx, 3, kNone},
    {"avx2", 7, 0, kEbx, 5, kAvx},
    {"bmi2", 7, 0, kEbx, 8, kNone},
    {"erms", 7, 0, kEbx, 9, kNone},
    {"avx512f", 7, 0, kEbx, 16, kAvx512},
    {"avx512dq", 7, 0, kEbx, 17, kAvx512},
    {"avx512ifma", 7, 0, kEbx, 21, kAvx512},
    {"avx512cd", 7, 0, kEbx, 28, kAvx512},
    {"sha_ni", 7, 0, kEbx, 29, kNone},
    {"avx512bw", 7, 0, kEbx, 30, kAvx512},
    {"avx512vl", 7, 0, kEbx, 31, kAvx512},
    {"avx512vbmi", 7, 0, kEcx, 1, kAvx512},
    {"avx512_vbmi2", 7, 0, kEcx, 6, kAvx512},
    {"gfni", 7, 0, kEcx, 8, kNone},
    {"vaes", 7, 0, kEcx, 9, kAvx},
    {"vpclmulqdq", 7, 0, kEcx, 10, kAvx},
    {"avx512_vnni", 7, 0, kEcx, 11, kAvx512},
    {"avx512_bitalg", 7, 0, kEcx, 12, kAvx512},
    {"avx512_vpopcntdq", 7, 0, kEcx, 14, kAvx512},
    {"fsrm", 7, 0, kEdx, 4, kNone},
    {"avx512_vp2intersect", 7, 0, kEdx, 8, kAvx512},
    {"amx_bf16", 7, 0, kEdx, 22, kAmx},
    {"avx512_fp16", 7, 0, kEdx, 23, kAvx512},
    {"amx_tile", 7, 0, kEdx, 24, kAmx},
    {"amx_int8", 7, 0, kEdx, 25, kAmx},
    {"avx_vnni", 7, 1, kEax, 4, kAvx},
    {"avx512_bf16", 7, 1, kEax, 5, kAvx512},
    {"amx_fp16", 7, 1, kEax, 21, kAmx},
    {"avx_ifma", 7, 1, kEax, 23, kAvx},
};

struct Registers {
    uint32_t values[4] = {};
};

Registers cpuid(uint32_t leaf, uint32_t subleaf) {
    Registers r;
    // The compiler's helper answers 0 for a leaf that the processor does not have; the number of subleaves of leaf 7 is
    // in its eax.
    if (leaf == 7 && subleaf > 0) {
        const Registers first = cpuid(7, 0);
        if (subleaf > first.values[kEax]) return r;
    }
    __get_cpuid_count(leaf, subleaf, &r.values[kEax], &r.values[kEbx], &r.values[kEcx], &r.values[kEdx]);
    return r;
}

uint64_t enabled_state() {
    constexpr uint32_t kOsxsave = 27;  // leaf 1, ecx: the system uses XSAVE, so XCR0 may be read
    if (!(cpuid(1, 0).values[kEcx] >> kOsxsave & 1)) return 0;
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return static_cast<uint64_t>(high) << 32 | low;
}

// Linux enables the state of AMX's tile registers in XCR0, and yet gives it to a process only if it asks, once for all
// of its threads (Documentation/arch/x86/xstate.rst). 0, or the error.
int ask_for_tile_registers() {
    constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, kRequest, kTileData) == 0 ? 0 : errno;
}

struct HostFlags {
    std::vector<std::string> flags;
    std::string withheld;
};

HostFlags read_flags() {
    const uint64_t state = enabled_state();
    HostFlags host;
    std::vector<std::string> tiles;
    for (const Flag& flag : kFlags) {
        if ((state & flag.state) != flag.state) continue;
        if (!(cpuid(flag.leaf, flag.subleaf).values[flag.where] >> flag.bit & 1)) continue;
        (flag.state == kAmx ? tiles : host.flags).emplace_back(flag.name);
    }
    if (!tiles.empty()) {
        if (const int error = ask_for_tile_registers()) {
            host.withheld = "AMX is not used: the system refuses tile registers to this process (arch_prctl: " +
                            std::generic_category().message(error) + ")";
        } else {
            host.flags.insert(host.flags.end(), tiles.begin(), tiles.end());
        }
    }
    std::sort(host.flags.begin(), host.flags.end());
    return host;
}

const HostFlags& host_flags() {
    static const HostFlags host = read_flags();
    return host;
}

}  // namespace

const std::vector<std::string>& host_cpu_flags() {
    return host_flags().flags;
}

const std::string& withheld_cpu_flags() {
    return host_flags().withheld;
}

const std::vector<std::string_view>& known_cpu_flags() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> all;
        for (const Flag& flag : kFlags) all.emplace_back(flag.name);
        std::ranges::sort(all);
        return all;
    }();
    return names;
}

bool has_cpu_flag(const tsr_device_info& info, std::string_view flag) noexcept {
    if (!info.cpu_flags) return false;
    for (const char* const* at = info.cpu_flags; *at; ++at) {
        if (flag == *at) return true;
    }
    return false;
}

}  // namespace tessera
