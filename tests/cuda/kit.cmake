# The compiler of kernels, the host side and the plugins. What needs compiled kernels is tested where TSR_CUDA is ON.
tessera_test(cuda_images_test SOURCES images_test.cpp LIBRARIES tessera_cuda_kit)

set(toolkit "")
if(TSR_CUDA)
    set(toolkit "${TSR_CUDA_TOOLKIT}")
    if(NOT toolkit)
        set(toolkit "${CMAKE_SOURCE_DIR}/.cuda")
    endif()
endif()
tessera_test(cuda_compile_test SOURCES compile_test.cpp "${CMAKE_SOURCE_DIR}/tests/apps/process.cpp"
        "${CMAKE_SOURCE_DIR}/sdk/cuda/compiler/options.cpp"
    FLAGS -DTSR_CUDA_COMPILE="$<TARGET_FILE:tessera_cuda_compile>" -DTSR_TOOLKIT="${toolkit}" -DTSR_PROGRAM="$<TARGET_FILE:tessera>")
add_dependencies(cuda_compile_test tessera_cuda_compile)

if(TSR_CUDA)
    # No kernel may spill registers.
    add_test(NAME cuda_static COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_SOURCE_DIR}/tools/cuda_static" "${CMAKE_BINARY_DIR}" --check)

    set(virtual 0)
    if(TSR_CUDA_ARCHS MATCHES "@([0-9]+)")
        set(virtual "${CMAKE_MATCH_1}0")
    endif()
    tessera_cuda_archs(archs)
    add_executable(cuda_wrappers_test wrappers_test.cpp card.cpp)
    target_link_libraries(cuda_wrappers_test PRIVATE tessera_options tessera_cuda_kit tessera_formats GTest::gtest GTest::gtest_main)
    target_compile_definitions(cuda_wrappers_test PRIVATE TSR_WRAPPERS_VIRTUAL=${virtual})
    tessera_cuda_module(cuda_wrappers_test wrappers SOURCES wrappers.cu ARCHS ${archs})

    if(TARGET tessera_emulated_cuda)
        # emulated_test(NAME CARDS COMMAND...): on cards that the emulated driver makes up.
        function(emulated_test name cards)
            add_test(NAME ${name} COMMAND ${ARGN})
            set_tests_properties(${name} PROPERTIES TIMEOUT 900 LABELS slow ENVIRONMENT
                "LD_LIBRARY_PATH=$<TARGET_FILE_DIR:tessera_emulated_cuda>;TESSERA_EMULATED_KERNELS=${TSR_CUDA_EMULATED_FOLDER};TESSERA_EMULATED_GPUS=${cards}")
        endfunction()
        set(folder "${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}")
        if("61" IN_LIST archs AND "80" IN_LIST archs AND NOT TSR_SANITIZE)
            emulated_test(cuda_wrappers "8.6:1GiB\\;6.1:1GiB" cuda_wrappers_test)
            emulated_test(plugin_test_cuda_legacy "6.1:2GiB\\;6.1:2GiB"
                tessera plugin-test "${folder}/tessera_cuda_legacy.toml" --timeout 120)
            emulated_test(plugin_test_cuda_ampere "8.6:2GiB\\;8.0:2GiB"
                tessera plugin-test "${folder}/tessera_cuda_ampere.toml" --timeout 120)
        endif()
    endif()
endif()
