// The files that testing/make_gguf.py writes, by a writer that is independent of ours. Weights are
// holes except where their bytes are looked at.
#include "core/gguf/reader.hpp"
#include "core/graph/types.hpp"
#include "tests/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tessera::gguf {
namespace {

namespace fs = std::filesystem;

class MakeGguf : public testing::Test {
  protected:
    // Runs the script; `options` end in the name of the file.
    fs::path make(const std::string& options, const std::string& name) {
        const fs::path path = folder_.path() / name;
        const std::string command = std::string(TSR_PYTHON " " TSR_SOURCE_DIR "/testing/make_gguf.py ") + options +
                                    " -o " + path.string() + " 2>&1";
        FILE* const pipe = ::popen(command.c_str(), "r");
        std::string output(4096, '\0');
        output.resize(std::fread(output.data(), 1, output.size(), pipe));
        if (::pclose(pipe) != 0) throw std::runtime_error(command + " (needs python3 with numpy): " + output);
        return path;
    }

    tessera::test::TemporaryFolder folder_;
};

TEST_F(MakeGguf, EveryType) {
    for (const char* type : {"f32", "f16", "bf16", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0", "iq4_nl", "iq4_xs", "q2_K",
                             "q3_K", "q4_K", "q5_K", "q6_K"}) {
        const GgufFile model =
            GgufFile::open(make(std::string("--preset tiny-v3 --sparse --type ") + type, "model.gguf"));
        SCOPED_TRACE(type);
        EXPECT_EQ(model.metadata().get_string("general.architecture"), "deepseek2");
        EXPECT_EQ(model.metadata().get_u32("deepseek2.block_count"), 4u);
        const TensorEntry& gate = model.tensor("blk.1.ffn_gate_exps.weight");
        EXPECT_EQ(type_info(gate.type).name, type);
        EXPECT_EQ(gate.dims, (std::array<uint64_t, 4>{256, 256, 16, 1}));
        EXPECT_EQ(model.tensor("output_norm.weight").type, tsr_type{TSR_TYPE_F32});
        const auto& last = std::ranges::max(model.tensors(), {}, &TensorEntry::offset);
        EXPECT_EQ((last.offset + last.bytes + 31) / 32 * 32, model.file_bytes());
    }
}

TEST_F(MakeGguf, EveryLayout) {
    for (const char* preset : {"tiny", "tiny-v3"}) {
        const auto open = [&](const char* layout) {
            return GgufFile::open(
                make(std::string("--sparse --type q8_0 --preset ") + preset + " --layout " + layout, "model.gguf"));
        };
        const GgufFile joint = open("joint"), absorbed = open("absorbed"), all = open("all");
        EXPECT_EQ(joint.tensor("blk.3.attn_kv_b.weight").dims, (std::array<uint64_t, 4>{512, 2048, 1, 1}));
        EXPECT_EQ(joint.find_tensor("blk.3.attn_k_b.weight"), nullptr);
        EXPECT_EQ(absorbed.find_tensor("blk.3.attn_kv_b.weight"), nullptr);
        EXPECT_EQ(absorbed.tensor("blk.3.attn_k_b.weight").dims, (std::array<uint64_t, 4>{128, 512, 8, 1}));
        EXPECT_EQ(absorbed.tensor("blk.3.attn_k_b.weight").rank, 3u);
        EXPECT_EQ(all.tensor("blk.3.attn_k_b.weight").dims, (std::array<uint64_t, 4>{128, 4096, 1, 1}));
        EXPECT_NE(all.find_tensor("blk.3.attn_kv_b.weight"), nullptr);
    }
}

TEST_F(MakeGguf, SplitFilesHoldTheSameModel) {
    const fs::path whole_path = make("--preset tiny-v3 --layers 2 --type q8_0", "whole.gguf");
    make("--preset tiny-v3 --layers 2 --type q8_0 --split 3", "split.gguf");
    const GgufFile whole = GgufFile::open(whole_path);
    for (const char* name : {"split-00001-of-00003.gguf", "split-00003-of-00003.gguf"}) {
        const GgufFile split = GgufFile::open(folder_.path() / name);
        EXPECT_EQ(split.file_count(), 3u);
        EXPECT_EQ(split.metadata().get_strings("tokenizer.ggml.tokens"),
                  whole.metadata().get_strings("tokenizer.ggml.tokens"));
        ASSERT_EQ(split.tensors().size(), whole.tensors().size());
        for (size_t i = 0; i < whole.tensors().size(); ++i) {
            const TensorEntry &a = whole.tensors()[i], &b = split.tensors()[i];
            EXPECT_EQ(a.name, b.name);
            EXPECT_EQ(a.dims, b.dims);
            EXPECT_EQ(a.bytes, b.bytes);
        }
        // The first part's weights come from the same seed.
        const TensorEntry& embedding = split.tensor("token_embd.weight");
        EXPECT_TRUE(std::ranges::equal(split.map(embedding), whole.map(whole.tensor("token_embd.weight"))));
        std::vector<std::byte> out(embedding.bytes);
        split.read(embedding, 0, out);
        EXPECT_TRUE(std::ranges::equal(out, split.map(embedding)));
    }
}

TEST_F(MakeGguf, NormsAreWhereTheyShouldBe) {
    const GgufFile model = GgufFile::open(make("--preset tiny --layers 2 --type q4_0", "model.gguf"));
    const TensorEntry& norm = model.tensor("output_norm.weight");
    std::vector<float> weights(norm.elements());
    model.read(norm, 0, std::as_writable_bytes(std::span(weights)));
    double sum = 0;
    for (const float w : weights) {
        sum += w;
        EXPECT_NEAR(w, 1, 0.5);
    }
    EXPECT_NEAR(sum / static_cast<double>(weights.size()), 1, 0.05);
}

// By this process, of files in memory or by calls: a page fault counts for a page, though it may map several.
uint64_t bytes_read() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    uint64_t bytes = static_cast<uint64_t>(usage.ru_minflt + usage.ru_majflt) * 4096;
    std::ifstream in("/proc/self/io");
    std::string name;
    uint64_t value = 0;
    while (in >> name >> value) bytes += name == "rchar:" ? value : 0;
    return bytes;
}

TEST_F(MakeGguf, SparseV3OpensAtOnce) {
    const fs::path path = make("--preset v3 --type q4_K --sparse", "v3.gguf");
    const uint64_t before = bytes_read();
    const GgufFile model = GgufFile::open(path);
    const uint64_t read = bytes_read() - before;
    EXPECT_GT(model.file_bytes(), uint64_t{340} << 30);
    EXPECT_EQ(model.metadata().get_strings("tokenizer.ggml.tokens").size(), 129280u);
    EXPECT_EQ(model.tensor("blk.60.ffn_up_exps.weight").dims, (std::array<uint64_t, 4>{7168, 2048, 256, 1}));
    EXPECT_EQ(model.map(model.tensor("blk.60.ffn_up_exps.weight")).size(), uint64_t{7168} / 256 * 144 * 2048 * 256);
    EXPECT_LT(read, uint64_t{1} << 30) << "of hundreds of GiB";
}

}  // namespace
}  // namespace tessera::gguf
