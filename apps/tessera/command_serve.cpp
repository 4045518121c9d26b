#include "apps/server/access_control.hpp"
#include "apps/server/serve.hpp"
#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "core/setup/machine.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

namespace tessera::app {
namespace {

constexpr uint32_t kDefaultParallel = 16;
constexpr uint32_t kServedContext = 32768;
constexpr uint32_t kDefaultChunk = 192;  // three pages: running streams wait for no more than that
constexpr double kLongChunk = 0.5;       // seconds: deep in a prompt, longer steps have smaller chunks

server::ServerSettings read_server(Arguments& arguments) {
    server::ServerSettings settings;
    arguments.read_into(settings);
    remark_without(arguments, "cache-dir", {"cache-dir-size", "cache-dir-time"});
    for (std::string& origin : settings.origins) {
        const std::string given = std::exchange(origin, server::parse_origin(origin));
        if (origin != given)
            arguments.remark(fmt::format("--cors-origin {}: browsers send {}, which is taken", given, origin));
    }
    return settings;
}

}  // namespace

int serve_command(Arguments& arguments) {
    server::ServeOptions options;
    options.model = read_model_settings(arguments);
    options.server = read_server(arguments);
    if (!arguments.has("parallel")) options.model.parallel = kDefaultParallel;
    options.chunk_rows =
        arguments.has("ubatch-size") ? options.model.engine.rows : std::min(options.model.engine.rows, kDefaultChunk);
    // Who asks for a size gets it everywhere.
    options.chunk_seconds = arguments.has("ubatch-size") ? 0 : kLongChunk;
    options.context_given = options.model.context.has_value();
    Machine machine(options.model.common, {}, asked_threads(options.model.engine), options.model.engine.numa);
    OpenedModel model = open_model(options.model.common);
    if (!options.context_given) {
        const uint32_t made_for = read_model_info(model.file, machine.registry).context;
        options.model.context = made_for ? std::min(made_for, kServedContext) : kServedContext;
    }
    settle(arguments, options.model, model, machine);
    for (const std::string& line : arguments.remarks()) say(line);
    server::serve(options, std::move(model), machine, say);
    return kExitDone;
}

}  // namespace tessera::app
