#include "apps/server/dialects/llama/requests.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/conversation.hpp"
#include "apps/server/dialects/llama/dialect.hpp"
#include "apps/server/prompts_of_request.hpp"
#include "apps/server/structure_fields.hpp"
#include "core/text/json_writer.hpp"

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <algorithm>

namespace tessera::server {
namespace {

namespace json = boost::json;

constexpr int64_t kMaximumPlainProbabilities = 100;
constexpr size_t kMaximumResponseFields = 128;

// Nothing if all of the answer is wanted.
std::optional<std::vector<AskedField>> read_asked_fields(const Fields& fields, const GenerationSettings& settings) {
    const json::array* const list = fields.array("response_fields", kMaximumResponseFields);
    if (!list || list->empty()) return std::nullopt;
    std::vector<AskedField> asked;
    json::value parsed;
    for (const json::value& value : *list) {
        if (!value.is_string()) fields.reject("response_fields", "a list of texts");
        AskedField field{std::string(value.get_string()), {}, {}, {}};
        if (std::ranges::find(asked, field.path, &AskedField::path) != asked.end()) continue;
        field.name = field.path.substr(0, field.path.find('/'));
        field.member = field.path.substr(std::min(field.name.size() + 1, field.path.size()));
        if (field.name == "generation_settings" && !field.member.empty() && field.member != "seed") {
            if (parsed.is_null()) parsed = json::parse(settings.json(0));
            field.known = json_member(parsed, field.member);
        }
        asked.push_back(std::move(field));
    }
    return asked;
}

bool tells(const PlainDelivery& delivery, std::string_view name) {
    return !delivery.fields ||
           std::ranges::any_of(*delivery.fields, [&](const AskedField& field) { return field.name == name; });
}

}  // namespace

std::optional<std::string> json_member(const json::value& whole, std::string_view path) {
    const json::value* at = &whole;
    while (at && !path.empty()) {
        const std::string_view key = path.substr(0, path.find('/'));
        path.remove_prefix(std::min(key.size() + 1, path.size()));
        at = at->is_object() ? at->get_object().if_contains(json::string_view(key.data(), key.size())) : nullptr;
    }
    return at ? std::optional(json::serialize(*at)) : std::nullopt;
}

namespace {

// `prompts`: reads them, with their texts if it is told so.
template <typename Prompts>
PlainRequest read_plain(const Fields& fields, const ModelText& model, const Prompts& read_all) {
    const auto structure = read_structure(fields, model);
    PlainRequest read;
    read.delivery = read_delivery(fields);
    // Not as an initialiser: if one behind another throws, GCC 12 destroys members that were never made.
    PlainDelivery& delivery = read.plain;
    delivery.stops = read_stops(fields);
    session::Request request = read_request(fields, model);
    request.show_control = shows_control(fields);
    request.show_end = false;
    if (const auto count =
            read_any(fields, {"n_probs", "logprobs"},
                     [&](std::string_view name) { return fields.integer(name, 0, kMaximumPlainProbabilities); });
        count && *count > 0)
        request.probabilities = static_cast<uint32_t>(*count);
    delivery.probabilities = request.probabilities.has_value();
    delivery.sampled = request.sampled_probabilities = fields.boolean("post_sampling_probs").value_or(false);
    delivery.tokens = fields.boolean("return_tokens").value_or(false);
    delivery.settings = GenerationSettings(request, read.delivery, delivery.stops, *model.tokenizer);
    delivery.fields = read_asked_fields(fields, delivery.settings);
    const bool told = !read.delivery.stream && tells(delivery, "prompt");
    std::vector<Prompt> prompts = read_all(told);
    fields.check_read();
    if (structure) hold_to(request, *structure, model, read.delivery);
    for (const Prompt& prompt : prompts)
        delivery.prompts.push_back(told ? text::json_string(prompt.text) : std::string());
    read.prompts = requests_of(request, std::move(prompts), read.delivery);
    return read;
}

std::vector<text::OtherFile> read_extra(const Fields& fields) {
    std::vector<text::OtherFile> files;
    each_object(fields, "input_extra", kMaximumParts, [&](const json::object& object, const std::string& path) {
        const Fields file(object, input_extra_table(), path);
        const auto text = file.text("text");
        if (!text) file.reject("text", "a text");
        files.push_back({std::string(file.text("filename").value_or("tmp")), std::string(*text)});
        file.check_read();
    });
    return files;
}

}  // namespace

PlainRequest read_plain_completion(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, plain_completion_table());
    return read_plain(fields, model, [&](bool told) { return read_prompts(fields, model, {.with_text = told}); });
}

PlainRequest read_infill(std::string_view body, const ModelText& model) {
    const json::object object = parse_object(body);
    const Fields fields(object, infill_table());
    return read_plain(fields, model, [&](bool told) {
        for (const char* name : {"input_prefix", "input_suffix"})
            if (!fields.text(name)) fields.reject(name, "a text");
        const std::string begun(fields.text("prompt").value_or(""));
        const text::Gap gap{std::string(*fields.text("input_prefix")) + begun,
                            std::string(*fields.text("input_suffix")), read_extra(fields)};
        return std::vector<Prompt>{{infill_prompt(gap, model), false, told ? begun : std::string()}};
    });
}

std::string read_control(std::string_view body) {
    const json::object object = parse_object(body);
    const Fields fields(object, control_table());
    const auto id = fields.text("id"), action = fields.text("action");
    if (!id || id->empty()) fields.reject("id", "the id of an answer that is being generated");
    if (action != "reasoning_end") fields.reject("action", "\"reasoning_end\"");
    fields.check_read();
    return std::string(*id);
}

}  // namespace tessera::server
