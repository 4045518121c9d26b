# Builds the SDK's templates of architectures as a stranger would, with only the installed SDK, tests them, and compares
# the models that they build with the core's, bit for bit.
#   cmake -D BUILD=... -D WORK=... -D CHECK=... -D PROGRAM=... -D GOLDENS=... [-D GENERATOR=... -D COMPILER=...] -P ...
function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "failed (${result}): ${command}\n${output}")
    endif()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${BUILD}" --component sdk --prefix "${WORK}/prefix")
file(COPY "${WORK}/prefix/share/tessera/template" DESTINATION "${WORK}")
foreach(case "architecture:qwen3-tied" "architecture_c:llama-plain")
    string(REPLACE ":" ";" case "${case}")
    list(GET case 0 template)
    list(GET case 1 golden)
    set(build "${WORK}/build-${template}")
    run(${CMAKE_COMMAND} -S "${WORK}/template/${template}" -B "${build}" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
        "-DCMAKE_PREFIX_PATH=${WORK}/prefix" "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror"
        "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror" -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON) # only kernels for GPUs need it
    run(${CMAKE_COMMAND} --build "${build}")
    set(plugins "${build}/lib/tessera/plugins")
    run("${PROGRAM}" plugin-test "${plugins}" --model "${GOLDENS}/${golden}.gguf")
    run("${CHECK}" "${plugins}" "example_${template}" "${GOLDENS}/${golden}.gguf")
endforeach()
