#include "apps/server/dialects/anthropic/offered_tools.hpp"

#include "apps/server/api_error.hpp"
#include "apps/server/dialects/anthropic/dialect.hpp"
#include "core/base/text.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace tessera::server::anthropic {
namespace {

namespace json = boost::json;

ToolForm form() {
    return {tool_table(), "custom", false, "input_schema"};
}

[[noreturn]] void refuse_unknown(const std::string& name, const std::string& path) {
    throw ApiError(400, fmt::format("{}: tools have no '{}'", path, printable(name, 60)), path);
}

}  // namespace

std::string OfferedTools::add_found(const json::object& block, const std::string& path) {
    const Fields fields(block, found_tool_table(), path);
    fields.text("type");
    const auto name = fields.text("tool_name");
    if (!name) fields.reject("tool_name", "the name of a tool");
    fields.check_read();
    add({true, std::string(*name), path});
    return std::string(*name);
}

void OfferedTools::add_change(const json::object& block, const std::string& path) {
    const Fields fields(block, tool_change_table(), path);
    Change change{fields.text("type") == "tool_addition", {}, fields.path("tool")};
    const json::object* const tool = fields.object("tool");
    if (!tool) fields.reject("tool", "a tool_reference, or to add one, a tool_definition");
    fields.check_read();
    const Fields named(*tool, changed_tool_table(), change.path);
    const auto type = named.text("type"), name = named.text("name");
    const json::object* const definition = named.object("definition");
    named.check_read();
    if (type == "tool_definition" && change.offered) {
        if (!definition) named.reject("definition", "a tool as the field tools has it");
        bool deferred = false;
        change.definition = read_own_tool(*definition, named.path("definition"), form(), [&](const Fields& own) {
            deferred = own.boolean("defer_loading").value_or(false);
        });
        if (deferred) named.reject("definition", "a tool that is not deferred");
        change.name = change.definition->name;
    } else if (type == "tool_reference") {
        if (!name) named.reject("name", "the name of a tool");
        change.name = *name;
    } else {
        named.reject("type", change.offered ? "tool_reference or tool_definition" : "tool_reference");
    }
    add(std::move(change));
}

void OfferedTools::add(Change change) {
    if (changes_.size() >= kMaximumParts)
        throw ApiError(400, fmt::format("{}: more than {} changes of tools", change.path, kMaximumParts), change.path);
    changes_.push_back(std::move(change));
}

std::vector<text::ChatTool> OfferedTools::read(const Fields& fields) const {
    std::vector<text::ChatTool> offered, others;
    each_object(fields, "tools", kMaximumTools, [&](const json::object& object, const std::string& path) {
        bool deferred = false;
        text::ChatTool tool = read_own_tool(
            object, path, form(), [&](const Fields& own) { deferred = own.boolean("defer_loading").value_or(false); });
        (deferred ? others : offered).push_back(std::move(tool));
    });
    const auto find = [](std::vector<text::ChatTool>& tools, const std::string& name) {
        return std::ranges::find(tools, name, &text::ChatTool::name);
    };
    for (const Change& change : changes_) {
        auto known = find(others, change.name);
        const auto there = find(offered, change.name);
        if (change.definition) {
            if (there != offered.end()) offered.erase(there);
            if (known != others.end()) others.erase(known);
            offered.push_back(*change.definition);
        } else if (change.offered && there == offered.end()) {
            if (known == others.end()) refuse_unknown(change.name, change.path);
            offered.push_back(std::move(*known));
            others.erase(known);
        } else if (!change.offered && there != offered.end()) {
            others.push_back(std::move(*there));
            offered.erase(there);
        } else if (!change.offered && known == others.end()) {
            refuse_unknown(change.name, change.path);
        }
    }
    if (offered.size() > kMaximumTools)
        throw ApiError(400,
                       fmt::format("tools: {} with those that messages add; at most {} are accepted", offered.size(),
                                   kMaximumTools),
                       "tools");
    return offered;
}

}  // namespace tessera::server::anthropic
