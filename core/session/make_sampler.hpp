// A sampler for texts of a vocabulary.
#pragma once

#include "core/session/sampler.hpp"
#include "core/text/tokenizer.hpp"

#include <memory>
#include <span>
#include <string>

namespace tessera::session {

// Every token that holds one of `texts` whole, and every sequence of tokens that begins within a token, as far as the
// vocabulary's own way to spell the rest goes. Time is linear in the bytes of the vocabulary: milliseconds. Texts that
// the vocabulary cannot spell are left out, since they cannot occur.
std::shared_ptr<const SequenceBreakers> find_sequence_breakers(std::span<const std::string> texts,
                                                               const text::Tokenizer& tokenizer);

// `context`: tokens that the text may hold. `breakers`: those of the parameters, where they are known already. Throws
// what check_sampling_parameters throws.
Sampler make_sampler(const SamplingParameters& parameters, const text::Tokenizer& tokenizer, size_t context,
                     std::shared_ptr<const SequenceBreakers> breakers = nullptr);

}  // namespace tessera::session
