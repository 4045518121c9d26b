#include "apps/server/api_error.hpp"

#include "apps/wording/wording.hpp"
#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

#include <new>

namespace tessera::server {

std::string_view error_type_of(unsigned status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 429:
            return "rate_limit_error";
        case 501:
            return "not_supported_error";
        case 503:
            return "unavailable_error";
        default:
            return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

std::string json_of(const ApiError& error) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().key("error").begin_object();
    json.member("message", std::string_view(error.what()));
    json.member("type", error.type.empty() ? error_type_of(error.status()) : std::string_view(error.type));
    json.key("param").text_or_null(error.parameter());
    json.key("code").text_or_null(error.code());
    for (const auto& [name, number] : error.more) json.member(name, number);
    json.end_object().end_object();
    return out;
}

ApiError context_exceeded(uint64_t prompt_tokens, uint32_t context, bool at_least) {
    ApiError error(400,
                   fmt::format("the prompt has {}{} tokens and the context holds {}: the request exceeds the available "
                               "context size; shorten it",
                               at_least ? "at least " : "", prompt_tokens, context),
                   {}, "context_length_exceeded");
    error.type = "exceed_context_size_error";
    error.more = {{"n_prompt_tokens", prompt_tokens}, {"n_ctx", context}};
    return error;
}

HttpResponse to_response(const ApiError& error) {
    HttpResponse response;
    response.status = error.status();
    response.body = json_of(error);
    if (error.retry_after) response.headers.emplace_back("Retry-After", std::to_string(error.retry_after));
    // The openai client tries again after every other 5xx; this server will offer no more the next time.
    if (error.status() == 501) response.headers.emplace_back("X-Should-Retry", "false");
    if (error.status() == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
}

ApiError current_api_error() {
    try {
        throw;
    } catch (const ApiError& error) {
        return error;
    } catch (const Error& error) {
        switch (error.code()) {
            case TSR_INVALID_ARGUMENT:
            case TSR_UNSUPPORTED:
            case TSR_NOT_FOUND:
            case TSR_DOES_NOT_FIT:
                return ApiError(400, worded(error));
            case TSR_DEVICE_LOST:
                return ApiError(503, error.what(), {}, "device_lost");
            default:
                return ApiError(500, error.what());
        }
    } catch (const std::bad_alloc&) {
        return ApiError(503, "the server has no memory left for this request; a smaller one may work");
    } catch (const std::exception& error) {
        log().error("a request failed: {}", error.what());
        return ApiError(500, "the server failed at this request; its log says more");
    }
}

}  // namespace tessera::server
