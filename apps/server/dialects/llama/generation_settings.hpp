// The settings of a generation as llama-server tells them: generation_settings of answers, and the defaults in /props.
#pragma once

#include "apps/server/request_fields.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace tessera::server {

// Of all choices of a request, which differ in their seeds.
class GenerationSettings {
  public:
    GenerationSettings() = default;
    GenerationSettings(const session::Request& request, const Delivery& delivery, std::span<const std::string> stops,
                       const text::Tokenizer& tokenizer);

    // An object of JSON.
    std::string json(uint64_t seed) const;
    uint64_t bytes() const noexcept { return before_.size() + 24; }  // of it, about

  private:
    // Made once, of a request's many biases and stop strings, and copied for each choice.
    std::string before_;  // the seed, which is its last member
};

}  // namespace tessera::server
