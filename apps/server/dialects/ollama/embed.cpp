#include "apps/server/dialects/ollama/embed.hpp"

#include "apps/server/dialects/ollama/dialect.hpp"
#include "core/text/json_writer.hpp"

namespace tessera::server::ollama {
namespace {

std::string embed_json(const Embeddings& embeddings) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("model", embeddings.model).key("embeddings").begin_list();
    for (const std::vector<float>& vector : embeddings.vectors) write_vector(json, vector, false);
    json.end_list()
        .member("total_duration", static_cast<uint64_t>(embeddings.seconds * 1e9))
        .member("load_duration", 0);
    json.member("prompt_eval_count", embeddings.prompt_tokens).end_object();
    return out;
}

std::string embeddings_json(const Embeddings& embeddings) {
    std::string out;
    text::JsonWriter json(out);
    write_vector(json.begin_object().key("embedding"), embeddings.vectors.front(), false);
    json.end_object();
    return out;
}

EmbeddingsRequest read_field(std::string_view body, const FieldTable& table, std::string_view name,
                             const ModelText& model) {
    const boost::json::object object = parse_object(body);
    const Fields fields(object, table);
    EmbeddingsRequest read;
    read.delivery.dialect = &kOllama;
    read.embeddings.dimensions = read_dimensions(fields, model);
    read.prompts = read_inputs(fields, name, model);
    fields.check_read();
    return read;
}

}  // namespace

EmbeddingsRequest read_embed(std::string_view body, const ModelText& model) {
    EmbeddingsRequest read = read_field(body, embed_table(), "input", model);
    read.embeddings.write = embed_json;
    return read;
}

EmbeddingsRequest read_embeddings(std::string_view body, const ModelText& model) {
    EmbeddingsRequest read = read_field(body, embeddings_table(), "prompt", model);
    if (read.prompts.size() != 1) throw ApiError(400, "prompt: one text; use /api/embed for several", "prompt");
    read.embeddings.write = embeddings_json;
    return read;
}

}  // namespace tessera::server::ollama
