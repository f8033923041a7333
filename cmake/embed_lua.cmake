# Writes the C file OUTPUT with the scripts of LUA_DIR named in NAMES (in the order of
# hf__script_id): bytes unchanged, because EVALSHA knows a script by the SHA-1 of its bytes.
set(arrays "")
set(table "")
foreach(name IN LISTS NAMES)
    file(READ "${LUA_DIR}/${name}.lua" hex HEX)
    file(SHA1 "${LUA_DIR}/${name}.lua" sha1)
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
