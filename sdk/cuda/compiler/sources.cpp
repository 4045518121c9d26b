#include "sources.hpp"

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string_view>

namespace tessera::cuda::compiler {
namespace {

namespace fs = std::filesystem;

// The name between the quotes or angle brackets of an #include line; empty if the line is another.
std::string_view included_name(std::string_view line) {
    const auto skip = [&line] {
        const size_t at = line.find_first_not_of(" \t");
        line.remove_prefix(at == std::string_view::npos ? line.size() : at);
    };
    const auto take = [&line](std::string_view word) {
        if (!line.starts_with(word)) return false;
        line.remove_prefix(word.size());
        return true;
    };
    skip();
    if (!take("#")) return {};
    skip();
    if (!take("include")) return {};
    skip();
    if (line.empty() || (line[0] != '"' && line[0] != '<')) return {};
    const char end = line[0] == '"' ? '"' : '>';
    line.remove_prefix(1);
    const size_t at = line.find(end);
    return at == std::string_view::npos ? std::string_view{} : line.substr(0, at);
}

class Reader {
  public:
    explicit Reader(const std::vector<fs::path>& folders) : folders_(folders) {}

    void read(const fs::path& path) {
        const fs::path canonical = fs::weakly_canonical(path);
        if (!seen_.insert(canonical).second) return;
        files_.push_back({canonical, read_file(canonical)});
        const std::string text = files_.back().text;
        for (size_t begin = 0; begin < text.size();) {
            const size_t end = std::min(text.find('\n', begin), text.size());
            const std::string_view name = included_name(std::string_view(text).substr(begin, end - begin));
            if (!name.empty()) follow(canonical.parent_path(), name);
            begin = end + 1;
        }
    }
    std::vector<SourceFile> take() { return std::move(files_); }

  private:
    void follow(const fs::path& folder, std::string_view name) {
        std::error_code ignored;
        if (const fs::path beside = folder / name; fs::is_regular_file(beside, ignored)) return read(beside);
        for (const fs::path& one : folders_) {
            if (const fs::path found = one / name; fs::is_regular_file(found, ignored)) return read(found);
        }
    }

    const std::vector<fs::path>& folders_;
    std::set<fs::path> seen_;
    std::vector<SourceFile> files_;
};

}  // namespace

std::string read_file(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in) throw std::runtime_error("cannot read " + path.string());
    return text;
}

void write_file(const fs::path& path, const std::string& text) {
    if (path.has_parent_path()) fs::create_directories(path.parent_path());
    const fs::path part = path.string() + "." + std::to_string(getpid()) + ".part";
    {
        std::ofstream out(part, std::ios::binary);
        out.write(text.data(), static_cast<std::streamsize>(text.size()));
        if (!out.flush()) throw std::runtime_error("cannot write " + part.string());
    }
    fs::rename(part, path);
}

void update_file(const fs::path& path, const std::string& text) {
    std::error_code ignored;
    if (fs::is_regular_file(path, ignored) && read_file(path) == text) return;
    write_file(path, text);
}

std::vector<SourceFile> read_sources(const std::vector<fs::path>& sources, const std::vector<fs::path>& folders) {
    Reader reader(folders);
    for (const fs::path& source : sources) reader.read(source);
    return reader.take();
}

}  // namespace tessera::cuda::compiler
