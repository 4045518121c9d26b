# cmake -D INPUT=FILE.ii -D SOURCES=FILE.cpp -D OUTPUT=FILE.cpp -P FindEmulatedKernels.cmake
# Finds the kernels in a preprocessed source, where SIMT_KERNEL has left a mark, and writes the source that registers them.
file(READ "${INPUT}" text)
string(REGEX MATCHALL "SIMT_KERNEL_FOLLOWS[ \t\r\n]+void[ \t\r\n]+[A-Za-z_][A-Za-z_0-9]*" found "${text}")
set(names "")
foreach(kernel IN LISTS found)
    string(REGEX REPLACE ".*[ \t\r\n]" "" kernel "${kernel}")
    list(APPEND names "${kernel}")
endforeach()
list(REMOVE_DUPLICATES names)
list(LENGTH names count)
if(count EQUAL 0)
    message(FATAL_ERROR "${SOURCES}: no kernel found; kernels begin with SIMT_KERNEL(threads, blocks)")
endif()
set(entries "")
foreach(kernel IN LISTS names)
    string(APPEND entries "    Entry<&::${kernel}>::named(\"${kernel}\"),\n")
endforeach()
file(WRITE "${OUTPUT}" "#include \"${SOURCES}\"

namespace simt::emulated {
extern const Module kThisModule;
static constexpr Kernel kKernels[] = {
${entries}};
const Module kThisModule{kVersion, SIMT_ARCH, ${count}, kKernels};
}  // namespace simt::emulated
")
