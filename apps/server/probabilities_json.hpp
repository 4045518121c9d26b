// Log probabilities as the OpenAI API has them.
#pragma once

#include "core/session/generation.hpp"
#include "core/text/tokenizer.hpp"

#include <string>

namespace tessera::server {

// {"id":...,"token":...,"logprob":...,"bytes":[...],"top_logprobs":[...]}. `linear`: probabilities in place of their
// logarithms, as "prob" and "top_probs".
void append_probabilities(std::string& out, const session::TokenProbabilities& token, const text::Tokenizer& tokenizer,
                          bool linear = false);

// A list of those.
struct ProbabilitiesJson {
    std::string list;  // without brackets
    void add(const session::TokenProbabilities& token, const text::Tokenizer& tokenizer, bool linear = false);
    std::string json() const { return "[" + list + "]"; }
    // Empties it.
    std::string take();
};

}  // namespace tessera::server
