// Tools of /v1/responses, of which some stand in namespaces: the model knows each by one name.
#pragma once

#include "apps/server/conversation.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace tessera::server::responses {

struct GroupedTools {
    std::vector<text::ChatTool> tools = {};
    std::vector<GroupedName> names = {};  // of those in namespaces
    CustomTools custom = {};
};

// The field tools. Throws ApiError(400), also where two tools have one name for the model.
GroupedTools read_tools(const Fields& fields);

// The name that the model knows a function by. `group`: its namespace; empty: it is in none.
std::string whole_name(std::string_view group, std::string_view name);

}  // namespace tessera::server::responses
