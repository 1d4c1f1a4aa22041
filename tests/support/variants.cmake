# SPDX-License-Identifier: Apache-2.0
#
# Programs that are built in a special way.
#
#   stress/NAME_tiny    the stress test NAME against a library with queues of four tasks and two
#                       references to a poll, so that what is rare happens all the time
#   fault/*             calls of the system that can be made to fail (support/faulty.h)

set(tiny ${BLITZ_SOURCES})
list(FILTER tiny EXCLUDE REGEX "/src/console/") # needs the page, and nothing here needs it
add_library(blitz_tiny STATIC ${tiny})
blitz_c11(blitz_tiny)
target_link_libraries(blitz_tiny PUBLIC blitz_internal)
target_include_directories(blitz_tiny BEFORE PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/support/tiny)

foreach(name IN ITEMS steal life waker timer select rendezvous lock)
    set(target stress_${name}_tiny)
    add_executable(${target} ${CMAKE_CURRENT_SOURCE_DIR}/stress/${name}_stress.c)
    blitz_c11(${target})
    target_compile_options(${target} PRIVATE -UNDEBUG)
    target_include_directories(${target} PRIVATE
        ${CMAKE_CURRENT_SOURCE_DIR}/support/tiny ${CMAKE_CURRENT_SOURCE_DIR}/support
        ${CMOCKA_INCLUDE_DIR})
    target_link_libraries(${target} PRIVATE
        blitz_test_support_objects ${CMOCKA_LIBRARY} blitz_tiny m)
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY stress OUTPUT_NAME ${name}_tiny)
    add_test(NAME stress.${name}_tiny COMMAND ${target})
    blitz_register(stress ${name}_tiny 600)
    set_tests_properties(stress.${name}_tiny PROPERTIES PROCESSORS 2)
endforeach()

# Hooks for fault tests: support/faulty/calls.py says how they work. Objects come before the library,
# so the linker takes a function from these objects, and not from the library.
set(faulty ${CMAKE_CURRENT_SOURCE_DIR}/support/faulty)
set(faulty_out ${CMAKE_CURRENT_BINARY_DIR}/faulty)
set(faulty_files faulty_calls.h faulty_contract.h faulty_kernel.h faulty_hooks.c)
list(TRANSFORM faulty_files PREPEND ${faulty_out}/)
file(GLOB contract CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/system/*.h)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_custom_command(OUTPUT ${faulty_files}
    COMMAND ${Python3_EXECUTABLE} ${faulty}/calls.py ${faulty_out} ${contract}
    DEPENDS ${faulty}/calls.py ${contract})
add_custom_target(faulty_files DEPENDS ${faulty_files})

# An object library of library sources, compiled with these options; fault tests are linked to it.
function(blitz_faulty target)
    cmake_parse_arguments(arg "" "" "SOURCES;OPTIONS" ${ARGN})
    add_library(${target} OBJECT ${arg_SOURCES})
    blitz_c11(${target})
    target_compile_options(${target} PRIVATE ${arg_OPTIONS})
    target_include_directories(${target} PRIVATE ${faulty} ${faulty_out})
    target_link_libraries(${target} PRIVATE blitz_internal)
    add_dependencies(${target} faulty_files)
endfunction()

set(hook_kernel "SHELL:-include ${faulty_out}/faulty_kernel.h")
blitz_faulty(blitz_faulty_system SOURCES ${BLITZ_SYSTEM_SOURCES}
    OPTIONS "SHELL:-include ${faulty_out}/faulty_contract.h" ${hook_kernel})

set(backends ${BLITZ_SOURCES})
list(FILTER backends INCLUDE REGEX "/src/io/(epoll|poll|uring|wake)[^/]*\\.c$")
list(FILTER backends EXCLUDE REGEX "/uring_file\\.c$")
blitz_faulty(blitz_faulty_io SOURCES ${backends} OPTIONS ${hook_kernel})

set(faulty_parts system io process hooks)
set(ring_file ${BLITZ_SOURCES})
list(FILTER ring_file INCLUDE REGEX "/src/io/uring_file\\.c$")
if(ring_file)
    list(APPEND faulty_parts ring)
    blitz_faulty(blitz_faulty_ring SOURCES ${ring_file}
        OPTIONS -Dblz__uring_prep_file=real_blz__uring_prep_file)
endif()

set(process ${BLITZ_SOURCES})
list(FILTER process INCLUDE REGEX "/src/process/")
blitz_faulty(blitz_faulty_process SOURCES ${process}
    OPTIONS -Dblz_fd_attach=faulty_blz_fd_attach -Dblz_fd_attach_to=faulty_blz_fd_attach_to
        -Dblz_fd_readable=faulty_blz_fd_readable)

blitz_faulty(blitz_faulty_hooks
    SOURCES ${faulty}/faulty.c ${faulty}/kernel.c ${faulty_out}/faulty_hooks.c)

# Counts the looks at a cancellation.
blitz_faulty(blitz_faulty_cancel SOURCES ${PROJECT_SOURCE_DIR}/src/par/cancel.c
    OPTIONS -Dblz_par_cancel_code=real_blz_par_cancel_code)

foreach(source IN LISTS fault)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fault$" "" name ${name})
    foreach(part IN LISTS faulty_parts)
        target_sources(fault_${name} PRIVATE $<TARGET_OBJECTS:blitz_faulty_${part}>)
    endforeach()
    target_include_directories(fault_${name} PRIVATE ${faulty} ${faulty_out})
    add_dependencies(fault_${name} faulty_files)
endforeach()
file(GLOB scenarios CONFIGURE_DEPENDS ${faulty}/scenarios_*.c)
target_sources(fault_contract PRIVATE ${scenarios})
if(TARGET fault_par_algorithms)
    target_sources(fault_par_algorithms PRIVATE $<TARGET_OBJECTS:blitz_faulty_cancel>)
endif()

add_test(NAME fault.hooks COMMAND
    ${Python3_EXECUTABLE} -B ${faulty}/hooks_test.py ${CMAKE_NM} ${PROJECT_SOURCE_DIR}/src/system
    $<FILTER:$<TARGET_OBJECTS:blitz_faulty_hooks>,INCLUDE,faulty_hooks\\.c> $<TARGET_OBJECTS:blitz_faulty_system>
    COMMAND_EXPAND_LISTS)
blitz_register(fault hooks 60)
