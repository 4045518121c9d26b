#include "apps/tessera/start.hpp"

#include "apps/tessera/commands.hpp"
#include "apps/tessera/crash_report.hpp"
#include "apps/tessera/interrupt.hpp"
#include "apps/tessera/plugin_child.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

// A file that is opened while one of these descriptors is closed would get its number, and the messages. Standard
// output is opened for reading, so that printing results is an error.
void open_standard_streams() {
    constexpr int modes[] = {O_RDONLY, O_RDONLY, O_RDWR};
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
        // Opening takes the lowest free number, which is this one.
        if (fcntl(stream, F_GETFD) < 0) open("/dev/null", modes[stream]);
    }
}

// SIGHUP asks a server to read its keys again. One that has not read them yet is not to end of it.
void keep_early_hangups_harmless() {
    struct sigaction action {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_RESTART;
    sigaction(SIGHUP, &action, nullptr);
}

// A file that grows past the limit of file sizes (ulimit -f, LimitFSIZE=) is then an error of the write that says so,
// not the silent end of the process.
void have_large_files_fail() {
    struct sigaction action {};
    action.sa_handler = SIG_IGN;
    sigaction(SIGXFSZ, &action, nullptr);
}

}  // namespace

namespace tessera::app {

int start_program(int argc, char** argv) {
    const bool is_server = argc > 0 && std::filesystem::path(argv[0]).filename() == "tessera-server";
    // Before all that takes time.
    if (is_server || (argc > 1 && std::string_view(argv[1]) == "serve")) keep_early_hangups_harmless();
    open_standard_streams();
    have_large_files_fail();
    install_crash_report();
    remove_unfinished_files_on_signals();
    const CallWatch watch(std::chrono::seconds(5));
    std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    allow_children();
    if (const std::optional<int> code = run_as_child(words)) return *code;
    try_plugins_in_children(TriedFirst::kUnknown);
    if (is_server) words.insert(words.begin(), "serve");
    return tessera_main(words);
}

}  // namespace tessera::app
