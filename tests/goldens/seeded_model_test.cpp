#include "tests/goldens/seeded_model.hpp"

#include "core/base/error.hpp"
#include "tests/model/edited_model.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

namespace fs = std::filesystem;

fs::path described(const std::string& name) {
    return fs::path(TSR_SOURCE_DIR) / "tests/goldens" / (name + ".seeded.gguf");
}

template <typename T>
void change(EditedModel& model, std::string_view key, const std::function<void(std::vector<T>&)>& edit) {
    for (auto& [name, value] : model.keys) {
        if (name == key) edit(std::get<std::vector<T>>(std::get<gguf::Array>(value)));
    }
}

TEST(SeededModel, NumbersAreThoseOfTheRecorder) {
    EXPECT_THAT(seeded_units(7, "blk.0.attn_q.weight", 8),
                testing::ElementsAre(-51034, -26448, -31970, 25099, -15119, 32800, 29068, 18488));
    EXPECT_NE(seeded_units(8, "blk.0.attn_q.weight", 8), seeded_units(7, "blk.0.attn_q.weight", 8));
    EXPECT_NE(seeded_units(7, "blk.1.attn_q.weight", 8), seeded_units(7, "blk.0.attn_q.weight", 8));
}

TEST(SeededModel, HasConstantsAndWeightsAndNoSeeds) {
    const TemporaryFolder folder;
    const fs::path path = folder.path() / "model.gguf";
    const gguf::GgufFile from = gguf::GgufFile::open(described("llama-gqa"));
    write_seeded_model(from, path);
    const gguf::GgufFile model = gguf::GgufFile::open(path);
    std::vector<float> constant(model.tensor("rope_freqs.weight").bytes / sizeof(float)), recorded = constant;
    model.read(model.tensor("rope_freqs.weight"), 0, std::as_writable_bytes(std::span(constant)));
    from.read(from.tensor("rope_freqs.weight"), 0, std::as_writable_bytes(std::span(recorded)));
    EXPECT_EQ(constant, recorded);
    EXPECT_EQ(model.tensor("token_embd.weight").type, TSR_TYPE_F16);
    EXPECT_EQ(model.tensor("blk.0.attn_norm.weight").type, TSR_TYPE_F32);
    for (const auto& [key, value] : model.metadata().entries()) EXPECT_FALSE(key.starts_with("seeded.")) << key;
}

// The tree is carried to machines that are lent for minutes.
TEST(SeededModel, StoredFilesAreSmall) {
    for (const auto& entry : fs::directory_iterator(TSR_SOURCE_DIR "/tests/goldens")) {
        const std::string name = entry.path().filename();
        if (!name.ends_with(".gguf") || name == "blocks.gguf") continue;
        EXPECT_TRUE(name.ends_with(".seeded.gguf") || name.ends_with(".golden.gguf")) << name << " has weights";
        EXPECT_LE(entry.file_size(), 160u << 10) << name;
    }
}

TEST(SeededModel, WeightsThatWereNotRecordedAreRefused) {
    const TemporaryFolder folder;
    const auto expect_refused = [&](const std::function<void(EditedModel&)>& edit, const char* message) {
        EditedModel model(described("hunyuan-dense"));
        edit(model);
        const fs::path changed = model.write(folder.path() / "changed.gguf"), to = folder.path() / "model.gguf";
        try {
            write_seeded_model(gguf::GgufFile::open(changed), to);
            ADD_FAILURE() << "not refused: " << message;
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), testing::HasSubstr(message));
        }
        EXPECT_FALSE(fs::exists(to));
    };
    const char* kChanged = "the checksum differs";
    expect_refused([](EditedModel& model) { model.set("seeded.seed", uint32_t{1}); }, kChanged);
    expect_refused(
        [](EditedModel& model) { change<float>(model, "seeded.scales", [](auto& scales) { scales[3] *= 1.01f; }); },
        kChanged);
    expect_refused(
        [](EditedModel& model) { change<float>(model, "seeded.centres", [](auto& centres) { centres[1] = 0; }); },
        kChanged);
    expect_refused(
        [](EditedModel& model) { change<float>(model, "seeded.centres", [](auto& centres) { centres.pop_back(); }); },
        "have not one entry");
    expect_refused(
        [](EditedModel& model) { change<int32_t>(model, "seeded.types", [](auto& types) { types[0] = 8; }); },
        "is neither f32 nor f16");
    expect_refused(
        [](EditedModel& model) {
            change<int32_t>(model, "seeded.dims", [](auto& dims) { dims[0] = dims[1] = 1 << 20; });
        },
        "has too many weights");
}

}  // namespace
}  // namespace tessera::test
