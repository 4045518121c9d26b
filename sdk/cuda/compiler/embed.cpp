#include "embed.hpp"

#include "cache.hpp"
#include "sources.hpp"

#include <set>

namespace tessera::cuda::compiler {

namespace fs = std::filesystem;

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
        update_file(folder / file, image.ptx ? image.bytes + '\0' : image.bytes);
        files.insert(file);
        declarations += "extern \"C\" const unsigned char " + symbol + "[], " + symbol + "_end[];\n";
        code += "    \".balign 64\\n\"\n    \"" + symbol + ":\\n\"\n    \".incbin \\\"" + (folder / file).string() +
                "\\\"\\n\"\n    \"" + symbol + "_end:\\n\"\n    \".hidden " + symbol + "\\n.hidden " + symbol +
                "_end\\n\"\n    \".globl " + symbol + "\\n.globl " + symbol + "_end\\n\"\n";
        table += "    {" + std::to_string(image.real * 10) + ", " + (image.ptx ? "true" : "false") + ", " + symbol +
                 ", " + symbol + "_end},\n";
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
        if (name.ends_with(".cubin") || name.ends_with(".ptx")) fs::remove(entry.path());
    }
}

}  // namespace tessera::cuda::compiler
