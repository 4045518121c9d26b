// The settings of a generation as llama-server tells them: generation_settings of answers, and the defaults in /props.
#pragma once

#include "apps/tessera-server/request_fields.hpp"

#include <span>
#include <string>

namespace tessera::server {

std::string generation_settings_json(const session::Request& request, const AnswerForm& form,
                                     std::span<const std::string> stops, const text::Tokenizer& tokenizer);

}  // namespace tessera::server
