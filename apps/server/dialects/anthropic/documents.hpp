// Documents and results of a search in messages, as far as they are texts, and what the model reads in place of others.
#pragma once

#include <boost/json/object.hpp>

#include <optional>
#include <string>

namespace tessera::server::anthropic {

// A block document that stands at `path`, as the model reads it: title, context, text. Nothing if it is not given as a
// text. `of_result`: it is a part of a tool's result, where an image may be among its blocks. Throws ApiError(400).
std::optional<std::string> document_text(const boost::json::object& block, const std::string& path, bool of_result);

// What the model reads in place of a block of a tool's result that cannot be shown. Throws ApiError(400).
std::string unread_text(const boost::json::object& block, const std::string& path);

// A block search_result. Throws ApiError(400).
std::string search_result_text(const boost::json::object& block, const std::string& path);

}  // namespace tessera::server::anthropic
