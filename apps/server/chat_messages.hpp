// Conversations in requests.
#pragma once

#include "apps/server/json_fields.hpp"
#include "apps/server/model_text.hpp"
#include "apps/structure/tool_grammar.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace tessera::server {

// What tool_choice asks for: a call of one of these tools, or of several.
struct AskedCalls {
    std::vector<structure::CallableTool> tools;  // empty: the model decides
    bool several = true;
};

// The conversation, its tools and options as the model's template writes them. `check` is called before, with the bytes
// that the text has at least: writing takes several times as many. Throws ApiError, and what `check` and
// ChatTemplate::write throw.
text::WrittenChat write_chat(const Fields& fields, const ModelText& model,
                             const std::function<void(uint64_t fewest_bytes)>& check, AskedCalls* asked = nullptr);

}  // namespace tessera::server
