// What the server and the model are, and how they are.
#include "apps/server/api_error.hpp"
#include "apps/server/endpoint.hpp"
#include "apps/server/generation_settings.hpp"
#include "apps/server/json_text.hpp"
#include "apps/server/query.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::server {
namespace {

// The text of a token that a vocabulary may lack.
std::string token_json(const text::Tokenizer& tokenizer, text::Token token) {
    return token == text::kNoToken ? "\"\"" : json_string(tokenizer.spelling(token));
}

HttpResponse health(const EndpointContext& context, const HttpRequest&) {
    const ModelHost& host = context.host;
    const ModelHost::Health health = host.health();
    switch (health.state) {
        case ModelHost::State::kReady:
            if (const auto model = host.peek()) {
                const session::ServiceStatus status = model->service->status();
                if (status.lost)
                    return to_response(
                        ApiError(503, "a device is lost, restart the server: " + status.last_error, {}, "device_lost"));
            }
            return json_response(R"({"status":"ok"})");
        case ModelHost::State::kLoading: {
            ApiError error(503, fmt::format("Loading model: {:.0f} %", health.loaded() * 100), {}, "loading");
            error.retry_after = health.seconds_left;
            HttpResponse response = to_response(error);
            response.body.pop_back();
            response.body +=
                fmt::format(R"(,"status":"loading","progress":{:.4f},"loaded_bytes":{},"total_bytes":{}}})",
                            health.loaded(), health.loaded_bytes, health.total_bytes);
            return response;
        }
        case ModelHost::State::kDraining:
            return to_response(ApiError(503, "the server is being stopped", {}, "stopping"));
        case ModelHost::State::kFailed:
            break;
    }
    return to_response(ApiError(503, "the model could not be loaded: " + health.message, {}, "load_failed"));
}

std::string model_json(const ModelHost& host, const std::string& name) {
    const auto model = host.peek();
    std::string meta = "null";
    if (model) {
        const ModelInfo& info = model->engine->info();
        meta = fmt::format(R"({{"n_vocab":{},"n_ctx_train":{},"n_ctx":{},"size":{}}})", model->tokenizer->size(),
                           info.context, model->context_of_request(), model->engine->file().file_bytes());
    }
    return fmt::format(
        R"({{"id":{},"object":"model","created":{},"owned_by":"tessera","aliases":[],"tags":[],"meta":{}}})",
        json_string(name), model ? model->created : 0, meta);
}

HttpResponse models(const EndpointContext& context, const HttpRequest&) {
    return json_response(
        fmt::format(R"({{"object":"list","data":[{}]}})", model_json(context.host, context.model_name)));
}

HttpResponse model(const EndpointContext& context, const HttpRequest& request) {
    const std::string& name = context.model_name;
    const std::string id = named_part(context, request, "/v1/models/");
    if (id == name) return json_response(model_json(context.host, name));
    return to_response(
        ApiError(404, fmt::format("there is no model '{}'; the one that is served is '{}'", printable(id, 100), name),
                 "model", "model_not_found"));
}

HttpResponse props(const EndpointContext& context, const HttpRequest&) {
    const std::shared_ptr<const ServedModel> held = context.host.model();
    const ServedModel& model = *held;
    const ServerSettings& settings = context.settings;
    session::Request defaults;
    defaults.sampling = model.sampling;
    const std::string params = GenerationSettings(defaults, {}, {}, *model.tokenizer)
                                   .json(model.random_seed ? session::kRandomSeed : defaults.sampling.seed);
    return json_response(fmt::format(
        R"({{"default_generation_settings":{{"n_ctx":{},"params":{}}},"total_slots":{},"model_alias":{},)"
        R"("model_path":{},"modalities":{{"vision":false,"audio":false}},"chat_template":{},"chat_template_name":{},)"
        R"("bos_token":{},"eos_token":{},"can_think":{},"endpoint_slots":{},"endpoint_metrics":{},)"
        R"("build_info":"tessera {}"}})",
        model.context_of_request(), params, model.engine->max_sequences(), json_string(model.name),
        json_string(model.path), json_string(model.chat_template),
        json_string(model.writer ? model.writer->name() : ""), token_json(*model.tokenizer, model.tokenizer->bos()),
        token_json(*model.tokenizer, model.tokenizer->eos()), model.writer && model.writer->can_think(), settings.slots,
        settings.metrics, TSR_VERSION));
}

// As many as the server works on at once, and behind them requests that gave up their place to others; of requests of
// the client how far they are, of all others only that they are there.
HttpResponse slots(const EndpointContext& context, const HttpRequest& request) {
    const std::shared_ptr<const ServedModel> held = context.host.model();
    const ServedModel& model = *held;
    const std::string client = context.access.sender_of(request).client;
    const bool idle_needed = fails_on_no_slot(request.query);
    session::ServiceStatus status = model.service->status();
    const auto paused =
        std::ranges::stable_partition(status.running, [](const session::RequestState& state) { return !state.paused; });
    if (idle_needed && status.running.size() - paused.size() >= model.engine->max_sequences())
        return to_response(ApiError(503, "no slot is idle", {}, "no_slot"));
    std::string list;
    size_t id = 0;
    for (; id < std::max<size_t>(model.engine->max_sequences(), status.running.size()); ++id) {
        list += fmt::format(R"({}{{"id":{},"n_ctx":{},"speculative":false,)", id ? "," : "", id,
                            model.context_of_request());
        if (id >= status.running.size()) {
            list += R"("is_processing":false})";
            continue;
        }
        const session::RequestState& state = status.running[id];
        list += fmt::format(R"("id_task":{},"is_processing":{},"mine":{})", state.id, !state.paused,
                            state.client == client);
        if (state.client == client) {
            list += fmt::format(
                R"(,"prompt_tokens":{},"cached_tokens":{},"reused_tokens":{},"n_decoded":{},"state":"{}","seconds":{:.3f})",
                state.prompt_tokens, state.cached_tokens, state.reused_tokens, state.new_tokens,
                state.paused       ? "paused"
                : state.generating ? "generating"
                                   : "prompt",
                state.seconds);
        }
        list += '}';
    }
    return json_response("[" + list + "]");
}

// None is loaded.
HttpResponse adapters(const EndpointContext&, const HttpRequest&) {
    return json_response("[]");
}

}  // namespace

namespace endpoint_files {

constexpr Endpoint kInfo[] = {
    {.method = "GET", .paths = "/health /v1/health", .look = health, .needs_key = false, .always = true},
    {.method = "GET", .paths = "/v1/models /models", .look = models},
    {.method = "GET", .paths = "/v1/models/{id}", .look = model},
    {.method = "GET", .paths = "/props", .look = props},
    {.method = "GET", .paths = "/slots", .look = slots, .offered = &ServerSettings::slots},
    {.method = "GET", .paths = "/lora-adapters", .look = adapters},
};
extern const std::span<const Endpoint> info = kInfo;

}  // namespace endpoint_files

}  // namespace tessera::server
