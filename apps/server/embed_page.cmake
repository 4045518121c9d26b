# Writes the files of the chat page as a C++ source.
#   cmake -DFOLDER=... -DFILES=index.html|app.js -DOUTPUT=... -P embed_page.cmake
cmake_minimum_required(VERSION 3.25)

string(REPLACE "|" ";" files "${FILES}")
set(arrays "")
set(entries "")
set(number 0)
foreach(file IN LISTS files)
    file(READ "${FOLDER}/${file}" bytes HEX)
    file(SIZE "${FOLDER}/${file}" size)
    file(SHA256 "${FOLDER}/${file}" hash)
    string(SUBSTRING "${hash}" 0 32 hash)
    get_filename_component(extension "${file}" LAST_EXT)
    if(extension STREQUAL ".html")
        set(type "text/html; charset=utf-8")
    elseif(extension STREQUAL ".css")
        set(type "text/css; charset=utf-8")
    elseif(extension STREQUAL ".js")
        set(type "text/javascript; charset=utf-8")
    elseif(extension STREQUAL ".yaml")
        set(type "application/yaml")
    else()
        message(FATAL_ERROR "${file}: the type of ${extension} is not known to embed_page.cmake")
    endif()
    get_filename_component(path "${file}" NAME)
    set(path "/${path}")
    if(file STREQUAL "index.html")
        set(path "/")
    endif()
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
    # An array of zero bytes is no C++, hence the one behind them.
    string(APPEND arrays "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
    string(APPEND entries "    {\"${path}\", \"${type}\", {reinterpret_cast<const char*>(kFile${number}), ${size}}, \"\\\"${hash}\\\"\"},\n")
    math(EXPR number "${number} + 1")
endforeach()

file(WRITE "${OUTPUT}" "// Written by embed_page.cmake.
#include \"apps/server/page.hpp\"

namespace tessera::server {
namespace {

${arrays}
const PageFile kFiles[] = {
${entries}};

}  // namespace

std::span<const PageFile> page_files() noexcept {
    return kFiles;
}

}  // namespace tessera::server
")
