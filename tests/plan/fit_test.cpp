// Where weights go when nobody says it: the fastest placement by estimate, within memory and the user's rules.
#include "core/plan/fit.hpp"

#include "core/base/error.hpp"
#include "core/plan/predict.hpp"
#include "tests/plan/described_rig.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <set>
#include <string>

namespace tessera {
namespace {

using testing::HasSubstr;

class FitTest : public RigTest {};

// Device of each weight that lies somewhere for good.
std::map<std::string, std::string> places(const Plan& plan) {
    std::map<std::string, std::string> found;
    for (const Instance& it : plan.instances) {
        if (it.storage == 0 || it.place == Place::kLoading || plan.graph.storage(it.storage).role != TSR_ROLE_WEIGHT)
            continue;
        found[plan.graph.storage(it.storage).name] = plan.devices[it.device]->id;
    }
    return found;
}

bool is_expert(const std::string& name) {
    return name.find("_exps") != std::string::npos;
}

// Of a card with 82 multiprocessors.
DeviceDescription cuda_card(const char* id, uint64_t memory, uint64_t free) {
    DeviceDescription gpu = card(id, "RTX 3090", memory);
    gpu.kind = "cuda";
    gpu.processors = 82;
    gpu.free_memory_bytes = free;
    return gpu;
}

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;
constexpr uint64_t kContext = (150 + 2 * 82) * kMiB;

TEST(RoomOfDevices, IsFreeMemoryLessAMarginAndTheContextOfACard) {
    const Hardware hardware({processor(), cuda_card("CUDA0", 24 * kGiB, 20 * kGiB), cuda_card("CUDA1", kGiB, kGiB),
                             cuda_card("CUDA2", 24 * kGiB, 100 * kMiB), card("SIM0", "RTX 3090", kGiB)});
    const Devices devices = hardware.devices();
    EXPECT_EQ(context_bytes(devices, 0), 0u);
    EXPECT_EQ(context_bytes(devices, 1), kContext);
    EXPECT_EQ(usable_bytes(devices, 1), 20 * kGiB - 20 * kGiB / 64 - kContext);
    EXPECT_EQ(context_bytes(devices, 2), kGiB / 8) << "of a small card, at most an eighth";
    EXPECT_EQ(usable_bytes(devices, 2), kGiB - kGiB / 64 - kGiB / 8);
    EXPECT_EQ(context_bytes(devices, 3), kContext);
    EXPECT_EQ(usable_bytes(devices, 3), 0u);
    EXPECT_EQ(context_bytes(devices, 4), 0u);
    EXPECT_EQ(usable_bytes(devices, 4), kGiB - kGiB / 32);
}

TEST(RoomOfDevices, PartsOfACardShareItsContext) {
    Hardware hardware({processor(), cuda_card("CUDA0", 24 * kGiB, 20 * kGiB), cuda_card("CUDA1", 8 * kGiB, 8 * kGiB)});
    const uint64_t whole = usable_bytes(hardware.devices(), 1), other = usable_bytes(hardware.devices(), 2);
    hardware.split_gpu("CUDA0", std::vector<uint64_t>{18 * kGiB, 0, 0});
    const Devices devices = hardware.devices();
    ASSERT_EQ(devices.size(), 5u);
    uint64_t context = 0, usable = 0;
    for (DeviceIndex part = 1; part <= 3; ++part) {
        context += context_bytes(devices, part);
        usable += usable_bytes(devices, part);
    }
    // Each is rounded to bytes.
    EXPECT_GE(context, kContext);
    EXPECT_LE(context, kContext + 3);
    EXPECT_NEAR(static_cast<double>(context_bytes(devices, 1)), 0.75 * kContext, 1);
    EXPECT_NEAR(static_cast<double>(context_bytes(devices, 2)), 0.125 * kContext, 1);
    EXPECT_NEAR(static_cast<double>(usable), static_cast<double>(whole), 8);
    EXPECT_EQ(usable_bytes(devices, 4), other);
    const tsr_device_info card = whole_card(devices, 2);
    EXPECT_EQ(card.memory_bytes, 24 * kGiB);
    EXPECT_NEAR(static_cast<double>(card.free_memory_bytes), 20.0 * kGiB, 3);

    // One that is used alone has all of it to leave room for.
    hardware.keep_gpus(std::vector<std::string>{"CUDA0.1"});
    EXPECT_EQ(context_bytes(hardware.devices(), 1), kContext);
}

// Cards of a rig file have no address on a bus.
TEST(RoomOfDevices, CardsAreToldApartByKindAndIndex) {
    const Hardware hardware(
        {processor(), cuda_card("CUDA0", kGiB, kGiB), cuda_card("CUDA1", kGiB, kGiB), card("SIM0", "RTX 3090", kGiB)});
    const Devices devices = hardware.devices();
    for (DeviceIndex a = 0; a < devices.size(); ++a) {
        for (DeviceIndex b = 0; b < devices.size(); ++b) EXPECT_EQ(on_one_card(*devices[a], *devices[b]), a == b);
    }
}

constexpr uint64_t kRoom = uint64_t{1} << 30;

// Copies over such links take longer than what is computed.
TEST_F(FitTest, OneCardIsNotSpreadOverFour) {
    std::vector<DeviceDescription> cards;
    for (const char* id : {"CUDA0", "CUDA1", "CUDA2", "CUDA3"})
        cards.emplace_back(card(id, "RTX 3090", kRoom)).link = "pcie1x1";
    const PlannedModel planned = plan({}, cards);
    for (const auto& [name, device] : places(planned.plan)) {
        if (name.starts_with("blk.") && is_expert(name)) {
            EXPECT_EQ(device, "CUDA0") << name;
        }
    }
    for (DeviceIndex device = 2; device < planned.plan.devices.size(); ++device)
        EXPECT_EQ(planned.plan.memory[device].weights, 0u);
}

TEST_F(FitTest, TheFasterCardIsTaken) {
    const PlannedModel planned = plan({}, {card("CUDA0", "Tesla P40", kRoom), card("CUDA1", "RTX 3090", kRoom)});
    EXPECT_GT(planned.plan.memory[2].weights, planned.plan.memory[1].weights);
}

// Cards of every size between too small and large enough: never is there room for what lies on the CPU.
TEST_F(FitTest, NoRoomIsLeftThatTheCpusExpertsCouldUse) {
    const PlannedModel whole = plan({}, {card("CUDA0", "RTX 3090", kRoom)});
    const uint64_t needed = whole.plan.memory[1].allocated();
    std::map<std::string, uint64_t> bytes;
    for (StorageId id = 1; id < whole.plan.graph.storage_count(); ++id)
        bytes[whole.plan.graph.storage(id).name] = whole.plan.graph.storage(id).bytes;
    int in_parts = 0;
    for (const double share : {0.95, 0.85, 0.75, 0.65, 0.55}) {
        const auto memory = static_cast<uint64_t>(static_cast<double>(needed) * share);
        const PlannedModel planned = plan({}, {card("CUDA0", "RTX 3090", memory)});
        const Plan& p = planned.plan;
        EXPECT_LE(p.memory[1].allocated(), usable_bytes(p.devices, 1));
        ASSERT_GT(p.memory[1].weights, 0u);
        const uint64_t idle = usable_bytes(p.devices, 1) - p.memory[1].allocated();
        std::map<int, std::set<std::string>> devices_of_layer;
        for (const auto& [name, device] : places(p)) {
            if (!is_expert(name)) continue;
            devices_of_layer[std::atoi(name.c_str() + 4)].insert(device);
            // What kernels take beside the weights changes with the placement, by less than a hundredth of all.
            if (device == "CPU") {
                EXPECT_LT(idle, bytes[name] + needed / 100) << name << " at " << share;
            }
        }
        for (const auto& [layer, devices] : devices_of_layer) in_parts += devices.size() > 1;
    }
    EXPECT_GT(in_parts, 0) << "no layer has its gate and up here and its down there: the test tests less than it says";
}

TEST_F(FitTest, ThePrintedRulesReproduceIt) {
    const PlannedModel whole = plan({}, {card("CUDA0", "RTX 3090", kRoom)});
    const uint64_t memory = whole.plan.memory[1].allocated() * 3 / 5;
    const std::initializer_list<DeviceDescription> cards = {card("CUDA0", "RTX 3090", memory),
                                                            card("CUDA1", "RTX 3090", memory)};
    const PlannedModel fitted = plan({}, cards);
    ASSERT_FALSE(fitted.plan.rules.empty());
    const std::map<std::string, std::string> before = places(fitted.plan);
    EngineOptions options;
    for (const std::string& rule : fitted.plan.rules) {
        const size_t at = rule.rfind('=');
        options.placement.rules.push_back({rule.substr(0, at), rule.substr(at + 1)});
    }
    const PlannedModel again = plan(options, cards);
    EXPECT_EQ(places(again.plan), before);
    for (DeviceIndex device = 0; device < again.plan.devices.size(); ++device)
        EXPECT_EQ(again.plan.memory[device].allocated(), fitted.plan.memory[device].allocated());
}

TEST_F(FitTest, RulesOfTheUserStay) {
    EngineOptions options;
    options.placement.rules = {{"ffn_down_exps", "CPU"}};
    const PlannedModel planned = plan(options, {card("CUDA0", "RTX 3090", kRoom)});
    for (const auto& [name, device] : places(planned.plan)) {
        if (name.find("ffn_down_exps") != std::string::npos) {
            EXPECT_EQ(device, "CPU") << name;
        }
    }
}

uint64_t nodes_on_cpu(const Plan& plan) {
    return static_cast<uint64_t>(
        std::ranges::count_if(plan.nodes, [](const PlannedNode& node) { return node.device == 0; }));
}

TEST_F(FitTest, TheEmbeddingIsOnTheCardThatNeedsItWhereCardsComputeAllElse) {
    EngineOptions all, split;
    all.placement.gpu_layers = 99;
    split.placement.tensor_split = {1, 1};
    for (const EngineOptions& options : {EngineOptions(), all, split}) {
        const PlannedModel planned =
            plan(options, {card("CUDA0", "RTX 3090", kRoom), card("CUDA1", "RTX 3090", kRoom)});
        EXPECT_EQ(places(planned.plan).at("token_embd.weight"), "CUDA0");
        EXPECT_EQ(nodes_on_cpu(planned.plan), 0u);
    }
    EngineOptions experts_on_cpu, rule;
    experts_on_cpu.placement.cpu_expert_layers = -1;
    rule.placement.rules = {{"token_embd", "CPU"}};
    for (const EngineOptions& options : {experts_on_cpu, rule}) {
        const PlannedModel planned = plan(options, {card("CUDA0", "RTX 3090", kRoom)});
        EXPECT_EQ(places(planned.plan).at("token_embd.weight"), "CPU");
        EXPECT_GT(planned.plan.memory[1].weights, 0u);
    }
}

// It takes no room from what is faster to have there.
TEST_F(FitTest, TheEmbeddingIsOnTheCpuWhereTheCardIsFull) {
    EngineOptions rule;
    rule.placement.rules = {{"token_embd", "CPU"}};
    const PlannedModel without = plan(rule, {card("CUDA0", "RTX 3090", kRoom)});
    for (const int layers : {-1, 99}) {
        EngineOptions options;
        options.placement.gpu_layers = layers;
        const uint64_t memory = without.plan.memory[1].allocated() * 32 / 31 + 64;
        const PlannedModel planned = plan(options, {card("CUDA0", "RTX 3090", memory)});
        check_fit(planned.plan);
        for (const auto& [name, device] : places(planned.plan))
            EXPECT_EQ(device, name == "token_embd.weight" ? "CPU" : "CUDA0") << name;
        EXPECT_EQ(nodes_on_cpu(planned.plan), 1u);
    }
}

// The output reads all of the matrix, for each token.
TEST_F(FitTest, AMatrixThatIsEmbeddingAndOutputIsWhereTheOutputIs) {
    const std::initializer_list<DeviceDescription> cards = {card("CUDA0", "RTX 3090", kRoom),
                                                            card("CUDA1", "RTX 3090", kRoom)};
    EngineOptions split;
    split.placement.tensor_split = {1, 1};
    const PlannedModel one = plan({}, cards, "llama-gqa.gguf"), two = plan(split, cards, "llama-gqa.gguf");
    EXPECT_EQ(places(one.plan).at("token_embd.weight"), "CUDA0");
    EXPECT_EQ(places(two.plan).at("token_embd.weight"), "CUDA1");
    EXPECT_EQ(nodes_on_cpu(one.plan) + nodes_on_cpu(two.plan), 0u);
    for (const std::string& rule : two.plan.rules) {
        if (rule.find("token_embd") != std::string::npos) {
            EXPECT_THAT(rule, testing::EndsWith("=CUDA1"));
        }
    }
}

// Of the ways whose caches are about as small as the smallest.
TEST_F(FitTest, TheDefaultLoweringIsTheFastest) {
    for (const char* model : {"v2-plain.gguf", "v3-groups.gguf"}) {
        for (const bool gpu : {false, true}) {
            SCOPED_TRACE(std::string(model) + (gpu ? " on a card" : " on the CPU"));
            const auto planned = [&](const EngineOptions& options) {
                return gpu ? plan(options, {card("CUDA0", "RTX 3090", kRoom)}, model) : plan(options, {}, model);
            };
            const auto cache = [](const Plan& p) {
                uint64_t bytes = 0;
                for (const DeviceMemory& memory : p.memory) bytes += memory.cache;
                return bytes;
            };
            const PlannedModel usual = planned({});
            uint64_t smallest = UINT64_MAX;
            std::map<std::string, PlannedModel> ways;
            for (const char* way : {"0", "1", "2", "3"}) {
                EngineOptions options;
                options.lowerings["mla_attention"] = way;
                smallest = std::min(smallest, cache(ways.emplace(way, planned(options)).first->second.plan));
            }
            EXPECT_LE(cache(usual.plan), smallest * 5 / 4);
            for (const auto& [name, way] : ways) {
                if (cache(way.plan) <= smallest * 5 / 4) {
                    EXPECT_LE(typical_use(usual.plan).seconds(), 1.05 * typical_use(way.plan).seconds()) << name;
                }
            }
        }
    }
}

TEST_F(FitTest, WhatDoesNotFitSaysWhatHelpsAndInOneUnit) {
    EngineOptions options;
    options.placement.gpu_layers = 99;
    const PlannedModel planned = plan(options, {card("CUDA0", "RTX 3090", 1 << 20)});
    const std::optional<Notice> notice = misfit(planned.plan, 1);
    ASSERT_TRUE(notice.has_value());
    EXPECT_THAT(notice->text, HasSubstr("CUDA0 needs"));
    EXPECT_EQ(notice->text.find("GiB"), std::string::npos);
    std::vector<AdviceCode> codes;
    for (const Advice& advice : notice->advice) {
        codes.push_back(advice.code);
        EXPECT_EQ(advice.value.find("GiB"), std::string::npos);
    }
    EXPECT_THAT(codes, testing::IsSupersetOf({AdviceCode::kExpertsOnCpu, AdviceCode::kFewerGpuLayers,
                                              AdviceCode::kSmallerContext, AdviceCode::kSmallerModel}));
    EXPECT_EQ(misfit(planned.plan, 0), std::nullopt);
}

// A kernel that computes nothing and counts how often it is asked, which tells how many plans are made.
std::atomic<uint64_t> asked{0};
const tsr_status* count_and_refuse(const tsr_kernel*, const tsr_node*, const tsr_device_info*,
                                   tsr_kernel_plan* answer) {
    ++asked;
    std::snprintf(answer->reason, sizeof answer->reason, "it only counts");
    return nullptr;
}
const tsr_status* prepare_nothing(const tsr_kernel*, const tsr_node*, const tsr_device_info*, tsr_device*, void**) {
    return nullptr;
}
const tsr_status* run_nothing(const tsr_kernel*, void*, const tsr_run*) {
    return nullptr;
}

const tsr_plugin& counting_plugin() {
    static const tsr_kernel kernel = [] {
        tsr_kernel made{};
        made.struct_size = sizeof made;
        made.op_version = 1;
        made.name = "counting";
        made.op = "get_rows";
        made.device_kind = "cpu";
        made.plan = count_and_refuse;
        made.prepare = prepare_nothing;
        made.release = [](const tsr_kernel*, void*) {};
        made.run = run_nothing;
        return made;
    }();
    static const tsr_kernel* const kernels[] = {&kernel};
    static const tsr_plugin plugin = [] {
        tsr_plugin made{};
        made.struct_size = sizeof made;
        made.abi_major = TSR_ABI_MAJOR;
        made.abi_minor = TSR_ABI_MINOR;
        made.name = "counting";
        made.version = "1";
        made.kernels = kernels;
        made.kernel_count = 1;
        return made;
    }();
    return plugin;
}

// Weights that take more memory than there is anywhere: the cards are filled, the CPU is to blame, and no other
// placements are tried.
TEST_F(FitTest, WhereNothingCanFitTheSearchEndsEarly) {
    const uint64_t needed = plan({}, {card("CUDA0", "RTX 3090", kRoom)}).plan.memory[1].weights;
    std::vector<const tsr_plugin*> tables{&counting_plugin()};
    for (const PluginRecord& record : registry().plugins()) {
        if (record.table) tables.push_back(record.table);
    }
    const Registry counting = Registry::of_tables(tables);
    const auto planned_on = [&](uint64_t host_bytes, uint64_t& plans, EngineOptions options = {}) {
        DeviceDescription cpu = processor();
        cpu.memory_bytes = cpu.free_memory_bytes = host_bytes;
        const uint64_t memory = needed / 4 + (128 << 10);
        const Hardware machine({cpu, card("CUDA0", "RTX 3090", memory), card("CUDA1", "Tesla P40", memory)});
        options.context = 64;
        options.rows = 8;
        options.map_weights = false;
        asked = 0;
        PlannedModel planned = plan_model(file(), counting, machine, options);
        plans = asked;
        const uint32_t context = largest_context(file(), counting, machine, options);
        EXPECT_EQ(context > 0, host_bytes > needed) << context;
        const auto text = [&](DeviceIndex device) { return misfit(planned.plan, device).value_or(Notice()).text; };
        return text(1) + text(2) + "|" + text(0);
    };
    uint64_t plans = 0, plans_of_search = 0;
    EXPECT_EQ(planned_on(uint64_t{64} << 30, plans_of_search), "|");
    EXPECT_THAT(planned_on(64 << 10, plans), testing::StartsWith("|CPU needs "));
    EXPECT_GT(plans, 0u);
    EXPECT_LT(3 * plans, plans_of_search);
}

TEST_F(FitTest, SpeedFallsWithDepthAndRisesWithTheMachine) {
    const std::vector<Speed> slow = predict(plan({}, {}).plan);
    ASSERT_EQ(slow.size(), 2u);
    EXPECT_EQ(slow[0].depth, 0u);
    EXPECT_GE(slow[0].generation, slow[1].generation);
    EXPECT_GE(slow[0].prompt, slow[1].prompt);
    EXPECT_GT(slow[1].generation, 0);
    EXPECT_GT(slow[0].prompt, slow[0].generation);
}

// Chunks of a prompt follow each other as fast as the busiest card computes one, where cards alone compute.
TEST_F(FitTest, PromptsOverSeveralCardsArePredictedAsAPipeline) {
    const std::initializer_list<DeviceDescription> cards = {card("CUDA0", "RTX 3090", kRoom),
                                                            card("CUDA1", "RTX 3090", kRoom)};
    EngineOptions options;
    options.placement.tensor_split = {1, 1};
    const PlannedModel planned = plan(options, cards);
    for (const Speed& speed : predict(planned.plan)) {
        const StepTime& step = speed.prompt_step;
        const double busiest = std::ranges::max(step.busy);
        EXPECT_GT(step.seconds, 1.2 * busiest) << "one card waits for the other";
        EXPECT_GE(speed.prompt_interval, 0.999 * busiest);
        EXPECT_GE(speed.prompt_interval, 0.999 * step.seconds / planned.plan.step.slots);
        EXPECT_LT(speed.prompt_interval, 0.9 * step.seconds);
        EXPECT_DOUBLE_EQ(speed.prompt, options.rows / speed.prompt_interval);
        EXPECT_DOUBLE_EQ(speed.generation, 1 / speed.generation_step.seconds);
    }
    options.placement.cpu_expert_layers = -1;
    const PlannedModel in_turn = plan(options, cards);
    for (const Speed& speed : predict(in_turn.plan))
        EXPECT_NEAR(speed.prompt_interval, speed.prompt_step.seconds, 1e-9 * speed.prompt_interval);
}

// Steps whose states drafts begin with are waited for, and compute the last layer of all rows.
TEST_F(FitTest, PromptsWithStatesForDraftsArePredictedStepByStep) {
    const std::initializer_list<DeviceDescription> cards = {card("CUDA0", "RTX 3090", kRoom),
                                                            card("CUDA1", "RTX 3090", kRoom)};
    EngineOptions options;
    options.placement.tensor_split = {1, 1};
    const std::vector<Speed> without = predict(plan(options, cards).plan);
    options.states = true;
    const PlannedModel planned = plan(options, cards);
    ASSERT_GT(planned.plan.step.slots, 1u);
    const std::vector<Speed> with = predict(planned.plan);
    for (size_t i = 0; i < with.size(); ++i) {
        const Speed& speed = with[i];
        EXPECT_DOUBLE_EQ(speed.prompt_interval, speed.prompt_step.seconds);
        EXPECT_GT(speed.prompt_step.seconds, 1.01 * without[i].prompt_step.seconds);
        EXPECT_DOUBLE_EQ(speed.generation, without[i].generation);
        // By which prompts are cut.
        const StepTime cut = step_time(planned.plan, options.rows, speed.depth, true);
        EXPECT_DOUBLE_EQ(cut.seconds, without[i].prompt_step.seconds);
    }
}

}  // namespace
}  // namespace tessera
