// What the server and the model are, and how they are.
#include "apps/server/api_error.hpp"
#include "apps/server/dialects/llama/generation_settings.hpp"
#include "apps/server/endpoint.hpp"
#include "apps/server/query.hpp"
#include "core/base/text.hpp"
#include "core/text/json_writer.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::server {
namespace {

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
            text::JsonWriter json(response.body);
            response.body.pop_back();
            json.after_value().member("status", "loading").key("progress").fixed(health.loaded(), 4);
            json.member("loaded_bytes", health.loaded_bytes).member("total_bytes", health.total_bytes).end_object();
            return response;
        }
        case ModelHost::State::kDraining:
            return to_response(ApiError(503, "the server is being stopped", {}, "stopping"));
        case ModelHost::State::kFailed:
            break;
    }
    return to_response(ApiError(503, "the model could not be loaded: " + health.message, {}, "load_failed"));
}

void write_model(text::JsonWriter& json, const ModelHost& host, const std::string& name) {
    const auto model = host.peek();
    json.begin_object().member("id", name).member("object", "model").member("created", model ? model->created : 0);
    json.member("owned_by", "tessera").key("aliases").begin_list().end_list().key("tags").begin_list().end_list();
    json.key("meta");
    if (model) {
        const ModelInfo& info = model->engine->info();
        json.begin_object().member("n_vocab", model->tokenizer->size()).member("n_ctx_train", info.context);
        json.member("n_ctx", model->context_of_request()).member("size", model->engine->file().file_bytes());
        json.end_object();
    } else {
        json.null();
    }
    json.end_object();
}

HttpResponse models(const EndpointContext& context, const HttpRequest&) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("object", "list").key("data").begin_list();
    write_model(json, context.host, context.model_name);
    json.end_list().end_object();
    return json_response(std::move(out));
}

HttpResponse model(const EndpointContext& context, const HttpRequest& request) {
    const std::string& name = context.model_name;
    const std::string id = named_part(context, request, "/v1/models/");
    if (id == name) {
        std::string out;
        text::JsonWriter json(out);
        write_model(json, context.host, name);
        return json_response(std::move(out));
    }
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
    const text::Tokenizer& tokenizer = *model.tokenizer;
    const auto spelling = [&](text::Token token) {
        return token == text::kNoToken ? std::string() : std::string(tokenizer.spelling(token));
    };
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().key("default_generation_settings").begin_object();
    json.member("n_ctx", model.context_of_request()).key("params").json(params).end_object();
    json.member("total_slots", model.engine->max_sequences()).member("model_alias", model.name);
    json.member("model_path", model.path);
    json.key("modalities").begin_object().member("vision", false).member("audio", false).end_object();
    json.member("chat_template", model.chat_template);
    json.member("chat_template_name", model.writer ? std::string(model.writer->name()) : std::string());
    json.member("bos_token", spelling(tokenizer.bos())).member("eos_token", spelling(tokenizer.eos()));
    json.member("can_think", model.writer && model.writer->can_think());
    // How calls of tools are read in answers; null: they are content.
    const text::ToolSyntax calls = model.writer ? model.writer->tool_syntax() : text::ToolSyntax::kNone;
    json.key("tool_call_format").text_or_null(calls == text::ToolSyntax::kNone ? "" : text::name_of(calls));
    json.key("speculative").begin_object().member("n_max", model.draft_tokens.value_or(0)).end_object();
    json.key("structured_output").begin_object().member("available", model.structure_fault.empty());
    json.member("reason", model.structure_fault).end_object();
    json.key("reasoning_budget").begin_object().member("tokens", model.reasoning_budget.value_or(-1));
    json.member("enforced", model.reasoning_budget_fault.empty());
    json.member("reason", model.reasoning_budget_fault).end_object();
    json.member("endpoint_slots", settings.slots).member("endpoint_metrics", settings.metrics);
    json.member("build_info", "tessera " TSR_VERSION).end_object();
    return json_response(std::move(out));
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
    std::string out;
    text::JsonWriter json(out);
    json.begin_list();
    for (size_t id = 0; id < std::max<size_t>(model.engine->max_sequences(), status.running.size()); ++id) {
        json.begin_object()
            .member("id", id)
            .member("n_ctx", model.context_of_request())
            .member("speculative", model.draft_tokens.has_value());
        if (id >= status.running.size()) {
            json.member("is_processing", false).end_object();
            continue;
        }
        const session::RequestState& state = status.running[id];
        json.member("id_task", state.id).member("is_processing", !state.paused);
        json.member("mine", state.client == client);
        if (state.client == client) {
            json.member("prompt_tokens", state.prompt_tokens).member("cached_tokens", state.cached_tokens);
            json.member("reused_tokens", state.reused_tokens).member("n_decoded", state.new_tokens);
            json.member("state", state.paused ? "paused" : state.generating ? "generating" : "prompt");
            json.key("seconds").fixed(state.seconds, 3);
        }
        json.end_object();
    }
    json.end_list();
    return json_response(std::move(out));
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
