// Documents and results of a search in messages, as far as they are texts.
#pragma once

#include <boost/json/object.hpp>

#include <optional>
#include <string>

namespace tessera::server::anthropic {

// A block document that stands at `path`, as the model reads it: title, context, text. Nothing if it is not given as a
// text. Throws ApiError(400).
std::optional<std::string> document_text(const boost::json::object& block, const std::string& path);

// A block search_result. Throws ApiError(400).
std::string search_result_text(const boost::json::object& block, const std::string& path);

}  // namespace tessera::server::anthropic
