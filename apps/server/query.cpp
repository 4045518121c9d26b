#include "apps/server/query.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/http_text.hpp"
#include "apps/server/json_fields.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tessera::server {
namespace {

namespace json = boost::json;

using enum Standing;

constexpr std::string_view kNoCache = "keeps caches on the way from answering; this server's answers say that already";
constexpr std::string_view kQueryOff = R"(["", "0", "false"])";

constexpr FieldRow kEvery[] = {
    {"_", kHarmless, kNoCache},
    {"t", kHarmless, kNoCache},
    {"ts", kHarmless, kNoCache},
    {"v", kHarmless, kNoCache},
    {"cb", kHarmless, kNoCache},
    {"rnd", kHarmless, kNoCache},
    {"nocache", kHarmless, kNoCache},
    {"timestamp", kHarmless, kNoCache},
    {"model", kHarmless, "there is one model"},
    {"autoload", kHarmless, "the model is loaded from the start"},
    {"reload", kHarmless, "what is told is always what there is"},
    {"beta", kHarmless, "what is offered does not depend on it"},
    {"api-version", kHarmless, "there is one version of the API"},
};

constexpr FieldRow kSlots[] = {
    {"fail_on_no_slot", kHonoured, "1: 503 where all slots are in use"},
};

constexpr FieldRow kSlot[] = {
    {"action", kHonoured, "save, restore or erase"},
};

constexpr FieldRow kModels[] = {
    {"limit", kHarmless, "the list has one model"},
    {"order", kHarmless, "the list has one model"},
};

constexpr FieldRow kHealth[] = {
    {"include_slots", kRefused, "/slots tells of slots", kQueryOff},
    {"fail_on_no_slot", kRefused, "/slots takes it", kQueryOff},
};

const FieldTable& every_table() {
    static const FieldTable table("the query of other endpoints", {kEvery});
    return table;
}

const FieldTable& slots_table() {
    static const FieldTable table("the query of /slots", {kSlots, kEvery});
    return table;
}

const FieldTable& slot_action_table() {
    static const FieldTable table("the query of /slots/{id}", {kSlot, kEvery});
    return table;
}

const FieldTable& health_table() {
    static const FieldTable table("the query of /health", {kHealth, kEvery});
    return table;
}

const FieldTable& models_table() {
    static const FieldTable table("the query of /v1/models", {kModels, kEvery});
    return table;
}

std::string decoded(std::string_view text) {
    std::string plain(text);
    std::ranges::replace(plain, '+', ' ');
    return percent_decoded(plain);
}

}  // namespace

json::object parse_query(std::string_view query) {
    json::object parameters;
    while (!query.empty()) {
        const std::string_view one = query.substr(0, query.find('&'));
        query.remove_prefix(std::min(one.size() + 1, query.size()));
        if (one.empty()) continue;
        const size_t sign = std::min(one.find('='), one.size());
        const std::string name = decoded(one.substr(0, sign));
        const std::string value = decoded(one.substr(std::min(sign + 1, one.size())));
        if (!parameters.emplace(json::string_view(name), json::string_view(value)).second) {
            const std::string shown = printable(name, 60);
            throw ApiError(400, fmt::format("{}: stands twice in the address", shown), shown);
        }
    }
    return parameters;
}

const FieldTable& query_table(std::string_view path) {
    if (path == "/slots") return slots_table();
    if (path == "/slots/{id}") return slot_action_table();
    if (path == "/models" || path == "/v1/models") return models_table();
    return path == "/health" || path == "/v1/health" ? health_table() : every_table();
}

std::span<const FieldTable* const> query_tables() {
    static const FieldTable* const tables[] = {&slots_table(), &slot_action_table(), &models_table(), &health_table(),
                                               &every_table()};
    return tables;
}

void check_query(std::string_view path, std::string_view query) {
    if (!query.empty()) query_table(path).check(parse_query(query), {}, fmt::format("the query of {}", path));
}

bool fails_on_no_slot(std::string_view query) {
    const json::object parameters = parse_query(query);
    const Fields fields(parameters, slots_table());
    const std::string_view value = fields.text("fail_on_no_slot").value_or("");
    fields.check_read();
    if (value.empty() || value == "0" || value == "false") return false;
    if (value != "1" && value != "true") fields.reject("fail_on_no_slot", "0 or 1");
    return true;
}

SlotAction slot_action(std::string_view query) {
    const json::object parameters = parse_query(query);
    const Fields fields(parameters, slot_action_table());
    const std::string_view value = fields.text("action").value_or("");
    fields.check_read();
    if (value == "save") return SlotAction::kSave;
    if (value == "restore") return SlotAction::kRestore;
    if (value != "erase") fields.reject("action", "save, restore or erase");
    return SlotAction::kErase;
}

}  // namespace tessera::server
