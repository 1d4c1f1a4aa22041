# SPDX-License-Identifier: Apache-2.0
#
# Finds the library's sources.
#
#   BLITZ_SOURCES        everything that belongs to this system
#   BLITZ_MODEL_SOURCES  what the model explorer runs: no contact with a real system

set(blitz_folders
    base task sched time io blocking sync channel combine net fs process signal stream shutdown par
    observe console)
set(blitz_model_folders
    base task sched time io blocking sync channel combine signal shutdown par observe)

function(blitz_glob out)
    set(patterns)
    foreach(folder IN LISTS ARGN)
        list(APPEND patterns ${PROJECT_SOURCE_DIR}/src/${folder}/*.c)
    endforeach()
    file(GLOB found CONFIGURE_DEPENDS ${patterns})
    set(${out} ${found} PARENT_SCOPE)
endfunction()

# The system contract: src/system/*.h. Each file is taken from the first of these folders that has
# it; the same names mean the same subjects in each.
if(WIN32)
    set(blitz_system_folders windows)
elseif(APPLE)
    set(blitz_system_folders darwin bsd posix)
elseif(CMAKE_SYSTEM_NAME MATCHES "^(FreeBSD|NetBSD|OpenBSD)$")
    string(TOLOWER ${CMAKE_SYSTEM_NAME} blitz_system_folders)
    list(APPEND blitz_system_folders bsd posix)
else()
    set(blitz_system_folders linux posix)
endif()

function(blitz_system_sources out)
    set(names)
    set(found)
    foreach(folder IN LISTS ARGN)
        blitz_glob(sources system/${folder})
        foreach(source IN LISTS sources)
            get_filename_component(name ${source} NAME)
            if(NOT name IN_LIST names)
                list(APPEND names ${name})
                list(APPEND found ${source})
            endif()
        endforeach()
    endforeach()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

blitz_glob(BLITZ_SOURCES ${blitz_folders})
blitz_system_sources(BLITZ_SYSTEM_SOURCES ${blitz_system_folders})
list(APPEND BLITZ_SOURCES ${BLITZ_SYSTEM_SOURCES})

# Backends that carry the name of what they stand on. A file without such a name is built everywhere.
set(blitz_linux_only "/io/(uring|epoll|backends_linux)[^/]*\\.c$")
set(blitz_bsd_only "/io/kqueue[^/]*\\.c$")
set(blitz_windows_only "/io/iocp[^/]*\\.c$")
set(blitz_unix_only "/io/poll[^/]*\\.c$")
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
    list(FILTER BLITZ_SOURCES EXCLUDE REGEX "${blitz_linux_only}")
endif()
if(NOT CMAKE_SYSTEM_NAME MATCHES "BSD|Darwin")
    list(FILTER BLITZ_SOURCES EXCLUDE REGEX "${blitz_bsd_only}")
endif()
if(NOT WIN32)
    list(FILTER BLITZ_SOURCES EXCLUDE REGEX "${blitz_windows_only}")
else()
    list(FILTER BLITZ_SOURCES EXCLUDE REGEX "${blitz_unix_only}")
endif()

# Without liburing there is no io_uring backend; the others do everything that it does.
set(BLITZ_URING_LIBRARY)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    find_path(LIBURING_INCLUDE_DIR liburing.h)
    find_library(LIBURING_LIBRARY uring)
    mark_as_advanced(LIBURING_INCLUDE_DIR LIBURING_LIBRARY)
endif()
if(LIBURING_INCLUDE_DIR AND LIBURING_LIBRARY)
    set(BLITZ_URING_LIBRARY uring)
    target_compile_definitions(blitz_internal INTERFACE BLZ_HAVE_URING)
    target_link_libraries(blitz_internal INTERFACE uring)
else()
    message(STATUS "liburing was not found: the io_uring backend is left out")
    list(FILTER BLITZ_SOURCES EXCLUDE REGEX "/io/uring[^/]*\\.c$")
endif()

# The explorer implements the part of the system contract that models use, all but descriptors and the last words of
# a program. No driver backend but the simulator can run in it, and no signal handler, and no
# tracepoint; of traces it runs the rings.
blitz_glob(BLITZ_MODEL_SOURCES ${blitz_model_folders})
list(FILTER BLITZ_MODEL_SOURCES EXCLUDE REGEX
    "/base/thread_locals\\.c$|/io/(try_now|backend|uring|epoll|poll|kqueue|iocp)[^/]*\\.c$|/signal/(table|signal|stop)\\.c$|/observe/(dump_fd|probes|trace|trace_env|trace_json|trace_parse)\\.c$")
foreach(source IN LISTS BLITZ_SYSTEM_SOURCES)
    if(source MATCHES "/(panic|handle)\\.c$")
        list(APPEND BLITZ_MODEL_SOURCES ${source})
    endif()
endforeach()
