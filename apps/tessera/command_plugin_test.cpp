#include "apps/tessera/commands.hpp"
#include "apps/tessera/model_shapes.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/plugin_child.hpp"
#include "core/base/error.hpp"
#include "core/gguf/reader.hpp"
#include "core/hardware/hardware.hpp"
#include "core/registry/discover.hpp"
#include "testing/conformance/case.hpp"
#include "testing/conformance/shapes.hpp"
#include "testing/conformance/suite.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tessera::app {
namespace {

namespace fs = std::filesystem;
using conformance::Outcome;

struct Options {
    std::vector<fs::path> subjects;
    std::vector<std::string> kernels, without, cases, devices, groups, shapes;
    bool list = false, time = false;
    std::vector<fs::path> models;
    std::optional<fs::path> rig, reference, provider, expected, junit;
    std::chrono::seconds timeout{60};
    bool verbose = false;
};

void add_shape(Options& options, const std::string& text) {
    try {
        options.shapes.push_back(conformance::parse_shape(text).text());
    } catch (const std::invalid_argument& error) {
        throw UsageError(fmt::format("plugin-test: --shape: {}", error.what()));
    }
}

void add_model(Options& options, const std::string& file) {
    options.models.emplace_back(fs::absolute(file));
    ModelShapes found;
    try {
        found = model_shapes(file);
    } catch (const Error& error) {
        if (error.code() != TSR_UNSUPPORTED) throw;
        say(fmt::format("plugin-test: --model {}: no shapes of kernels: {}", file, error.what()));
        return;
    }
    for (const std::string& why : found.skipped) say(fmt::format("plugin-test: --model {}: not tested: {}", file, why));
    if (found.shapes.empty()) throw UsageError(fmt::format("plugin-test: --model {}: has no shapes to test", file));
    options.shapes.insert(options.shapes.end(), found.shapes.begin(), found.shapes.end());
}

Options read_options(Arguments& arguments) {
    Options options;
    for (const std::string& subject : arguments.all("test-subjects")) options.subjects.emplace_back(subject);
    if (options.subjects.empty())
        throw UsageError("plugin-test: expected a folder with plugins, a manifest or a library");
    options.kernels = arguments.all("test-kernel");
    options.without = arguments.all("test-without");
    options.cases = arguments.all("test-case");
    options.devices = arguments.all("test-device");
    options.groups = arguments.all("test-group");
    for (const std::string& shape : arguments.all("test-shape")) add_shape(options, shape);
    for (const std::string& file : arguments.all("test-model")) add_model(options, file);
    options.list = arguments.has("test-list");
    options.time = arguments.has("test-time");
    if (const auto rig = arguments.text("test-rig")) options.rig = fs::absolute(*rig);
    const auto file = [&](std::string_view name) -> std::optional<fs::path> { return arguments.text(name); };
    options.reference = file("test-reference");
    options.provider = file("test-provider");
    options.expected = file("test-expected");
    options.junit = file("test-junit");
    if (const auto seconds = arguments.integer("test-timeout", 1, 86400))
        options.timeout = std::chrono::seconds(*seconds);
    options.verbose = arguments.has("verbose");
    return options;
}

// Manifests in a folder, or the one of a library.
std::vector<fs::path> manifests_of(const fs::path& subject) {
    if (fs::is_directory(subject)) {
        std::vector<fs::path> found;
        for (const PluginRecord& record : find_plugins({fs::canonical(subject)})) found.push_back(record.path);
        if (found.empty()) fail(TSR_NOT_FOUND, "{}: no plugin there: expected manifests (.toml)", subject.string());
        return found;
    }
    fs::path manifest = subject;
    if (manifest.extension() == ".so") manifest.replace_extension(".toml");
    if (!fs::exists(manifest)) fail(TSR_NOT_FOUND, "{}: no such file: expected a plugin's manifest", manifest.string());
    return {fs::canonical(manifest)};
}

fs::path reference_of(const Options& options) {
    if (options.reference) return manifests_of(*options.reference).front();
    const fs::path folder = default_plugin_folder();
    for (const PluginRecord& record : find_plugins({folder})) {
        if (record.manifest.name == "reference") return record.path;
    }
    fail(TSR_NOT_FOUND, "no plugin 'reference' in {}: name its manifest with --reference", folder.string());
}

// The fastest built-in plugin for this CPU.
fs::path builtin_for_cpu() {
    const Hardware hardware = Hardware::detect();
    const fs::path folder = default_plugin_folder();
    for (const char* const name : {"cpu_avx512", "cpu_avx2", "reference"}) {
        for (const PluginRecord& record : find_plugins({folder})) {
            if (record.manifest.name == name && record.reason.empty() && why_unsuitable(record, {}, hardware).empty())
                return record.path;
        }
    }
    fail(TSR_NOT_FOUND, "--time: no built-in plugin in {} can be used here: 'tessera plugins --why' says why",
         folder.string());
}

std::string read_file(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) fail(TSR_IO_ERROR, "{} cannot be read", file.string());
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

class PluginTest {
  public:
    PluginTest(const Options& options, const fs::path& manifest, const fs::path& reference)
        : options_(options),
          subject_{.manifest = manifest,
                   .reference = reference,
                   .rig = options.rig,
                   .cases = options.cases,
                   .shapes = options.shapes} {
        if (options.provider) subject_.owner = manifests_of(*options.provider).front();
    }

    conformance::PluginOutcome run(const conformance::ExpectedFailures& expected) {
        const PluginRecord record = record_of(subject_.manifest);
        name_ = record.manifest.name.empty() ? subject_.manifest.stem().string() : record.manifest.name;
        print(fmt::format("{}: {}\n", name_, subject_.manifest.string()));
        subject_.gpus = owned_kind(subject_.owner ? record_of(*subject_.owner) : record);
        const Hardware hardware = options_.rig ? Hardware::from_rig(*options_.rig, subject_.gpus) : Hardware::detect();
        Config config;
        std::string why = record.reason;
        if (why.empty()) why = why_unsuitable(record, config, hardware);
        if (why.empty()) why = why_refused(record);
        TriedPlugin tried;
        if (why.empty()) {
            tried = try_plugin(subject_.manifest, options_.rig, subject_.gpus);
            why = tried.failure;
        }
        std::vector<Outcome> all;
        all.push_back({why.empty() ? Outcome::kPassed : Outcome::kFailed, "table", "table", why, 0});
        if (why.empty()) {
            add_groups(tried, hardware, all);
            if (!options_.groups.empty()) {
                std::erase_if(groups_, [&](const conformance::Group& group) {
                    return std::ranges::find(options_.groups, group.name) == options_.groups.end();
                });
            }
            if (options_.list) {
                for (const conformance::Group& group : groups_) print("group: " + group.name + '\n');
                groups_.clear();
            }
            std::vector<Outcome> more = conformance::run_groups(
                groups_, options_.timeout, [&](const conformance::Group& group, const std::vector<Outcome>& outcomes) {
                    report_group(group, outcomes, expected);
                });
            if (!options_.shapes.empty()) {
                const bool any =
                    std::ranges::any_of(more, [](const Outcome& o) { return o.kind != Outcome::kSkipped; });
                if (!any && !options_.list)
                    more.push_back({Outcome::kFailed, "shapes", "claims", "no kernel claims one of the shapes", 0});
            } else if (options_.cases.empty()) {
                add_unclaimed(more);
            } else if (more.empty() && !options_.list) {
                more.push_back({Outcome::kFailed, "cases", "names", "no case has a name with what --case says", 0});
            }
            std::ranges::move(more, std::back_inserter(all));
        }
        conformance::apply(expected, name_, all);
        print_outcomes(all);
        return {name_, std::move(all)};
    }

  private:
    static PluginRecord record_of(const fs::path& manifest) {
        for (const PluginRecord& record : find_plugins({manifest.parent_path()})) {
            if (record.path == manifest) return record;
        }
        fail(TSR_NOT_FOUND, "{}: no plugin's manifest", manifest.string());
    }

    // That of the GPUs of a rig: a provider of any kind can be tested, also of one that is found on no machine.
    static std::string owned_kind(const PluginRecord& record) {
        const std::vector<std::string>& kinds = record.manifest.kinds;
        const auto own = std::ranges::find_if(kinds, [](const std::string& kind) { return kind != "cpu"; });
        return own == kinds.end() || std::ranges::find(kinds, "cuda") != kinds.end() ? "cuda" : *own;
    }

    bool is_wanted(const std::string& kernel) const {
        const auto is_part = [&](const std::string& part) { return kernel.find(part) != std::string::npos; };
        if (std::ranges::any_of(options_.without, is_part)) return false;
        return options_.kernels.empty() || std::ranges::any_of(options_.kernels, is_part);
    }

    // Of a group whose op has no shapes it is told in `all`.
    bool has_shapes_of(const std::string& op, const std::string& group, std::vector<Outcome>& all) const {
        if (options_.shapes.empty()) return true;
        if (!conformance::has_shapes(op)) {
            all.push_back({Outcome::kNotChecked, group, op,
                           "no shape of this op can be named: leave --shape and --model away to test it", 0});
        }
        return std::ranges::any_of(options_.shapes,
                                   [&](const std::string& shape) { return shape.starts_with(op + ":"); });
    }

    void add_architecture(const std::string& name, std::vector<Outcome>& all) {
        fs::path model;
        for (const fs::path& file : options_.models) {
            if (gguf::GgufFile::open(file).metadata().get_string("general.architecture") == name) model = file;
        }
        const std::string group = "architecture " + name;
        if (model.empty())
            all.push_back({Outcome::kNotChecked, group, "model", "what it builds: --model names a file of it", 0});
        groups_.push_back(
            {group, [this, name, model](size_t first) { return architecture_words(subject_, name, model, first); }});
    }

    void add_groups(const TriedPlugin& tried, const Hardware& hardware, std::vector<Outcome>& all) {
        // The ABI has no reference for these: what they mean is known to the plugin alone.
        for (const std::string& name : tried.operators) {
            all.push_back(
                {Outcome::kNotChecked, "operator " + name, "shapes", "what it infers: nothing to compare it with", 0});
        }
        for (const auto& [name, op] : tried.lowerings) {
            all.push_back({Outcome::kNotChecked, fmt::format("lowering {} of {}", name, op), "nodes",
                           "what it writes: nothing to compare it with", 0});
        }
        if (!tried.architectures_fault.empty())
            all.push_back({Outcome::kFailed, "architectures", "list", tried.architectures_fault, 0});
        for (const std::string& name : tried.architectures) add_architecture(name, all);
        if (tried.for_plans_only) {
            all.push_back({Outcome::kNotChecked, "kernels", "run",
                           "this processor lacks flags that they need: only the table was checked", 0});
            return;
        }
        const std::vector<std::string> known = conformance::ops_with_cases();
        for (const TriedPlugin::Kernel& kernel : tried.kernels) {
            const std::string group = "kernel " + kernel.name;
            if (kernel.kind != "cpu" || !is_wanted(kernel.name) || !has_shapes_of(kernel.op, group, all)) continue;
            if (std::ranges::find(known, kernel.op) == known.end()) {
                all.push_back({Outcome::kNotChecked, group, kernel.op,
                               "no cases of this op are known: it is not one of the core's", 0});
                continue;
            }
            groups_.push_back(
                {group, [this, name = kernel.name](size_t first) { return kernel_words(subject_, name, first); }});
            if (!options_.time) continue;
            TestSubject timed = subject_;
            timed.reference = builtin_for_cpu();
            groups_.push_back({"time of " + kernel.name,
                               [timed, name = kernel.name](size_t first) { return time_words(timed, name, first); }});
        }
        if (tried.layouts > 0 && options_.kernels.empty() && options_.shapes.empty())
            groups_.push_back({"layouts", [this](size_t first) { return layout_words(subject_, first); }});
        const std::vector<std::string> provider_kinds =
            subject_.owner ? try_plugin(*subject_.owner, options_.rig, subject_.gpus).provider_kinds
                           : tried.provider_kinds;
        for (uint32_t i = 0; i < provider_kinds.size(); ++i) {
            bool found = false;
            for (const tsr_device_info* device : hardware.devices()) {
                if (provider_kinds[i] != device->kind) continue;
                found = true;
                const std::string id = device->id;
                if (!options_.devices.empty() && std::ranges::find(options_.devices, id) == options_.devices.end())
                    continue;
                if (options_.kernels.empty() && options_.shapes.empty() && (!subject_.owner || tried.layouts > 0)) {
                    groups_.push_back({"device " + id,
                                       [this, i, id](size_t first) { return device_words(subject_, i, id, "", first); },
                                       id});
                }
                for (const TriedPlugin::Kernel& kernel : tried.kernels) {
                    const std::string group = kernel.name + " on " + id;
                    if (kernel.kind != device->kind || !is_wanted(kernel.name) || !has_shapes_of(kernel.op, group, all))
                        continue;
                    groups_.push_back({group,
                                       [this, i, id, name = kernel.name](size_t first) {
                                           return device_words(subject_, i, id, name, first);
                                       },
                                       id});
                }
            }
            if (!found) {
                all.push_back({Outcome::kNotChecked, "device", provider_kinds[i],
                               provider_kinds[i] == subject_.gpus
                                   ? fmt::format("no device of kind {} here: --rig describes one", provider_kinds[i])
                                   : fmt::format("no device of kind {} here; GPUs of --rig are of kind {}",
                                                 provider_kinds[i], subject_.gpus),
                               0});
            }
        }
    }

    // A kernel that claims no case at all was not tested: that must not look like a success.
    void add_unclaimed(std::vector<Outcome>& outcomes) const {
        for (const conformance::Group& group : groups_) {
            if (!group.name.starts_with("kernel ")) continue;
            const auto of_group = [&](const Outcome& o) { return o.group == group.name; };
            const auto tested = [&](const Outcome& o) { return of_group(o) && o.kind != Outcome::kSkipped; };
            if (std::ranges::any_of(outcomes, tested)) continue;
            const auto any = std::ranges::find_if(outcomes, of_group);
            outcomes.push_back({Outcome::kFailed, group.name, "claims",
                                fmt::format("it claims none of the cases of its op: nothing was tested{}",
                                            any == outcomes.end() ? "" : " (of the first it says: " + any->text + ")"),
                                0});
        }
    }

    void report_group(const conformance::Group& group, std::vector<Outcome> outcomes,
                      const conformance::ExpectedFailures& expected) const {
        conformance::apply(expected, name_, outcomes);
        print(fmt::format("  {:<40} {:>5} passed, {} failed, {} not claimed\n", group.name,
                          conformance::count(outcomes, Outcome::kPassed),
                          conformance::count(outcomes, Outcome::kFailed),
                          conformance::count(outcomes, Outcome::kSkipped)));
    }

    void print_outcomes(const std::vector<Outcome>& all) const {
        for (const Outcome& o : all) {
            if (o.kind == Outcome::kFailed) {
                print(fmt::format("FAILED {} {}/{}: {}\n", name_, o.group, o.name, o.text));
            } else if (o.kind == Outcome::kExpectedFailure) {
                print(fmt::format("failed as expected: {} {}/{}: {}\n", name_, o.group, o.name, o.text));
            } else if (o.kind == Outcome::kNotChecked) {
                print(fmt::format("not checked: {} {}/{}: {}\n", name_, o.group, o.name, o.text));
            } else if (o.kind == Outcome::kNotRun) {
                print(fmt::format("not run: {} {}/{}: {}\n", name_, o.group, o.name, o.text));
            } else if (o.kind == Outcome::kPassed && o.group.starts_with("time of ")) {
                print(fmt::format("  {}: {}\n", o.name, o.text));
            } else if (options_.verbose) {
                print(fmt::format("{} {} {}/{}{}{}\n", o.kind == Outcome::kPassed ? "passed" : "not claimed", name_,
                                  o.group, o.name, o.text.empty() ? "" : ": ", o.text));
            }
        }
    }

    const Options& options_;
    TestSubject subject_;
    std::string name_;
    std::vector<conformance::Group> groups_;
};

}  // namespace

int plugin_test_command(Arguments& arguments) {
    const Options options = read_options(arguments);
    const conformance::ExpectedFailures expected = options.expected
                                                       ? conformance::ExpectedFailures(read_file(*options.expected))
                                                       : conformance::ExpectedFailures();
    const fs::path reference = reference_of(options);
    std::vector<conformance::PluginOutcome> results;
    size_t failed = 0, passed = 0, skipped = 0, unchecked = 0, not_run = 0;
    for (const fs::path& subject : options.subjects) {
        for (const fs::path& manifest : manifests_of(subject)) {
            results.push_back(PluginTest(options, manifest, reference).run(expected));
            const std::vector<Outcome>& outcomes = results.back().outcomes;
            failed += conformance::count(outcomes, Outcome::kFailed);
            passed += conformance::count(outcomes, Outcome::kPassed) +
                      conformance::count(outcomes, Outcome::kExpectedFailure);
            skipped += conformance::count(outcomes, Outcome::kSkipped);
            unchecked += conformance::count(outcomes, Outcome::kNotChecked);
            not_run += conformance::count(outcomes, Outcome::kNotRun);
        }
    }
    if (options.junit) {
        std::ofstream out(*options.junit, std::ios::binary);
        out << conformance::junit_xml(results);
        if (!out.flush()) fail(TSR_IO_ERROR, "{} cannot be written", options.junit->string());
    }
    print(fmt::format("{} passed, {} failed, {} not claimed{}{}\n", passed, failed, skipped,
                      unchecked > 0 ? fmt::format(", {} not checked", unchecked) : "",
                      not_run > 0 ? ", others not run" : ""));
    return failed == 0 ? kExitDone : kExitFailed;
}

}  // namespace tessera::app
