#include "apps/tessera-server/probabilities_json.hpp"

#include "apps/tessera-server/json_text.hpp"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <vector>

namespace tessera::server {
namespace {

void append_token(std::string& out, text::Token token, float probability, const text::Tokenizer& tokenizer) {
    const std::string_view bytes = tokenizer.bytes(token);
    out += R"({"token":)";
    append_json(out, bytes);
    out += R"(,"logprob":)";
    append_json(out, static_cast<double>(probability));
    const std::vector<unsigned> values(reinterpret_cast<const unsigned char*>(bytes.data()),
                                       reinterpret_cast<const unsigned char*>(bytes.data()) + bytes.size());
    out += fmt::format(R"(,"bytes":[{}])", fmt::join(values, ","));
}

}  // namespace

void append_chat_probabilities(std::string& out, const session::TokenProbabilities& token,
                               const text::Tokenizer& tokenizer) {
    append_token(out, token.token, token.log_probability, tokenizer);
    out += R"(,"top_logprobs":[)";
    for (const auto& [other, probability] : token.best) {
        if (&other != &token.best.front().first) out += ',';
        append_token(out, other, probability, tokenizer);
        out += '}';
    }
    out += "]}";
}

}  // namespace tessera::server
