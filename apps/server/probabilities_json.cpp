#include "apps/server/probabilities_json.hpp"

#include "apps/server/json_text.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <cmath>
#include <utility>
#include <vector>

namespace tessera::server {
namespace {

void append_token(std::string& out, text::Token token, float probability, const text::Tokenizer& tokenizer,
                  bool linear) {
    const std::string_view bytes = tokenizer.bytes(token);
    out += fmt::format(R"({{"id":{},"token":)", token);
    append_json(out, bytes);
    out += linear ? R"(,"prob":)" : R"(,"logprob":)";
    const auto value = static_cast<double>(probability);
    append_json(out, linear ? std::exp(value) : value);
    const std::vector<unsigned> values(reinterpret_cast<const unsigned char*>(bytes.data()),
                                       reinterpret_cast<const unsigned char*>(bytes.data()) + bytes.size());
    out += fmt::format(R"(,"bytes":[{}])", fmt::join(values, ","));
}

}  // namespace

void append_probabilities(std::string& out, const session::TokenProbabilities& token, const text::Tokenizer& tokenizer,
                          bool linear) {
    append_token(out, token.token, token.log_probability, tokenizer, linear);
    out += linear ? R"(,"top_probs":[)" : R"(,"top_logprobs":[)";
    for (const auto& [other, probability] : token.best) {
        if (&other != &token.best.front().first) out += ',';
        append_token(out, other, probability, tokenizer, linear);
        out += '}';
    }
    out += "]}";
}

void ProbabilitiesJson::add(const session::TokenProbabilities& token, const text::Tokenizer& tokenizer, bool linear) {
    if (!list.empty()) list += ',';
    append_probabilities(list, token, tokenizer, linear);
}

std::string ProbabilitiesJson::take() {
    return "[" + std::exchange(list, {}) + "]";
}

}  // namespace tessera::server
