#include "apps/server/embeddings_responder.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tessera::server {
namespace {

constexpr uint64_t kFloatBytes = 12;  // of a number in JSON, about
constexpr double kLargest = 32760;    // of norm 0, as llama.cpp has it

std::string base64_of(const std::vector<float>& vector) {
    static constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    for (const float value : vector) {
        const auto bits = std::bit_cast<uint32_t>(value);
        for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xff);
    }
    std::string out;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const size_t count = std::min<size_t>(3, bytes.size() - i);
        uint32_t group = 0;
        for (size_t k = 0; k < 3; ++k) group = group << 8 | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0u);
        for (size_t k = 0; k < 4; ++k) out += k <= count ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
    return out;
}

session::Pooling read_pooling(const Fields& fields, const ModelText& model) {
    const auto given = fields.text("pooling");
    if (given == "mean") return session::Pooling::kMean;
    if (given == "last") return session::Pooling::kLast;
    if (given) fields.reject("pooling", "mean or last");
    if (!model.pooling)
        throw ApiError(
            400,
            "pooling: the model's file asks for one that is not computed; give \"mean\" or \"last\", or start "
            "the server with --pooling",
            "pooling");
    return *model.pooling;
}

}  // namespace

std::vector<session::Request> read_inputs(const Fields& fields, std::string_view name, const ModelText& model) {
    session::Request request;
    request.pooling = read_pooling(fields, model);
    request.reuse = request.pooling == session::Pooling::kLast;
    request.max_new_tokens = 0;
    request.context = model.request_context;
    std::vector<session::Request> requests;
    for (Prompt& prompt : read_prompts(fields, model, {.name = name, .continued = false, .most = kMaximumInputs})) {
        if (prompt.tokens.empty()) fields.reject(name, "texts of at least one token");
        requests.push_back(request);
        requests.back().prompt = std::move(prompt.tokens);
    }
    return requests;
}

bool reads_base64(const Fields& fields) {
    const auto format = fields.text("encoding_format");
    if (format && *format != "float" && *format != "base64") fields.reject("encoding_format", "float or base64");
    return format == "base64";
}

size_t read_dimensions(const Fields& fields, const ModelText& model) {
    const int64_t most = model.embedding ? model.embedding : std::numeric_limits<int32_t>::max();
    return static_cast<size_t>(fields.integer("dimensions", 1, most).value_or(0));
}

void normalise(std::vector<float>& vector, int64_t norm) {
    if (norm < 0) return;
    double size = 0;
    for (const float value : vector) {
        const double magnitude = std::abs(double{value});
        size = norm == 0 ? std::max(size, magnitude / kLargest) : size + std::pow(magnitude, static_cast<double>(norm));
    }
    if (norm > 0) size = std::pow(size, 1.0 / static_cast<double>(norm));
    if (!(size > 0) || !std::isfinite(size)) return;
    for (float& value : vector) value = static_cast<float>(value / size);
}

void write_vector(text::JsonWriter& json, const std::vector<float>& vector, bool base64) {
    if (base64) {
        json.value(base64_of(vector));
        return;
    }
    json.begin_list();
    for (const float value : vector) json.value(value);
    json.end_list();
}

EmbeddingsResponder::EmbeddingsResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model,
                                         Delivery delivery, EmbeddingsDelivery embeddings, size_t prompts)
    : Responder(std::move(exchange), std::move(model), delivery, prompts), how_(embeddings) {
    embeddings_.model = this->model().name;
    embeddings_.base64 = how_.base64;
    embeddings_.vectors.resize(prompts);
}

void EmbeddingsResponder::on_finish(size_t prompt, const session::Answer& answer) {
    std::vector<float>& vector = embeddings_.vectors[prompt];
    vector = answer.embedding;
    if (how_.dimensions > 0 && how_.dimensions < vector.size()) vector.resize(how_.dimensions);
    normalise(vector, how_.norm);
    embeddings_.prompt_tokens += answer.prompt_tokens;
    embeddings_.seconds = std::max(embeddings_.seconds, answer.seconds);
}

void EmbeddingsResponder::on_end() {
    const uint64_t values = embeddings_.vectors.size() * embeddings_.vectors.front().size();
    respond_later(values * kFloatBytes, [this] { return how_.write(embeddings_); });
}

void check_embeddings(const EndpointContext& context, const ServedModel& model) {
    if (model.engine->gives_hidden_states()) return;
    throw ApiError(501,
                   context.settings.embeddings
                       ? "the model's architecture is a plugin's, which gives no hidden states"
                       : "embeddings are computed where the server was started with --embeddings",
                   {}, "not_supported");
}

}  // namespace tessera::server
