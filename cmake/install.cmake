# SPDX-License-Identifier: MIT
#
# What `make install` puts where, and the export list of the shared library. Nothing that is
# installed knows where it was built or what the prefix was: holdfast.pc and the CMake package find
# the rest from their own place, so a staged or moved tree works as it is (under /usr, which nobody
# moves, holdfast.pc says so).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(PROJECT_DESCRIPTION "Distributed locks on Redis")

set(exports ${CMAKE_SOURCE_DIR}/cmake/exports.map)
target_link_options(holdfast PRIVATE LINKER:--version-script=${exports})
set_target_properties(holdfast PROPERTIES LINK_DEPENDS ${exports})

# ---- Libraries and headers ----

file(GLOB headers CONFIGURE_DEPENDS include/*.h include/*.hpp)
install(FILES ${headers} TYPE INCLUDE)
foreach(kind shared static)
    set(library holdfast)
    if(kind STREQUAL static)
        set(library holdfast_static)
    endif()
    # One export each: only those who want the static library need what it is linked with.
    install(TARGETS ${library} EXPORT holdfast-${kind}
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
            INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(EXPORT holdfast-${kind} NAMESPACE holdfast::
            DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)
endforeach()

# ---- For pkg-config and for CMake ----

set(described ${CMAKE_BINARY_DIR}/package)
file(RELATIVE_PATH pc_to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" pc_to_prefix "${pc_to_prefix}")
set(pc_prefix "\${pcfiledir}/${pc_to_prefix}")
if(CMAKE_INSTALL_PREFIX STREQUAL /usr)
    set(pc_prefix /usr) # pkg-config leaves out -I and -L of the system, but only in plain words
endif()
file(RELATIVE_PATH pc_libdir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH pc_includedir ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/holdfast.pc.in ${described}/holdfast.pc @ONLY)
install(FILES ${described}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

configure_package_config_file(cmake/holdfast-config.cmake.in ${described}/holdfast-config.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may change the interface, so it must be the one that was asked for.
set(compatibility SameMinorVersion)
if(PROJECT_VERSION_MAJOR GREATER 0)
    set(compatibility SameMajorVersion)
endif()
write_basic_package_version_file(${described}/holdfast-config-version.cmake
                                 COMPATIBILITY ${compatibility})
install(FILES ${described}/holdfast-config.cmake ${described}/holdfast-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/holdfast)

# ---- The command ----

install(TARGETS holdfast_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(NOT CMAKE_CROSSCOMPILING) # else it cannot be asked
    install(FILES ${CMAKE_BINARY_DIR}/completion/holdfast
            DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
endif()

# ---- Manuals ----

foreach(section 1 3 5 7 8)
    file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
    install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()
file(GLOB documents CONFIGURE_DEPENDS docs/*.md)
file(GLOB pictures CONFIGURE_DEPENDS docs/*.svg)
install(FILES ${documents} ${pictures} README.md README.zh-CN.md CHANGELOG.md LICENSE TYPE DOC)
