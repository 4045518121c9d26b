#include "apps/tessera/commands.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/load_with_progress.hpp"
#include "apps/tessera/measuring.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/read_settings.hpp"
#include "apps/tessera/sweep_results.hpp"
#include "core/base/error.hpp"
#include "core/base/output_file.hpp"
#include "core/base/system_error.hpp"
#include "core/base/text.hpp"
#include "core/setup/machine.hpp"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <optional>

namespace tessera::app {
namespace {

constexpr uint32_t kSweepContext = 8192;

struct SweepPlan {
    uint32_t context = 0;  // depths are below it
    uint32_t step = 0;     // tokens of a prompt, and from depth to depth
    uint32_t generation = 0;
    uint32_t stride = 1;
    uint32_t repetitions = 1;
    bool json = false;
};

SweepPlan read_plan(Arguments& arguments, const ModelSettings& settings, uint32_t model_context) {
    SweepPlan plan;
    plan.step = settings.engine.rows;
    plan.context = settings.context.value_or(std::min(kSweepContext, std::max(model_context, plan.step)));
    if (plan.context == 0) plan.context = model_context;
    if (plan.context < plan.step) {
        throw UsageError(
            fmt::format("-c: expected room for one prompt of {} tokens (-ub), found {}", plan.step, plan.context));
    }
    plan.generation =
        static_cast<uint32_t>(arguments.integer("sweep-generate", 1, 1 << 20).value_or(std::max(plan.step / 4, 1u)));
    plan.stride = static_cast<uint32_t>(arguments.integer("sweep-stride", 1, 1 << 20).value_or(1));
    plan.repetitions = static_cast<uint32_t>(arguments.integer("sweep-repetitions", 1, 1000).value_or(1));
    plan.json = arguments.choice("sweep-format") == "jsonl";
    return plan;
}

// Written in place, so that the rows stay in the file even if the sweep is interrupted.
class RowFile {
  public:
    explicit RowFile(const std::string& path) : path_(path), stream_(path, std::ios::binary | std::ios::trunc) {
        check();
    }
    void write(std::string_view text) {
        stream_.write(text.data(), static_cast<std::streamsize>(text.size())).flush();
        check();
    }

  private:
    void check() const {
        if (!stream_) fail_system(errno ? errno : EIO, path_, "write");
    }

    std::string path_;
    std::ofstream stream_;
};

// Rows as they come; those that were measured before Ctrl-C are kept.
std::vector<SweepRow> measure_rows(const SweepPlan& plan, SpeedMeter& meter, RowFile* file) {
    std::vector<SweepRow> rows;
    if (!plan.json) print(sweep_table_head());
    try {
        for (uint64_t next = 0; next + plan.step <= plan.context; next += uint64_t{plan.step} * plan.stride) {
            const auto depth = static_cast<uint32_t>(next);
            SweepRow row{plan.step, plan.generation, depth, 0, 0};
            for (uint32_t i = 0; i < plan.repetitions; ++i) {
                row.generation_seconds += meter.generation(depth, plan.generation) / plan.repetitions;
                row.prompt_seconds += meter.prompt(depth, plan.step) / plan.repetitions;
            }
            print(plan.json ? sweep_json_line(row) : sweep_table_line(row));
            if (file) file->write(sweep_json_line(row));
            rows.push_back(row);
        }
    } catch (const Error& error) {
        if (error.code() != TSR_CANCELLED) throw;
    }
    return rows;
}

std::vector<SweepRow> measure_model(Arguments& arguments, const std::optional<std::string>& save,
                                    const std::atomic<bool>& stop) {
    ModelSettings settings = read_model_settings(arguments);
    const Machine machine(settings.common, {}, asked_threads(settings.engine), settings.engine.numa);
    OpenedModel model = open_model(settings.common);
    settle(arguments, settings, model, machine);
    const SweepPlan plan = read_plan(arguments, settings, read_model_info(model.file, machine.registry).context);
    for (const std::string& line : arguments.remarks()) say(line);
    std::optional<RowFile> file;
    if (save) file.emplace(*save);
    EngineOptions options = settings.engine;
    options.context = plan.context + (plan.generation > plan.step ? plan.generation - plan.step : 0);
    const auto engine =
        load_engine(std::move(model), machine, options, false, options.context, settings.common.verbose);
    SpeedMeter meter(*engine, stop);
    auto rows = measure_rows(plan, meter, file ? &*file : nullptr);
    keep_run(machine, *engine);
    return rows;
}

// Drawings are SVG; programs would expect another format in a file with another ending.
void check_plot(const std::string& name, bool measures) {
    if (name == "-" && measures)
        throw UsageError("--plot -: standard output has the results; name a file, or draw saved RESULTS without -m");
    const std::string ending = std::filesystem::path(name).extension();
    if (ending.empty() || ending == ".svg" || output_place(name).stream) return;
    throw UsageError(
        fmt::format("--plot: expected a file that ends in .svg, found '{}'; 'rsvg-convert -o FILE.png "
                    "FILE.svg' makes other forms of it",
                    printable(name)));
}

}  // namespace

int sweep_command(Arguments& arguments) {
    const auto plot = arguments.text("sweep-plot");
    const auto save = arguments.text("sweep-save");
    const std::vector<std::string> others = arguments.all("sweep-results");
    const bool measures = arguments.has("model") || others.empty();
    if (save == "-")
        throw UsageError(
            "--save -: standard output has the results already; --output-format jsonl prints them as lines");
    if (plot) check_plot(*plot, measures);
    if (!measures && !plot)
        throw UsageError("results to draw need --plot FILE.svg; to measure, name a model with -m FILE");
    std::vector<SweepResults> results;
    for (const std::string& other : others) results.push_back(read_sweep_results(other));

    // Opened before anything is measured, so that an error is reported at once.
    std::optional<OutputFile> drawing;
    if (plot) drawing.emplace(*plot == "-" ? "/dev/stdout" : *plot);
    const InterruptScope interrupt;
    if (measures) {
        const std::string name = save ? std::filesystem::path(*save).stem().string() : "tessera";
        results.insert(results.begin(), {name, measure_model(arguments, save, interrupt.flag())});
    }
    if (drawing) {
        drawing->append(std::as_bytes(std::span<const char>(sweep_plot(results))));
        drawing->finish();
    }
    return interrupt.interrupted() ? kExitInterrupted : kExitDone;
}

}  // namespace tessera::app
