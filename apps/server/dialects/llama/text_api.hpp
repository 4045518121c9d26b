// The endpoints that turn text to tokens and back, without generation.
#pragma once

#include "apps/server/byte_budget.hpp"
#include "apps/server/exchange.hpp"
#include "apps/server/model_text.hpp"

#include <string_view>

namespace tessera::server {

// `body`: of the request; `memory`: that of large responses counts in while they are made. All throw ApiError, and
// Error for what the template refuses.
HttpResponse tokenize_response(std::string_view body, const ModelText& model, ByteBudget& memory);
HttpResponse detokenize_response(std::string_view body, const ModelText& model, ByteBudget& memory);
HttpResponse apply_template_response(std::string_view body, const ModelText& model, ByteBudget& memory);

}  // namespace tessera::server
