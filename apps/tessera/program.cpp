#include "apps/tessera/commands.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/plugin_child.hpp"
#include "core/base/error.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <cstdio>
#include <new>

namespace tessera::app {
namespace {

std::string general_help() {
    std::string text = "Tessera runs large language models on CPUs and GPUs.\n\nusage: tessera COMMAND [flags]\n\n";
    for (const CommandInfo& info : all_commands()) text += fmt::format("  {:<12}{}\n", info.name, info.summary);
    text +=
        fmt::format("  {:<12}{}\n", "plugin-test", "Tests a plugin against the reference, in processes of its own.");
    text +=
        "\n'tessera COMMAND --help' lists the flags of a command. First try:\n\n  tessera run -p \"Count from 1 to 10 "
        "in French.\"\n";
    return text;
}

std::string version_text() {
    return fmt::format("tessera {}\n", TSR_VERSION);
}

int dispatch(Command command, Arguments& arguments) {
    switch (command) {
        case Command::kRun:
            return run_command(arguments);
        case Command::kChat:
            return chat_command(arguments);
        case Command::kPlan:
            return plan_command(arguments);
        case Command::kDevices:
            return devices_command(arguments);
        case Command::kPlugins:
            return plugins_command(arguments);
        case Command::kInspect:
            return inspect_command(arguments);
        case Command::kTokenize:
            return tokenize_command(arguments);
        case Command::kBench:
            return bench_command(arguments);
        case Command::kSweep:
            return sweep_command(arguments);
        case Command::kPerplexity:
            return perplexity_command(arguments);
        case Command::kRepack:
            return repack_command(arguments);
    }
    return kExitFailed;
}

int start(std::span<const std::string> words) {
    if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
        print(general_help());
        return words.empty() ? kExitUsage : kExitDone;
    }
    if (words[0] == "--version") {
        print(version_text());
        return kExitDone;
    }
    if (words[0] == kPluginTest) return plugin_test_command(words.subspan(1));
    const auto info = std::ranges::find(all_commands(), std::string_view(words[0]), &CommandInfo::name);
    if (info == all_commands().end()) {
        std::string names;
        for (const CommandInfo& known : all_commands())
            names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
        throw UsageError(fmt::format("expected a command ({}), found '{}'; 'tessera --help' says more", names,
                                     printable(words[0], 60)));
    }
    const auto rest = words.subspan(1);
    // Asked for help or the version, a line may be as wrong as it likes.
    const auto asks = [&](std::string_view name) {
        return std::ranges::any_of(rest, [&](const std::string& word) {
            const Flag* flag = find_flag(word, info->command);
            return flag && flag->name == name;
        });
    };
    if (asks("help")) {
        print(help_text(info->command));
        return kExitDone;
    }
    if (asks("version")) {
        print(version_text());
        return kExitDone;
    }
    Arguments arguments(info->command, rest);
    if (arguments.has("verbose")) log().set_level(spdlog::level::debug);
    return dispatch(info->command, arguments);
}

}  // namespace

int tessera_main(std::span<const std::string> words) {
    try {
        const int code = start(words);
        if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
            say("tessera: standard output could not be written");
            return kExitFailed;
        }
        return code;
    } catch (const UsageError& error) {
        say(fmt::format("tessera: {}", error.what()));
        return kExitUsage;
    } catch (const Error& error) {
        say(fmt::format("tessera: {}: {}", code_name(error.code()), error.what()));
        return error.code() == TSR_DOES_NOT_FIT ? kExitDoesNotFit : kExitFailed;
    } catch (const std::bad_alloc&) {
        say("tessera: does not fit: the system gave no more memory");
        return kExitDoesNotFit;
    } catch (const std::exception& error) {
        say(fmt::format("tessera: {}", error.what()));
        return kExitFailed;
    }
}

}  // namespace tessera::app
