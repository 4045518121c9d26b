# The executor of PTX: what it does with kernels that are written in PTX, and with those that the build has compiled. Label "ptx".
if(NOT TSR_CUDA_EMULATOR)
    return()
endif()
tessera_test(cuda_ptx_test SOURCES ptx/faults_test.cpp ptx/instructions_test.cpp ptx/refusals_test.cpp LIBRARIES tessera_cuda_ptx LABELS ptx)
if(NOT TSR_CUDA)
    return()
endif()
tessera_cuda_archs(archs)
# Every instruction of both plugins is known. Tests may have further modules.
get_property(statistics GLOBAL PROPERTY TSR_CUDA_STATISTICS)
list(FILTER statistics INCLUDE REGEX "/cuda_(legacy|ampere)__[^/]*$")
list(LENGTH statistics modules)
tessera_test(cuda_ptx_modules_test SOURCES ptx/modules_test.cpp LIBRARIES tessera_cuda_ptx LABELS ptx
    FLAGS -DTSR_EMULATED_DIR="${TSR_CUDA_EMULATED_FOLDER}" -DTSR_LEAST_MODULES=${modules})
add_dependencies(cuda_ptx_modules_test tessera_plugins)
if(TSR_SANITIZE)
    return()
endif()

# ptx_test(NAME CARDS... COMMAND ...): run from PTX.
function(ptx_test name)
    cmake_parse_arguments(arg "" "" "CARDS;COMMAND" ${ARGN})
    list(TRANSFORM arg_CARDS REPLACE "(.+)" "--gpu;\\1")
    add_test(NAME cuda_ptx_${name} COMMAND "${CMAKE_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" --kernels ptx
        ${arg_CARDS} -- ${arg_COMMAND})
    set_tests_properties(cuda_ptx_${name} PROPERTIES TIMEOUT 600 LABELS ptx)
endfunction()
if("61" IN_LIST archs)
    ptx_test(wrappers_legacy CARDS 6.1:1GiB COMMAND "$<TARGET_FILE:cuda_wrappers_legacy_test>")
endif()
if("80" IN_LIST archs)
    ptx_test(wrappers_ampere CARDS 8.6:1GiB COMMAND "$<TARGET_FILE:cuda_wrappers_ampere_test>")
    # Mistakes that are planted in the compiled text.
    add_test(NAME cuda_ptx_planted_faults COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/ptx/planted_faults_test.py"
        "${CMAKE_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_ptx_planted_faults PROPERTIES TIMEOUT 600 LABELS ptx)
endif()
