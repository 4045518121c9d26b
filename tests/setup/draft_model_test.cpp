// What a layer of prediction takes of the machine that its model is planned for.
#include "core/setup/draft_model.hpp"

#include "core/base/text.hpp"
#include "core/session/drafts/prediction_drafts.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tessera {
namespace {

// Its embeddings are the model's, which are in the mapped file once.
TEST(PlannedLayer, TakesNothingForWhatTheModelMaps) {
    const test::TemporaryFolder folder;
    const auto rig = test::source_dir() / "testing/rigs/lite-4080.toml";
    ModelSettings settings;
    settings.common.config = folder.path() / "config.toml";
    std::ofstream(*settings.common.config) << "";
    settings.common.model = TSR_GOLDENS "/v3-ungrouped.gguf";
    settings.drafts.prediction = true;
    settings.drafts.gpu_layers = 0;
    EngineOptions options;
    options.context = 256;
    options.rows = session::PredictionDrafts::kRows;
    options.prediction = true;
    options.placement.gpu_layers = 0;
    for (const bool pack : {true, false}) {
        options.pack_weights = settings.engine.pack_weights = pack ? PackWeights::kAtLoad : PackWeights::kNever;
        Machine machine(settings.common, rig);
        const auto free = [&] { return machine.hardware.devices()[0]->free_memory_bytes; };
        const uint64_t before = free();
        const auto file = gguf::GgufFile::open(*settings.common.model);
        const PlannedModel planned = plan_model(file, machine.registry, machine.hardware, options);
        uint64_t shared = 0;
        for (const char* name : {"token_embd.weight", "output.weight"}) {
            for (const Instance& it : planned.plan.instances) {
                if (it.place != Place::kMapped || planned.plan.graph.storage(it.storage).name != name) continue;
                shared += file.tensor(name).bytes;
            }
        }
        EXPECT_GE(shared, file.tensor("token_embd.weight").bytes);
        const std::vector<std::string> lines = plan_draft_model(settings, machine, {1, options.context}, rig);
        const DeviceMemory& memory = planned.plan.memory[0];
        EXPECT_EQ(before - free(), memory.allocated() + memory.mapped - shared);
        EXPECT_THAT(lines, testing::Contains(testing::HasSubstr("takes " + size_text(before - free()) + " of CPU")));
    }
}

}  // namespace
}  // namespace tessera
