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

foreach(source IN LISTS fault)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fault$" "" name ${name})
    foreach(call IN ITEMS pipe2 clone __clone pthread_create sigaction calloc mmap madvise eventfd syscall socket bind listen accept4
            connect blz__socket_recv blz__socket_send recvmsg sendmsg epoll_create1 epoll_ctl epoll_pwait2 ppoll
            io_uring_queue_init_params io_uring_submit io_uring_submit_and_wait
            io_uring_submit_and_get_events io_uring_register_eventfd
            io_uring_register_ring_fd openat preadv2 pwritev2 fstat statx fsync ftruncate renameat mkdir
            unlinkat getdents64 copy_file_range splice sendfile poll
            inotify_init1 inotify_add_watch
            inotify_rm_watch read write close fdatasync fallocate fchmod futimens flock lseek fstatfs
            unlink link symlink chmod faccessat utimensat readlink realpath __realpath_chk
            getrandom fcntl ioctl blz__uring_prep_file
            waitid blz_fd_attach blz_fd_attach_to blz_fd_readable)
        target_link_options(fault_${name} PRIVATE LINKER:--wrap=${call})
    endforeach()
    # The wrappers are found although the library comes after them.
    target_link_options(fault_${name} PRIVATE LINKER:--undefined=fail_call
        LINKER:--undefined=blz_faulty_io LINKER:--undefined=blz_faulty_fs
        LINKER:--undefined=blz_faulty_stream
        LINKER:--undefined=syscall_fails)
endforeach()

# Counts the looks at a cancellation.
if(TARGET fault_par_algorithms)
    target_link_options(fault_par_algorithms PRIVATE LINKER:--wrap=blz_par_cancel_code)
endif()
