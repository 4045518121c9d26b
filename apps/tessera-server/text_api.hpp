// The endpoints that turn text to tokens and back, without generation.
#pragma once

#include "apps/tessera-server/exchange.hpp"
#include "apps/tessera-server/model_text.hpp"

#include <string_view>

namespace tessera::server {

// `body`: of the request. All throw ApiError, and Error for what the template refuses.
HttpResponse tokenize_response(std::string_view body, const ModelText& model);
HttpResponse detokenize_response(std::string_view body, const ModelText& model);
HttpResponse apply_template_response(std::string_view body, const ModelText& model);

}  // namespace tessera::server
