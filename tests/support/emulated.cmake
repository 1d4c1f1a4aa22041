# SPDX-License-Identifier: Apache-2.0
#
# Tests in qemu-user, which runs the program on the kernel of this machine. What it does not do:
#
#   fork, par_enter, io_life, timer,      memory that a forked child finds empty (MADV_WIPEONFORK):
#   blocking_shutdown, corner_life, trace it says yes and does nothing
#   process, process_end, stream          memory of a child that is shared with its parent (vfork)
#   signal, signal_process, stop          signals that it needs for itself
#   net_option, net_udp, net_serve        some socket options
#   file, fs_calls                        openat2
#   io_backend, io_race, fence, par_options, refused: processes with limits on system calls or memory, threads
#   par_fork                              that end at once or fork; it fails itself

set(not_emulated
    unit.fork unit.par_enter unit.io_life unit.timer unit.blocking_shutdown unit.corner_life
    unit.trace unit.process unit.process_end unit.stream fault.process fault.process_wait
    unit.signal unit.signal_process unit.stop unit.net_option unit.net_udp unit.net_serve unit.file fault.fs_calls
    unit.io_backend unit.io_race unit.fence unit.par_options unit.par_fork unit.refused)
foreach(test IN LISTS not_emulated)
    if(TEST ${test})
        set_tests_properties(${test} PROPERTIES DISABLED ON)
    endif()
endforeach()

# Tests that start their own program once more.
get_property(tests DIRECTORY PROPERTY TESTS)
foreach(test IN LISTS tests)
    set_property(TEST ${test} APPEND PROPERTY ENVIRONMENT "EMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}")
endforeach()
