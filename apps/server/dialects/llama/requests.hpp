// Bodies of requests to /completion, as llama-server has them, without anything of the engine.
#pragma once

#include "apps/server/dialects/llama/generation_settings.hpp"
#include "apps/server/model_text.hpp"
#include "apps/server/request_fields.hpp"

#include <boost/json/value.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::server {

// A field of the answer that a request asks for.
struct AskedField {
    std::string path;    // "timings/predicted_n"; its name in the answer
    std::string name;    // "timings"
    std::string member;  // "predicted_n", or a path; empty: all of the field
    // JSON of what the request alone decides: a member of generation_settings, if there is one of that name.
    std::optional<std::string> known;
};

// As llama-server has it.
struct PlainDelivery {
    std::vector<std::string> prompts;  // JSON, by prompt; empty where the answer does not tell it
    std::vector<std::string> stops;
    bool tokens = false;  // the answer has its tokens, too
    bool probabilities = false;
    bool sampled = false;  // probabilities are those that samplers have left
    GenerationSettings settings;
    std::optional<std::vector<AskedField>> fields;  // of the answer; nothing: all
};

// The JSON of the member at a path of keys, as "a/b". Nothing if there is none.
std::optional<std::string> json_member(const boost::json::value& whole, std::string_view path);

struct PlainRequest {
    Delivery delivery;
    std::vector<session::Request> prompts;
    PlainDelivery plain;
};

// Callbacks, client and space of the session's requests are the caller's. Throws ApiError, and Error for what the
// sampler refuses.
PlainRequest read_plain_completion(std::string_view body, const ModelText& model);
// Of /infill. Throws ApiError(501) as well, for a vocabulary without the tokens that frame a gap.
PlainRequest read_infill(std::string_view body, const ModelText& model);

// Returns the id of the answer whose reasoning is to end. Throws ApiError(400).
std::string read_control(std::string_view body);

}  // namespace tessera::server
