#include "apps/server/dialects/llama/embedding.hpp"

#include "apps/server/dialects/llama/dialect.hpp"
#include "core/text/json_writer.hpp"

namespace tessera::server {
namespace {

constexpr int64_t kMostNorm = 1000;

// A text may have several vectors there; pooled it has one.
std::string plain_json(const Embeddings& embeddings) {
    std::string out;
    text::JsonWriter json(out);
    json.begin_list();
    for (size_t i = 0; i < embeddings.vectors.size(); ++i) {
        json.begin_object().member("index", i).key("embedding").begin_list();
        write_vector(json, embeddings.vectors[i], embeddings.base64);
        json.end_list().end_object();
    }
    json.end_list();
    return out;
}

}  // namespace

EmbeddingsRequest read_embedding(std::string_view body, const ModelText& model) {
    const boost::json::object object = parse_object(body);
    const Fields fields(object, embedding_table());
    EmbeddingsRequest read;
    read.embeddings = {.norm = fields.integer("embd_normalize", -1, kMostNorm).value_or(2),
                       .base64 = reads_base64(fields),
                       .write = plain_json};
    read.embeddings.dimensions = read_dimensions(fields, model);
    if (fields.has("content") && fields.has("input")) fields.contradict("content", "input");
    read.prompts = read_inputs(fields, fields.has("input") ? "input" : "content", model);
    fields.check_read();
    return read;
}

}  // namespace tessera::server
