// What requests say of random numbers and of the order of the samplers.
#include "apps/server/api_error.hpp"
#include "apps/server/dialects/llama/requests.hpp"
#include "apps/server/dialects/openai/requests.hpp"
#include "core/base/error.hpp"
#include "tests/server/small_model.hpp"

#include <boost/json/parse.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace tessera::server {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

PlainRequest read(const std::string& fields, const ModelText& model) {
    return read_plain_completion(R"({"prompt":"a")" + (fields.empty() ? "" : "," + fields) + "}", model);
}

uint64_t seed_of(const std::string& fields, const ModelText& model) {
    return read(fields, model).prompts.front().sampling.seed;
}

TEST(RequestSeed, IsTheServersOnlyWhereTheRequestHasNone) {
    ModelText model = small_model();
    model.random_seed = false;
    model.sampling.seed = 42;
    EXPECT_EQ(seed_of("", model), 42u);
    EXPECT_EQ(seed_of(R"("seed":null)", model), 42u);
    EXPECT_EQ(seed_of(R"("seed":7)", model), 7u);
    EXPECT_EQ(seed_of(R"("seed":0,"sampler_seed":0)", model), 0u);
    for (const char* random : {R"("seed":-1)", R"("seed":4294967295)", R"("sampler_seed":-1)"}) {
        std::set<uint64_t> seeds;
        for (int i = 0; i < 8; ++i) seeds.insert(seed_of(random, model));
        EXPECT_EQ(seeds.count(42), 0u) << random;
        EXPECT_GT(seeds.size(), 6u) << random;
    }
    model.random_seed = true;
    EXPECT_NE(seed_of("", model), seed_of("", model));
}

TEST(RequestSeed, IsToldByChoice) {
    const ModelText model = small_model();
    const PlainDelivery delivery = read(R"("seed":7,"n":3,"top_k":5)", model).plain;
    for (const uint64_t seed : {uint64_t{7}, uint64_t{9}, uint64_t{1} << 63}) {
        const json::object settings = json::parse(delivery.settings.json(seed)).as_object();
        EXPECT_EQ(settings.at("seed").to_number<uint64_t>(), seed);
        EXPECT_EQ(settings.at("top_k"), 5);
    }
}

std::string order(const std::string& fields) {
    static const ModelText model = small_model();
    return session::format_sampling_order(read(fields, model).prompts.front().sampling.order);
}

std::string fault(const std::string& fields) {
    try {
        return "no error: " + order(fields);
    } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 400u);
        return error.parameter() + ": " + error.what();
    }
}

TEST(RequestSamplers, ANameInAListIsOneName) {
    EXPECT_EQ(order(R"("samplers":["top_k","temperature"])"), "top_k;temperature");
    EXPECT_EQ(order(R"("samplers":"top_k;temperature")"), "top_k;temperature");
    EXPECT_EQ(order(R"("samplers":"kt")"), "top_k;temperature");
    EXPECT_EQ(order(R"("samplers":[])"), "");
    EXPECT_THAT(fault(R"("samplers":["top_k;top_p"])"), HasSubstr("'top_k;top_p'"));
    EXPECT_THAT(fault(R"("samplers":["top_k,top_p"])"), HasSubstr("samplers"));
    EXPECT_THAT(fault(R"("samplers":["kt"])"), HasSubstr("'kt'"));
    EXPECT_THAT(fault(R"("samplers":[""])"), HasSubstr("samplers"));
    EXPECT_THAT(fault(R"("samplers":["top_k",1])"), HasSubstr("a list of texts"));
}

// What is left out of the order is off.
TEST(RequestSamplers, TailFreeSamplingIsNeverOn) {
    for (const char* samplers :
         {R"("samplers":["tfs_z","top_k"])", R"("samplers":"tfs;top_k")", R"("samplers":"fk")"}) {
        const std::string given = samplers;
        EXPECT_EQ(order(given), "top_k");
        EXPECT_EQ(order(given + R"(,"tfs":1,"tfs_z":1.0)"), "top_k");
        EXPECT_THAT(fault(given + R"(,"tfs":0.95)"), HasSubstr("tfs: "));
        EXPECT_THAT(fault(given + R"(,"tfs_z":0.5)"), HasSubstr("tfs_z: "));
    }
    EXPECT_THAT(fault(R"("samplers":["tfs","tfs_z"])"), HasSubstr("twice"));
    EXPECT_THAT(fault(R"("samplers":"kq")"), HasSubstr("'q'"));
    EXPECT_THAT(fault(R"("samplers":")" + std::string(100'000, ';') + "\""), HasSubstr("at most"));
    EXPECT_THAT(fault(R"("samplers":")" + std::string(33, 'f') + "\""), HasSubstr("at most"));
}

TEST(RequestSamplers, TemperatureStandsWhereTheRequestSays) {
    for (const char* agreeing :
         {R"("temperature_last":true)", R"("temperature_last":null)",
          R"("temperature_last":true,"samplers":["top_k","temperature"])",
          R"("temperature_last":true,"samplers":["top_k","temperature","adaptive_p"])", R"("temperature_last":false)",
          R"("temperature_last":false,"samplers":["temperature","top_k"])",
          R"("temperature_last":false,"samplers":["top_k","temperature"])",
          R"("temperature_last":true,"samplers":["top_k"])", R"("temperature_last":false,"samplers":["top_k"])"})
        EXPECT_NO_THROW(order(agreeing)) << agreeing;
    EXPECT_THAT(fault(R"("temperature_last":true,"samplers":["temperature","top_k"])"), HasSubstr("temperature_last:"));
}

}  // namespace
}  // namespace tessera::server
