// What the plugins for x86 execute when they are asked for plans, instruction by instruction: none that the first
// processors of the architecture lacked, since a plan may be asked of any of them.
#include "testing/conformance/case.hpp"

#include <tessera/cpp/node.hpp>
#include <tessera/plugin.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <link.h>
#include <ucontext.h>

#include <algorithm>
#include <csignal>
#include <string>

namespace tessera {
namespace {

// The code of one library, while this thread is traced.
struct Trace {
    const unsigned char* begin = nullptr;
    const unsigned char* end = nullptr;
    uint64_t steps = 0;  // in the library
    const unsigned char* fault = nullptr;
};
Trace g_trace;

// Source of the encodings: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, chapter 2 and
// appendix A.
bool is_new(const unsigned char* at) noexcept {
    constexpr unsigned char kPrefixes[] = {0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3};
    bool repeated = false;
    while (std::ranges::find(kPrefixes, *at) != std::end(kPrefixes)) repeated |= *at++ == 0xF3;
    if (*at == 0xC4 || *at == 0xC5 || *at == 0x62) return true;  // VEX and EVEX
    if ((*at & 0xF0) == 0x40) ++at;                              // REX
    if (*at != 0x0F) return false;
    if (at[1] == 0x38 || at[1] == 0x3A) return true;      // SSSE3, SSE4, MOVBE
    return repeated && (at[1] == 0xB8 || at[1] == 0xBD);  // POPCNT, LZCNT; TZCNT is BSF on older ones
}

void on_step(int, siginfo_t*, void* context) {
    const auto* at =
        reinterpret_cast<const unsigned char*>(static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    if (at < g_trace.begin || at >= g_trace.end) return;
    ++g_trace.steps;
    if (!g_trace.fault && is_new(at)) g_trace.fault = at;
}

// Below the red zone, which belongs to the code around.
void set_trap_flag() noexcept {
    __asm__ volatile("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; add $128, %%rsp" ::: "memory", "cc");
}
void clear_trap_flag() noexcept {
    __asm__ volatile("sub $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; add $128, %%rsp" ::: "memory", "cc");
}

template <class Function>
void traced(Function&& function) {
    set_trap_flag();
    function();
    clear_trap_flag();
}

class Planning : public testing::TestWithParam<const char*> {
  protected:
    Planning() {
        struct sigaction action {};
        action.sa_sigaction = on_step;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGTRAP, &action, &before_);
        library_ =
            dlopen((std::string(TSR_PLUGIN_DIR "/tessera_") + GetParam() + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
        if (!library_) throw std::runtime_error(dlerror());
        g_trace = {};
        dl_iterate_phdr(
            [](dl_phdr_info* info, size_t, void* name) {
                if (!std::string_view(info->dlpi_name).ends_with(std::string("_") + static_cast<char*>(name) + ".so"))
                    return 0;
                for (int i = 0; i < info->dlpi_phnum; ++i) {
                    const auto& part = info->dlpi_phdr[i];
                    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X)) continue;
                    g_trace.begin = reinterpret_cast<const unsigned char*>(info->dlpi_addr + part.p_vaddr);
                    g_trace.end = g_trace.begin + part.p_memsz;
                }
                return 1;
            },
            const_cast<char*>(GetParam()));
    }
    ~Planning() override { sigaction(SIGTRAP, &before_, nullptr); }

    static std::string fault() {
        if (!g_trace.fault) return "";
        Dl_info info{};
        dladdr(g_trace.fault, &info);
        char text[100];
        std::snprintf(text, sizeof text, "at offset %#zx of the library",
                      static_cast<size_t>(g_trace.fault - static_cast<const unsigned char*>(info.dli_fbase)));
        return text;
    }

    void* library_;
    struct sigaction before_ {};
};

TEST_P(Planning, RunsOnEveryProcessor) {
    ASSERT_NE(g_trace.begin, nullptr);
    tsr_host host{};
    host.struct_size = sizeof host;
    host.abi_major = TSR_ABI_MAJOR;
    const auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library_, TSR_PLUGIN_QUERY));
    const tsr_plugin* plugin = nullptr;
    traced([&] { plugin = query(&host); });
    ASSERT_NE(plugin, nullptr);
    EXPECT_EQ(fault(), "") << "in query";

    const char* flags[] = {"avx2", "avx_vnni", "avx512f", "avx512_vnni", "amx_int8", nullptr};
    tsr_device_info cpu{};
    cpu.struct_size = sizeof cpu;
    cpu.kind = cpu.id = "cpu";
    cpu.name = cpu.link = cpu.pci_id = cpu.uuid = "";
    cpu.threads = 8;
    size_t plans = 0;
    for (uint32_t i = 0; i < plugin->kernel_count; ++i) {
        const tsr_kernel& kernel = *plugin->kernels[i];
        const auto ask = [&](const tsr_node& node, const char* const* of) {
            cpu.cpu_flags = of;
            tsr_kernel_plan plan{};
            plan.struct_size = sizeof plan;
            traced([&] { kernel.plan(&kernel, &node, &cpu, &plan); });
            ++plans;
            ASSERT_EQ(fault(), "") << "in plan of " << kernel.name;
        };
        // A step takes long: some of the cases stand for them all.
        constexpr size_t kEvery = 50;
        size_t at = 0;
        const auto ask_all = [&](conformance::Case& of) {
            if (at++ % kEvery != 0) return;
            conformance::CaseNode node(of);
            ask(node.node(), flags);
            ask(node.node(), flags + 4);
            // With its weights packed, too.
            for (size_t k = 0; k < of.operands(); ++k) {
                for (uint32_t l = 0; l < plugin->layout_count; ++l) {
                    if (plugin->layouts[l]->type == node.tensor(k).type && node.tensor(k).role == TSR_ROLE_WEIGHT)
                        node.tensor(k).layout = plugin->layouts[l]->name;
                }
            }
            ask(node.node(), flags);
        };
        ASSERT_TRUE(conformance::for_each_case(kernel.op, ask_all)) << kernel.op;
    }
    for (uint32_t l = 0; l < plugin->layout_count; ++l) {
        const tsr_layout& layout = *plugin->layouts[l];
        traced([&] { layout.group_bytes(&layout, layout.elements_multiple); });
        EXPECT_EQ(fault(), "") << "in group_bytes of " << layout.name;
    }
    EXPECT_GE(plans, 3 * plugin->kernel_count);
    EXPECT_GT(g_trace.steps, 100 * plans) << "nothing was traced";
}

// That the trace sees such an instruction.
TEST_P(Planning, KernelsWouldBeSeen) {
    tsr_host host{};
    host.struct_size = sizeof host;
    host.abi_major = TSR_ABI_MAJOR;
    const auto query = reinterpret_cast<tsr_plugin_query_function>(dlsym(library_, TSR_PLUGIN_QUERY));
    const tsr_plugin* plugin = query(&host);
    for (uint32_t l = 0; l < plugin->layout_count; ++l) {
        const tsr_layout& layout = *plugin->layouts[l];
        if (std::string_view(layout.name) != "q8_0_x8" || !__builtin_cpu_supports("avx2")) continue;
        std::vector<std::byte> rows(layout.group_bytes(&layout, 1024)), packed(rows.size());
        traced([&] { layout.pack(&layout, 1024, 1, rows.data(), packed.data()); });
        EXPECT_NE(fault(), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Plugins, Planning, testing::Values("cpu_avx2", "cpu_avx512"),
                         [](const auto& of) { return std::string(of.param); });

}  // namespace
}  // namespace tessera
