#include "tests/model/random_models.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace tessera::test {

namespace fs = std::filesystem;

namespace {

constexpr const char* kScript = TSR_SOURCE_DIR "/testing/make_gguf.py";

std::string time_of(const char* file) {
    return std::to_string(fs::last_write_time(file).time_since_epoch().count());
}

void run(const std::string& command) {
    FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("cannot run " + command);
    std::string output;
    std::array<char, 4096> buffer;
    while (const size_t read = std::fread(buffer.data(), 1, buffer.size(), pipe)) output.append(buffer.data(), read);
    if (::pclose(pipe) != 0) throw std::runtime_error(command + " failed (needs python3 with numpy): " + output);
}

}  // namespace

fs::path random_model(const std::string& name, const std::string& options) {
    const fs::path folder = fs::path(TSR_BINARY_DIR) / "random_models";
    const fs::path model = folder / (name + ".gguf"), stamp = folder / (name + ".made");
    const std::string wanted = options + " " + time_of(kScript);
    if (std::ifstream file(stamp); file) {
        if (std::string(std::istreambuf_iterator<char>(file), {}) == wanted) return model;
    }
    // Tests run as processes at once: each writes a folder of its own, and whole files are moved.
    const fs::path own = folder / (name + "." + std::to_string(::getpid()));
    fs::create_directories(own);
    run(std::string(TSR_PYTHON " ") + kScript + " " + options + " -o " + (own / model.filename()).string());
    std::ofstream(own / "stamp") << wanted;
    for (const auto& entry : fs::directory_iterator(own)) {
        if (entry.path().filename() != "stamp") fs::rename(entry.path(), folder / entry.path().filename());
    }
    fs::rename(own / "stamp", stamp);
    fs::remove_all(own);
    return model;
}

fs::path part(const fs::path& model, int number, int count) {
    std::array<char, 32> suffix;
    std::snprintf(suffix.data(), suffix.size(), "-%05d-of-%05d.gguf", number, count);
    return model.parent_path() / (model.stem().string() + suffix.data());
}

}  // namespace tessera::test
