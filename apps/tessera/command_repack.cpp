#include "apps/tessera/commands.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/session/repack.hpp"
#include "core/setup/machine.hpp"

#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <filesystem>

namespace tessera::app {

int repack_command(Arguments& arguments) {
    ModelSettings settings = read_model_settings(arguments);
    const auto to = arguments.text("repack-output");
    if (!to || to->empty()) throw UsageError("-o: expected the name of the file to write");
    const bool to_output = *to == "-";
    if (to_output && isatty(STDOUT_FILENO))
        throw UsageError("-o -: standard output is a terminal; send it to a file or a program");
    const std::filesystem::path target = to_output ? "/dev/stdout" : *to;
    const Machine machine(settings.common, {}, asked_threads(settings.engine), settings.engine.numa);
    const OpenedModel model = open_model(settings.common);
    settle(arguments, settings, model, machine);
    for (const std::string& line : arguments.remarks()) say(line);

    // The layouts of weights do not depend on the context.
    settings.engine.context = TSR_PAGE_TOKENS;
    const PlannedModel planned = plan_model(model.file, machine.registry, machine.hardware, settings.engine);
    for (const std::string& note : planned.file_notes) say(note);
    const InterruptScope interrupt;
    ProgressBar bar("packing");
    try {
        const RepackedFile made = repack(
            model.file, planned.plan, machine.registry, target,
            [&](uint64_t done, uint64_t total) { bar.update(done, total); }, interrupt.flag());
        bar.finish();
        std::string types;
        for (const auto& [type, count] : made.tensors)
            types += fmt::format("{}{} {}", types.empty() ? "" : ", ", count, type);
        const std::string line =
            fmt::format("{}: {} ({} tensors)", printable(target.native(), 4096), size_text(made.bytes), types);
        to_output ? say(line) : print(line + '\n');
    } catch (const Error& error) {
        if (error.code() != TSR_CANCELLED) throw;
        bar.finish();
        say(error.what());
        return kExitInterrupted;
    }
    return kExitDone;
}

}  // namespace tessera::app
