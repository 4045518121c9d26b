// Weights that a file holds as parts of other tensors compute what they compute on their own.
#include "core/base/error.hpp"
#include "tests/goldens/golden_models.hpp"
#include "tests/model/edited_model.hpp"
#include "tests/support.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace tessera::test {
namespace {

using testing::HasSubstr;

constexpr Token kTokens[] = {0, 17, 200, 45, 91, 3, 120, 7, 66, 251, 14, 33};

class FusedWeights : public testing::Test {
  protected:
    std::vector<float> logits(const EditedModel& model, const EngineOptions& more = {}) const {
        EngineOptions options = more;
        options.context = 64;
        options.rows = options.output_rows = 16;
        options.cache_type_k = options.cache_type_v = TSR_TYPE_F32;
        LoadedModel loaded(model.write(folder_.path() / "model.gguf"), options, plugins_without({}));
        std::vector<float> all;
        const SequenceId sequence = loaded.engine->cache().create();
        for (const auto part :
             {std::span(kTokens).first(9), std::span(kTokens).subspan(9, 1), std::span(kTokens).subspan(10)}) {
            const BatchEntry entry{sequence, part, true, true};
            for (const auto row : loaded.engine->step({&entry, 1})) all.insert(all.end(), row.begin(), row.end());
        }
        return all;
    }

    std::string error(const EditedModel& model) const {
        try {
            (void)build_model(gguf::GgufFile::open(model.write(folder_.path() / "model.gguf")), Registry::of_tables({}),
                              {});
        } catch (const Error& error) {
            return error.what();
        }
        return "";
    }

    static EditedModel fused(EditedModel model) {
        for (int i = 0; i < 3; ++i) {
            const std::string block = "blk." + std::to_string(i) + ".";
            for (const char* kind : {".weight", ".bias"}) {
                if (model.has_tensor(block + "attn_k" + kind))
                    model.fuse({block + "attn_q" + kind, block + "attn_k" + kind, block + "attn_v" + kind},
                               block + "attn_qkv" + kind);
            }
            if (model.has_tensor(block + "ffn_gate_exps.weight"))
                model.fuse({block + "ffn_gate_exps.weight", block + "ffn_up_exps.weight"},
                           block + "ffn_gate_up_exps.weight");
        }
        return model;
    }

  private:
    TemporaryFolder folder_;
};

TEST_F(FusedWeights, ComputeWhatTheirPartsDo) {
    EngineOptions read, deferred;
    read.map_weights = false;
    deferred.pack_weights = PackWeights::kBetweenSteps;
    for (const char* name : {"qwen2", "qwen3moe-norm", "v3-groups", "glm4moe", "llama-gqa"}) {
        SCOPED_TRACE(name);
        const EditedModel plain(golden_model(name)), whole = fused(plain);
        EXPECT_LT(whole.tensors.size(), plain.tensors.size());
        const std::vector<float> expected = logits(plain);
        EXPECT_EQ(logits(whole), expected);
        EXPECT_EQ(logits(whole, read), expected);
        EXPECT_EQ(logits(whole, deferred), expected);
    }
}

// Biases of 16 bits become f32 when they are read.
TEST_F(FusedWeights, BiasesMayBeOfSixteenBits) {
    EditedModel plain(golden_model("qwen2"));
    for (EditedModel::Tensor& tensor : plain.tensors) {
        if (!tensor.name.ends_with(".bias")) continue;
        std::vector<std::byte> halves;
        for (size_t at = 0; at < tensor.bytes.size(); at += 4)
            halves.insert(halves.end(), {tensor.bytes[at + 2], tensor.bytes[at + 3]});
        tensor.bytes = halves;
        tensor.type = TSR_TYPE_BF16;
    }
    EXPECT_EQ(logits(fused(plain)), logits(plain));
}

TEST_F(FusedWeights, AreRefusedByTheirNames) {
    const EditedModel plain(golden_model("qwen3moe-norm")), whole = fused(plain);
    EditedModel both = whole;
    both.tensors.push_back(EditedModel(plain).tensor("blk.1.attn_q.weight"));
    EXPECT_THAT(error(both), HasSubstr("blk.1.attn_q.weight is in the file, and so is blk.1.attn_qkv.weight"));
    EditedModel shorter = whole;
    EditedModel::Tensor& matrix = shorter.tensor("blk.0.attn_qkv.weight");
    matrix.dims[1] -= 2;
    matrix.bytes.resize(matrix.bytes.size() - 2 * 2 * matrix.dims[0]);
    EXPECT_THAT(error(shorter),
                HasSubstr("blk.0.attn_qkv.weight has the shape [64, 254]; the metadata ask for [64, 256]"));
    EditedModel neither = whole;
    neither.remove_tensors("blk.1.ffn_gate_up_exps.weight");
    EXPECT_THAT(error(neither),
                HasSubstr("blk.1.ffn_gate_exps.weight is missing, and so is blk.1.ffn_gate_up_exps.weight"));
}

}  // namespace
}  // namespace tessera::test
