#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/plan_text.hpp"
#include "apps/tessera/plugin_child.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/text.hpp"
#include "core/plan/fit.hpp"
#include "core/setup/draft_model.hpp"
#include "core/setup/drafts.hpp"
#include "core/setup/earlier_runs.hpp"
#include "core/setup/machine.hpp"
#include "core/setup/plan_json.hpp"

#include <boost/json/serialize.hpp>
#include <spdlog/fmt/fmt.h>

#include <filesystem>
#include <utility>

namespace tessera::app {

int plan_command(Arguments& arguments) {
    ModelSettings settings = read_model_settings(arguments);
    if (const std::string line = idle_in_plan(arguments); !line.empty()) arguments.remark(line);
    const std::optional<std::filesystem::path> rig = read_rig(arguments);
    try_plugins_in_children(TriedFirst::kUnknown, rig);
    Machine machine(settings.common, rig, asked_threads(settings.engine), settings.engine.numa);
    const OpenedModel model = open_model(settings.common);
    settle(arguments, settings, model, machine);
    EngineOptions& options = settings.engine;
    options.sequences = settings.parallel;
    options.context = settings.context.value_or(0);
    make_room(settings.drafts, options);
    if (settings.context == 0u) options.context = read_model_info(model.file, machine.registry).context;

    for (const std::string& line : plan_draft_model(settings, machine, {options.sequences, options.context}, rig))
        arguments.remark(line);
    PlannedModel planned =
        plan_to_fit(model.file, machine, options, [&](const Notice& notice) { arguments.remark(worded(notice)); });
    for (const std::string& line : arguments.remarks()) say(line);
    PlanReport report{model.path.string(), rig ? rig->string() : "",
                      measure(model.file), std::move(planned),
                      machine.registry,    largest_context(model.file, machine.registry, machine.hardware, options),
                      arguments.remarks()};
    report.earlier =
        earlier_runs(machine, model.file, report.planned, [](const Notice& notice) { say(worded(notice)); });
    const std::string text = arguments.has("json") ? boost::json::serialize(plan_json(report)) + '\n'
                                                   : plan_text(report, arguments.has("why") || settings.common.verbose);
    print(text);
    const std::vector<Excess> excesses = excess_of(report.planned.plan);
    for (const Excess& excess : excesses)
        say_error("tessera: does not fit: " + worded(misfit(report.planned.plan, excess.device).value_or(Notice())));
    return excesses.empty() ? kExitDone : kExitDoesNotFit;
}

}  // namespace tessera::app
