# Writes the C file OUTPUT with the scripts of LUA_DIR named in NAMES (in the order of
# hf__script_id), and each as OUTPUT.NAME.lua: EVALSHA knows a script by the SHA-1 of its bytes. A
# line "-- include NAME" stands for the text of NAME.lua; other lines that are comments are left out,
# and so is what lines are indented by, because every new connection sends the scripts to its server.
set(arrays "")
set(table "")
foreach(name IN LISTS NAMES)
    file(READ "${LUA_DIR}/${name}.lua" text)
    string(REGEX MATCH "\n *-- include ([a-z_]+)\n" line "${text}")
    while(line)
        file(READ "${LUA_DIR}/${CMAKE_MATCH_1}.lua" included)
        string(REPLACE "${line}" "\n${included}\n" text "${text}")
        string(REGEX MATCH "\n *-- include ([a-z_]+)\n" line "${text}")
    endwhile()
    string(REGEX REPLACE "\n *--[^\n]*" "" text "\n${text}")
    string(REGEX REPLACE "\n[\n ]+" "\n" text "${text}")
    string(SUBSTRING "${text}" 1 -1 text)
    file(WRITE "${OUTPUT}.${name}.lua" "${text}")
    file(READ "${OUTPUT}.${name}.lua" hex HEX)
    file(SHA1 "${OUTPUT}.${name}.lua" sha1)
    string(LENGTH "${hex}" digits)
    math(EXPR length "${digits} / 2")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(APPEND arrays "static const char ${name}_body[] = {${bytes}0};\n")
    string(APPEND table "    {\"${name}\", ${name}_body, ${length}, \"${sha1}\"},\n")
endforeach()
file(WRITE "${OUTPUT}" "/* Made by cmake/embed_lua.cmake from src/lua. */
#include \"lua/scripts.h\"

${arrays}
const hf__script hf__scripts[HF__SCRIPT_COUNT] = {
${table}};
")
