// Vectors of texts, in whatever API: the model's hidden states, pooled.
#pragma once

#include "apps/server/prompts_of_request.hpp"
#include "apps/server/start_response.hpp"
#include "core/text/json_writer.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tessera::server {

inline constexpr size_t kMaximumInputs = 2048;  // of a request

struct Embeddings {
    std::string model;
    std::vector<std::vector<float>> vectors;  // a prompt each
    uint64_t prompt_tokens = 0;               // of all of them
    double seconds = 0;
    bool base64 = false;  // vectors are to be told so
};

struct EmbeddingsDelivery {
    // The p of the norm by which vectors are divided; 0: the largest value becomes 32760; negative: they stay.
    int64_t norm = 2;
    bool base64 = false;
    std::string (*write)(const Embeddings&) = nullptr;
    size_t dimensions = 0;  // values of each vector, the first ones; 0: all
};

struct EmbeddingsRequest {
    Delivery delivery;
    std::vector<session::Request> prompts;
    EmbeddingsDelivery embeddings;
};

// The texts or tokens of the field `name`, with what the field pooling says of their states. Throws ApiError(400).
std::vector<session::Request> read_inputs(const Fields& fields, std::string_view name, const ModelText& model);

// The field encoding_format: whether it is base64. Throws ApiError(400).
bool reads_base64(const Fields& fields);

// The field dimensions, 1 to the length of the model's hidden states; 0 where it is missing. Throws ApiError(400).
size_t read_dimensions(const Fields& fields, const ModelText& model);

// Divides by the norm as EmbeddingsDelivery has it; a vector of zeros stays.
void normalise(std::vector<float>& vector, int64_t norm);

// Appends a list of numbers, or a text in base64 of little-endian 32-bit floats.
void write_vector(text::JsonWriter& json, const std::vector<float>& vector, bool base64);

class EmbeddingsResponder final : public Responder {
  public:
    EmbeddingsResponder(std::shared_ptr<Exchange> exchange, std::shared_ptr<const ServedModel> model, Delivery delivery,
                        EmbeddingsDelivery embeddings, size_t prompts);

  private:
    void on_token(size_t, const session::ShownToken&, std::string_view) override {}
    void on_finish(size_t prompt, const session::Answer& answer) override;
    void on_end() override;
    std::string progress_json(std::string_view) override { return {}; }

    const EmbeddingsDelivery how_;
    Embeddings embeddings_;
};

// Throws ApiError(501) where the model was loaded without its hidden states.
void check_embeddings(const EndpointContext& context, const ServedModel& model);

// The handler of an endpoint that answers with vectors: `Read` makes an EmbeddingsRequest of body and model.
template <auto Read>
std::shared_ptr<Responder> respond_with_embeddings(const EndpointContext& context,
                                                   const std::shared_ptr<Exchange>& exchange) {
    std::shared_ptr<const ServedModel> model = context.host.model();
    check_embeddings(context, *model);
    EmbeddingsRequest read = Read(exchange->request().body, *model);
    exchange->drop_body();
    const size_t prompts = read.prompts.size();
    return start_response(
        context, exchange->request(),
        std::make_shared<EmbeddingsResponder>(exchange, std::move(model), read.delivery, read.embeddings, prompts),
        std::move(read.prompts));
}

}  // namespace tessera::server
