# Kernels for the emulator. Shared by the main build and the installed SDK.
#
# tessera_cuda_emulated_module(PLUGIN NAME SOURCES FILE.cu ... [ARCHS ARCH...] [INCLUDES FOLDER...]): compiles the sources, together one module,
# for the CPU: a library PLUGIN__NAME.VIRTUAL.emulated.so in TSR_CUDA_EMULATED_FOLDER for each virtual architecture (60, 61, 80) that
# the ARCHS are made from. Does nothing unless TSR_CUDA_EMULATOR is on. Needs GCC: the emulator serves what its -fsanitize=thread calls.
include_guard(GLOBAL)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set(TSR_CUDA_EMULATOR_DEFAULT "${TSR_TESTS}")
    if(TARGET Tessera::cuda_kernel_side) # an installed SDK that has it
        set(TSR_CUDA_EMULATOR_DEFAULT ON)
    endif()
    option(TSR_CUDA_EMULATOR "Build the emulator of GPUs and kernels for it" "${TSR_CUDA_EMULATOR_DEFAULT}")
else()
    set(TSR_CUDA_EMULATOR OFF CACHE BOOL "" FORCE)
endif()
set(TSR_CUDA_EMULATED_FOLDER "${CMAKE_BINARY_DIR}/lib/tessera/emulated" CACHE INTERNAL "")
# memcpy and memset stay calls, which the emulator checks; variables that are not initialised are errors where the compiler can tell, else
# they get a pattern. SHELL: CMake would remove an option that a sanitizer's preset has given before.
set(TSR_CUDA_EMULATED_OPTIONS "SHELL:-fno-sanitize=all -fsanitize=thread" -O2 -g1 -march=x86-64-v3 -ffp-contract=off
    -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -ftrivial-auto-var-init=pattern
    -fvisibility=hidden -fno-gnu-unique -Werror=uninitialized -Werror=maybe-uninitialized -Wno-unknown-pragmas CACHE INTERNAL "")
set(TSR_CUDA_FIND_KERNELS "${CMAKE_CURRENT_LIST_DIR}/FindEmulatedKernels.cmake" CACHE INTERNAL "")

function(tessera_cuda_emulated_module plugin name)
    cmake_parse_arguments(arg "" "" "SOURCES;ARCHS;INCLUDES" ${ARGN})
    if(NOT TSR_CUDA_EMULATOR)
        return()
    endif()
    set(module "${plugin}__${name}")
    set(folder "${CMAKE_CURRENT_BINARY_DIR}/emulated")
    file(MAKE_DIRECTORY "${folder}")
    set(virtuals "")
    foreach(arch IN LISTS arg_ARCHS)
        if(arch MATCHES "@([0-9]+)$")
            set(virtual "${CMAKE_MATCH_1}")
        elseif(arch GREATER_EQUAL 80)
            set(virtual 80)
        elseif(arch GREATER_EQUAL 61)
            set(virtual 61)
        else()
            set(virtual 60)
        endif()
        list(APPEND virtuals ${virtual})
    endforeach()
    list(REMOVE_DUPLICATES virtuals)

    set(sources "")
    set(lines "")
    foreach(source IN LISTS arg_SOURCES)
        cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
        list(APPEND sources "${source}")
        string(APPEND lines "#include \"${source}\"\n")
    endforeach()
    file(GENERATE OUTPUT "${folder}/${module}.sources.cpp" CONTENT "${lines}")
    set(includes "$<TARGET_PROPERTY:Tessera::cuda_kernels,INTERFACE_INCLUDE_DIRECTORIES>"
        "$<TARGET_PROPERTY:Tessera::formats,INTERFACE_INCLUDE_DIRECTORIES>"
        "$<TARGET_PROPERTY:Tessera::sdk,INTERFACE_INCLUDE_DIRECTORIES>" ${arg_INCLUDES})
    foreach(virtual IN LISTS virtuals)
        set(target "tessera_emulated_${module}_${virtual}")
        set(definitions TSR_CUDA_EMULATED=1 SIMT_ARCH=${virtual}0 SIMT_MODULE=${module})
        set(base "${folder}/${module}.${virtual}")
        add_custom_command(OUTPUT "${base}.cpp"
            COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -E -P -w "-D$<JOIN:${definitions},;-D>" -DTSR_CUDA_FIND_KERNELS
                    "-I$<JOIN:$<GENEX_EVAL:${includes}>,;-I>" -MD -MF "${base}.d" -MT "${base}.cpp"
                    "${folder}/${module}.sources.cpp" -o "${base}.ii"
            COMMAND "${CMAKE_COMMAND}" -D "INPUT=${base}.ii" -D "SOURCES=${folder}/${module}.sources.cpp" -D "OUTPUT=${base}.cpp"
                    -P "${TSR_CUDA_FIND_KERNELS}"
            DEPENDS "${folder}/${module}.sources.cpp" ${sources} "${TSR_CUDA_FIND_KERNELS}" DEPFILE "${base}.d"
            COMMENT "Finding the kernels of ${module} for the emulator" COMMAND_EXPAND_LISTS VERBATIM)
        add_library(${target} MODULE "${base}.cpp" $<TARGET_OBJECTS:Tessera::cuda_kernel_side>)
        target_include_directories(${target} PRIVATE ${includes})
        target_compile_definitions(${target} PRIVATE ${definitions})
        target_compile_options(${target} PRIVATE ${TSR_CUDA_EMULATED_OPTIONS})
        target_link_options(${target} PRIVATE -fno-sanitize=all)
        set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME "${module}.${virtual}.emulated.so"
            POSITION_INDEPENDENT_CODE ON CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON DISABLE_PRECOMPILE_HEADERS ON
            LIBRARY_OUTPUT_DIRECTORY "${TSR_CUDA_EMULATED_FOLDER}")
        if(TARGET tessera_plugin_${plugin})
            add_dependencies(tessera_plugin_${plugin} ${target})
            # Where the installed with_emulated_gpus looks for them: beside the folder of plugins.
            cmake_path(GET TSR_PLUGIN_FOLDER PARENT_PATH beside)
            install(TARGETS ${target} LIBRARY DESTINATION "${beside}/emulated" COMPONENT sdk OPTIONAL)
        elseif(TARGET ${plugin})
            add_dependencies(${plugin} ${target})
        endif()
    endforeach()
endfunction()
