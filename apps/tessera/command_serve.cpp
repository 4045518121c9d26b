#include "apps/server/access_control.hpp"
#include "apps/server/serve.hpp"
#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/wording/wording.hpp"
#include "core/setup/machine.hpp"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

namespace tessera::app {
namespace {

constexpr uint32_t kDefaultParallel = 16;
constexpr uint32_t kDefaultContext = 32768;
constexpr uint32_t kDefaultPiece = 192;  // three pages: running streams wait for no more than that
constexpr double kLongPiece = 0.5;       // seconds: deep in a prompt, longer steps have smaller pieces

std::vector<std::string> list_of(const Arguments& arguments, std::string_view name) {
    std::vector<std::string> values;
    for (const std::string& given : arguments.all(name)) {
        for (std::string_view rest = given;;) {
            const size_t comma = std::min(rest.find(','), rest.size());
            if (comma > 0) values.emplace_back(rest.substr(0, comma));
            if (comma == rest.size()) break;
            rest.remove_prefix(comma + 1);
        }
    }
    return values;
}

server::ServerSettings read_server(Arguments& arguments) {
    server::ServerSettings settings;
    settings.host = arguments.text("host").value_or(settings.host);
    settings.port = static_cast<uint16_t>(arguments.integer("port", 0, 65535).value_or(settings.port));
    settings.alias = arguments.text("alias").value_or("");
    settings.keys = list_of(arguments, "api-key");
    if (arguments.has("api-key") && settings.keys.empty())
        arguments.reject("api-key", "a key", arguments.text("api-key").value_or(""));
    if (const auto file = arguments.text("api-key-file")) settings.key_file = *file;
    if (const auto prefix = arguments.text("api-prefix"); prefix && !prefix->empty() && *prefix != "/") {
        if (!prefix->starts_with('/') || prefix->ends_with('/'))
            arguments.reject("api-prefix", "a path like /api", *prefix);
        settings.prefix = *prefix;
    }
    if (const auto seconds = arguments.integer("timeout", 1, 1 << 20))
        settings.write_time = std::chrono::seconds(*seconds);
    if (const auto seconds = arguments.integer("drain-time", 0, 1 << 20))
        settings.drain_time = std::chrono::seconds(*seconds);
    settings.waiting_requests =
        static_cast<uint32_t>(arguments.integer("queue", 1, 1 << 20).value_or(settings.waiting_requests));
    if (const auto mebibytes = arguments.integer("body-limit", 1, 1 << 20))
        settings.body_bytes = uint64_t(*mebibytes) << 20;
    if (const auto tokens = arguments.integer("request-context", 1, 1 << 30))
        settings.request_context = static_cast<uint32_t>(*tokens);
    if (const auto mebibytes = arguments.integer("held-limit", 1, 1 << 20))
        settings.held_bytes = uint64_t(*mebibytes) << 20;
    if (const auto limits = arguments.text("client-limits"))
        settings.client_limits = server::parse_client_limits(*limits);
    settings.slots = !arguments.has("no-slots");
    settings.metrics = !arguments.has("no-metrics");
    const std::string page = arguments.text("webui").value_or("on");
    settings.page = !arguments.has("no-webui") && page != "none" && page != "off" && page != "0" && page != "false";
    if (const auto file = arguments.text("access-log")) settings.access_log = *file;
    for (const std::string& given : list_of(arguments, "cors-origin")) {
        settings.origins.push_back(server::parse_origin(given));
        if (settings.origins.back() != given)
            arguments.remark(
                fmt::format("--cors-origin {}: browsers send {}, which is taken", given, settings.origins.back()));
    }
    settings.hosts = list_of(arguments, "allowed-host");
    return settings;
}

}  // namespace

int serve_command(Arguments& arguments) {
    server::ServeOptions options;
    options.model = read_model_settings(arguments);
    options.server = read_server(arguments);
    if (!arguments.has("parallel")) options.model.parallel = kDefaultParallel;
    options.piece_rows =
        arguments.has("ubatch-size") ? options.model.engine.rows : std::min(options.model.engine.rows, kDefaultPiece);
    // Who asks for a size gets it everywhere.
    options.piece_seconds = arguments.has("ubatch-size") ? 0 : kLongPiece;
    options.target_step_seconds = arguments.number("itl-target", 0, 1e6).value_or(0) / 1000;
    options.context_given = options.model.context.has_value();
    const Machine machine(options.model.common, {}, asked_threads(options.model.engine), options.model.engine.numa);
    OpenedModel model = open_model(options.model.common);
    if (!options.context_given) {
        const uint32_t made_for = read_model_info(model.file, machine.registry).context;
        options.model.context = made_for ? std::min(made_for, kDefaultContext) : kDefaultContext;
    }
    for (const Notice& notice : settle(options.model, model, machine)) arguments.remark(worded(notice));
    for (const std::string& line : arguments.remarks()) say(line);
    server::serve(options, std::move(model), machine, say);
    return kExitDone;
}

}  // namespace tessera::app
