# Builds the SDK's template as a stranger would, with only the installed SDK, and runs its kernels.
# Those in C and Rust (where there is a rustc) are tested by `tessera plugin-test`, and must run in the bundled model.
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

set(languages c)
find_program(rustc rustc)
if(rustc)
    list(APPEND languages rust)
endif()
foreach(language IN LISTS languages)
    set(build "${WORK}/build-${language}")
    run(${CMAKE_COMMAND} -S "${WORK}/template/${language}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
        "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror")
    run(${CMAKE_COMMAND} --build "${build}")
    run("${PROGRAM}" plugin-test "${build}/lib/tessera/plugins")
    execute_process(COMMAND "${PROGRAM}" plan --why --plugin-dir "${build}/lib/tessera/plugins" OUTPUT_VARIABLE plan)
    if(NOT plan MATCHES "rms_norm.example_${language}")
        message(FATAL_ERROR "the plan does not use the kernel of the template in ${language}:\n${plan}")
    endif()
endforeach()
