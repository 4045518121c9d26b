// Headers of a response that are found while its request is read, in functions that know nothing of the response.
#pragma once

#include "apps/server/exchange.hpp"

#include <string_view>

namespace tessera::server {

// Names the fields of a request that were accepted without effect: "verbosity, stream_options.include_obfuscation".
inline constexpr std::string_view kNoEffectHeader = "X-Tessera-No-Effect";

// While one lives, this thread reads the request of an exchange. At most one a thread.
class ResponseNotes {
  public:
    // `exchange` outlives this.
    explicit ResponseNotes(Exchange& exchange);
    ~ResponseNotes();
    ResponseNotes(const ResponseNotes&) = delete;
    ResponseNotes& operator=(const ResponseNotes&) = delete;

    // Adds a value to the header `name` of the response to the request that this thread reads. Has no effect where it
    // reads none.
    static void add(std::string_view name, std::string_view value);
};

}  // namespace tessera::server
