#include "apps/tessera/architecture_cases.hpp"

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/gguf/reader.hpp"
#include "core/gguf/writer.hpp"
#include "core/model/model.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

namespace tessera::app {
namespace {

namespace fs = std::filesystem;

struct Case {
    std::string name;
    std::function<void()> run;  // throws Error if it fails
};

void tell(int descriptor, std::string_view word, std::string_view text) {
    const std::string line = fmt::format("{}\t{}\n", word, text);
    if (write(descriptor, line.data(), line.size()) < 0) return;  // nobody listens
}

// A file that names the architecture, and says nothing else.
class BareFile {
  public:
    explicit BareFile(const std::string& architecture) {
        std::string path = (fs::temp_directory_path() / "tessera-plugin-test-XXXXXX").string();
        const int file = mkstemp(path.data());
        if (file < 0) fail(TSR_IO_ERROR, "{}: a file cannot be made there", fs::temp_directory_path().string());
        close(file);
        path_ = path;
        gguf::Writer writer(path_);
        writer.add("general.architecture", architecture);
        writer.add_tensor("token_embd.weight", TSR_TYPE_F32, std::array<uint64_t, 2>{32, 8});
        writer.write(std::vector<std::byte>(32 * 8 * sizeof(float)));
        writer.finish();
    }
    ~BareFile() {
        std::error_code ignored;
        fs::remove(path_, ignored);
    }
    BareFile(const BareFile&) = delete;
    BareFile& operator=(const BareFile&) = delete;

    const fs::path& path() const noexcept { return path_; }

  private:
    fs::path path_;
};

// Refuses or builds. What is no error of the file is the plugin's: an exception, a graph without logits.
std::optional<BuiltModel> refuse_or_build(const gguf::GgufFile& file, const Registry& registry) {
    try {
        (void)read_model_info(file, registry);
        return build_model(file, registry, {});
    } catch (const Error& error) {
        if (error.code() == TSR_INTERNAL) throw;
        return std::nullopt;
    }
}

bool same_nodes(const Graph& a, const Graph& b) {
    if (a.value_count() != b.value_count() || a.nodes().size() != b.nodes().size()) return false;
    for (size_t i = 0; i < a.nodes().size(); ++i) {
        const Node &one = a.nodes()[i], &other = b.nodes()[i];
        if (one.op != other.op || one.name != other.name || one.layer != other.layer || one.inputs != other.inputs ||
            one.outputs != other.outputs)
            return false;
    }
    return true;
}

void add_model_cases(std::vector<Case>& cases, const Registry& registry, const fs::path& path) {
    cases.push_back({"model", [&registry, path] {
                         const gguf::GgufFile file = gguf::GgufFile::open(path);
                         const BuiltModel once = build_model(file, registry, {});
                         const BuiltModel again = build_model(file, registry, {});
                         if (!same_nodes(once.graph, again.graph))
                             fail(TSR_INTERNAL, "two graphs of one file differ: build is not pure");
                         GraphLimits limits;
                         limits.rows = 3;
                         limits.output_rows = limits.sequences = 2;
                         (void)build_model(file, registry, limits);
                     }});
    const gguf::GgufFile file = gguf::GgufFile::open(path);
    const std::string prefix = std::string(file.metadata().get_string("general.architecture")) + ".";
    const std::array<gguf::Value, 6> values = {int64_t{0},  int64_t{-1},
                                               int64_t{3},  int64_t{std::numeric_limits<int32_t>::max()},
                                               float{1e30}, std::string("?")};
    for (const auto& [key, value] : file.metadata().entries()) {
        if (!key.starts_with(prefix)) continue;
        for (const gguf::Value& other : values) {
            cases.push_back({fmt::format("{}={}", printable(key, 60), gguf::to_text(other)),
                             [&registry, path, replaced = gguf::Override{key, other}] {
                                 const auto changed = gguf::GgufFile::open(path, std::span(&replaced, 1));
                                 (void)refuse_or_build(changed, registry);
                             }});
        }
    }
}

}  // namespace

void run_architecture_cases(const Registry& registry, const std::string& architecture, const fs::path& model,
                            std::span<const std::string> only, size_t first, int descriptor) {
    const BareFile bare(architecture);
    std::vector<Case> cases;
    cases.push_back({"no keys", [&] {
                         if (refuse_or_build(gguf::GgufFile::open(bare.path()), registry))
                             fail(TSR_INTERNAL, "a file without any key of the architecture was taken");
                     }});
    if (!model.empty()) add_model_cases(cases, registry, model);
    std::erase_if(cases, [&](const Case& one) {
        return !only.empty() && std::ranges::none_of(only, [&](const std::string& part) {
            return one.name.find(part) != std::string::npos;
        });
    });
    for (size_t i = first; i < cases.size(); ++i) {
        tell(descriptor, "begin", cases[i].name);
        try {
            cases[i].run();
            tell(descriptor, "pass", "");
        } catch (const std::exception& error) {
            tell(descriptor, "fail", printable(error.what(), 500));
        }
    }
    tell(descriptor, "end", "");
}

}  // namespace tessera::app
