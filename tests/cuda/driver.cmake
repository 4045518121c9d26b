# The driver of emulated cards, in each of its policies.
if(NOT TSR_CUDA_EMULATOR)
    return()
endif()
tessera_cuda_emulated_module(test driver SOURCES driver_kernels.cu ARCHS 61 80)
tessera_test(cuda_driver_test SOURCES driver_test.cpp driver_graph_test.cpp driver_races_test.cpp driver_modules_test.cpp
    driver_description_test.cpp "${PROJECT_SOURCE_DIR}/testing/emulated_cuda/driver/description.cpp" LIBRARIES Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(cuda_driver_test PRIVATE TSR_EMULATED_DIR="${TSR_CUDA_EMULATED_FOLDER}"
    TSR_EMULATED_DRIVER_DIR="${TSR_CUDA_DRIVER_FOLDER}")
add_dependencies(cuda_driver_test tessera_emulated_test__driver_61 tessera_emulated_test__driver_80 tessera_emulated_cuda tessera_emulated_nvml)
foreach(policy late eager)
    add_test(NAME cuda_driver_${policy} COMMAND cuda_driver_test)
    set_tests_properties(cuda_driver_${policy} PROPERTIES ENVIRONMENT "TESSERA_EMULATED_POLICY=${policy}" TIMEOUT 120)
endforeach()
foreach(seed 2 3 4)
    add_test(NAME cuda_driver_random_${seed} COMMAND cuda_driver_test)
    set_tests_properties(cuda_driver_random_${seed} PROPERTIES ENVIRONMENT "TESSERA_EMULATED_SEED=${seed}" TIMEOUT 120)
endforeach()
add_test(NAME with_emulated_gpus COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/with_emulated_gpus_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
set_tests_properties(with_emulated_gpus PROPERTIES TIMEOUT 120)
# The numbers of the Driver API, where a toolkit or tools/setup --cuda has installed its header.
find_file(TSR_CUDA_HEADER cuda.h PATHS "${TSR_CUDA_TOOLKIT}/include" "${CMAKE_SOURCE_DIR}/.cuda/include" /usr/local/cuda/include)
if(TSR_CUDA_HEADER)
    add_test(NAME cuda_driver_constants COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/driver_constants_test.py" "${CMAKE_SOURCE_DIR}"
        "${TSR_CUDA_HEADER}")
else()
    message(STATUS "No test cuda_driver_constants: no cuda.h (tools/setup --cuda installs it)")
endif()
