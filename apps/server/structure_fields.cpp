#include "apps/server/structure_fields.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/generation_fields.hpp"
#include "core/base/error.hpp"

#include <spdlog/fmt/fmt.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr size_t kMaximumAlternatives = 10'000;

// Whatever makes the body, with the field in its errors.
template <typename Make>
AskedStructure asked(const std::string& field, const Make& make) {
    try {
        return {field, make()};
    } catch (const Error& error) {
        throw ApiError(400, fmt::format("{}: {}", field, error.what()), field);
    }
}

// An object, or true or false; a text of JSON, too, as clients of other servers send it.
AskedStructure schema_of(const std::string& field, const json::value& value, const structure::SchemaOptions& options) {
    return asked(field, [&] {
        if (value.is_string()) return structure::schema_body(std::string_view(value.get_string()), options);
        return structure::schema_body(value, options);
    });
}

// {"type": "json_schema", "json_schema": {"name": ..., "schema": ..., "strict": ...}}; also with "schema" beside the
// type, as llama-server takes it.
std::optional<AskedStructure> read_response_format(const Fields& fields, structure::SchemaOptions options) {
    const json::object* const given = fields.object("response_format");
    if (!given) return std::nullopt;
    const Fields format(*given, response_format_table(), fields.path("response_format"));
    const auto type = format.text("type");
    const json::object* const described = format.object("json_schema");
    const json::value* const schema = format.find("schema");
    std::optional<AskedStructure> made;
    if (type == "json_schema") {
        if (described) {
            const Fields inner(*described, json_schema_table(), format.path("json_schema"));
            inner.text("name");
            inner.text("description");
            options.closed = inner.boolean("strict").value_or(false);
            const json::value* const its_schema = inner.find("schema");
            if (!its_schema) inner.reject("schema", "a JSON schema");
            if (schema) format.contradict("json_schema", "schema");
            made = schema_of(inner.path("schema"), *its_schema, options);
            inner.check_read();
        } else {
            if (!schema) format.reject("json_schema", "an object with a schema");
            made = schema_of(format.path("schema"), *schema, options);
        }
    } else if (type == "json_object") {
        if (described) format.refuse("json_schema", "belongs to the type json_schema");
        made = schema ? schema_of(format.path("schema"), *schema, options)
                      : asked("response_format", [] { return structure::any_object_body(); });
    } else if (type == "text") {
        if (described) format.refuse("json_schema", "belongs to the type json_schema");
        if (schema) format.refuse("schema", "belongs to the type json_schema");
    } else {
        format.reject("type", R"("text", "json_object" or "json_schema")");
    }
    format.check_read();
    return made;
}

AskedStructure choice_body_of(const Fields& fields, std::string_view name) {
    const json::array* const list = fields.array(name, kMaximumAlternatives);
    std::vector<std::string> choices;
    for (const json::value& value : *list) {
        if (!value.is_string() || value.get_string().empty())
            fields.reject(name, "a list of texts, none of them empty");
        choices.emplace_back(value.get_string());
    }
    if (choices.empty()) fields.reject(name, "a list of at least one text");
    return asked(fields.path(name), [&] { return structure::choice_body(choices); });
}

// Which of the names of one field is given. An empty text or list asks for nothing, as llama.cpp has it. Throws
// ApiError(400) where two say different things.
std::optional<std::string_view> given_of(const Fields& fields, std::initializer_list<std::string_view> names) {
    std::optional<std::string_view> found;
    for (const std::string_view name : names) {
        const json::value* const value = fields.find(name);
        const bool is_empty = value && ((value->is_string() && value->get_string().empty()) ||
                                        (value->is_array() && value->get_array().empty()));
        if (!value || is_empty) continue;
        if (found && *fields.find(*found) != *value) fields.contradict(*found, name);
        if (!found) found = name;
    }
    return found;
}

// Of fields that may stand in the request or in an object of it.
std::vector<AskedStructure> read_named(const Fields& fields, const ModelText& model,
                                       const structure::SchemaOptions& options,
                                       std::initializer_list<std::string_view> schemas,
                                       std::initializer_list<std::string_view> patterns,
                                       std::initializer_list<std::string_view> choices,
                                       std::initializer_list<std::string_view> grammars) {
    std::vector<AskedStructure> found;
    if (const auto name = given_of(fields, schemas))
        found.push_back(schema_of(fields.path(*name), *fields.find(*name), options));
    if (const auto name = given_of(fields, patterns))
        found.push_back(asked(fields.path(*name), [&] { return structure::regex_body(*fields.text(*name)); }));
    if (const auto name = given_of(fields, choices)) found.push_back(choice_body_of(fields, *name));
    if (const auto name = given_of(fields, grammars))
        found.push_back(
            asked(fields.path(*name), [&] { return structure::gbnf_body(*fields.text(*name), *model.tokenizer); }));
    return found;
}

}  // namespace

bool allows_unenforced(const Fields& fields) {
    const auto word = fields.text("unenforced");
    if (word && *word != "allow" && *word != "reject") fields.reject("unenforced", R"("allow" or "reject")");
    return word == "allow";
}

std::string header_value(std::string_view part) {
    constexpr size_t kMostPartBytes = 200;
    std::string made;
    for (const char c : part.substr(0, kMostPartBytes)) {
        const bool plain = c > ' ' && c < 0x7f && c != ',' && c != '%';
        made += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return made;
}

AskedStructure structure_of(const std::string& field, const json::value& schema,
                            const structure::SchemaOptions& options) {
    return schema_of(field, schema, options);
}

AskedStructure any_object(const std::string& field) {
    return asked(field, [] { return structure::any_object_body(); });
}

std::optional<AskedStructure> read_structure(const Fields& fields, const ModelText& model) {
    const structure::SchemaOptions options{.allow_unenforced = allows_unenforced(fields)};
    std::vector<AskedStructure> found =
        read_named(fields, model, options, {"json_schema", "guided_json"}, {"regex", "guided_regex"},
                   {"choice", "guided_choice"}, {"grammar", "grammar_string"});
    if (const json::object* const outputs = fields.object("structured_outputs")) {
        const Fields inner(*outputs, structured_outputs_table(), fields.path("structured_outputs"));
        for (AskedStructure& one : read_named(inner, model, options, {"json"}, {"regex"}, {"choice"}, {"grammar"}))
            found.push_back(std::move(one));
        if (inner.boolean("json_object").value_or(false))
            found.push_back(asked(inner.path("json_object"), [] { return structure::any_object_body(); }));
        inner.check_read();
    }
    if (auto format = read_response_format(fields, options)) found.push_back(std::move(*format));
    if (found.empty()) return std::nullopt;
    if (found.size() > 1)
        throw ApiError(400,
                       fmt::format("{}: excludes {}: an answer is held to one form", found[1].field, found[0].field),
                       found[1].field);
    for (const std::string_view name : {"ignore_eos", "ban_eos_token"}) {
        if (fields.boolean(name).value_or(false))
            fields.refuse(name, "an answer that is held to a form ends where that does");
    }
    return std::move(found.front());
}

void hold_to(session::Request& request, const structure::GrammarText& grammar, const ModelText& model,
             const std::string& field, Delivery& delivery) {
    delivery.structure_field = field;
    try {
        if (!model.structure) fail(TSR_NOT_FOUND, "this server has no helper");
        std::shared_ptr<const structure::Grammar> compiled = model.structure->compile(grammar);
        request.make_constraint = [compiled = std::move(compiled)] { return compiled->begin(); };
    } catch (const Error& error) {
        switch (error.code()) {
            case TSR_NOT_FOUND:
                throw ApiError(501,
                               fmt::format("{}: answers are held to a form by llguidance, which is not installed ({}): "
                                           "run tools/setup --structured where the program was built",
                                           field, error.what()),
                               field, "not_installed");
            case TSR_INVALID_ARGUMENT:
                throw ApiError(400, fmt::format("{}: answers cannot be held to it: {}", field, error.what()), field);
            case TSR_DOES_NOT_FIT: {
                ApiError full(503, fmt::format("{}: {}", field, error.what()), field, "overloaded");
                full.retry_after = 1;
                throw full;
            }
            default:
                throw ApiError(503, fmt::format("{}: {}", field, error.what()), field, "structure_failed");
        }
    }
}

void report_unenforced(const AskedStructure& structure, Delivery& delivery) {
    for (const std::string& place : structure.body.unenforced)
        delivery.unenforced.push_back(fmt::format("{}/{}", structure.field, place));
}

void hold_to(session::Request& request, const AskedStructure& structure, const ModelText& model, Delivery& delivery) {
    report_unenforced(structure, delivery);
    hold_to(request, structure::answer_grammar(structure.body), model, structure.field, delivery);
}

}  // namespace tessera::server
