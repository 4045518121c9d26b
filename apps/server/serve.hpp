// Serves a model until a signal ends it.
#pragma once

#include "apps/server/settings.hpp"
#include "core/setup/loading.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/settings.hpp"

namespace tessera::server {

struct ServeOptions {
    ServerSettings server;
    ModelSettings model;  // after settle()
    uint32_t chunk_rows = 192;
    double chunk_seconds = 0;  // as GeneratorOptions
    bool context_given = false;
};

// Listens, loads, answers; returns after SIGTERM or SIGINT when all requests have ended. `say` is given each line of a
// report. Throws what Server and load_engine throw.
void serve(const ServeOptions& options, OpenedModel model, Machine& machine, const LineSink& say);

}  // namespace tessera::server
