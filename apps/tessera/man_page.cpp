#include "apps/tessera/commands.hpp"
#include "apps/tessera/help.hpp"

#include <spdlog/fmt/fmt.h>

namespace tessera::app {
namespace {

// `text` as roff prints it: no character of it is a request or an escape.
std::string plain_text(std::string_view text) {
    std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char c : text) out += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    return out;
}

std::string item(std::string_view head, std::string_view text) {
    return fmt::format(".TP\n.B {}\n{}\n", head, plain_text(text));
}

std::string flags_of(Group group) {
    std::string items;
    for (const Flag& flag : all_flags()) {
        if (flag.group != group) continue;
        std::string head;
        for (const std::string_view spelling : spellings_of(flag))
            head += fmt::format("{}{}", head.empty() ? "" : ", ", plain_text(spelling));
        if (!flag.value.empty()) head += fmt::format(" \\fI{}\\fR", plain_text(flag.value));
        items += item(head, fmt::format("({}) {}", commands_text(flag.commands), help_of(flag)));
    }
    return items;
}

}  // namespace

std::string man_page(std::string_view version) {
    std::string text = fmt::format(".TH TESSERA 1 \"\" \"tessera {}\" \"User Commands\"\n", plain_text(version));
    // Spellings of flags are neither hyphenated nor spread over a line.
    text += ".nh\n.ad l\n";
    text += ".SH NAME\ntessera, tessera\\-server \\- run large language models on CPUs and GPUs\n";
    text += ".SH SYNOPSIS\n";
    for (const CommandInfo& info : all_commands()) text += fmt::format(".B {}\n.br\n", plain_text(info.usage));
    text += ".SH DESCRIPTION\n" +
            plain_text(
                "Models are GGUF files. Results go to standard output, everything else to standard error. "
                "'tessera COMMAND --help' lists the flags of one command.") +
            "\n.SH COMMANDS\n";
    for (const CommandInfo& info : all_commands()) text += item(plain_text(info.name), info.summary);
    for (size_t g = 0; g <= static_cast<size_t>(Group::kRefused); ++g) {
        const auto group = static_cast<Group>(g);
        text += fmt::format(".SH \"FLAGS: {}\"\n{}", plain_text(group_title(group)), flags_of(group));
    }
    text += ".SH ENVIRONMENT\n";
    text += item("LLAMA_ARG_\\fINAME\\fR",
                 "the value of the flag of that name, as LLAMA_ARG_CTX_SIZE of --ctx-size, where the command has the "
                 "flag and the command line does not give it");
    text += item("NOTIFY_SOCKET", "set by systemd: serve tells when it is ready");
    text += ".SH \"SIGNALS OF SERVE\"\n";
    text +=
        item("SIGTERM, SIGINT", "accept no more requests, finish running answers, end; the second ends them at once");
    text += item("SIGHUP", "read keys again and reopen the access log");
    text += ".SH FILES\n";
    text += item("share/tessera/examples",
                 "a configuration file, flags for systemd, and keys with limits, beside the program's folder");
    text += item("NOTIFY_SOCKET", "set by systemd: serve tells when it is ready");
    text += ".SH \"SIGNALS OF SERVE\"\n";
    text +=
        item("SIGTERM, SIGINT", "accept no more requests, finish running answers, end; the second ends them at once");
    text += item("SIGHUP", "read keys again and reopen the access log");
    text += ".SH FILES\n";
    text += item("share/tessera/examples",
                 "a configuration file, flags for systemd, and keys with limits, beside the program's folder");
    text += ".SH \"EXIT STATUS\"\n";
    text += item(std::to_string(kExitDone), "done");
    text += item(std::to_string(kExitFailed), "failed: the message gives the reason");
    text += item(std::to_string(kExitUsage), "the command line is wrong, or a flag is refused");
    text += item(std::to_string(kExitDoesNotFit), "the model does not fit: the message names the device and the bytes");
    text += item(std::to_string(kExitInterrupted), "ended by Ctrl-C");
    return text;
}

}  // namespace tessera::app
