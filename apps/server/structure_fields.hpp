// Fields of requests that say what an answer may be.
#pragma once

#include "apps/server/json_fields.hpp"
#include "apps/server/model_text.hpp"
#include "apps/server/request_fields.hpp"
#include "apps/structure/answer_grammar.hpp"
#include "core/session/generation.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace tessera::server {

struct AskedStructure {
    std::string field;  // that asks for it
    structure::Body body;
};

// Whether the field "unenforced" is "allow": what a schema says and cannot be enforced is left out and reported in
// place of a refusal. Throws ApiError(400).
bool allows_unenforced(const Fields& fields);

// A part of a schema as a value of the header x-tessera-unenforced: with percent escapes for what headers cannot have.
std::string header_value(std::string_view part);

// Nothing: any text will do. Throws ApiError(400) for what cannot be held to, and where two fields ask.
std::optional<AskedStructure> read_structure(const Fields& fields, const ModelText& model);

// What the field `field` asks for with a JSON schema: an object, true or false, or a text of JSON. Throws ApiError(400)
// for what cannot be held to.
AskedStructure structure_of(const std::string& field, const boost::json::value& schema,
                            const structure::SchemaOptions& options);

// Any object of JSON.
AskedStructure any_object(const std::string& field);

// Compiles the grammar, gives it to the request, and sets delivery.structure_field to `field`, which asks for it.
// Throws ApiError: 400 with the reason where the grammar cannot be enforced, 501 where llguidance is not installed, 503
// where the helper does not work.
void hold_to(session::Request& request, const structure::GrammarText& grammar, const ModelText& model,
             const std::string& field, Delivery& delivery);

// The same, for answers that are the structure alone, without reasoning before it. Adds to delivery.unenforced.
void hold_to(session::Request& request, const AskedStructure& structure, const ModelText& model, Delivery& delivery);

// Adds what the structure leaves out to delivery.unenforced.
void report_unenforced(const AskedStructure& structure, Delivery& delivery);

}  // namespace tessera::server
