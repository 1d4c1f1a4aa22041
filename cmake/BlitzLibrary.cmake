# SPDX-License-Identifier: Apache-2.0
#
# blitz (shared) and blitz_static, both made of the same position-independent objects.

include(BlitzPage)
add_library(blitz_objects OBJECT ${BLITZ_SOURCES} ${blitz_page_header})
target_include_directories(blitz_objects PRIVATE ${PROJECT_BINARY_DIR}/page)
blitz_c11(blitz_objects)
target_link_libraries(blitz_objects PRIVATE blitz_internal blitz_release)
set_target_properties(blitz_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden)
# Calls between our own public functions may be inlined and need no PLT.
target_compile_options(blitz_objects PRIVATE -fno-semantic-interposition)

if(hot)
    set_source_files_properties(${hot} PROPERTIES COMPILE_OPTIONS "${hot_canaries}")
endif()

# USDT probes: notes in the library and a nop for each. The header is needed for building only.
find_path(SDT_INCLUDE_DIR sys/sdt.h)
mark_as_advanced(SDT_INCLUDE_DIR)
set(BLITZ_HAS_USDT OFF)
if(BLITZ_USDT STREQUAL "ON" AND NOT SDT_INCLUDE_DIR)
    message(FATAL_ERROR "BLITZ_USDT is ON, and there is no sys/sdt.h (Debian: systemtap-sdt-dev)")
elseif(BLITZ_USDT AND SDT_INCLUDE_DIR) # AUTO, too
    set(BLITZ_HAS_USDT ON)
    target_compile_definitions(blitz_objects PRIVATE BLZ_HAVE_SDT)
endif()

function(blitz_usage_requirements target)
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${target} PRIVATE
        Threads::Threads ${BLITZ_URING_LIBRARY} $<BUILD_INTERFACE:blitz_dev>)
    if(BLITZ_SANITIZE) # so must programs be that use it, once it is installed
        target_compile_options(${target} INTERFACE $<INSTALL_INTERFACE:-fsanitize=${BLITZ_SANITIZE}>)
        target_link_options(${target} INTERFACE $<INSTALL_INTERFACE:-fsanitize=${BLITZ_SANITIZE}>)
    endif()
endfunction()

include(GNUInstallDirs)

add_library(blitz_static STATIC $<TARGET_OBJECTS:blitz_objects>)
add_library(blitz::blitz_static ALIAS blitz_static)
blitz_usage_requirements(blitz_static)
set_target_properties(blitz_static PROPERTIES OUTPUT_NAME blitz LINKER_LANGUAGE C)

if(BLITZ_BUILD_MODELS AND NOT BLITZ_BUILD_TESTS)
    # The models compile the sources their own way; nothing else needs the library then.
    set_target_properties(blitz_objects blitz_static PROPERTIES EXCLUDE_FROM_ALL ON)
endif()

if(BLITZ_BUILD_SHARED)
    add_library(blitz SHARED $<TARGET_OBJECTS:blitz_objects>)
    add_library(blitz::blitz ALIAS blitz)
    blitz_usage_requirements(blitz)
    target_link_libraries(blitz PRIVATE $<BUILD_INTERFACE:blitz_release>)
    # Before 1.0 each MINOR version may break compiled programs: see docs/versioning.md.
    set(soversion ${PROJECT_VERSION_MAJOR})
    if(PROJECT_VERSION_MAJOR EQUAL 0)
        set(soversion 0.${PROJECT_VERSION_MINOR})
    endif()
    set_target_properties(blitz PROPERTIES
        VERSION ${PROJECT_VERSION}
        SOVERSION ${soversion}
        LINKER_LANGUAGE C)
    if(CMAKE_SYSTEM_NAME MATCHES "Linux|BSD")
        set(map ${PROJECT_SOURCE_DIR}/src/blitz.map)
        target_link_options(blitz PRIVATE
            LINKER:--version-script=${map} LINKER:-Bsymbolic-functions)
        set_target_properties(blitz PROPERTIES LINK_DEPENDS ${map})
        if(NOT BLITZ_SANITIZE)
            target_link_options(blitz PRIVATE LINKER:-z,defs)
        endif()
    endif()
endif()
