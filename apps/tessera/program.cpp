#include "apps/tessera/build_commit.hpp"
#include "apps/tessera/commands.hpp"
#include "apps/tessera/environment.hpp"
#include "apps/tessera/help.hpp"
#include "apps/tessera/other_programs.hpp"
#include "apps/tessera/output.hpp"
#include "apps/tessera/process_flags.hpp"
#include "apps/wording/wording.hpp"
#include "core/base/error.hpp"
#include "core/base/nearest.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <cstdio>
#include <new>

namespace tessera::app {
namespace {

std::string general_help() {
    std::string text = "Tessera runs large language models on CPUs and GPUs.\n\nusage: tessera COMMAND [flags]\n\n";
    for (const CommandInfo& info : all_commands())
        text += fmt::format("  {:<12}{}\n", info.name, wrapped(info.summary, 14, 14));
    return text +
           "\n'tessera COMMAND --help' lists the flags of a command. First try:\n\n"
           "  tessera run -p \"Count from 1 to 10 in French.\"\n"
           "  tessera chat\n";
}

std::string version_text() {
    return fmt::format("tessera {} (commit {})\n", TSR_VERSION, build_commit());
}

int dispatch(Command command, Arguments& arguments) {
    switch (command) {
        case Command::kRun:
            return run_command(arguments);
        case Command::kChat:
            return chat_command(arguments);
        case Command::kServe:
            return serve_command(arguments);
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
        case Command::kPluginTest:
            return plugin_test_command(arguments);
    }
    return kExitFailed;
}

// Most messages make the kind of failure clear.
int report(const Error& error) {
    const bool named = error.code() == TSR_DOES_NOT_FIT || error.code() == TSR_INTERNAL;
    say_error(fmt::format("tessera: {}{}", named ? fmt::format("{}: ", code_name(error.code())) : "", worded(error)));
    switch (error.code()) {
        case TSR_DOES_NOT_FIT:
            return kExitDoesNotFit;
        case TSR_CANCELLED:
            return kExitInterrupted;
        default:
            return kExitFailed;
    }
}

const CommandInfo* find_command(std::string_view word) {
    const auto at = std::ranges::find(all_commands(), word, &CommandInfo::name);
    return at == all_commands().end() ? nullptr : &*at;
}

[[noreturn]] void fail_command(const std::string& word) {
    std::string names;
    for (const CommandInfo& known : all_commands()) names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
    const std::string plain = with_plain_dashes(word);
    if (plain != word && plain.starts_with('-'))
        throw UsageError(fmt::format("{} has another dash than '-', as copied from a page or a document; type {}",
                                     printable(word, 60), plain));
    if (const std::string instead = instead_of(word); !instead.empty())
        throw UsageError(fmt::format("there is no command '{}': {}", printable(word, 60), instead));
    if (word.starts_with('-')) {
        throw UsageError(fmt::format("expected a command ({}), found the flag {}; flags stand after the command", names,
                                     printable(word, 60)));
    }
    std::vector<std::string_view> known;
    for (const CommandInfo& info : all_commands()) known.push_back(info.name);
    throw UsageError(fmt::format("expected a command ({}), found '{}'{}; 'tessera --help' says more", names,
                                 printable(word, 60), did_you_mean(word, known)));
}

// Flags that all commands have are accepted before the command, too: "tessera --config F run". Moves the command to the
// front.
std::vector<std::string> command_first(std::span<const std::string> words) {
    // By the flags of any command, since all have these.
    constexpr Command any = Command::kRun;
    size_t at = 0;
    while (at < words.size() && words[at].starts_with('-')) {
        const Flag* const flag = find_flag(words[at].substr(0, words[at].find('=')), any);
        if (!flag || !flag->of_all()) break;
        const bool separate = flag->takes == Takes::kValue && words[at].find('=') == std::string::npos;
        at += separate ? 2 : 1;
    }
    std::vector<std::string> ordered;
    if (at < words.size()) ordered.push_back(words[at]);
    for (size_t i = 0; i < words.size(); ++i) {
        if (i != at) ordered.push_back(words[i]);
    }
    return ordered;
}

int start(std::span<const std::string> given) {
    const std::vector<std::string> ordered = command_first(given);
    const std::span words(ordered);
    if (words.empty() || !find_command(words[0])) {
        const auto asks = [&](std::string_view name) {
            return !words.empty() && words[0].starts_with('-') &&
                   std::ranges::any_of(words,
                                       [&](const std::string& word) { return flag_named(name).spelled_as(word); });
        };
        if (words.empty() || asks("help") || (words[0] == "help" && words.size() == 1)) {
            print(general_help());
            return words.empty() ? kExitUsage : kExitDone;
        }
        if (words[0] == "help") {
            if (words[1] == "--markdown" || words[1] == "--man") {
                print(words[1] == "--man" ? man_page(TSR_VERSION) : flags_page());
                return kExitDone;
            }
            if (!find_command(words[1])) fail_command(words[1]);
            print(help_text(find_command(words[1])->command));
            return kExitDone;
        }
        if (asks("version") || words[0] == "version") {
            print(version_text());
            return kExitDone;
        }
        fail_command(words[0]);
    }
    const Command command = find_command(words[0])->command;
    const auto rest = words.subspan(1);
    // With --help or --version the rest of the line is not checked.
    const auto asks = [&](std::string_view name) {
        return std::ranges::any_of(rest, [&](const std::string& word) {
            const Flag* flag = find_flag(word, command);
            return flag && flag->name == name;
        });
    };
    if (asks("help")) {
        print(help_text(command));
        return kExitDone;
    }
    if (asks("version")) {
        print(version_text());
        return kExitDone;
    }
    std::vector<std::string> remarks;
    Arguments arguments(command, rest, read_environment(command, llama_variables(), remarks));
    for (const std::string& line : remarks) arguments.remark(line);
    try {
        apply_process_flags(arguments);
        return arguments.has("list-devices") ? devices_command(arguments) : dispatch(command, arguments);
    } catch (const UsageError& error) {
        throw UsageError(arguments.as_typed(error.what()));
    } catch (const Error& error) {
        const std::string message = arguments.as_typed(worded(error));
        const bool of_flag = error.code() == TSR_NOT_FOUND || error.code() == TSR_INVALID_ARGUMENT;
        if (of_flag && !error.notice().about.empty()) throw UsageError(message);
        throw Error(error.code(), message);
    }
}

}  // namespace

int tessera_main(std::span<const std::string> words) {
    try {
        const int code = start(words);
        if (const std::string reason = print_failure(); !reason.empty()) {
            say_error(fmt::format("tessera: standard output could not be written: {}", reason));
            return kExitFailed;
        }
        return code;
    } catch (const UsageError& error) {
        say_error(fmt::format("tessera: {}", error.what()));
        return kExitUsage;
    } catch (const Error& error) {
        return report(error);
    } catch (const std::bad_alloc&) {
        say_error("tessera: does not fit: the system gave no more memory");
        return kExitDoesNotFit;
    } catch (const std::exception& error) {
        say_error(fmt::format("tessera: {}", error.what()));
        return kExitFailed;
    }
}

}  // namespace tessera::app
