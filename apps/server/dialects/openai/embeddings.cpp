#include "apps/server/dialects/openai/embeddings.hpp"

#include "apps/server/dialects/openai/dialect.hpp"
#include "core/text/json_writer.hpp"

namespace tessera::server {
namespace {

std::string list_json(const Embeddings& embeddings) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_object().member("object", "list").key("data").begin_list();
    for (size_t i = 0; i < embeddings.vectors.size(); ++i) {
        json.begin_object().member("object", "embedding").member("index", i).key("embedding");
        write_vector(json, embeddings.vectors[i], embeddings.base64);
        json.end_object();
    }
    json.end_list().member("model", embeddings.model).key("usage").begin_object();
    json.member("prompt_tokens", embeddings.prompt_tokens).member("total_tokens", embeddings.prompt_tokens);
    json.end_object().end_object();
    return out;
}

}  // namespace

EmbeddingsRequest read_embeddings(std::string_view body, const ModelText& model) {
    const boost::json::object object = parse_object(body);
    const Fields fields(object, embeddings_table());
    EmbeddingsRequest read;
    read.embeddings = {.base64 = reads_base64(fields), .write = list_json};
    read.embeddings.dimensions = read_dimensions(fields, model);
    read.prompts = read_inputs(fields, "input", model);
    fields.check_read();
    return read;
}

}  // namespace tessera::server
