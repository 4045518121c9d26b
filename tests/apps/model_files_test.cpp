// Model files that are broken, or have what nothing needs: what the commands say of them.
#include "tests/apps/process.hpp"
#include "tests/model/edited_model.hpp"
#include "tests/temporary_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace tessera::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class ModelFiles : public testing::Test {
  protected:
    std::string write(const EditedModel& model) const { return model.write(folder_.path() / "model.gguf").string(); }
    std::string text() const { return folder_.write("text.txt", std::string(4000, 'a')).string(); }

    EditedModel model_{TSR_TEST_MODEL};

  private:
    TemporaryFolder folder_;
};

TEST_F(ModelFiles, ABrokenWeightIsNamed) {
    // A block of q8_0: f16 scale, then 32 codes. Row 5, element 64 on.
    EditedModel::Tensor& output = model_.tensor("output.weight");
    ASSERT_EQ(output.type, static_cast<tsr_type>(TSR_TYPE_Q8_0));
    const size_t row = output.dims[0] / 32 * 34;
    output.bytes[5 * row + 2 * 34] = std::byte{0x00};
    output.bytes[5 * row + 2 * 34 + 1] = std::byte{0x7E};
    const std::string file = write(model_);
    const Outcome checked = tessera({"inspect", file, "--check"});
    EXPECT_EQ(checked.code, 1);
    EXPECT_THAT(checked.out, HasSubstr("output.weight: element 64 of row 5 is nan"));
    EXPECT_THAT(checked.out, HasSubstr("1 tensor broken"));
    const Outcome loaded = tessera({"run", "-m", file, "-p", "a", "-n", "1", "--check-tensors"});
    EXPECT_EQ(loaded.code, 1);
    EXPECT_THAT(loaded.err, HasSubstr("output.weight: element 64 of row 5 is nan"));
    const Outcome scored = tessera({"perplexity", "-m", file, "-f", text(), "-c", "64", "--chunks", "2"});
    EXPECT_EQ(scored.code, 1);
    EXPECT_THAT(scored.err, HasSubstr("the logit of token 5 is nan"));
    EXPECT_THAT(scored.out, Not(HasSubstr("Final estimate")));
}

TEST_F(ModelFiles, AWholeModelPassesTheCheck) {
    const Outcome checked = tessera({"inspect", TSR_TEST_MODEL, "--check"});
    EXPECT_EQ(checked.code, 0) << checked.err;
    EXPECT_THAT(checked.out, HasSubstr("all tensors and keys of the model are used"));
    EXPECT_THAT(checked.out, HasSubstr("no NaN and no infinity"));
}

TEST_F(ModelFiles, PackedRowsAreChecked) {
    TemporaryFolder folder;
    const std::string packed = folder.file("packed.gguf");
    ASSERT_EQ(tessera({"repack", "-m", TSR_TEST_MODEL, "-o", packed}).code, 0);
    const Outcome checked = tessera({"inspect", packed, "--check"});
    EXPECT_EQ(checked.code, 0) << checked.out;
    EXPECT_THAT(checked.out, Not(HasSubstr("not checked")));
}

TEST_F(ModelFiles, AllCommandsAgreeAboutWhatIsNotUsed) {
    model_.add("blk.0.foreign.weight", {4}, {1, 2, 3, 4});
    const std::string file = write(model_);
    const Outcome inspected = tessera({"inspect", file, "--check"});
    EXPECT_EQ(inspected.code, 1);
    EXPECT_THAT(inspected.out, HasSubstr("blk.0.foreign.weight"));
    for (const std::vector<std::string>& command : {std::vector<std::string>{"plan", file},
                                                    {"run", "-m", file, "-p", "a", "-n", "1"},
                                                    {"perplexity", "-m", file, "-f", text(), "-c", "64"},
                                                    {"bench", "-m", file, "-p", "8", "-n", "1", "-r", "1"},
                                                    {"serve", "-m", file, "--port", "0"}}) {
        const Outcome refused = tessera(command);
        EXPECT_EQ(refused.code, 1) << command.front();
        EXPECT_THAT(refused.err, HasSubstr("blk.0.foreign.weight")) << command.front();
    }
    const Outcome allowed = tessera({"run", "-m", file, "-p", "a", "-n", "1", "--allow-unused-tensors"});
    EXPECT_EQ(allowed.code, 0) << allowed.err;
    EXPECT_THAT(allowed.err, HasSubstr("blk.0.foreign.weight"));
}

TEST_F(ModelFiles, WhatNothingNeedsMayBeBroken) {
    model_.set("tokenizer.ggml.padding_token_id", uint32_t{1} << 30);
    model_.set("general.name", std::string("caf\xC3"));
    model_.set("split.count", uint32_t{0});
    const Outcome loaded = tessera({"run", "-m", write(model_), "-p", "a", "-n", "1"});
    EXPECT_EQ(loaded.code, 0) << loaded.err;
    EXPECT_THAT(loaded.err, HasSubstr("padding_token_id"));
    EXPECT_THAT(loaded.err, HasSubstr("caf\\xc3"));
}

TEST_F(ModelFiles, AWrongEndTokenSaysHowToGoOn) {
    model_.set("tokenizer.ggml.eos_token_id", uint32_t{1} << 30);
    const std::string file = write(model_);
    const Outcome refused = tessera({"run", "-m", file, "-p", "a", "-n", "1"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("--override-kv tokenizer.ggml.eos_token_id=int:N"));
    EXPECT_EQ(
        tessera({"run", "-m", file, "-p", "a", "-n", "1", "--override-kv", "tokenizer.ggml.eos_token_id=int:1"}).code,
        0);
}

}  // namespace
}  // namespace tessera::test
