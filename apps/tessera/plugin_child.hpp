// Child processes of this program, in which plugins are mapped that may crash or hang; and `plugin-test`, which runs
// all in them.
#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tessera::app {

// A child that says nothing for so long is ended: also where a constructor of a library does not end.
constexpr auto kChildSilence = std::chrono::seconds(15);

// Says that this program's executable understands run_as_child. Without it no child is started: programs that contain
// the command as a library are other programs.
void allow_children();

// If the words are those of a child: does what they say and returns the exit code.
std::optional<int> run_as_child(std::span<const std::string> words);

// What a child says of a plugin that it maps and initialises.
struct TriedPlugin {
    std::string failure;  // why it cannot be used; then nothing else is known
    struct Kernel {
        std::string name, op, kind;
    };
    std::vector<Kernel> kernels;
    std::vector<std::string> provider_kinds;
    std::vector<std::string> operators;
    std::vector<std::string> architectures;
    std::string architectures_fault;                          // of the list of them; empty if there is none
    std::set<std::pair<std::string, std::string>> lowerings;  // names and ops, its own and others'
    uint32_t layouts = 0;
    bool for_plans_only = false;  // its kernels cannot run here
};
// `gpus`: of which kind those of the rig are. `config`: the configuration, which may limit or split devices; empty:
// none.
TriedPlugin try_plugin(const std::filesystem::path& manifest, const std::optional<std::filesystem::path>& rig,
                       const std::string& gpus, const std::filesystem::path& config = {});

enum class TriedFirst {
    kEvery,
    // All but the project's own plugins beside the program, and libraries that a child has survived before (by their
    // SHA-256: $XDG_CACHE_HOME/tessera/tried-plugins).
    kUnknown
};
// From now on this process maps such plugins only if a child did so first, for the same machine, and survived it.
void try_plugins_in_children(TriedFirst which, const std::optional<std::filesystem::path>& rig = std::nullopt);

// Words of children that run tests; each ends with the number of its first case.
struct TestSubject {
    std::filesystem::path manifest, reference;
    std::optional<std::filesystem::path> rig;
    std::string gpus = "cuda";                                  // of which kind those of the rig are
    std::optional<std::filesystem::path> owner = std::nullopt;  // on whose devices its kernels are tested
    std::vector<std::string> cases = {};   // only cases whose name contains one of these; empty: all
    std::vector<std::string> shapes = {};  // of cases, as conformance::parse_shape takes them; empty: those that are
                                           // always the same
};
std::vector<std::string> kernel_words(const TestSubject& subject, const std::string& kernel, size_t first);
// Times of the kernel; `subject.reference` is the plugin that it is compared with.
std::vector<std::string> time_words(const TestSubject& subject, const std::string& kernel, size_t first);
std::vector<std::string> layout_words(const TestSubject& subject, size_t first);
// `model`: a file of it; empty: none.
std::vector<std::string> architecture_words(const TestSubject& subject, const std::string& architecture,
                                            const std::filesystem::path& model, size_t first);
// `kernel`: the one whose cases run on the device; empty: the device's own.
std::vector<std::string> device_words(const TestSubject& subject, uint32_t provider, const std::string& device,
                                      const std::string& kernel, size_t first);

}  // namespace tessera::app
