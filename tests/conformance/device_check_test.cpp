// That plugin-test's checks of devices find what a device does wrong: a simulated one, which says that it did what it
// did not.
#include "testing/conformance/device_check.hpp"

#include "testing/simulated/simulated_failures.h"

#include <tessera/plugin.h>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace tessera::conformance {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const tsr_plugin& load(const char* file) {
    void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    static tsr_host host{};
    host.struct_size = sizeof host;
    host.abi_major = TSR_ABI_MAJOR;
    host.log = [](const tsr_host*, tsr_log_level, const char*, const char*) {};
    return *reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY))(&host);
}
const tsr_plugin& simulated() {
    static const tsr_plugin& plugin = load(TSR_PLUGIN_DIR "/../test-plugins/tessera_simulated.so");
    return plugin;
}
const tsr_plugin& reference() {
    static const tsr_plugin& plugin = load(TSR_PLUGIN_DIR "/tessera_reference.so");
    return plugin;
}

const tsr_simulated_failures& failures() {
    return *static_cast<const tsr_simulated_failures*>(simulated().get_extension(&simulated(), TSR_SIMULATED_FAILURES));
}

class DeviceChecks : public testing::Test {
  protected:
    DeviceChecks() { configure(TSR_SIMULATED_RANDOM); }
    ~DeviceChecks() override {
        for (const tsr_device_info& info : infos_) {
            failures().reset(info.id);
            failures().configure(info.id, nullptr);
        }
    }

    void configure(tsr_simulated_policy policy, uint32_t without = 0) {
        for (tsr_device_info& info : infos_) {
            const tsr_simulated_options options = {sizeof options, policy, 3, without, 0, nullptr};
            ASSERT_EQ(failures().configure(info.id, &options), 1u);
        }
    }
    void omit(tsr_simulated_operation operation) {
        for (const tsr_device_info& info : infos_)
            failures().omit(info.id, operation, nullptr, 0, TSR_SIMULATED_ALWAYS);
    }
    Verdict check(std::string_view name) {
        for (const DeviceCheck& one : device_checks()) {
            if (name == one.name) return check_device(*simulated().providers[0], infos_[0], infos_[1], one);
        }
        throw std::runtime_error("no such check");
    }
    Verdict check_layout_there(const char* name) {
        for (uint32_t i = 0; i < simulated().layout_count; ++i) {
            const tsr_layout& layout = *simulated().layouts[i];
            if (std::string_view(name) == layout.name)
                return check_device_layout(*simulated().providers[0], infos_[0], layout);
        }
        throw std::runtime_error("no such layout");
    }
    const tsr_device_info& first() const { return infos_[0]; }

  private:
    static tsr_device_info info(const char* id) {
        tsr_device_info info{};
        info.struct_size = sizeof info;
        info.kind = "simulated";
        info.id = id;
        info.name = info.link = info.pci_id = info.uuid = "";
        info.compute_capability = 860;
        info.memory_bytes = info.free_memory_bytes = 512 << 20;
        return info;
    }
    tsr_device_info infos_[2] = {info("SIM0"), info("SIM1")};
};

TEST_F(DeviceChecks, PassUnderEveryPolicy) {
    for (tsr_simulated_policy policy = TSR_SIMULATED_RANDOM; policy <= TSR_SIMULATED_NEWEST_LAST; ++policy) {
        configure(policy);
        for (const DeviceCheck& one : device_checks()) {
            const Verdict verdict = check(one.name);
            EXPECT_EQ(verdict.kind, Verdict::kPassed) << one.name << " " << policy << ": " << verdict.text;
        }
    }
}

TEST_F(DeviceChecks, AreNotMadeOfWhatIsNotOffered) {
    configure(TSR_SIMULATED_RANDOM, TSR_SIMULATED_NO_PEERS | TSR_SIMULATED_NO_TIMING | TSR_SIMULATED_NO_MEMORY_INFO);
    for (const char* name : {"peers", "timed events", "memory info"})
        EXPECT_EQ(check(name).kind, Verdict::kNotClaimed) << name;
    configure(TSR_SIMULATED_RANDOM, TSR_SIMULATED_UNREACHABLE);
    EXPECT_EQ(check("peers").kind, Verdict::kPassed) << "a refusal is what is expected";
}

struct Omitted {
    tsr_simulated_operation operation;
    tsr_simulated_policy policy;
    const char* check;
    const char* text;
};

TEST_F(DeviceChecks, FindWhatWasNotDone) {
#ifdef __SANITIZE_THREAD__
    GTEST_SKIP() << "what does not wait here is to race, and ThreadSanitizer would end the test for it";
#endif
    constexpr Omitted kAll[] = {
        {TSR_SIMULATED_COPY_FROM_PEER, TSR_SIMULATED_RANDOM, "peers", "what was copied from a peer in round 0"},
        {TSR_SIMULATED_QUEUE_WAIT_EVENT, TSR_SIMULATED_NEWEST_LAST, "peers", "copied from a peer"},
        {TSR_SIMULATED_QUEUE_WAIT_EVENT, TSR_SIMULATED_NEWEST_LAST, "events between devices", "byte"},
        {TSR_SIMULATED_QUEUE_WAIT_EVENT, TSR_SIMULATED_OLDEST_LAST, "events between queues",
         "although work that waited for it is"},
        {TSR_SIMULATED_COPY, TSR_SIMULATED_RANDOM, "memory and copies", "byte"},
        {TSR_SIMULATED_DOWNLOAD, TSR_SIMULATED_RANDOM, "page-locked memory", "byte"},
    };
    for (const Omitted& one : kAll) {
        configure(one.policy);
        omit(one.operation);
        const Verdict verdict = check(one.check);
        EXPECT_EQ(verdict.kind, Verdict::kFailed) << one.check << " without operation " << one.operation;
        EXPECT_THAT(verdict.text, HasSubstr(one.text));
    }
}

constexpr const char* kPackedThere = "q8_0_simulated_x8";

TEST_F(DeviceChecks, PackOnTheDeviceAsOnTheHost) {
    for (tsr_simulated_policy policy = TSR_SIMULATED_RANDOM; policy <= TSR_SIMULATED_NEWEST_LAST; ++policy) {
        configure(policy);
        for (const char* name : {kPackedThere, "f16_simulated_x8"}) {
            const Verdict verdict = check_layout_there(name);
            EXPECT_EQ(verdict.kind, Verdict::kPassed) << name << " " << policy << ": " << verdict.text;
            EXPECT_EQ(verdict.text, "");
        }
    }
}

TEST_F(DeviceChecks, FindPackingThatWasNotDone) {
    omit(TSR_SIMULATED_PACK);
    EXPECT_THAT(check_layout_there(kPackedThere).text, HasSubstr("enqueue_pack gives other bytes than pack"));
    for (const char* id : {"SIM0", "SIM1"}) failures().reset(id);
    omit(TSR_SIMULATED_UNPACK);
    EXPECT_THAT(check_layout_there(kPackedThere).text, HasSubstr("enqueue_unpack does not give back the rows"));
}

// Layouts of one group size with one fault each, over the plugin's own.
struct Faulty : tsr_layout {
    const tsr_layout* real;
};
const tsr_layout& real_of(const tsr_layout* self) {
    return *static_cast<const Faulty*>(self)->real;
}

TEST_F(DeviceChecks, FindWhatPackingDoesWrong) {
    const tsr_layout* real = nullptr;
    for (uint32_t i = 0; i < simulated().layout_count; ++i) {
        if (std::string_view(kPackedThere) == simulated().layouts[i]->name) real = simulated().layouts[i];
    }
    ASSERT_NE(real, nullptr);
    const auto text = [&](const auto& plant) {
        Faulty layout{*real, real};
        plant(layout);
        const Verdict verdict = check_device_layout(*simulated().providers[0], first(), layout);
        EXPECT_EQ(verdict.kind, Verdict::kFailed);
        return verdict.text;
    };
    // One group less; one too many, which is read and written past the ends; without pack to compare it with.
    EXPECT_THAT(
        text([](Faulty& layout) {
            layout.enqueue_pack = [](const tsr_layout* self, tsr_device* device, tsr_queue queue, int64_t elements,
                                     int64_t groups, const void* rows, void* packed) -> const tsr_status* {
                if (groups < 2) return nullptr;
                return real_of(self).enqueue_pack(&real_of(self), device, queue, elements, groups - 1, rows, packed);
            };
        }),
        HasSubstr("enqueue_pack gives other bytes than pack"));
    EXPECT_THAT(
        text([](Faulty& layout) {
            layout.pack = nullptr;
            layout.enqueue_pack = [](const tsr_layout* self, tsr_device* device, tsr_queue queue, int64_t elements,
                                     int64_t groups, const void* rows, void* packed) -> const tsr_status* {
                return real_of(self).enqueue_pack(&real_of(self), device, queue, elements, groups + 1, rows, packed);
            };
        }),
        AllOf(HasSubstr("enqueue_pack writes "), HasSubstr(" bytes past the end of its target")));
    EXPECT_THAT(text([](Faulty& layout) {
                    layout.enqueue_pack = [](const tsr_layout*, tsr_device*, tsr_queue, int64_t, int64_t, const void*,
                                             void*) -> const tsr_status* {
                        static tsr_status failed{};
                        failed.struct_size = sizeof failed;
                        failed.code = TSR_DEVICE_ERROR;
                        failed.message = "planted";
                        return &failed;
                    };
                }),
                HasSubstr("enqueue_pack failed: planted"));
}

// A kernel of rms_norm that does one thing more, planted in its enqueue.
struct FaultyKernel : tsr_kernel {
    using Plant = void (*)(tsr_device& device, const tsr_launch& launch);
    const tsr_kernel* real;
    Plant plant;
    mutable tsr_device* device;
};
const FaultyKernel& faulty(const tsr_kernel* self) {
    return *static_cast<const FaultyKernel*>(self);
}

// Copies 4 bytes on the launch's queue, at once as far as the kernel is concerned.
void copy_word(tsr_device& device, const tsr_launch& launch, void* to, int64_t to_offset, const void* from,
               int64_t from_offset) {
    const tsr_status* failed = device.copy(&device, launch.queue, static_cast<char*>(to) + to_offset,
                                           static_cast<const char*>(from) + from_offset, 4);
    if (failed) {
        const std::string text = failed->message;
        if (failed->destroy) failed->destroy(failed);
        throw std::runtime_error(text);
    }
}

// Operands of the case: x of 3 rows, weight, output.
constexpr const char* kCase = "n=1536 inner=1 rows=3 gap=0";
constexpr int64_t kRowBytes = 1536 * 4, kRows = 3;
constexpr size_t kX = 0, kWeight = 1, kOut = 2;

TEST_F(DeviceChecks, FindWhatAKernelAccessesOutsideOfItsOperands) {
    FaultyKernel kernel{};
    for (uint32_t i = 0; i < simulated().kernel_count; ++i) {
        if (std::string_view(simulated().kernels[i]->op) == TSR_OP_RMS_NORM)
            static_cast<tsr_kernel&>(kernel) = *simulated().kernels[i], kernel.real = simulated().kernels[i];
    }
    ASSERT_NE(kernel.real, nullptr);
    kernel.plan = [](const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info, tsr_kernel_plan* plan) {
        const tsr_kernel* real = faulty(self).real;
        const tsr_status* failed = real->plan(real, node, info, plan);
        plan->workspace_bytes = kRowBytes;
        return failed;
    };
    kernel.prepare = [](const tsr_kernel* self, const tsr_node* node, const tsr_device_info* info, tsr_device* device,
                        void** state) {
        faulty(self).device = device;
        return faulty(self).real->prepare(faulty(self).real, node, info, device, state);
    };
    kernel.release = [](const tsr_kernel* self, void* state) { faulty(self).real->release(faulty(self).real, state); };
    kernel.enqueue = [](const tsr_kernel* self, void* state, const tsr_launch* launch) -> const tsr_status* {
        const tsr_status* failed = faulty(self).real->enqueue(faulty(self).real, state, launch);
        if (failed) return failed;
        static std::string why;
        static tsr_status refused{};
        try {
            if (faulty(self).plant) faulty(self).plant(*faulty(self).device, *launch);
        } catch (const std::runtime_error& error) {
            why = error.what();
            refused.struct_size = sizeof refused;
            refused.code = TSR_DEVICE_ERROR;
            refused.message = why.c_str();
            return &refused;
        }
        return nullptr;
    };

    tsr_device_info cpu = first();
    cpu.kind = "cpu";
    cpu.id = "CPU";
    cpu.threads = 1;
    Setting setting;
    setting.plugin = &simulated();
    setting.reference = &reference();
    setting.cpu = &cpu;
    const auto verdict_of = [&](FaultyKernel::Plant plant) {
        kernel.plant = plant;
        Verdict verdict;
        bool found = false;
        for_each_case(TSR_OP_RMS_NORM, [&](Case& c) {
            if (c.name != kCase) return;
            found = true;
            ASSERT_EQ(c.operand(kX).bytes.size(), static_cast<size_t>(kRowBytes * kRows));
            verdict = check_device_kernel(setting, *simulated().providers[0], first(), kernel, c);
        });
        EXPECT_TRUE(found) << kCase;
        return verdict;
    };
    const auto text_of = [&](FaultyKernel::Plant plant) {
        const Verdict verdict = verdict_of(plant);
        EXPECT_EQ(verdict.kind, Verdict::kFailed);
        return verdict.text;
    };
    EXPECT_EQ(verdict_of(nullptr).text, "");
    // Writes: found in what surrounds them, whatever the device itself notices.
    EXPECT_THAT(text_of([](tsr_device& d, const tsr_launch& l) {
                    copy_word(d, l, l.data[kOut], kRowBytes * kRows, l.data[kX], 0);
                }),
                HasSubstr("writes 0 bytes past the end of operand 2 (out)"));
    EXPECT_THAT(text_of([](tsr_device& d, const tsr_launch& l) { copy_word(d, l, l.data[kOut], -4, l.data[kX], 0); }),
                HasSubstr("bytes before the start of operand 2 (out)"));
    EXPECT_THAT(text_of([](tsr_device& d, const tsr_launch& l) {
                    copy_word(d, l, l.data[kX], kRowBytes * kRows + 16, l.data[kX], 0);
                }),
                HasSubstr("writes 16 bytes past the end of operand 0 (x)"));
    EXPECT_THAT(text_of([](tsr_device& d, const tsr_launch& l) { copy_word(d, l, l.data[kWeight], 8, l.data[kX], 0); }),
                HasSubstr("it writes to operand 1 (weight)"));
    EXPECT_THAT(
        text_of([](tsr_device& d, const tsr_launch& l) { copy_word(d, l, l.workspace, kRowBytes, l.data[kX], 0); }),
        HasSubstr("writes 0 bytes past the end of the workspace"));
    EXPECT_THAT(text_of([](tsr_device& d, const tsr_launch& l) {
                    copy_word(d, l, const_cast<tsr_range*>(l.ranges), 8, l.data[kX], 0);
                }),
                HasSubstr("it writes to the ranges"));
    // Reads: found by a device that checks addresses, where nothing surrounds them; and what is read is no number.
    EXPECT_THAT(text_of([](tsr_device& d, const tsr_launch& l) {
                    copy_word(d, l, l.workspace, 0, l.data[kX], kRowBytes * kRows);
                }),
                HasSubstr("copy"));
    EXPECT_THAT(text_of([](tsr_device& d, const tsr_launch& l) {
                    copy_word(d, l, l.data[kOut], 0, l.data[kX], kRowBytes * kRows);
                }),
                HasSubstr("nan"));
}

}  // namespace
}  // namespace tessera::conformance
