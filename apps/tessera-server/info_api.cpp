#include "apps/tessera-server/info_api.hpp"

#include "apps/tessera-server/api_error.hpp"
#include "apps/tessera-server/json_text.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::server {
namespace {

HttpResponse json_response(std::string body) {
    return {200, "application/json", std::move(body), {}};
}

// The text of a token that a vocabulary may lack.
std::string token_json(const text::Tokenizer& tokenizer, text::Token token) {
    return token == text::kNoToken ? "\"\"" : json_string(tokenizer.spelling(token));
}

}  // namespace

HttpResponse health_response(const ModelHost& host) {
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

HttpResponse models_response(const ModelHost& host, const std::string& name) {
    const auto model = host.peek();
    std::string meta = "null";
    if (model) {
        const ModelInfo& info = model->engine->info();
        meta = fmt::format(R"({{"n_vocab":{},"n_ctx_train":{},"n_ctx":{},"size":{}}})", model->tokenizer->size(),
                           info.context, model->engine->context(), model->engine->file().file_bytes());
    }
    return json_response(fmt::format(
        R"({{"object":"list","data":[{{"id":{},"object":"model","created":{},"owned_by":"tessera","meta":{}}}]}})",
        json_string(name), model ? model->created : 0, meta));
}

HttpResponse props_response(const ServedModel& model, const ServerSettings& settings) {
    const session::SamplingParameters& s = model.sampling;
    return json_response(fmt::format(
        R"({{"default_generation_settings":{{"n_ctx":{},"params":{{"temperature":{},"top_k":{},"top_p":{},"min_p":{},)"
        R"("typical_p":{},"repeat_penalty":{},"repeat_last_n":{},"presence_penalty":{},"frequency_penalty":{}}}}},)"
        R"("total_slots":{},"model_alias":{},"chat_template":{},"chat_template_name":{},"bos_token":{},"eos_token":{},)"
        R"("can_think":{},"endpoint_slots":{},"endpoint_metrics":{},)"
        R"("build_info":"tessera {}"}})",
        model.engine->context(), s.temperature, s.top_k, s.top_p, s.min_p, s.typical_p, s.repetition_penalty,
        s.penalty_last_n, s.presence_penalty, s.frequency_penalty, model.engine->max_sequences(),
        json_string(model.name), json_string(model.chat_template),
        json_string(model.writer ? model.writer->name() : ""), token_json(*model.tokenizer, model.tokenizer->bos()),
        token_json(*model.tokenizer, model.tokenizer->eos()), model.writer && model.writer->can_think(), settings.slots,
        settings.metrics, TSR_VERSION));
}

HttpResponse slots_response(const ServedModel& model, const std::string& client) {
    const session::ServiceStatus status = model.service->status();
    std::string slots;
    for (const session::RequestState& state : status.running) {
        if (!slots.empty()) slots += ',';
        slots +=
            fmt::format(R"({{"id":{},"is_processing":{},"mine":{})", state.id, !state.paused, state.client == client);
        if (state.client == client) {
            slots += fmt::format(
                R"(,"prompt_tokens":{},"cached_tokens":{},"reused_tokens":{},"n_decoded":{},"state":"{}","seconds":{:.3f})",
                state.prompt_tokens, state.cached_tokens, state.reused_tokens, state.new_tokens,
                state.paused       ? "paused"
                : state.generating ? "generating"
                                   : "prompt",
                state.seconds);
        }
        slots += '}';
    }
    return json_response("[" + slots + "]");
}

}  // namespace tessera::server
