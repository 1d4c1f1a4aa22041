# SPDX-License-Identifier: Apache-2.0
#
# Headers, libraries, the pkg-config file and the CMake package.

include(CMakePackageConfigHelpers)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
    FILES_MATCHING PATTERN "*.h")

set(blitz_installed blitz_static)
if(BLITZ_BUILD_SHARED)
    list(APPEND blitz_installed blitz)
endif()
install(TARGETS ${blitz_installed} EXPORT blitz-targets)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/blitz)
install(EXPORT blitz-targets NAMESPACE blitz:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/blitz-config.cmake.in
    ${PROJECT_BINARY_DIR}/blitz-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/blitz-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/blitz-config.cmake
    ${PROJECT_BINARY_DIR}/blitz-config-version.cmake DESTINATION ${package_dir})

# The prefix is known for certain only when it is installed (cmake --install --prefix).
set(prefix "@prefix@")
if(BLITZ_URING_LIBRARY)
    set(BLITZ_PC_URING -luring)
endif()
if(BLITZ_SANITIZE)
    set(BLITZ_PC_SANITIZE " -fsanitize=${BLITZ_SANITIZE}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/blitz.pc.in ${PROJECT_BINARY_DIR}/blitz.pc.in @ONLY)
install(CODE "set(blitz_build \"${PROJECT_BINARY_DIR}\")")
install(CODE [[
    set(prefix "${CMAKE_INSTALL_PREFIX}")
    configure_file(${blitz_build}/blitz.pc.in ${blitz_build}/blitz.pc @ONLY)
]])
install(FILES ${PROJECT_BINARY_DIR}/blitz.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The manual pages are made from the headers, when they are installed. Without Python there are none.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
    install(CODE "set(blitz_docs \"${Python3_EXECUTABLE};${PROJECT_SOURCE_DIR}/tools/docs/build.py\")")
    install(CODE [[
        file(REMOVE_RECURSE ${blitz_build}/man)
        execute_process(COMMAND ${blitz_docs} man ${blitz_build}/man COMMAND_ERROR_IS_FATAL ANY)
    ]])
    install(DIRECTORY ${PROJECT_BINARY_DIR}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
else()
    message(STATUS "No Python 3: the manual pages are not installed")
endif()

# The console in a terminal.
install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/blitz-top DESTINATION ${CMAKE_INSTALL_BINDIR})

# The frame checker is for users too.
if(EXISTS ${PROJECT_SOURCE_DIR}/tools/blitz-check-frames)
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/blitz-check-frames
        DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# The gdb commands: where they can be sourced, and where gdb finds them by itself, which is a name made
# of the shared library's whole path.
install(FILES ${PROJECT_SOURCE_DIR}/tools/gdb/blitz-gdb.py
    DESTINATION ${CMAKE_INSTALL_DATADIR}/blitz)
if(BLITZ_BUILD_SHARED)
    install(CODE "set(blitz_gdb \"${PROJECT_SOURCE_DIR}/tools/gdb/blitz-gdb.py\")
        set(blitz_data \"${CMAKE_INSTALL_DATADIR}\")
        set(blitz_libdir \"${CMAKE_INSTALL_LIBDIR}\")
        set(blitz_so \"libblitz.so.${PROJECT_VERSION}\")")
    install(CODE [[
        get_filename_component(libdir "${blitz_libdir}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
        get_filename_component(data "${blitz_data}" ABSOLUTE BASE_DIR "${CMAKE_INSTALL_PREFIX}")
        file(INSTALL "${blitz_gdb}" DESTINATION "${data}/gdb/auto-load${libdir}"
            RENAME "${blitz_so}-gdb.py")
    ]])
endif()
