# Headers that most files include, parsed once a set of compile flags: without them two thirds of the time that the program and
# its tests take to compile goes into reading the standard library, fmt and GoogleTest again and again.
set(TSR_COMMON_HEADERS <algorithm> <array> <atomic> <charconv> <chrono> <cmath> <cstdint> <cstring> <deque> <filesystem> <fstream>
    <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <string_view>
    <unordered_map> <utility> <vector> <spdlog/fmt/fmt.h>)

# tessera_precompiled(NAME HEADERS ... [LIBRARIES ...] [FLAGS ...]): makes them. A target uses them with target_precompile_headers(TARGET
# REUSE_FROM NAME); it must be compiled with the same flags and definitions of those
# libraries, and be position-independent as NAME is.
function(tessera_precompiled name)
    cmake_parse_arguments(arg "" "" "HEADERS;LIBRARIES;FLAGS" ${ARGN})
    add_library(${name} OBJECT "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/precompiled.cpp")
    target_link_libraries(${name} PRIVATE tessera_options spdlog::spdlog fmt::fmt ${arg_LIBRARIES})
    target_compile_options(${name} PRIVATE ${arg_FLAGS})
    target_precompile_headers(${name} PRIVATE ${arg_HEADERS})
endfunction()

set(TSR_UNITY_FILES 12)

# tessera_compile_libraries(FOLDER NAME): all static libraries made in FOLDER and below use the headers of NAME. With TSR_UNITY twelve
# files are compiled as one, so names of a folder's anonymous namespaces must differ from each other.
function(tessera_compile_libraries folder name)
    get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
        get_target_property(type ${target} TYPE)
        if(type MATCHES "STATIC_LIBRARY")
            target_precompile_headers(${target} REUSE_FROM ${name})
            set_target_properties(${target} PROPERTIES UNITY_BUILD ${TSR_UNITY} UNITY_BUILD_BATCH_SIZE ${TSR_UNITY_FILES})
            if(TSR_UNITY)
                # Types of anonymous namespaces are members of a file's own classes; the file is an included one here.
                target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
            endif()
        endif()
    endforeach()
    get_property(folders DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
    foreach(below IN LISTS folders)
        tessera_compile_libraries("${below}" ${name})
    endforeach()
endfunction()
