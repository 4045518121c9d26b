// What a plan's text and its JSON say of weights that are packed for a device, for devices that pack them and that do
// not.
#include "apps/tessera/plan_text.hpp"

#include "core/setup/plan_json.hpp"
#include "tests/plan/described_rig.hpp"
#include "tests/run/simulated_rig.hpp"

#include <boost/json/serialize.hpp>
#include <gmock/gmock.h>

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::Not;

class PackingInPlans : public RigTest {
  protected:
    PlanReport report(uint32_t without) {
        const test::CardOptions options("CUDA0", TSR_SIMULATED_RANDOM, without);
        EngineOptions engine;
        engine.context = 256;
        engine.placement.rules = {{".*", "CUDA0"}};
        PlannedModel planned = plan(engine, {card("CUDA0", "a card", uint64_t{1} << 30)});
        return PlanReport{"model.gguf", "", {}, std::move(planned), registry(), 0, {}};
    }
    std::string text(uint32_t without) { return app::plan_text(report(without), false); }
    std::string json(uint32_t without) { return boost::json::serialize(plan_json(report(without))); }
};

TEST_F(PackingInPlans, IsSaidWithWhoPacks) {
    EXPECT_THAT(text(0), HasSubstr(" packed for CUDA0 while loading, there, through "));
    EXPECT_THAT(text(TSR_SIMULATED_NO_PACKING), HasSubstr(" packed for CUDA0 while loading, on the CPU, through "));
    EXPECT_THAT(text(TSR_SIMULATED_NO_LAYOUTS), Not(HasSubstr("packed for CUDA0")));
    EXPECT_THAT(json(0), HasSubstr(R"("packed_on":"device")"));
    EXPECT_THAT(json(TSR_SIMULATED_NO_PACKING), HasSubstr(R"("packed_on":"host")"));
    EXPECT_THAT(json(TSR_SIMULATED_NO_LAYOUTS), Not(HasSubstr(R"("packed_on":"device")")));
}

}  // namespace
}  // namespace tessera
