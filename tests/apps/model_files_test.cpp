// Model files that are broken, or have what nothing needs: what the commands say of them.
#include "tests/apps/process.hpp"
#include "tests/model/edited_model.hpp"
#include "tests/temporary_folder.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tessera::test {
namespace {

using testing::AllOf;
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

// IQ2_BN_R4 of ik_llama.cpp is known by name and not read.
TEST_F(ModelFiles, ATypeThatIsNotReadIsNamedByEachCommand) {
    const std::string file = write(model_), name = "blk.0.ffn_down.weight";
    std::string bytes(std::filesystem::file_size(file), '\0');
    std::ifstream(file, std::ios::binary).read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    // After a tensor's name: number of dimensions, dimensions, type.
    const size_t after_name = bytes.find(name);
    ASSERT_NE(after_name, std::string::npos);
    const size_t type = after_name + name.size() + 4 + 8 * model_.tensor(name).dims.size();
    const uint32_t iq2_bn_r4 = 335;
    std::memcpy(&bytes[type], &iq2_bn_r4, sizeof iq2_bn_r4);
    std::ofstream(file, std::ios::binary) << bytes;
    const std::vector<std::vector<std::string>> lines = {{"run", "-m", file, "-p", "x"},
                                                         {"chat", "-m", file},
                                                         {"plan", file},
                                                         {"inspect", file},
                                                         {"bench", "-m", file},
                                                         {"sweep", "-m", file},
                                                         {"tokenize", "-m", file, "x"},
                                                         {"serve", "-m", file},
                                                         {"perplexity", "-m", file, "-f", text()},
                                                         {"repack", "-m", file, "-o", "-"}};
    for (const std::vector<std::string>& line : lines) {
        const Outcome outcome = tessera(line);
        EXPECT_EQ(outcome.code, 1) << line[0];
        EXPECT_THAT(outcome.err, AllOf(HasSubstr(file), HasSubstr(name), HasSubstr("335 (IQ2_BN_R4)"),
                                       HasSubstr("take a file of another quantisation")))
            << line[0];
        EXPECT_EQ(outcome.out, "") << line[0];
    }
}

TEST_F(ModelFiles, AWholeModelPassesTheCheck) {
    const Outcome checked = tessera({"inspect", TSR_TEST_MODEL, "--check"});
    EXPECT_EQ(checked.code, 0) << checked.err;
    EXPECT_THAT(checked.out, HasSubstr("all tensors and keys of the model are used"));
    EXPECT_THAT(checked.out, HasSubstr("no NaN and no infinity"));
}

TEST_F(ModelFiles, ATailOfZerosIsFound) {
    const std::string file = write(model_);
    const auto bytes = std::filesystem::file_size(file);
    // As a download that had reserved its size leaves it.
    std::filesystem::resize_file(file, bytes - (256 << 10));
    std::filesystem::resize_file(file, bytes);
    const char* const said = ": the last 256.0 KiB of its tensors are zeros: the download is not complete";
    const Outcome checked = tessera({"inspect", file, "--check"});
    EXPECT_EQ(checked.code, 1);
    EXPECT_THAT(checked.out, HasSubstr(said));
    const Outcome required = tessera({"run", "-m", file, "-p", "a", "-n", "1", "--check-tensors"});
    EXPECT_EQ(required.code, 1);
    EXPECT_THAT(required.err, HasSubstr(said));
    EXPECT_THAT(tessera({"run", "-m", file, "-p", "a", "-n", "1"}).err,
                AllOf(HasSubstr(said), HasSubstr("'tessera inspect --check'")));
}

TEST_F(ModelFiles, ValuesBeyondTheRangeOfTheCacheNameItsType) {
    // The cached latent is far beyond 65,504 then; the layers after it normalise what comes of it.
    for (EditedModel::Tensor& tensor : model_.tensors) {
        if (!tensor.name.ends_with("attn_kv_a_norm.weight")) continue;
        std::vector<float> values(tensor.bytes.size() / sizeof(float));
        std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
        for (float& value : values) value *= 1e6f;
        std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    }
    const std::string file = write(model_);
    const auto run = [&](const char* type) {
        return tessera({"run", "-m", file, "-p", "a", "-n", "2", "-t", "1", "-ctk", type, "-ctv", type});
    };
    // A block's scale is infinite then, whatever kernel reads it.
    const Outcome narrow = run("q4_0");
    EXPECT_EQ(narrow.code, 1);
    EXPECT_THAT(narrow.last_error_line(), AllOf(HasSubstr("the range of q4_0"), HasSubstr("-ctk bf16 -ctv bf16")));
    EXPECT_EQ(run("bf16").code, 0) << run("bf16").err;
}

// Memory for the weights as they lie in the file, which are mapped, but not for a packed copy.
TEST_F(ModelFiles, WhatDoesNotFitPackedIsUsedInPlace) {
    TemporaryFolder folder;
    const auto planned = [&](std::vector<std::string> flags) {
        flags.insert(flags.begin(), {"plan", "-m", TSR_TEST_MODEL, "-c", "256", "--json"});
        return tessera(flags);
    };
    const auto allocated = [&](const Outcome& outcome) {
        return boost::json::parse(outcome.out).at("devices").at(0).at("allocated").to_number<uint64_t>();
    };
    const uint64_t packed = allocated(planned({})), in_place = allocated(planned({"-nr"}));
    ASSERT_LT(in_place, packed);
    const std::string config =
        folder.write("c.toml", "[devices.CPU]\nmemory = \"" + std::to_string((packed + in_place) / 2048) + " KiB\"\n");
    const Outcome plan = planned({"--config", config});
    EXPECT_EQ(plan.code, 0) << plan.err;
    EXPECT_EQ(boost::json::parse(plan.out).at("pack_weights").as_string(), "never");
    EXPECT_THAT(plan.err,
                AllOf(HasSubstr("packed weights do not fit (CPU needs "), HasSubstr("; -nr asks for the same")));
    const std::vector<std::string> words = {"run", "-m", TSR_TEST_MODEL, "-p", "one two three",
                                            "-n",  "4",  "--temp",       "0"};
    std::vector<std::string> small = words;
    small.insert(small.end(), {"-c", "256", "--config", config});
    const Outcome run = tessera(small);
    EXPECT_EQ(run.code, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("packed weights do not fit (CPU needs "));
    EXPECT_EQ(run.out, tessera(words).out);
}

TEST_F(ModelFiles, PackedRowsAreChecked) {
    TemporaryFolder folder;
    const std::string packed = folder.file("packed.gguf");
    ASSERT_EQ(tessera({"repack", "-m", TSR_TEST_MODEL, "-o", packed}).code, 0);
    const Outcome checked = tessera({"inspect", packed, "--check"});
    EXPECT_EQ(checked.code, 0) << checked.out;
    EXPECT_THAT(checked.out, Not(HasSubstr("not checked")));
}

// Of a type that a plugin packs, in an installation without it.
TEST_F(ModelFiles, WhatCannotBeCheckedIsSaid) {
    TemporaryFolder folder;
    const std::string packed = folder.file("packed.gguf");
    ASSERT_EQ(tessera({"repack", "-m", TSR_TEST_MODEL, "-o", packed}).code, 0);
    EditedModel from(packed);
    const auto tensor = std::ranges::find_if(
        from.tensors, [&](const EditedModel::Tensor& one) { return one.type != model_.tensor(one.name).type; });
    ASSERT_NE(tensor, from.tensors.end());
    tensor->name = "blk.0.foreign.weight";
    model_.tensors.push_back(*tensor);
    const std::string file = write(model_),
                      config = folder.write("c.toml", "[plugins]\noff = ['cpu_avx2', 'cpu_avx512']\n");
    const char* const line = "blk.0.foreign.weight: not checked, neither the program nor a plugin reads its type";
    std::vector<std::string> run = {"run", "-m", file,       "-p",   "a",
                                    "-n",  "1",  "--config", config, "--allow-unused-tensors"};
    EXPECT_THAT(tessera(run).err, Not(HasSubstr("not checked")));
    run.emplace_back("--check-tensors");
    const Outcome checked = tessera(run);
    EXPECT_EQ(checked.code, 0) << checked.err;
    EXPECT_THAT(checked.err, HasSubstr(line));
    const Outcome inspected = tessera({"inspect", file, "--check", "--config", config, "--allow-unused-tensors"});
    EXPECT_EQ(inspected.code, 1);
    EXPECT_THAT(inspected.out, HasSubstr(line));
}

TEST_F(ModelFiles, SamplingIsAsTheFileRecommends) {
    const auto run = [&](const EditedModel& model, std::vector<std::string> flags) {
        flags.insert(flags.begin(), {"run", "-m", write(model), "--chat", "-p", "Count from 1 to 5.", "-n", "8", "-s",
                                     "7", "-t", "1"});
        return tessera(flags);
    };
    const Outcome plain = run(model_, {}),
                  hot = run(model_, {"--temp", "5", "--top-k", "0", "--top-p", "1", "--min-p", "0"});
    EditedModel recommended = model_;
    recommended.set("general.sampling.temp", 5.0f);
    recommended.set("general.sampling.top_k", int32_t{0});
    recommended.set("general.sampling.min_p", 0.0);
    recommended.set("general.sampling.top_p", 1.0f);
    recommended.set("general.sampling.xtc_threshold", std::string("high"));
    const Outcome taken = run(recommended, {});
    EXPECT_EQ(taken.out, hot.out);
    EXPECT_NE(taken.out, plain.out);
    EXPECT_THAT(taken.err, HasSubstr("sampling as the file recommends it: temp 5, top_k 0, min_p 0, top_p 1"));
    EXPECT_THAT(taken.err, HasSubstr("general.sampling.xtc_threshold \"high\" is not used: expected a number"));
    // What is given goes first.
    EXPECT_EQ(run(recommended, {"--temp", "0"}).out, run(model_, {"--temp", "0"}).out);
    recommended.set("general.sampling.sequence", std::string("top_k;temperature"));
    EXPECT_THAT(run(recommended, {"--samplers", "temperature"}).err, Not(HasSubstr("sequence")));
}

TEST_F(ModelFiles, TokensThatTheFileForbidsAreNotSampled) {
    const auto answer = [&](const EditedModel& model) {
        return tessera({"run", "-m", write(model), "--chat", "-p", "Count from 1 to 5.", "-n", "1", "--temp", "0"});
    };
    const std::string before = answer(model_).out;
    std::vector<int32_t> tokens;
    const auto& texts = std::get<gguf::StringArray>(std::get<gguf::Array>(
        std::ranges::find(model_.keys, "tokenizer.ggml.tokens", &std::pair<std::string, gguf::Value>::first)->second));
    for (size_t i = 0; i < texts.size(); ++i) {
        if (before.starts_with(texts[i])) tokens.push_back(static_cast<int32_t>(i));
    }
    tokens.push_back(1 << 30);
    model_.set("tokenizer.ggml.suppress_tokens", gguf::Array(tokens));
    const Outcome after = answer(model_);
    EXPECT_EQ(after.code, 0) << after.err;
    EXPECT_NE(after.out, before);
    EXPECT_THAT(after.err, HasSubstr("tokenizer.ggml.suppress_tokens names the token 1073741824"));
}

// Each changes how a text becomes tokens.
TEST_F(ModelFiles, KeysOfOtherTokenizersRefuse) {
    const auto run = [&](const EditedModel& model, std::vector<std::string> flags = {}) {
        flags.insert(flags.begin(), {"run", "-m", write(model), "-p", "a", "-n", "1"});
        return tessera(flags);
    };
    for (const auto& [key, value, off] :
         {std::tuple<const char*, gguf::Value, const char*>{"tokenizer.ggml.remove_extra_whitespaces", true,
                                                            "bool:false"},
          {"tokenizer.ggml.normalizer.lowercase", true, "bool:false"},
          {"tokenizer.ggml.precompiled_charsmap", gguf::Array(std::vector<uint8_t>{1, 2, 3}), "str:"}}) {
        EditedModel model = model_;
        model.set(key, value);
        const Outcome refused = run(model);
        EXPECT_EQ(refused.code, 1) << key;
        EXPECT_THAT(refused.err, HasSubstr(std::string("--override-kv ") + key + "=" + off));
        EXPECT_EQ(run(model, {"--override-kv", std::string(key) + "=" + off}).code, 0) << key;
    }
    EditedModel said = model_;
    said.set("tokenizer.chat_template.tool_use", std::string("{{ messages }}"));
    said.set("tokenizer.chat_templates", gguf::Array(gguf::StringArray()));
    said.set("tokenizer.ggml.new_key", true);
    said.set("tokenizer.ggml.add_sep_token", true);
    said.set("tokenizer.ggml.remove_extra_whitespaces", false);
    const Outcome loaded = run(said);
    EXPECT_EQ(loaded.code, 0) << loaded.err;
    EXPECT_THAT(loaded.err, HasSubstr("chat templates of other names are not used (tool_use)"));
    EXPECT_THAT(loaded.err, HasSubstr("not known and not used: tokenizer.ggml.new_key"));
    EXPECT_THAT(loaded.err, Not(HasSubstr("add_sep_token")));
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
