# Builds the SDK's template with a CUDA kernel as a stranger would, with only the installed SDK, and tries it on emulated cards:
# `tessera plugin-test` on the devices of the built-in plugins, and the bundled model's plan.
#   cmake -D BUILD=... -D WORK=... -D TOOLKIT=... -D ARCHS=... -D PROGRAM=... -D PLUGINS=... [-D GENERATOR=... -D COMPILER=...] -P check.cmake
function(run)
    execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT result EQUAL 0)
        list(JOIN ARGV " " command)
        message(FATAL_ERROR "failed (${result}): ${command}\n${output}")
    endif()
    set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${BUILD}" --component sdk --prefix "${WORK}/prefix")
# A copy, so that no relative path can reach the source tree.
file(COPY "${WORK}/prefix/share/tessera/template/cuda/" DESTINATION "${WORK}/source")
string(REPLACE "," ";" ARCHS "${ARCHS}")
file(WRITE "${WORK}/archs.cmake" "set(TSR_CUDA_ARCHS \"${ARCHS}\" CACHE STRING \"\")\n")
run(${CMAKE_COMMAND} -C "${WORK}/archs.cmake" -S "${WORK}/source" -B "${WORK}/build" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_PREFIX_PATH=${WORK}/prefix" -DTSR_CUDA=ON "-DTSR_CUDA_TOOLKIT=${TOOLKIT}"
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror" -DTSR_CUDA_EMULATOR=ON)
run(${CMAKE_COMMAND} --build "${WORK}/build")
# With the emulated driver of the installed SDK; the devices are those of this build's plugins, and so are their kernels.
set(plugins "${WORK}/build/lib/tessera/plugins")
set(emulated "${WORK}/prefix/bin/with_emulated_gpus" --kernels "${WORK}/build/lib/tessera/emulated" --kernels "${BUILD}/lib/tessera/emulated")
foreach(card ampere:8.6 legacy:6.1)
    string(REGEX MATCH "([a-z]+):(.*)" ignored "${card}")
    set(gpu "${CMAKE_MATCH_2}:1GiB")
    set(owner "${PLUGINS}/tessera_cuda_${CMAKE_MATCH_1}.toml")
    run(${emulated} --gpu ${gpu} -- "${PROGRAM}" plugin-test "${plugins}" --provider "${owner}" -v)
    if(NOT output MATCHES "add.example_cuda" OR output MATCHES "\\n0 passed")
        message(FATAL_ERROR "plugin-test on ${gpu} has not run the template's kernel:\n${output}")
    endif()
    run(${emulated} --gpu ${gpu} -- "${PROGRAM}" plan --why --plugin-dir "${plugins}" -ngl 99)
    if(NOT output MATCHES "example_cuda: add.example_cuda")
        message(FATAL_ERROR "the plan for ${gpu} does not use the template's kernel:\n${output}")
    endif()
    run(${emulated} --gpu ${gpu} -- "${PROGRAM}" run --plugin-dir "${plugins}" -ngl 99 -n 2 --temp 0 --raw -p Count)
endforeach()
