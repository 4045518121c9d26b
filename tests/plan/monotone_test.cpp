// A smaller context, more memory or one more card never plans slower.
#include "core/plan/fit.hpp"
#include "core/plan/predict.hpp"
#include "tests/plan/described_rig.hpp"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <string>

namespace tessera {
namespace {

// Of the sum that plans are compared by, and of generation.
constexpr double kLeast = 0.9;
// Of prompts alone, which may fall where generation gains more: for models as small as these a copy between two cards
// takes about as long as a layer.
constexpr double kLeastPrompt = 0.5;

struct Outcome {
    bool fits = false;
    TypicalUse use;
    std::string text;
};

Outcome outcome_of(const PlannedModel& planned) {
    Outcome made;
    made.fits = true;
    for (DeviceIndex device = 0; device < planned.plan.devices.size(); ++device) {
        made.fits &= !misfit(planned.plan, device);
        made.text += fmt::format(" {}:{}", planned.plan.devices[device]->id, planned.plan.memory[device].weights);
    }
    made.use = typical_use(planned.plan);
    return made;
}

// Whether they were compared: what does not fit has no time.
bool expect_not_slower(const Outcome& better, const Outcome& than, const std::string& what) {
    if (!than.fits) return false;
    EXPECT_TRUE(better.fits) << what;
    const std::string plans = what + better.text + " |" + than.text;
    EXPECT_GE(than.use.seconds(), kLeast * better.use.seconds()) << plans;
    EXPECT_GE(than.use.empty.generation, kLeast * better.use.empty.generation) << plans;
    EXPECT_GE(than.use.full.generation, kLeast * better.use.full.generation) << plans;
    EXPECT_GE(than.use.empty.prompt, kLeastPrompt * better.use.empty.prompt) << plans;
    EXPECT_GE(than.use.full.prompt, kLeastPrompt * better.use.full.prompt) << plans;
    return true;
}

struct Card {
    const char* name;
    double share;  // of what the model needs
};
using Rig = std::vector<Card>;

const Rig kRigs[] = {
    {{"RTX 3090", 0.4}},
    {{"RTX 3090", 0.3}, {"RTX 3090", 0.3}},
    {{"RTX 3090", 0.4}, {"RTX 3090", 0.4}, {"RTX 3090", 0.4}, {"RTX 3090", 0.4}},
    {{"RTX 3090", 0.5}, {"Tesla P40", 0.5}, {"Tesla P40", 0.5}},
    {{"RTX 5090", 0.6}, {"Tesla P100", 0.3}, {"Tesla V100", 0.4}},
    {{"H200", 0.7}, {"H200", 0.7}, {"Tesla P100", 0.2}, {"RTX 5090", 0.3}},
    {{"Tesla V100", 0.15}, {"Tesla V100", 0.15}, {"Tesla V100", 0.65}},
    {{"H200", 0.68},
     {"H200", 0.68},
     {"Tesla P100", 0.08},
     {"Tesla P100", 0.08},
     {"Tesla P100", 0.08},
     {"Tesla V100", 0.16},
     {"Tesla V100", 0.16},
     {"RTX 5090", 0.16},
     {"RTX 5090", 0.16}},
};
const Card kMore[] = {{"RTX 5090", 0.4}, {"Tesla P40", 0.4}, {"RTX 3090", 0.4}};
constexpr uint32_t kContexts[] = {4096, 1024, 512, 128};

class Monotone : public RigTest, public testing::WithParamInterface<const char*> {
  protected:
    Outcome planned(const Rig& rig, uint32_t context) {
        std::vector<DeviceDescription> cards;
        for (const Card& one : rig) {
            DeviceDescription made = card(("CUDA" + std::to_string(cards.size())).c_str(), one.name,
                                          static_cast<uint64_t>(one.share * static_cast<double>(needed())));
            cards.push_back(made);
        }
        return outcome_of(plan(options(context), cards, GetParam()));
    }

  private:
    static EngineOptions options(uint32_t context) {
        EngineOptions made;
        made.context = context;
        made.rows = 64;
        return made;
    }

    // By the model with the largest context, all on one card.
    uint64_t needed() {
        if (needed_ == 0) {
            const PlannedModel whole =
                plan(options(kContexts[0]), {card("CUDA0", "RTX 3090", uint64_t{8} << 30)}, GetParam());
            needed_ = whole.plan.memory[1].allocated();
        }
        return needed_;
    }
    uint64_t needed_ = 0;
};

std::string text_of(const Rig& rig) {
    std::string text;
    for (const Card& one : rig) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", one.name, one.share);
    return text;
}

TEST_P(Monotone, InContextMemoryAndCards) {
    for (const Rig& rig : kRigs) {
        SCOPED_TRACE(text_of(rig));
        size_t compared = 0, asked = 0;
        const auto compare = [&](const Outcome& better, const Outcome& than, const std::string& what) {
            ++asked;
            compared += expect_not_slower(better, than, what);
        };
        std::vector<Outcome> made;
        for (const uint32_t context : kContexts) {
            made.push_back(planned(rig, context));
            for (size_t larger = 0; larger + 1 < made.size(); ++larger)
                compare(made.back(), made[larger], fmt::format("a context of {}, not {}", context, kContexts[larger]));
        }
        const Outcome& base = made[1];
        for (const Card& more : kMore) {
            Rig larger = rig;
            larger.push_back(more);
            compare(planned(larger, kContexts[1]), base, text_of(rig) + ": and a card " + more.name);
        }
        for (size_t i = 0; i < rig.size(); ++i) {
            Rig larger = rig;
            larger[i].share *= 1.25;
            compare(planned(larger, kContexts[1]), base, text_of(larger));
        }
        EXPECT_EQ(compared, asked) << "of the plans that others are compared with, some do not fit";
    }
}

INSTANTIATE_TEST_SUITE_P(Models, Monotone,
                         testing::Values("v3-groups.gguf", "v2-plain.gguf", "llama-gqa.gguf", "qwen3moe-norm.gguf"));

}  // namespace
}  // namespace tessera
