# The bundled model on the CUDA plugins and emulated cards. Needs their kernels.
if(NOT TSR_CUDA_EMULATOR OR NOT TSR_CUDA)
    return()
endif()
tessera_cuda_archs(archs)
# cuda_run_test(NAME CARDS ARCH... [WHOLLY|WITH_CPU] [-- ARGUMENT...]): registered if the plugins are built for these architectures. The bundled
# model counts to ten in French, or to what -n allows. WHOLLY: nothing is on the CPU; WITH_CPU: nodes and weights of layers are there, too.
function(cuda_run_test name cards)
    set(arguments ${ARGN})
    set(cpu any)
    set(needed "")
    while(arguments)
        list(POP_FRONT arguments word)
        if(word STREQUAL "--")
            break()
        elseif(word STREQUAL "WHOLLY")
            set(cpu idle)
        elseif(word STREQUAL "WITH_CPU")
            set(cpu works)
        else()
            list(APPEND needed ${word})
        endif()
    endwhile()
    foreach(arch IN LISTS needed)
        if(NOT arch IN_LIST archs)
            message(STATUS "No test cuda_run_${name}: needs TSR_CUDA_ARCHS with ${arch}")
            return()
        endif()
    endforeach()
    if(NOT "-f" IN_LIST arguments)
        list(PREPEND arguments -p "Count from 1 to 10 in French.")
    endif()
    if(NOT "-n" IN_LIST arguments)
        list(APPEND arguments -n 20)
    endif()
    add_test(NAME cuda_run_${name} COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/run_on_cards_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus"
        "${CMAKE_BINARY_DIR}" "${cards}" ${cpu} ${arguments})
    set_tests_properties(cuda_run_${name} PROPERTIES TIMEOUT 600)
endfunction()
# On 8.6 and 6.1: ptx.cmake.
cuda_run_test(p100 "6.0:16GiB" 60 WHOLLY)
cuda_run_test(turing "7.5:16GiB" 70 WHOLLY)
# Cards that are newer than the build run its PTX: one that no build knows yet, and 9.0 where the build is without it.
cuda_run_test(newer_than_known "13.0:24GiB" 80)
if(NOT "90" IN_LIST archs AND NOT "90@61" IN_LIST archs)
    cuda_run_test(newer_than_built "9.0:24GiB" 80)
endif()
cuda_run_test(mixed "8.6:24GiB 6.1:24GiB" 61 80 -- -ts 1,1 --check-order)
cuda_run_test(mixed_with_cpu "6.1:24GiB 8.6:24GiB" 61 80 WITH_CPU -- -ts 1,1 -ngl 2)
cuda_run_test(experts_on_the_cpu "8.6:24GiB" 80 WITH_CPU -- --cpu-moe)
cuda_run_test(experts_by_a_rule "6.1:24GiB" 61 WITH_CPU -- -ot "blk.[12].ffn_(gate|up)_exps=CPU" -n 6)
# Attention has tiles of its own where a block has more shared memory.
cuda_run_test(mla_0_wide "8.0:24GiB" 80 -- -mla 0 -n 5)
cuda_run_test(mla_3_wide "8.0:24GiB" 80 -- -mla 3 -n 5)
# Prompts of several lengths, together; the longest crosses pages of the cache.
cuda_run_test(sequences "8.6:24GiB 6.1:24GiB" 61 80 -- -ts 1,1 -f "${CMAKE_CURRENT_SOURCE_DIR}/prompts.txt" --parallel 3 -n 2)
cuda_run_test(streamed_experts "8.6:24GiB" 80 -- --cpu-moe --op-offload-from 8)
# Each variant of attention with each of these types of the cache, over both cards; a few with everything on Pascal.
file(GLOB bundled CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/models/demo-*.gguf")
if(bundled AND 61 IN_LIST archs AND 80 IN_LIST archs)
    list(GET bundled 0 bundled)
    add_executable(cuda_bundled_test bundled_test.cpp)
    target_link_libraries(cuda_bundled_test PRIVATE tessera_options tessera_session tessera_text GTest::gtest GTest::gtest_main)
    target_compile_definitions(cuda_bundled_test PRIVATE TSR_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TSR_BUNDLED_MODEL="${bundled}"
        TSR_PLUGIN_DIR="${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}")
    add_dependencies(cuda_bundled_test tessera_plugins)
    foreach(variant 0 1 2 3)
        add_test(NAME cuda_bundled_mla_${variant} COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}"
            --gpu 8.6:2GiB --gpu 6.1:2GiB -- "$<TARGET_FILE:cuda_bundled_test>" "--gtest_filter=*/mla_${variant}_*")
        list(APPEND bundled_tests cuda_bundled_mla_${variant})
    endforeach()
    add_test(NAME cuda_bundled_pascal COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}"
        --gpu 6.1:2GiB -- "$<TARGET_FILE:cuda_bundled_test>" "--gtest_filter=*/mla_0_f16:*/mla_1_bf16:*/mla_2_q8_0:*/mla_3_q4_0")
    set_tests_properties(${bundled_tests} cuda_bundled_pascal PROPERTIES TIMEOUT 600)
    set_tests_properties(cuda_bundled_mla_1 cuda_bundled_mla_2 cuda_bundled_mla_3 PROPERTIES LABELS full)
endif()
# The models of tests/goldens.
if(61 IN_LIST archs AND 80 IN_LIST archs)
    add_executable(cuda_goldens_test goldens_test.cpp)
    target_link_libraries(cuda_goldens_test PRIVATE tessera_options tessera_session GTest::gtest GTest::gtest_main)
    target_compile_definitions(cuda_goldens_test PRIVATE TSR_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TSR_GOLDENS="${TSR_GOLDENS}"
        TSR_PLUGIN_DIR="${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}")
    add_dependencies(cuda_goldens_test tessera_plugins)
    # A model of each kind; with --full all of them, on the card with tensor cores: the other one has other products, and
    # the same attention of small heads.
    set(kinds "*gpt_oss:*gemma3:*mimo2:*v3_groups:*qwen3moe_norm:*glm4moe:*minimax_m2:*granitemoe:*qwen2")
    set(models_8.6 "${kinds}")
    set(models_6.1 "${kinds}")
    add_test(NAME cuda_goldens_all COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}"
        --gpu 8.6:2GiB -- "$<TARGET_FILE:cuda_goldens_test>")
    set_tests_properties(cuda_goldens_all PROPERTIES TIMEOUT 900 LABELS "slow;full" FAIL_REGULAR_EXPRESSION "SKIPPED")
    foreach(card 8.6 6.1)
        add_test(NAME cuda_goldens_${card} COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}"
            --gpu ${card}:2GiB -- "$<TARGET_FILE:cuda_goldens_test>" "--gtest_filter=${models_${card}}")
        set_tests_properties(cuda_goldens_${card} PROPERTIES TIMEOUT 900 LABELS slow FAIL_REGULAR_EXPRESSION "SKIPPED")
    endforeach()
endif()
if(80 IN_LIST archs)
    # Older drivers do not read PTX of this compiler, and it is said.
    add_test(NAME cuda_run_older_driver COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" --gpu 13.0:24GiB:ptx=7.8 --
        "$<TARGET_FILE:tessera>" run -p Count -n 1)
    set_tests_properties(cuda_run_older_driver PROPERTIES TIMEOUT 120
        PASS_REGULAR_EXPRESSION "CUDA0: loading cuda_ampere__[a-z0-9_]+ .PTX. for 8.0[^\n]*CUDA_ERROR_UNSUPPORTED_PTX_VERSION")
    add_test(NAME cuda_described_cards COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/described_cards_test.py"
        "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_described_cards PROPERTIES TIMEOUT 120)
    add_test(NAME cuda_counts COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/counts_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_counts PROPERTIES TIMEOUT 300 LABELS full)
    add_test(NAME cuda_made_after_loading COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/made_after_loading_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus"
        "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_made_after_loading PROPERTIES TIMEOUT 600)
    add_test(NAME cuda_faults COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/faults_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_faults PROPERTIES TIMEOUT 600)
    add_test(NAME cuda_free_memory COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/free_memory_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_free_memory PROPERTIES TIMEOUT 300)
    add_test(NAME cuda_logical_devices COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/logical_devices_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_logical_devices PROPERTIES TIMEOUT 600)
endif()
if(61 IN_LIST archs AND 80 IN_LIST archs)
    add_test(NAME cuda_memory_of_steps COMMAND "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/memory_of_steps_test.py"
        "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}" "${PROJECT_SOURCE_DIR}/models/demo-tessera-10m.gguf" 8.6:2GiB 6.1:2GiB)
    set_tests_properties(cuda_memory_of_steps PROPERTIES TIMEOUT 300)
    add_test(NAME cuda_lost_card_server COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" --gpu 8.6:2GiB --gpu 6.1:2GiB
        --faults 1:cuGraphLaunch@10 -- "${TSR_TEST_PYTHON}" "${CMAKE_CURRENT_SOURCE_DIR}/lost_card_server_test.py" "$<TARGET_FILE_DIR:tessera>/tessera-server")
    set_tests_properties(cuda_lost_card_server PROPERTIES TIMEOUT 120)
    add_test(NAME cuda_pipeline COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/pipeline_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_pipeline PROPERTIES TIMEOUT 600)
endif()
# One card runs the code of both plugins.
if(90 IN_LIST archs AND "90@61" IN_LIST archs)
    add_test(NAME cuda_logical_pair COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/logical_pair_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" "${CMAKE_BINARY_DIR}")
    set_tests_properties(cuda_logical_pair PROPERTIES TIMEOUT 600)
else()
    message(STATUS "No test cuda_logical_pair: needs TSR_CUDA_ARCHS with 90 and 90@61")
endif()
# Files whose rows are interleaved, and experts that are copied to a card one at a time.
add_executable(cuda_streamed_experts_test streamed_experts_test.cpp)
target_link_libraries(cuda_streamed_experts_test PRIVATE tessera_options tessera_session GTest::gmock GTest::gtest GTest::gtest_main ${CMAKE_DL_LIBS})
target_compile_definitions(cuda_streamed_experts_test PRIVATE TSR_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    TSR_PLUGIN_DIR="${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}" TSR_GOLDENS="${TSR_GOLDENS}")
add_dependencies(cuda_streamed_experts_test tessera_plugins goldens)
# Launches of prompts follow the step.
add_executable(cuda_launch_counts_test launch_counts_test.cpp "${PROJECT_SOURCE_DIR}/tests/model/random_models.cpp")
target_link_libraries(cuda_launch_counts_test PRIVATE tessera_options tessera_session GTest::gtest GTest::gtest_main ${CMAKE_DL_LIBS})
target_compile_definitions(cuda_launch_counts_test PRIVATE TSR_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TSR_BINARY_DIR="${CMAKE_BINARY_DIR}"
    TSR_PLUGIN_DIR="${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}" TSR_PYTHON="${TSR_TEST_PYTHON}" TSR_GOLDENS="${TSR_GOLDENS}")
add_dependencies(cuda_launch_counts_test tessera_plugins goldens)
foreach(card 8.6:80 6.1:61)
    string(REPLACE ":" ";" card_and_arch ${card})
    list(GET card_and_arch 0 capability)
    list(GET card_and_arch 1 arch)
    if(arch IN_LIST archs)
        add_test(NAME cuda_interleaved_rows_${arch} COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}"
            --gpu "${capability}:8GiB" -- "$<TARGET_FILE:test_formats>" "--gtest_filter=*InterleavedWeight*")
        set_tests_properties(cuda_interleaved_rows_${arch} PROPERTIES TIMEOUT 600 ENVIRONMENT "TESSERA_TEST_DEVICE=CUDA0")
        add_test(NAME cuda_streamed_parts_${arch} COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}"
            --gpu "${capability}:2GiB" --gpu "${capability}:2GiB" --statistics /dev/null -- "$<TARGET_FILE:cuda_streamed_experts_test>")
        set_tests_properties(cuda_streamed_parts_${arch} PROPERTIES TIMEOUT 600)
        add_test(NAME cuda_launch_counts_${arch} COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}"
            --gpu "${capability}:8GiB" --statistics /dev/null -- "$<TARGET_FILE:cuda_launch_counts_test>")
        set_tests_properties(cuda_launch_counts_${arch} PROPERTIES TIMEOUT 600)
    endif()
endforeach()
# Which windows are launched is decided by code that the plugins share.
if(TEST cuda_launch_counts_80 AND TEST cuda_launch_counts_61)
    set_tests_properties(cuda_launch_counts_61 PROPERTIES LABELS full)
endif()
if(61 IN_LIST archs AND 80 IN_LIST archs)
    # Draws of placements; what they are says testing/emulated_placements.
    # Of 1, 16 and 128 heads among them; 218 has 16, both cards, and more tokens than a page.
    foreach(seed 1 4 7 218)
        add_test(NAME cuda_placements_${seed} COMMAND "${TSR_TEST_PYTHON}" "${PROJECT_SOURCE_DIR}/testing/emulated_placements" --build "${CMAKE_BINARY_DIR}"
            --seed ${seed} --count 1)
        set_tests_properties(cuda_placements_${seed} PROPERTIES TIMEOUT 900 LABELS slow)
    endforeach()
    set_tests_properties(cuda_placements_218 PROPERTIES LABELS "slow;full")
    # On the CPU alone, rounding decides between two experts of one token (bench/results/accuracy.md).
    add_test(NAME cuda_placements_tied COMMAND "${TSR_TEST_PYTHON}" "${PROJECT_SOURCE_DIR}/testing/emulated_placements" --build "${CMAKE_BINARY_DIR}"
        --seed 4133 --count 1 --cards "6.1 6.1 6.1 6.1 6.1 6.1")
    set_tests_properties(cuda_placements_tied PROPERTIES TIMEOUT 900 LABELS "slow;full")
    # Several sequences at once: what testing/emulated_placements, whose texts are one sequence each, does not draw.
    add_executable(cuda_sequences_test sequences_test.cpp "${PROJECT_SOURCE_DIR}/tests/model/random_models.cpp")
    target_link_libraries(cuda_sequences_test PRIVATE tessera_options tessera_session GTest::gtest GTest::gtest_main)
    target_compile_definitions(cuda_sequences_test PRIVATE TSR_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TSR_BINARY_DIR="${CMAKE_BINARY_DIR}"
        TSR_PLUGIN_DIR="${CMAKE_BINARY_DIR}/${TSR_PLUGIN_FOLDER}" TSR_PYTHON="${TSR_TEST_PYTHON}")
    add_dependencies(cuda_sequences_test tessera_plugins)
    add_test(NAME cuda_random_sequences COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" --gpu 8.6:2GiB
        --gpu 6.1:2GiB -- "$<TARGET_FILE:cuda_sequences_test>" "--gtest_filter=*heads_16:*quantised")
    add_test(NAME cuda_random_sequences_all COMMAND "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus" --build "${CMAKE_BINARY_DIR}" --gpu 8.6:2GiB
        --gpu 6.1:2GiB -- "$<TARGET_FILE:cuda_sequences_test>")
    set_tests_properties(cuda_random_sequences cuda_random_sequences_all PROPERTIES TIMEOUT 900 LABELS slow FAIL_REGULAR_EXPRESSION "SKIPPED")
    set_tests_properties(cuda_random_sequences_all PROPERTIES LABELS "slow;full")
    # A command that takes too long fails its draw, and the next one follows.
    add_test(NAME cuda_placements_timeout COMMAND "${TSR_TEST_PYTHON}" "${PROJECT_SOURCE_DIR}/testing/emulated_placements" --build "${CMAKE_BINARY_DIR}"
        --seed 1 --count 2 --timeout 0.01)
    set_tests_properties(cuda_placements_timeout PROPERTIES TIMEOUT 60 PASS_REGULAR_EXPRESSION "not done after 0.01 s.*failed: 1 2")
    foreach(type q8_0 f16 bf16 q4_K packed-q4_0)
        add_test(NAME cuda_random_model_${type} COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/random_model_test.sh" "${PROJECT_SOURCE_DIR}/tools/with_emulated_gpus"
            "${CMAKE_BINARY_DIR}" "${TSR_TEST_PYTHON}" "${PROJECT_SOURCE_DIR}/testing/make_gguf.py" "8.6:24GiB 6.1:24GiB" ${type} -ts 1,1)
        set_tests_properties(cuda_random_model_${type} PROPERTIES TIMEOUT 600)
    endforeach()
endif()
