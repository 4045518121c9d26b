# The emulator's checks, each with the bug that it is to find.
if(NOT TSR_CUDA_EMULATOR)
    return()
endif()
tessera_cuda_emulated_module(test emulator SOURCES emulator_kernels.cu ARCHS 61 80)
tessera_test(cuda_emulator_test SOURCES emulator_test.cpp LIBRARIES tessera_cuda_emulator ${CMAKE_DL_LIBS})
target_compile_definitions(cuda_emulator_test PRIVATE TSR_EMULATED_DIR="${TSR_CUDA_EMULATED_FOLDER}")
# Attention with a window and with sinks, of both plugins.
tessera_cuda_emulated_module(test window SOURCES "${PROJECT_SOURCE_DIR}/kernels/cuda/attention/attention.cu" window_kernels.cu
    INCLUDES "${PROJECT_SOURCE_DIR}" ARCHS 61 80)
tessera_test(cuda_attention_window_test SOURCES attention_window_test.cpp LIBRARIES tessera_cuda_emulator tessera_formats tessera_sdk ${CMAKE_DL_LIBS})
target_compile_definitions(cuda_attention_window_test PRIVATE TSR_EMULATED_DIR="${TSR_CUDA_EMULATED_FOLDER}")
add_dependencies(cuda_attention_window_test tessera_emulated_test__window_61 tessera_emulated_test__window_80)
tessera_cuda_emulated_module(test uninitialised SOURCES uninitialised_kernel.cu ARCHS 80)
set_target_properties(tessera_emulated_test__uninitialised_80 PROPERTIES EXCLUDE_FROM_ALL ON)
add_test(NAME cuda_uninitialised COMMAND "${CMAKE_COMMAND}" --build "${CMAKE_BINARY_DIR}" --target tessera_emulated_test__uninitialised_80)
set_tests_properties(cuda_uninitialised PROPERTIES PASS_REGULAR_EXPRESSION "Werror=maybe-uninitialized" TIMEOUT 120)
add_dependencies(cuda_emulator_test tessera_emulated_test__emulator_80)
