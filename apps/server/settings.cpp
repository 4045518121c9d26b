#include "apps/server/settings.hpp"

#include "core/base/error.hpp"

namespace tessera::server {

std::string parse_prefix(std::string_view text) {
    if (text.empty() || text == "/") return "";
    if (!text.starts_with('/') || text.ends_with('/')) throw app::WrongValue("a path like /api");
    return std::string(text);
}

bool parse_page_switch(std::string_view text) {
    return text != "none" && text != "off" && text != "0" && text != "false";
}

ClientLimits parse_limits(std::string_view text) {
    return parse_client_limits(text);
}

session::Pooling parse_pooling(std::string_view text) {
    if (text == "mean") return session::Pooling::kMean;
    if (text == "last") return session::Pooling::kLast;
    throw app::WrongValue("mean or last");
}

}  // namespace tessera::server
