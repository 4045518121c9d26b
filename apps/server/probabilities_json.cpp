#include "apps/server/probabilities_json.hpp"

#include "core/text/json_writer.hpp"

#include <cmath>
#include <utility>

namespace tessera::server {
namespace {

void write_token(text::JsonWriter& json, text::Token token, float probability, const text::Tokenizer& tokenizer,
                 bool linear) {
    const std::string_view bytes = tokenizer.bytes(token);
    json.member("id", token).member("token", bytes);
    const auto value = static_cast<double>(probability);
    json.member(linear ? "prob" : "logprob", linear ? std::exp(value) : value);
    json.key("bytes").begin_list();
    for (const char byte : bytes) json.value(static_cast<unsigned char>(byte));
    json.end_list();
}

}  // namespace

void append_probabilities(std::string& out, const session::TokenProbabilities& token, const text::Tokenizer& tokenizer,
                          bool linear) {
    text::JsonWriter json(out);
    json.begin_object();
    write_token(json, token.token, token.log_probability, tokenizer, linear);
    json.key(linear ? "top_probs" : "top_logprobs").begin_list();
    for (const auto& [other, probability] : token.best) {
        json.begin_object();
        write_token(json, other, probability, tokenizer, linear);
        json.end_object();
    }
    json.end_list().end_object();
}

void ProbabilitiesJson::add(const session::TokenProbabilities& token, const text::Tokenizer& tokenizer, bool linear) {
    if (!list.empty()) list += ',';
    append_probabilities(list, token, tokenizer, linear);
}

std::string ProbabilitiesJson::take() {
    return "[" + std::exchange(list, {}) + "]";
}

}  // namespace tessera::server
