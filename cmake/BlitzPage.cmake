# SPDX-License-Identifier: Apache-2.0
#
# Puts the files of the console's page into a header, as arrays of bytes:
#
#   cmake -DFOLDER=src/console/page -DOUT=console_page.h -P cmake/BlitzPage.cmake
#
# "index.html" is served as "/".

if(NOT CMAKE_SCRIPT_MODE_FILE)
    set(blitz_page ${PROJECT_SOURCE_DIR}/src/console/page)
    set(blitz_page_header ${PROJECT_BINARY_DIR}/page/console_page.h)
    file(GLOB blitz_page_files CONFIGURE_DEPENDS ${blitz_page}/*)
    add_custom_command(OUTPUT ${blitz_page_header}
        COMMAND ${CMAKE_COMMAND} -DFOLDER=${blitz_page} -DOUT=${blitz_page_header}
            -P ${CMAKE_CURRENT_LIST_FILE}
        DEPENDS ${blitz_page_files} ${CMAKE_CURRENT_LIST_FILE}
        COMMENT "Embedding the console's page" VERBATIM)
    return()
endif()

set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_js "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

file(GLOB files ${FOLDER}/*)
set(arrays)
set(table)
set(n 0)
foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    string(REGEX REPLACE ".*\\." "" ending ${name})
    file(READ ${file} hex HEX)
    string(LENGTH "${hex}" digits)
    math(EXPR len "${digits} / 2")
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    string(APPEND arrays "static const unsigned char page_${n}[] = {${bytes}};\n")
    set(path "/${name}")
    if(name STREQUAL "index.html")
        set(path "/")
    endif()
    string(APPEND table "    {\"${path}\", \"${type_${ending}}\", page_${n}, ${len}},\n")
    math(EXPR n "${n} + 1")
endforeach()
file(WRITE ${OUT} "/* Made by cmake/BlitzPage.cmake. */\n${arrays}\n"
    "static const struct page_file page_files[] = {\n${table}};\n")
