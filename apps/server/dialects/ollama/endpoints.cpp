// Chats and texts as ollama has them, and what its clients ask of models.
#include "apps/server/dialects/ollama/dialect.hpp"
#include "apps/server/dialects/ollama/embed.hpp"
#include "apps/server/dialects/ollama/requests.hpp"
#include "apps/server/dialects/ollama/responder.hpp"
#include "apps/server/embeddings_responder.hpp"
#include "apps/server/start_response.hpp"
#include "core/base/error.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>

#include <ctime>
#include <string>

namespace tessera::server {
namespace ollama {
namespace {

constexpr std::string_view kNoPulling =
    "the server has the one model that it was started with: give it another file with -m";

void write_details(text::JsonWriter& json, const ServedModel& model) {
    const std::string& family = model.engine->info().architecture;
    json.key("details").begin_object().member("parent_model", "").member("format", "gguf").member("family", family);
    json.key("families").begin_list().value(family).end_list();
    const auto size = model.engine->file().metadata().find_string("general.size_label");
    json.member("parameter_size", size.value_or("")).member("quantization_level", "").end_object();
}

// Whether the template writes what tools there are.
bool describes_tools(const ServedModel& model) try {
    if (!model.writer) return false;
    text::ChatOptions options = model.writer->options();
    options.tools.push_back(function_tool("f", "", {}));
    const text::ChatMessage question{"user", "a"};
    model.writer->write({&question, 1}, options);
    return true;
} catch (const Error&) {
    return false;
}

// A list of the one model; `running`: with what /api/ps tells beside.
std::string models_json(const ServedModel* model, bool running) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().key("models").begin_list();
    if (model) {
        json.begin_object().member("name", model->name).member("model", model->name);
        json.member("size", model->engine->file().file_bytes());
        write_details(json, *model);
        if (running) {
            // It stays.
            json.member("expires_at", "9999-12-31T23:59:59Z").member("size_vram", 0);
            json.member("context_length", model->context_of_request());
        } else {
            json.member("modified_at", time_text(model->created));
        }
        json.end_object();
    }
    json.end_list().end_object();
    return out;
}

HttpResponse tags(const EndpointContext& context, const HttpRequest&) {
    return json_response(models_json(context.host.peek().get(), false));
}

HttpResponse running(const EndpointContext& context, const HttpRequest&) {
    return json_response(models_json(context.host.peek().get(), true));
}

// Of the API that is answered: clients compare it with what they need. Codex asks for this one, which has
// /v1/responses.
HttpResponse version(const EndpointContext&, const HttpRequest&) {
    return json_response(R"({"version":"0.13.4"})");
}

HttpResponse show(const EndpointContext& context, const HttpRequest& request) {
    const std::shared_ptr<const ServedModel> model = context.host.model();
    const boost::json::object object = parse_object(request.body);
    const Fields fields(object, show_table());
    fields.check_read();
    const ModelInfo& info = model->engine->info();
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("modelfile", "").member("parameters", "").member("template", model->chat_template);
    json.member("modified_at", time_text(model->created));
    write_details(json, *model);
    json.key("model_info").begin_object().member("general.architecture", info.architecture);
    json.member("general.basename", info.name);
    json.member(info.architecture + ".context_length", model->context_of_request());
    json.member(info.architecture + ".embedding_length", info.embedding);
    json.member(info.architecture + ".block_count", info.layers).end_object();
    json.key("capabilities").begin_list().value("completion");
    if (describes_tools(*model)) json.value("tools");
    if (model->writer && model->writer->can_think()) json.value("thinking");
    json.end_list().end_object();
    return json_response(std::move(out));
}

// What a request for no text gets: the model is there, and stays.
std::string loading_json(const ServedModel& model, std::string_view reason, bool generate) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("model", model.name);
    json.member("created_at", time_text(std::time(nullptr)));
    if (generate)
        json.member("response", "");
    else
        json.key("message").begin_object().member("role", "assistant").member("content", "").end_object();
    json.member("done_reason", reason).member("done", true).end_object();
    return out;
}

template <auto Read, typename Response, bool kGenerate>
std::shared_ptr<Responder> respond(const EndpointContext& context, const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    Asked read = Read(exchange->request().body, *model);
    if (read.loading.empty())
        return respond_to<Response>(std::move(static_cast<ChatRequest&>(read)), context, exchange, std::move(model));
    exchange->drop_body();
    exchange->respond(json_response(loading_json(*model, read.loading, kGenerate)));
    return nullptr;
}

}  // namespace

constexpr Endpoint kEndpoints[] = {
    {.method = "POST",
     .paths = "/api/chat",
     .generate = respond<read_chat, OllamaChatResponder, false>,
     .dialect = &kOllama},
    {.method = "POST",
     .paths = "/api/generate",
     .generate = respond<read_generate, GenerateResponder, true>,
     .dialect = &kOllama},
    {.method = "POST", .paths = "/api/show", .work = show, .dialect = &kOllama},
    {.method = "GET", .paths = "/api/tags", .look = tags, .dialect = &kOllama},
    {.method = "GET", .paths = "/api/ps", .look = running, .dialect = &kOllama},
    {.method = "GET", .paths = "/api/version", .look = version, .dialect = &kOllama},
    {.method = "",
     .paths = "/api/pull /api/push /api/create /api/copy /api/delete",
     .refusal = kNoPulling,
     .dialect = &kOllama},
    {.method = "POST", .paths = "/api/embed", .generate = respond_with_embeddings<read_embed>, .dialect = &kOllama},
    {.method = "POST",
     .paths = "/api/embeddings",
     .generate = respond_with_embeddings<read_embeddings>,
     .dialect = &kOllama},
};

}  // namespace ollama

namespace endpoint_files {

extern const std::span<const Endpoint> ollama = server::ollama::kEndpoints;

}  // namespace endpoint_files

}  // namespace tessera::server
