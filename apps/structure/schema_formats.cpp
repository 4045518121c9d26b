#include "apps/structure/schema_formats.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tessera::structure {
namespace {

// llguidance's own dates have days that no year has, and its times leap seconds: these are RFC 3339's from the year
// 1000 on, without leap seconds.
#define TSR_DATE                                                                                                     \
    "(?:[1-9][0-9]{3}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|"       \
    "02-(?:0[1-9]|1[0-9]|2[0-8]))|(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-" \
    "29)"
#define TSR_TIME "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
// Some addresses of RFC 5321, and some host names of RFC 1123.
#define TSR_EMAIL "[a-z0-9_+-]{1,30}(?:\\.[a-z0-9_+-]{1,30})?@[a-z0-9]{1,30}(?:-[a-z0-9]{1,10})?(?:\\.[a-z]{2,10}){1,3}"
#define TSR_HOST "[a-z0-9]{1,30}(?:-[a-z0-9]{1,10})?(?:\\.[a-z][a-z0-9]{1,20}){0,4}"
// Of a version of RFC 9562.
#define TSR_UUID(version) "^[0-9a-f]{8}-[0-9a-f]{4}-" version "[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$"

constexpr TextFormat kTextFormats[] = {
    {"date", "^(?:" TSR_DATE ")$"},
    {"time", "^" TSR_TIME "$"},
    {"date-time",
     "^(?:" TSR_DATE ")T" TSR_TIME "$",
     {},
     "^(?:" TSR_DATE ")T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$"},
    {"duration", "", "duration"},
    {"email", "", "email", "^" TSR_EMAIL "$"},
    {"hostname", "", "hostname", "^" TSR_HOST "$"},
    {"ipv4", "", "ipv4"},
    {"ipv6", "", "ipv6"},
    {"uuid", "", "uuid"},
    {"uri", "", "uri"},
    // Every address and name in ASCII is one of these, too.
    {"idn-email", "", "email", "^" TSR_EMAIL "$"},
    {"idn-hostname", "", "hostname", "^" TSR_HOST "$"},
    {"iri", "", "uri"},
    {"uri-reference", "", "uri"},
    {"iri-reference", "", "uri"},
    {"json-pointer", "^(?:/(?:[^~/]|~[01])*)*$"},
    // Names of pydantic's. An IPv4 address is an address of any kind.
    {"uuid1", TSR_UUID("1")},
    {"uuid3", TSR_UUID("3")},
    {"uuid4", TSR_UUID("4")},
    {"uuid5", TSR_UUID("5")},
    {"uuid6", TSR_UUID("6")},
    {"uuid7", TSR_UUID("7")},
    {"uuid8", TSR_UUID("8")},
    {"ipvanyaddress", "", "ipv4"},
    {"base64", "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"},
    {"base64url", "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=)?$"},
};

constexpr std::pair<std::string_view, std::string_view> kExpressions[] = {
    {"uuid", "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"},
    {"email", TSR_EMAIL},
    {"hostname", TSR_HOST},
    {"ipv4",
     "(?:(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])\\.){3}(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"},
    {"uri",
     "[a-z][a-z0-9+.-]{1,20}://[a-zA-Z0-9.-]{1,100}(?::[0-9]{1,4})?(?:/[a-zA-Z0-9._~!$&'()*+,;=:@-]*)*"
     "(?:\\?[a-zA-Z0-9._~!$&'()*+,;=:@/-]*)?(?:#[a-zA-Z0-9._~-]*)?"}};

constexpr NumberFormat kNumberFormats[] = {
    {"int8", true, -128.0L, 127.0L},
    {"int16", true, -32768.0L, 32767.0L},
    {"int32", true, -2147483648.0L, 2147483647.0L},
    {"int64", true, -9223372036854775808.0L, 9223372036854775807.0L},
    {"uint8", true, 0.0L, 255.0L},
    {"uint16", true, 0.0L, 65535.0L},
    {"uint32", true, 0.0L, 4294967295.0L},
    {"uint64", true, 0.0L, 18446744073709551615.0L},
    // Names that Rust's and Go's generators write.
    {"int", true, -9223372036854775808.0L, 9223372036854775807.0L},
    {"uint", true, 0.0L, 18446744073709551615.0L},
    {"long", true, -9223372036854775808.0L, 9223372036854775807.0L},
    {"float", false, -3.4028234663852886e38L, 3.4028234663852886e38L},
    {"double", false, -1.7976931348623157e308L, 1.7976931348623157e308L},
};

constexpr std::string_view kUnenforced[] = {"uri-template", "relative-json-pointer"};

}  // namespace

const TextFormat* find_text_format(std::string_view name) {
    const auto* const found = std::ranges::find(kTextFormats, name, &TextFormat::name);
    return found == std::end(kTextFormats) ? nullptr : found;
}

std::optional<std::string_view> text_format_pattern(std::string_view name) {
    const auto* const found =
        std::ranges::find(kExpressions, name, &std::pair<std::string_view, std::string_view>::first);
    return found == std::end(kExpressions) ? std::nullopt : std::optional(found->second);
}

const NumberFormat* find_number_format(std::string_view name) {
    const auto* const found = std::ranges::find(kNumberFormats, name, &NumberFormat::name);
    return found == std::end(kNumberFormats) ? nullptr : found;
}

bool is_unenforced_standard_format(std::string_view name) {
    return std::ranges::find(kUnenforced, name) != std::end(kUnenforced);
}

}  // namespace tessera::structure
