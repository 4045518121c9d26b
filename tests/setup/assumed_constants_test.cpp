// What plugins say of the constants of their estimates, and what a plan shows of it. What they say is not trusted.
#include "core/setup/assumed_constants.hpp"

#include "tests/plan/described_rig.hpp"

#include <tessera/extensions/estimate_constants.h>

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <stdexcept>

namespace tessera {
namespace {

using testing::HasSubstr;

std::function<uint32_t(tsr_estimate_constant*, uint32_t room)> says;
tsr_estimate_constants extension = {
    sizeof(tsr_estimate_constants), 0, nullptr,
    [](const tsr_estimate_constants*, const tsr_device_info*, tsr_estimate_constant* constants, uint32_t room) {
        return says(constants, room);
    }};

class AssumedConstants : public RigTest {
  protected:
    void SetUp() override {
        EngineOptions options;
        options.context = 64;
        options.placement.gpu_layers = 99;
        const std::vector<DeviceDescription> cards = {card("CUDA0", "RTX 3090", uint64_t{24} << 30)};
        plan(options, cards);  // which loads the plugins
        machine_ = std::make_unique<Hardware>(std::vector<DeviceDescription>{processor(), cards.front()});
        std::vector<const tsr_plugin*> tables;
        for (const PluginRecord& record : registry().plugins()) {
            if (!record.table) continue;
            const bool simulated = std::string_view(record.table->name) == "simulated";
            if (simulated) {
                table_ = *record.table;
                table_.get_extension = [](const tsr_plugin*, const char* tag) -> const void* {
                    return std::string_view(tag) == TSR_ESTIMATE_CONSTANTS ? &extension : nullptr;
                };
            }
            tables.push_back(simulated ? &table_ : record.table);
        }
        ASSERT_NE(table_.get_extension, nullptr);
        told_ = std::make_unique<Registry>(Registry::of_tables(tables));
        extension.struct_size = sizeof extension;
        report_ = std::make_unique<PlanReport>(
            PlanReport{"model.gguf", "", {}, plan_model(file(), *told_, *machine_, options), *told_, 0, {}});
    }
    std::string line() const { return assumed_line(*report_); }

  private:
    tsr_plugin table_{};
    std::unique_ptr<Registry> told_;
    std::unique_ptr<Hardware> machine_;

  protected:
    std::unique_ptr<PlanReport> report_;
};

TEST_F(AssumedConstants, AreThoseThatNobodyHasMeasured) {
    says = [](tsr_estimate_constant* constants, uint32_t) {
        constants[0] = {"graph node", "us", 1.5, "RTX 3090, 2026-11-30"};
        constants[1] = {"launch", "us", 4, nullptr};
        constants[2] = {"share", "", 0.75, nullptr};
        return 3u;
    };
    EXPECT_THAT(line(), testing::StartsWith("assumed, not measured on such a device: CUDA0: launch 4 us, share 0.75"));
    says = [](tsr_estimate_constant* constants, uint32_t) {
        constants[0] = {"graph node", "us", 1.5, "RTX 3090, 2026-11-30"};
        return 1u;
    };
    EXPECT_THAT(line(), testing::Not(HasSubstr("CUDA0")));
}

TEST_F(AssumedConstants, ThatAreNotSoundAreLeftOut) {
    says = [](tsr_estimate_constant* constants, uint32_t room) {
        for (uint32_t i = 0; i < room; ++i) constants[i] = {nullptr, nullptr, 1, nullptr};
        constants[0] = {"not a number", "us", NAN, nullptr};
        constants[1] = {"tab\there", nullptr, 2, nullptr};
        return 1000000u;
    };
    EXPECT_THAT(line(), HasSubstr("CUDA0: tab"));
    EXPECT_THAT(line(), testing::Not(testing::AnyOf(HasSubstr("\t"), HasSubstr("not a number"))));
    EXPECT_EQ(assumed_constants(*report_).front().unit, "");
    extension.struct_size = 8;
    EXPECT_THAT(line(), testing::Not(HasSubstr("CUDA0")));
}

}  // namespace
}  // namespace tessera
