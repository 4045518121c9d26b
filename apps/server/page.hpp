// The chat page: the files of page/, embedded when the program is built.
#pragma once

#include "apps/server/exchange.hpp"

#include <span>
#include <string_view>

namespace tessera::server {

struct PageFile {
    std::string_view path;  // below the server's prefix: "/app.js"; index.html is "/"
    std::string_view type;  // Content-Type
    std::string_view body;  // the file's bytes
    std::string_view etag;  // in quotation marks; a hash of the bytes
};

// Constant, for the life of the program.
std::span<const PageFile> page_files() noexcept;

// The file, or 304 without a body if the client has it. The headers keep the page from loading or sending anything to
// another site, from running any script but its own, and from being shown inside another site's page.
HttpResponse page_response(const PageFile& file, const HttpRequest& request);

}  // namespace tessera::server
