# Builds the SDK's template as a stranger would, with only the installed SDK, and runs its kernels.
# All (that in Rust where there is a rustc) are tested by `tessera plugin-test`, and must run in the bundled model.
#   cmake -D BUILD=... -D WORK=... -D CHECK=... -D PLUGINS=... -D PROGRAM=... [-D GENERATOR=... -D COMPILER=...] -P check_template.cmake
function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "failed (${result}): ${command}\n${output}")
    endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${BUILD}" --component sdk --prefix "${WORK}/prefix")
# A copy, so that no relative path can reach the source tree.
file(COPY "${WORK}/prefix/share/tessera/template" DESTINATION "${WORK}")
run(${CMAKE_COMMAND} -S "${WORK}/template/cpp" -B "${WORK}/build" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror")
run(${CMAKE_COMMAND} --build "${WORK}/build")
run(${CMAKE_COMMAND} --install "${WORK}/build" --prefix "${WORK}/installed" --strip)
foreach(folder build installed)
    execute_process(COMMAND "${CHECK}" "${WORK}/${folder}/lib/tessera/plugins" "${PLUGINS}" RESULT_VARIABLE result)
    if(NOT result EQUAL 0)
        message(FATAL_ERROR "the template in ${WORK}/${folder} does not work")
    endif()
endforeach()

set(languages cpp c)
find_program(rustc rustc PATHS /usr/bin NO_DEFAULT_PATH) # an older one, where there are two
find_program(rustc rustc)
if(rustc)
    list(APPEND languages rust)
else()
    message(STATUS "not tested: the template in Rust, since there is no rustc (tools/setup --tests installs it)")
endif()
foreach(language IN LISTS languages)
    set(build "${WORK}/build-${language}")
    set(kernel "example_${language}: rms_norm.example_${language}")
    if(language STREQUAL "cpp")
        set(build "${WORK}/build")
        set(kernel "example: add.example")
    endif()
    run(${CMAKE_COMMAND} -S "${WORK}/template/${language}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
        "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror"
        "-DRUSTC=${rustc}" -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON) # only kernels for GPUs need it
    run(${CMAKE_COMMAND} --build "${build}")
    run("${PROGRAM}" plugin-test "${build}/lib/tessera/plugins")
    execute_process(COMMAND "${PROGRAM}" plan --why --plugin-dir "${build}/lib/tessera/plugins" OUTPUT_VARIABLE plan)
    if(NOT plan MATCHES "${kernel}")
        message(FATAL_ERROR "the plan does not use the kernel of the template in ${language}:\n${plan}")
    endif()
endforeach()

# Its devices are described, so that it can be tested anywhere.
run(${CMAKE_COMMAND} -S "${WORK}/template/device" -B "${WORK}/build-device" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix"
    "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror" -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)
run(${CMAKE_COMMAND} --build "${WORK}/build-device")
run("${PROGRAM}" plugin-test "${WORK}/build-device/lib/tessera/plugins" --rig "${WORK}/template/device/rig.toml")

# A function of another signature in a table of a plugin in C is an error, with the compiler's default warnings.
file(COPY "${WORK}/template/c" DESTINATION "${WORK}/mistaken")
file(READ "${WORK}/mistaken/c/plugin.c" source)
string(REPLACE "static void release(const tsr_kernel* self, void* state) {" "static void release(void* state, const tsr_kernel* self) {" mistaken "${source}")
if(mistaken STREQUAL source)
    message(FATAL_ERROR "the template in C has no function release as expected")
endif()
file(WRITE "${WORK}/mistaken/c/plugin.c" "${mistaken}")
run(${CMAKE_COMMAND} -S "${WORK}/mistaken/c" -B "${WORK}/mistaken/build" -G "${GENERATOR}" "-DCMAKE_PREFIX_PATH=${WORK}/prefix")
execute_process(COMMAND ${CMAKE_COMMAND} --build "${WORK}/mistaken/build" RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(result EQUAL 0 OR NOT output MATCHES "incompatible-pointer-types")
    message(FATAL_ERROR "a function of another signature in a table is not refused:\n${output}")
endif()
