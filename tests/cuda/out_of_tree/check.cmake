# cmake -D BUILD=... -D WORK=... -D TOOLKIT=... -D ARCHS=... [-D GENERATOR=... -D COMPILER=...] -P check.cmake
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
file(COPY "${CMAKE_CURRENT_LIST_DIR}/" DESTINATION "${WORK}/source")
string(REPLACE "," ";" ARCHS "${ARCHS}")
file(WRITE "${WORK}/archs.cmake" "set(TSR_CUDA_ARCHS \"${ARCHS}\" CACHE STRING \"\")\n")
run(${CMAKE_COMMAND} -C "${WORK}/archs.cmake" -S "${WORK}/source" -B "${WORK}/build" -G "${GENERATOR}" "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_PREFIX_PATH=${WORK}/prefix" -DTSR_CUDA=ON "-DTSR_CUDA_TOOLKIT=${TOOLKIT}"
    "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror" -DTSR_CUDA_EMULATOR=ON)
run(${CMAKE_COMMAND} --build "${WORK}/build")
if(NOT EXISTS "${WORK}/build/lib/tessera/plugins/tessera_out_of_tree.so")
    message(FATAL_ERROR "there is no plugin")
endif()
# On an emulated card, with the emulated driver of the installed SDK.
foreach(gpu 8.6:1GiB 6.1:1GiB)
    run("${WORK}/prefix/bin/with_emulated_gpus" --gpu ${gpu} --kernels "${WORK}/build/lib/tessera/emulated" -- "${WORK}/build/runs")
endforeach()
