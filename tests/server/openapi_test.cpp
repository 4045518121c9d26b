// openapi.yaml says of sampling what the table of its fields says.
#include "apps/server/dialects/llama/dialect.hpp"
#include "apps/server/dialects/openai/dialect.hpp"
#include "core/base/file.hpp"
#include "core/session/sampling_parameters.hpp"

#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace tessera::server {
namespace {

const std::string kPath = std::string(TSR_SOURCE_DIR) + "/apps/server/openapi.yaml";

std::string document() {
    const File file(kPath);
    std::vector<std::byte> bytes(file.size());
    file.pread_exact(0, bytes);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// As YAML's numbers are written, which have no exponent without a point.
std::string number(double value) {
    if (value == std::floor(value)) return fmt::format("{:.0f}", value);
    std::string text = fmt::format("{:.7f}", value);
    return text.substr(0, text.find_last_not_of('0') + 1);
}

std::string properties() {
    const session::SamplingParameters defaults;
    std::string text;
    for (const session::SamplingField& field : session::kSamplingFields) {
        text += fmt::format("        {}: {{type: {}, ", field.name, field.is_integer() ? "integer" : "number");
        std::string more;
        if (field.negative_is_zero) {
            more = " Negative: as 0.";
        } else {
            text += fmt::format("minimum: {}, ", number(field.minimum));
        }
        text += fmt::format("maximum: {}, default: {}", number(field.maximum), number(field.of(defaults)));
        std::string names;
        for (const std::string_view alias : session::aliases_of(field))
            names += fmt::format("{}{}", names.empty() ? " Also " : ", ", alias);
        if (!names.empty()) more += names + ".";
        if (!more.empty()) text += fmt::format(", description: \"{}\"", more.substr(1));
        text += "}\n";
    }
    return text;
}

// TSR_WRITE_DOCS=1 writes them anew.
TEST(OpenApi, HasTheSamplingFields) {
    static constexpr std::string_view kBegin = "        # numbers: written by OpenApi.HasTheSamplingFields\n";
    static constexpr std::string_view kEnd = "        # end of numbers\n";
    std::string text = document();
    const size_t begin = text.find(kBegin), end = text.find(kEnd);
    ASSERT_NE(begin, std::string::npos);
    ASSERT_NE(end, std::string::npos);
    const size_t at = begin + kBegin.size();
    if (std::getenv("TSR_WRITE_DOCS")) {
        text.replace(at, end - at, properties());
        std::ofstream(kPath, std::ios::binary) << text;
        return;
    }
    EXPECT_EQ(text.substr(at, end - at), properties()) << "run this test with TSR_WRITE_DOCS=1";
}

// What it says of generation is read by every endpoint that generates.
TEST(OpenApi, NamesHonouredFieldsAlone) {
    const std::string text = document();
    const size_t begin = text.find("\n    Sampling:\n"), end = text.find("\n    Message:\n");
    ASSERT_LT(begin, end);
    size_t found = 0;
    static constexpr std::string_view kIndent = "\n        ";
    for (size_t at = begin; (at = text.find(kIndent, at)) < end; at += kIndent.size()) {
        const size_t from = at + kIndent.size();
        if (text[from] == ' ' || text[from] == '#') continue;
        const std::string name = text.substr(from, text.find(':', from) - from);
        for (const FieldTable* table : {&chat_table(), &completion_table(), &plain_completion_table()}) {
            const auto row = table->index_of(name);
            ASSERT_TRUE(row) << name;
            EXPECT_EQ(table->rows()[*row].standing, Standing::kHonoured) << table->name() << " " << name;
        }
        ++found;
    }
    EXPECT_GT(found, session::kSamplingFields.size() + 10);
    for (const session::SamplingStep step : session::default_sampling_order())
        EXPECT_NE(text.find(session::name_of(step), text.find("        samplers:")), std::string::npos);
    EXPECT_NE(text.find(fmt::format("maxItems: {}, items: {{enum: [penalties", session::kMaximumSamplers)),
              std::string::npos);
    EXPECT_NE(text.find(fmt::format("dry_sequence_breakers: {{type: array, maxItems: {}, items: {{type: string, "
                                    "minLength: 1, maxLength: {}}}",
                                    session::kMaximumBreakers, session::kMaximumBreakerBytes)),
              std::string::npos);
}

}  // namespace
}  // namespace tessera::server
