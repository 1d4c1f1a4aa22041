# SPDX-License-Identifier: Apache-2.0
#
# Flags as targets, so that nothing leaks into a parent project.
#
#   blitz_dev      warnings and sanitizers: everything built in this tree
#   blitz_internal what the library's own sources see: src/ on the include path, GNU extensions
#   blitz_release  how the library is compiled and linked to be installed (BLITZ_HARDEN)

find_package(Threads REQUIRED)

add_library(blitz_dev INTERFACE)
target_compile_options(blitz_dev INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wundef -Wpointer-arith -Wcast-qual -Wwrite-strings
    -Wformat=2
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wold-style-definition>
    $<$<BOOL:${BLITZ_WERROR}>:-Werror>)

if(BLITZ_SANITIZE)
    target_compile_options(blitz_dev INTERFACE
        -fsanitize=${BLITZ_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(blitz_dev INTERFACE -fsanitize=${BLITZ_SANITIZE})
    if(BLITZ_SANITIZE MATCHES "thread" AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # gcc warns at every fence that TSan does not see it; the atomics shim takes care of that.
        target_compile_options(blitz_dev INTERFACE -Wno-tsan)
    endif()
endif()

# Checks: BLZ_ASSERT (src/base/assert.h), validators, and the panic about a task that waits for
# nothing (src/task/waits.h). Models have them too: tests/CMakeLists.txt.
if(BLITZ_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_definitions(blitz_dev INTERFACE BLZ_CHECKS)
endif()

add_library(blitz_internal INTERFACE)
target_include_directories(blitz_internal INTERFACE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
# Sizes and patience: a build with other ones puts a folder with another tuning.h in front.
target_include_directories(blitz_internal INTERFACE ${PROJECT_SOURCE_DIR}/src/tuning/library)
target_compile_definitions(blitz_internal INTERFACE _GNU_SOURCE)
target_link_libraries(blitz_internal INTERFACE blitz_dev Threads::Threads)

# As Debian's packages: canaries, checked libc calls, no jump over a guard page; all relocations are
# done at the start, and read-only from then on. In the folders that every poll, wait and message
# goes through only functions with buffers have canaries. If functions with a variable whose address
# is taken had one as well, a poll would have 6 % more instructions and a spawn 10 %.
#
# And no path of this machine: the same sources give the same bytes in any folder.
add_library(blitz_release INTERFACE)
if(BLITZ_HARDEN AND NOT BLITZ_SANITIZE)
    include(CheckCCompilerFlag)
    check_c_compiler_flag(-fstack-clash-protection BLITZ_HAS_STACK_CLASH)
    set(harden -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
        -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=./build)
    if(BLITZ_HAS_STACK_CLASH)
        list(APPEND harden -fstack-clash-protection)
    endif()
    target_compile_options(blitz_release INTERFACE "$<$<NOT:$<CONFIG:Debug>>:${harden}>")
    foreach(folder IN ITEMS task sched time sync channel combine)
        file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${folder}/*.c)
        list(APPEND hot ${sources})
    endforeach()
    set(hot_canaries $<$<NOT:$<CONFIG:Debug>>:-fstack-protector>)
    if(CMAKE_SYSTEM_NAME MATCHES "Linux|BSD")
        target_link_options(blitz_release INTERFACE LINKER:-z,relro LINKER:-z,now)
    endif()
endif()

# C11 with GNU extensions.
function(blitz_c11 target)
    set_target_properties(${target} PROPERTIES
        C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS ON)
endfunction()
