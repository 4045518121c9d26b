#include "image.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace tessera::cuda::emulated {
namespace {

constexpr uint16_t kMachineCuda = 190;
constexpr uint64_t kLargest = 1ull << 32;

// Attributes of .nv.info sections, and formats of their values, as cuobjdump -elf names them.
constexpr uint8_t kSized = 4, kHalf = 3;
constexpr uint8_t kMaxThreads = 0x05, kFrameSize = 0x11, kParameterInfo = 0x17, kParameterBytes = 0x19,
                  kRegisters = 0x2F;

template <class T>
T at(const uint8_t* data, uint64_t offset) {
    T value;
    std::memcpy(&value, data + offset, sizeof value);
    return value;
}

struct Section {
    std::string name;
    Elf64_Shdr header;
};

// Calls act(attribute, value, bytes) for each entry of a .nv.info section. False if it is cut off.
template <class Act>
bool for_attributes(const uint8_t* data, uint64_t bytes, const Act& act) {
    for (uint64_t i = 0; i + 4 <= bytes;) {
        const uint8_t format = data[i], attribute = data[i + 1];
        const uint16_t value = at<uint16_t>(data, i + 2);
        i += 4;
        if (format == kSized) {
            if (value > bytes - i) return false;
            act(attribute, data + i, value);
            i += value;
        } else if (format == kHalf) {
            act(attribute, reinterpret_cast<const uint8_t*>(&value), uint32_t{2});
        }
    }
    return true;
}

}  // namespace

bool read_image(const void* data, Image& image, std::string& reason) {
    const auto* const bytes = static_cast<const uint8_t*>(data);
    const auto refuse = [&](const char* why) {
        reason = why;
        return false;
    };
    if (!data || std::memcmp(bytes, ELFMAG, SELFMAG) != 0 || bytes[EI_CLASS] != ELFCLASS64)
        return refuse("no ELF file");
    const auto header = at<Elf64_Ehdr>(bytes, 0);
    if (header.e_machine != kMachineCuda) return refuse("an ELF file of another machine than a GPU");
    if (header.e_shentsize != sizeof(Elf64_Shdr) || header.e_shoff > kLargest || header.e_shstrndx >= header.e_shnum)
        return refuse("no table of sections");
    image.capability = (header.e_flags & 0xFF) * 10;

    std::vector<Section> sections(header.e_shnum);
    for (uint16_t i = 0; i < header.e_shnum; ++i) {
        sections[i].header = at<Elf64_Shdr>(bytes, header.e_shoff + i * sizeof(Elf64_Shdr));
        if (sections[i].header.sh_offset > kLargest || sections[i].header.sh_size > kLargest)
            return refuse("a section of more than 4 GiB");
    }
    const Elf64_Shdr& names = sections[header.e_shstrndx].header;
    const auto text = [&](const Elf64_Shdr& table, uint64_t offset) -> std::string {
        if (offset >= table.sh_size) return {};
        const char* const from = reinterpret_cast<const char*>(bytes + table.sh_offset + offset);
        return std::string(from, strnlen(from, table.sh_size - offset));
    };
    for (Section& section : sections) section.name = text(names, section.header.sh_name);

    std::map<std::string, ImageKernel> kernels;
    constexpr char kText[] = ".text.";
    for (const Section& section : sections) {
        if (section.name.starts_with(kText)) {
            ImageKernel& kernel = kernels[section.name.substr(sizeof kText - 1)];
            kernel.registers = section.header.sh_info >> 24;
            kernel.code_bytes = section.header.sh_size;
        }
    }
    std::vector<std::string> symbols;
    for (const Section& section : sections) {
        if (section.header.sh_type != SHT_SYMTAB || section.header.sh_link >= sections.size()) continue;
        const Elf64_Shdr& strings = sections[section.header.sh_link].header;
        for (uint64_t i = 0; i + sizeof(Elf64_Sym) <= section.header.sh_size; i += sizeof(Elf64_Sym)) {
            const auto symbol = at<Elf64_Sym>(bytes, section.header.sh_offset + i);
            symbols.push_back(text(strings, symbol.st_name));
            constexpr char kModule[] = "tessera_module_";
            if (!symbols.back().starts_with(kModule) || symbol.st_shndx >= sections.size()) continue;
            const Elf64_Shdr& holder = sections[symbol.st_shndx].header;
            if (holder.sh_type == SHT_NOBITS || holder.sh_size < 4 || symbol.st_value > holder.sh_size - 4) continue;
            image.module = symbols.back().substr(sizeof kModule - 1);
            image.virtual_arch = at<uint32_t>(bytes, holder.sh_offset + symbol.st_value);
        }
    }
    bool whole = true;
    for (const Section& section : sections) {
        const uint8_t* const from = bytes + section.header.sh_offset;
        if (section.name.starts_with(".nv.global") || section.name.starts_with(".nv.constant"))
            image.data_bytes += section.header.sh_size;
        constexpr char kInfo[] = ".nv.info.", kShared[] = ".nv.shared.";
        if (section.name.starts_with(kShared)) {
            if (const auto kernel = kernels.find(section.name.substr(sizeof kShared - 1)); kernel != kernels.end())
                kernel->second.static_shared = static_cast<uint32_t>(section.header.sh_size);
        } else if (section.name.starts_with(kInfo)) {
            const auto found = kernels.find(section.name.substr(sizeof kInfo - 1));
            if (found == kernels.end()) continue;
            ImageKernel& kernel = found->second;
            std::map<uint16_t, uint32_t> parameters;
            whole &= for_attributes(
                from, section.header.sh_size, [&](uint8_t attribute, const uint8_t* value, uint32_t size) {
                    if (attribute == kParameterInfo && size >= 12)
                        parameters[at<uint16_t>(value, 4)] = at<uint32_t>(value, 8) >> 18;
                    if (attribute == kParameterBytes && size >= 2) kernel.parameter_bytes = at<uint16_t>(value, 0);
                    if (attribute == kMaxThreads && size >= 12)
                        kernel.maximum_threads =
                            at<uint32_t>(value, 0) * at<uint32_t>(value, 4) * at<uint32_t>(value, 8);
                });
            for (const auto& [ordinal, size] : parameters) kernel.parameters.push_back(size);
        } else if (section.name == ".nv.info") {
            whole &= for_attributes(from, section.header.sh_size,
                                    [&](uint8_t attribute, const uint8_t* value, uint32_t size) {
                                        if (size < 8 || (attribute != kRegisters && attribute != kFrameSize)) return;
                                        const uint32_t symbol = at<uint32_t>(value, 0);
                                        if (symbol >= symbols.size()) return;
                                        const auto kernel = kernels.find(symbols[symbol]);
                                        if (kernel == kernels.end()) return;
                                        (attribute == kRegisters ? kernel->second.registers : kernel->second.local) =
                                            at<uint32_t>(value, 4);
                                    });
        }
    }
    if (!whole) return refuse("a section .nv.info that is cut off");
    for (auto& [name, kernel] : kernels) {
        kernel.name = name;
        image.kernels.push_back(std::move(kernel));
    }
    return true;
}

}  // namespace tessera::cuda::emulated
