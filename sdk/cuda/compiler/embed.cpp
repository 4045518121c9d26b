#include "embed.hpp"

#include "cache.hpp"
#include "sources.hpp"

#include <zlib.h>

#include <set>
#include <stdexcept>

namespace tessera::cuda::compiler {

namespace fs = std::filesystem;

namespace {

// In zlib's format: machine code takes a quarter so, PTX a tenth.
std::string compressed(const std::string& bytes) {
    uLongf length = compressBound(static_cast<uLong>(bytes.size()));
    std::string made(length, '\0');
    const int status =
        compress2(reinterpret_cast<Bytef*>(made.data()), &length, reinterpret_cast<const Bytef*>(bytes.data()),
                  static_cast<uLong>(bytes.size()), Z_BEST_COMPRESSION);
    if (status != Z_OK) throw std::runtime_error("zlib cannot compress an image: error " + std::to_string(status));
    made.resize(length);
    return made;
}

}  // namespace

void write_embedding(const std::string& module, const std::vector<CompiledImage>& images, const fs::path& output) {
    const fs::path folder = fs::absolute(output).parent_path();
    std::set<std::string> files;
    std::string declarations, table, code;
    for (const CompiledImage& image : images) {
        const std::string kind = image.ptx ? "ptx" : "cubin";
        const std::string symbol = "tessera_image_" + module + "_" + kind + std::to_string(image.real);
        const std::string file =
            module + "." + std::to_string(image.real) + "." + Hash().add(image.bytes).text().substr(0, 16) + "." + kind;
        // The driver reads PTX up to its terminating zero.
        const std::string whole = image.ptx ? image.bytes + '\0' : image.bytes;
        update_file(folder / file, whole);
        update_file(folder / (file + ".z"), compressed(whole));
        files.insert({file, file + ".z"});
        declarations += "extern \"C\" const unsigned char " + symbol + "[], " + symbol + "_end[];\n";
        code += "    \".balign 64\\n\"\n    \"" + symbol + ":\\n\"\n    \".incbin \\\"" + (folder / file).string() +
                ".z\\\"\\n\"\n    \"" + symbol + "_end:\\n\"\n    \".hidden " + symbol + "\\n.hidden " + symbol +
                "_end\\n\"\n    \".globl " + symbol + "\\n.globl " + symbol + "_end\\n\"\n";
        table += "    {" + std::to_string(image.real * 10) + ", " + (image.ptx ? "true" : "false") + ", " + symbol +
                 ", " + symbol + "_end, " + std::to_string(whole.size()) + ", " + std::to_string(image.virtual_ * 10) +
                 ", " + (image.overlaps ? "true" : "false") + "},\n";
    }
    update_file(output, "// Made by tessera-cuda-compile.\n#include <tessera/cuda/images.hpp>\n\n" + declarations +
                            "asm(\".pushsection .rodata\\n\"\n" + code +
                            "    \".popsection\\n\");\n\nnamespace {\nconst tessera::cuda::Image kImages[] = {\n" +
                            table + "};\n}  // namespace\nextern const tessera::cuda::Module tessera_cuda_module_" +
                            module + ";\nconst tessera::cuda::Module tessera_cuda_module_" + module + " = {\"" +
                            module + "\", kImages, " + std::to_string(images.size()) + "};\n");
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(module + ".") || files.contains(name)) continue;
        if (name.ends_with(".cubin") || name.ends_with(".ptx") || name.ends_with(".z")) fs::remove(entry.path());
    }
}

}  // namespace tessera::cuda::compiler
