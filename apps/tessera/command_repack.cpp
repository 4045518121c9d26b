#include "apps/tessera/commands.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/session/repack.hpp"
#include "core/setup/machine.hpp"

#include <spdlog/fmt/fmt.h>

#include <filesystem>

namespace tessera::app {

int repack_command(Arguments& arguments) {
    ModelSettings settings = read_model_settings(arguments);
    const auto to = arguments.text("repack-output");
    if (!to || to->empty()) throw UsageError("-o: expected the name of the file to write");
    const Machine machine(settings.common, {}, asked_threads(settings.engine));
    const OpenedModel model = open_model(settings.common);
    for (std::string& line : settle(settings, model.file, machine.config)) arguments.remark(std::move(line));
    for (const std::string& line : arguments.remarks()) say(line);

    // Which layout a weight has does not depend on the context.
    settings.engine.context = TSR_PAGE_TOKENS;
    const PlannedModel planned = plan_model(model.file, machine.registry, machine.hardware, settings.engine);
    const InterruptScope interrupt;
    ProgressBar bar("packing");
    try {
        const RepackedFile made = repack(
            model.file, planned.plan, machine.registry, *to,
            [&](uint64_t done, uint64_t total) { bar.update(done, total); }, interrupt.flag());
        bar.finish();
        std::string types;
        for (const auto& [type, count] : made.tensors)
            types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
        print(fmt::format("{}: {} ({} tensors)\n", printable(*to, 4096), size_text(made.bytes), types));
    } catch (const Error& error) {
        if (error.code() != TSR_CANCELLED) throw;
        bar.finish();
        say(error.what());
        return kExitInterrupted;
    }
    return kExitDone;
}

}  // namespace tessera::app
