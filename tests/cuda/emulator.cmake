# The emulator's checks, each with the bug that it is to find.
if(NOT TSR_CUDA_EMULATOR)
    return()
endif()
tessera_cuda_emulated_module(test emulator SOURCES emulator_kernels.cu ARCHS 61 80)
tessera_test(cuda_emulator_test SOURCES emulator_test.cpp LIBRARIES tessera_cuda_emulator ${CMAKE_DL_LIBS})
target_compile_definitions(cuda_emulator_test PRIVATE TSR_EMULATED_DIR="${TSR_CUDA_EMULATED_FOLDER}")
add_dependencies(cuda_emulator_test tessera_emulated_test__emulator_80)
