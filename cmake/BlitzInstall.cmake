# SPDX-License-Identifier: Apache-2.0
#
# Headers, libraries, the pkg-config file and the CMake package. Both descriptions find the prefix
# from their own place, so an installed tree may be moved.

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

if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}" OR IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
    set(blitz_pc_prefix ${CMAKE_INSTALL_PREFIX})
    set(blitz_pc_libdir ${CMAKE_INSTALL_FULL_LIBDIR})
    set(blitz_pc_includedir ${CMAKE_INSTALL_FULL_INCLUDEDIR})
else()
    file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
    string(REGEX REPLACE "/$" "" up "${up}")
    set(blitz_pc_prefix "\${pcfiledir}/${up}")
    set(blitz_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
    set(blitz_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(${PROJECT_SOURCE_DIR}/cmake/blitz.pc.in ${PROJECT_BINARY_DIR}/blitz.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/blitz.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# The frame checker is for users too.
if(EXISTS ${PROJECT_SOURCE_DIR}/tools/blitz-check-frames)
    install(PROGRAMS ${PROJECT_SOURCE_DIR}/tools/blitz-check-frames
        DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
