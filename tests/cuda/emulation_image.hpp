// Modules without machine code, for tests of the emulated driver where there is no compiler for GPUs. A cubin: the same
// headers, symbols and sections that a driver reads of a real one. PTX: the same directives. A real driver refuses
// both.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tessera::cuda::emulated {

struct ImageOfKernel {
    std::string name;
    std::vector<uint32_t> parameters;  // bytes of each
    uint32_t registers = 32, static_shared = 0, maximum_threads = 1024;
    uint32_t code_bytes = 16, local = 0;  // local memory: bytes a thread
};

// `capability`: 86 for 8.6; `module`: PLUGIN__NAME of the emulated library; `virtual_arch`: 600, 610 or 800.
inline std::vector<char> make_emulation_image(uint32_t capability, const std::string& module, uint32_t virtual_arch,
                                              const std::vector<ImageOfKernel>& kernels) {
    struct Section {
        std::string name;
        uint32_t type;
        std::string bytes;
        uint32_t info = 0, link = 0;
        uint64_t size = 0;  // of a section without bytes
    };
    const auto number = [](auto value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); };
    const auto attribute = [&](uint8_t code, const std::string& value) {
        return std::string{4, static_cast<char>(code)} + number(static_cast<uint16_t>(value.size())) + value;
    };
    std::vector<Section> sections{{"", SHT_NULL, ""},
                                  {".shstrtab", SHT_STRTAB, ""},
                                  {".strtab", SHT_STRTAB, std::string(1, '\0')},
                                  {".symtab", SHT_SYMTAB, std::string(sizeof(Elf64_Sym), '\0'), 1, 2},
                                  {".nv.global.init", SHT_PROGBITS, number(virtual_arch)}};
    constexpr size_t kStrings = 2, kSymbols = 3, kGlobals = 4;
    const auto add_symbol = [&](const std::string& name, size_t section, unsigned type) {
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<Elf64_Word>(sections[kStrings].bytes.size());
        symbol.st_info = ELF64_ST_INFO(STB_GLOBAL, type);
        symbol.st_shndx = static_cast<Elf64_Half>(section);
        sections[kStrings].bytes += name + '\0';
        sections[kSymbols].bytes += number(symbol);
    };
    add_symbol("tessera_module_" + module, kGlobals, STT_OBJECT);
    std::string info;
    uint32_t symbol = 2;
    for (const ImageOfKernel& kernel : kernels) {
        sections.push_back(
            {".text." + kernel.name, SHT_PROGBITS, std::string(kernel.code_bytes, '\0'), kernel.registers << 24});
        add_symbol(kernel.name, sections.size() - 1, STT_FUNC);
        info += attribute(0x2F, number(symbol) + number(kernel.registers));
        info += attribute(0x11, number(symbol++) + number(kernel.local));
        std::string own = attribute(0x05, number(kernel.maximum_threads) + number(uint32_t{1}) + number(uint32_t{1}));
        uint16_t offset = 0;
        for (uint16_t i = 0; i < kernel.parameters.size(); ++i) {
            own +=
                attribute(0x17, number(uint32_t{0}) + number(i) + number(offset) + number(kernel.parameters[i] << 18));
            offset = static_cast<uint16_t>(offset + kernel.parameters[i]);
        }
        sections.push_back({".nv.info." + kernel.name, SHT_PROGBITS, own});
        if (kernel.static_shared > 0)
            sections.push_back({".nv.shared." + kernel.name, SHT_NOBITS, "", 0, 0, kernel.static_shared});
    }
    sections.push_back({".nv.info", SHT_PROGBITS, info});

    std::vector<Elf64_Shdr> headers;
    for (Section& section : sections) {
        Elf64_Shdr header{};
        header.sh_name = static_cast<Elf64_Word>(sections[1].bytes.size());
        sections[1].bytes += section.name + '\0';
        header.sh_type = section.type;
        header.sh_info = section.info;
        header.sh_link = section.link;
        headers.push_back(header);
    }
    Elf64_Ehdr file{};
    std::memcpy(file.e_ident, ELFMAG, SELFMAG);
    file.e_ident[EI_CLASS] = ELFCLASS64;
    file.e_ident[EI_DATA] = ELFDATA2LSB;
    file.e_ident[EI_VERSION] = EV_CURRENT;
    file.e_type = ET_EXEC;
    file.e_machine = 190;
    file.e_flags = capability | capability << 16;
    file.e_ehsize = sizeof file;
    file.e_shentsize = sizeof(Elf64_Shdr);
    file.e_shnum = static_cast<Elf64_Half>(sections.size());
    file.e_shstrndx = 1;
    std::string body;
    for (size_t i = 0; i < sections.size(); ++i) {
        headers[i].sh_offset = sizeof file + body.size();
        headers[i].sh_size = sections[i].bytes.empty() ? sections[i].size : sections[i].bytes.size();
        body += sections[i].bytes;
        body.resize((body.size() + 7) / 8 * 8);
    }
    file.e_shoff = sizeof file + body.size();
    std::string image = number(file) + body;
    for (const Elf64_Shdr& header : headers) image += number(header);
    return {image.begin(), image.end()};
}

// `version`: "8.8" of the PTX ISA; `target`: "sm_80". As NVRTC writes it; registers of kernels are not in PTX.
inline std::vector<char> make_emulation_ptx(const std::string& version, const std::string& target,
                                            const std::string& module, uint32_t virtual_arch,
                                            const std::vector<ImageOfKernel>& kernels) {
    std::string text = "//\n// Generated for tests\n//\n\n.version " + version + "\n.target " + target +
                       "\n.address_size 64\n\n.global .align 4 .u32 tessera_module_" + module + " = " +
                       std::to_string(virtual_arch) +
                       ";\n.global .align 1 .b8 kTable[16] = {0, 1, 2};\n"
                       ".extern .shared .align 128 .b8 memory[];\n"
                       "// between_two_demoted has been demoted\n.shared .align 16 .b8 of_several[48];\n";
    for (const ImageOfKernel& kernel : kernels) {
        text += ".visible .entry " + kernel.name + "(";
        for (size_t i = 0; i < kernel.parameters.size(); ++i) {
            const std::string name = kernel.name + "_param_" + std::to_string(i);
            const uint32_t bytes = kernel.parameters[i];
            text += (i ? ",\n\t" : "\n\t") + (bytes == 4 || bytes == 8
                                                  ? ".param .u" + std::to_string(8 * bytes) + " " + name
                                                  : ".param .align 8 .b8 " + name + "[" + std::to_string(bytes) + "]");
        }
        text += "\n)\n.maxntid " + std::to_string(kernel.maximum_threads) + ", 1, 1\n.minnctapersm 1\n{\n";
        if (kernel.local) text += "\t.local .align 8 .b8 \t__local_depot0[" + std::to_string(kernel.local) + "];\n";
        text += "\t.reg .pred \t%p<3>;\n";
        if (kernel.static_shared)
            text += "\t.shared .align 16 .b8 tile_of_it[" + std::to_string(kernel.static_shared) + "];\n";
        text += "\t{ // begin inline asm\n\tmov.u64 %rd1, memory;\n\t}\n\tret;\n}\n";
    }
    std::vector<char> bytes(text.begin(), text.end());
    bytes.push_back('\0');
    return bytes;
}

}  // namespace tessera::cuda::emulated
