#include "core/gguf/foreign_file.hpp"

#include "core/base/byte_order_mark.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <system_error>
#include <vector>

namespace tessera::gguf {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConvert = "convert the folder of the model to GGUF (docs/models.md)";
constexpr std::string_view kAgain = "download the GGUF file again";

std::string lower(std::string_view text) {
    std::string out(text);
    std::ranges::transform(out, out.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return out;
}

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

// The text without a byte-order mark and whitespace at its beginning.
std::string_view text_begin(std::string_view text) {
    if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
    while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
    return text;
}

// "the file says 'Access denied'": of pages and texts the first line that is not markup.
std::string quoted(std::string_view text) {
    return fmt::format("'{}'", printable(text.substr(0, text.find_first_of("\r\n")), 80));
}

bool is_markup(std::string_view text) {
    const std::string begin = lower(text.substr(0, 16));
    return std::ranges::any_of(
        std::initializer_list<std::string_view>{"<!doctype", "<html", "<head", "<body", "<?xml", "<!--", "<error"},
        [&](std::string_view tag) { return begin.starts_with(tag); });
}

// Eight bytes with the length of a JSON header, and the header.
bool is_safetensors(std::string_view begin, uint64_t size) {
    uint64_t length = 0;
    if (begin.size() < 9) return false;
    std::memcpy(&length, begin.data(), sizeof length);
    return begin[8] == '{' && length >= 2 && length <= size - 8;
}

bool is_text(std::string_view begin) {
    if (begin.size() < 4) return false;
    const std::string_view some = begin.substr(0, 64);
    return std::ranges::all_of(some, [](unsigned char c) { return c >= ' ' || is_space(static_cast<char>(c)); });
}

}  // namespace

std::string foreign_contents(std::string_view begin, uint64_t size) {
    if (size == 0) return fmt::format("the file is empty; {}", kAgain);
    const std::string_view text = text_begin(begin);
    if (text.starts_with("version https://git-lfs") || text.starts_with("version https://hawser")) {
        return "a Git LFS pointer, which stands for the model: fetch the model with 'git lfs pull' in its folder, or "
               "download the file itself";
    }
    if (is_markup(text)) return fmt::format("a web page ({}), not the model; {}", quoted(text), kAgain);
    if (is_safetensors(begin, size)) return fmt::format("a safetensors file; {}", kConvert);
    if (text.starts_with('{') || text.starts_with('[')) {
        return fmt::format(
            "JSON ({}): a server's answer, or a part of a model that is not in GGUF; download the GGUF "
            "file, or {}",
            quoted(text), kConvert);
    }
    const auto has = [&](std::string_view magic) { return begin.starts_with(magic); };
    if (has("PK\x03\x04"))
        return fmt::format("a ZIP archive, such as PyTorch's checkpoints: unpack it, or {}", kConvert);
    if (has("\x80\x02") || has("\x80\x04")) return fmt::format("a Python pickle (PyTorch); {}", kConvert);
    if (has("\x1F\x8B") || has("\x28\xB5\x2F\xFD") ||
        has("\xFD"
            "7zXZ") ||
        has("BZh") || has("7z\xBC\xAF"))
        return "a compressed file: unpack it first";
    if (begin.size() > 262 && begin.substr(257, 5) == "ustar") return "a tar archive: unpack it first";
    if (has("lmgg") || has("fmgg") || has("tjgg") || has("algg") || has("ggml") || has("ggmf") || has("ggjt"))
        return "a GGML file, the format before GGUF: download or convert the model again";
    if (has("\x89HDF")) return "an HDF5 file: models of Keras are not supported";
    if (std::ranges::all_of(begin, [](char c) { return c == 0; }))
        return fmt::format("the file begins with zeros: the download reserved its size and is not complete; {}",
                           kAgain);
    if (is_text(text)) return fmt::format("a text file ({}), not the model; {}", quoted(text), kAgain);
    return {};
}

void check_model_path(const fs::path& path) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    const std::string shown = printable(path.native(), 4096);
    if (!fs::exists(status)) {
        const std::string& text = path.native();
        const size_t colon = text.find("://");
        const bool is_url = colon != std::string::npos && colon > 1 &&
                            std::all_of(text.begin(), text.begin() + static_cast<ptrdiff_t>(colon),
                                        [](unsigned char c) { return std::isalnum(c) || c == '+' || c == '.'; });
        if (is_url)
            fail(TSR_INVALID_ARGUMENT,
                 "{}: this is an address, and nothing is downloaded: download the GGUF file, and give its path", shown);
        return;
    }
    if (!fs::is_directory(status)) return;
    std::vector<std::string> models;
    bool has_safetensors = false, has_pickles = false;
    for (fs::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        const std::string extension = lower(at->path().extension().string());
        if (extension == ".gguf") models.push_back(name);
        has_safetensors = has_safetensors || extension == ".safetensors" || name.ends_with(".safetensors.index.json");
        has_pickles = has_pickles || extension == ".bin" || extension == ".pth" || extension == ".pt";
    }
    if (!models.empty()) {
        std::ranges::sort(models);
        fail(TSR_INVALID_ARGUMENT, "{}: a folder with {}; give the path of the file, such as {}", shown,
             counted(models.size(), "GGUF file"), printable((path / models.front()).native(), 4096));
    }
    if (has_safetensors)
        fail(TSR_INVALID_ARGUMENT, "{}: a folder with safetensors, not a GGUF file: {}", shown, kConvert);
    if (has_pickles)
        fail(TSR_INVALID_ARGUMENT,
             "{}: a folder with PyTorch files, not a GGUF file: save the model as safetensors, and {}", shown,
             kConvert);
    fail(TSR_INVALID_ARGUMENT, "{}: expected a GGUF file, found a folder without one", shown);
}

}  // namespace tessera::gguf
