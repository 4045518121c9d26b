// That plugin-test's checks of devices find what a device does wrong: a simulated one, which says that it did what it
// did not.
#include "sdk/conformance/device_check.hpp"

#include "plugins/simulated/simulated_failures.h"

#include <tessera/plugin.h>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace tessera::conformance {
namespace {

using testing::HasSubstr;

const tsr_plugin& simulated() {
    static const tsr_plugin* const plugin = [] {
        void* library = dlopen(TSR_PLUGIN_DIR "/tessera_simulated.so", RTLD_NOW | RTLD_LOCAL);
        if (!library) throw std::runtime_error(dlerror());
        static tsr_host host{};
        host.struct_size = sizeof host;
        host.abi_major = TSR_ABI_MAJOR;
        host.log = [](const tsr_host*, tsr_log_level, const char*, const char*) {};
        return reinterpret_cast<tsr_plugin_query_function>(dlsym(library, TSR_PLUGIN_QUERY))(&host);
    }();
    return *plugin;
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
        HasSubstr("writes past the end of its target"));
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

}  // namespace
}  // namespace tessera::conformance
