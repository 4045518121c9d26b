#include "ptxas.hpp"

#include "sources.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <vector>

extern char** environ;

namespace tessera::cuda::compiler {
namespace {

namespace fs = std::filesystem;

// Runs a program with both outputs into a file; returns the file's text. Throws if it cannot be run or fails.
std::string run(const std::vector<std::string>& words, const fs::path& output) {
    std::vector<char*> pointers;
    for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    pid_t child = 0;
    const int failed = posix_spawn(&child, words[0].c_str(), &actions, nullptr, pointers.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed != 0) throw std::runtime_error("cannot run " + words[0] + ": " + std::strerror(failed));
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    std::string text = read_file(output);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        std::string command;
        for (const std::string& word : words) command += (command.empty() ? "" : " ") + word;
        throw std::runtime_error(command + "\nfailed: " + text);
    }
    return text;
}

// A folder of its own that goes away.
class TemporaryFolder {
  public:
    explicit TemporaryFolder(const fs::path& where) {
        fs::create_directories(where);
        std::string name = (where / "ptxas.XXXXXX").string();
        if (!mkdtemp(name.data())) throw std::runtime_error("cannot make a folder in " + where.string());
        path_ = name;
    }
    ~TemporaryFolder() {
        std::error_code ignored;
        fs::remove_all(path_, ignored);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    const fs::path& path() const { return path_; }

  private:
    fs::path path_;
};

}  // namespace

Ptxas::Ptxas(const fs::path& toolkit) : program_(toolkit / "bin" / "ptxas") {
    if (!fs::is_regular_file(program_))
        throw std::runtime_error("there is no " + program_.string() + " (tools/setup --cuda installs it into .cuda)");
    const TemporaryFolder folder(fs::temp_directory_path());
    const std::string text = run({program_.string(), "--version"}, folder.path() / "version");
    std::smatch found;
    if (!std::regex_search(text, found, std::regex(R"(V\d+\.\d+\.\d+)")))
        throw std::runtime_error(program_.string() + " --version: expected a version such as V12.9.86; found " + text);
    version_ = found.str();
}

Assembled Ptxas::assemble(const std::string& ptx, int real, const fs::path& work, const std::string& name) const {
    const TemporaryFolder folder(work);
    const fs::path from = folder.path() / (name + ".ptx"), to = folder.path() / (name + ".cubin");
    write_file(from, ptx);
    Assembled made;
    made.log =
        run({program_.string(), "-arch=sm_" + std::to_string(real), "-O3", "-v", "-o", to.string(), from.string()},
            folder.path() / "log");
    made.cubin = read_file(to);
    return made;
}

std::string kernel_statistics(const std::string& log, const std::string& ptx) {
    static const std::regex function(R"(Function properties for (\S+))"),
        entry(R"(Compiling entry function '([^']+)')"),
        stack(R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)"),
        used(R"(Used (\d+) registers)"), shared(R"((\d+) bytes smem)");
    struct Kernel {
        std::string threads = "0", registers = "0", stores = "0", loads = "0", shared = "0", stack = "0";
    };
    std::map<std::string, Kernel> kernels;
    std::string compiled, described;
    std::istringstream lines(log);
    for (std::string line; std::getline(lines, line);) {
        std::smatch found;
        if (std::regex_search(line, found, entry)) {
            compiled = found[1];
            kernels[compiled];
        } else if (std::regex_search(line, found, function)) {
            described = found[1];
        } else if (std::regex_search(line, found, stack) && kernels.contains(described)) {
            Kernel& kernel = kernels[described];
            kernel.stack = found[1];
            kernel.stores = found[2];
            kernel.loads = found[3];
        } else if (std::regex_search(line, found, used) && kernels.contains(compiled)) {
            kernels[compiled].registers = found[1];
            if (std::regex_search(line, found, shared)) kernels[compiled].shared = found[1];
        }
    }
    // .entry NAME(parameters) .maxntid 128
    static const std::regex bounds(R"(\.entry ([\w$]+)\([^)]*\)\s*\.maxntid (\d+))");
    for (std::sregex_iterator at(ptx.begin(), ptx.end(), bounds), end; at != end; ++at) {
        if (const auto found = kernels.find((*at)[1]); found != kernels.end()) found->second.threads = (*at)[2];
    }
    std::string text;
    for (const auto& [name, kernel] : kernels) {
        text += name + " " + kernel.threads + " " + kernel.registers + " " + kernel.stores + " " + kernel.loads + " " +
                kernel.shared + " " + kernel.stack + "\n";
    }
    return text;
}

}  // namespace tessera::cuda::compiler
