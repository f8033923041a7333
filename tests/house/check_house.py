#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks of the source tree that fail the tests:

  includes   a room includes only the rooms below it, core no system header that could make it
             impure, no hiredis in src
  banned     src/ calls nothing that prints, exits, aborts or writes without a bound, and takes
             memory only through src/base/memory.h
  exports    the shared library exports exactly the functions that the headers declare

  check_house.py includes|banned SOURCE_DIR        check_house.py exports SOURCE_DIR LIBRARY
  check_house.py self-test SOURCE_DIR              every check sees a planted fault
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

ALLOWED = {  # room -> rooms it may include besides itself
    'src/base': set(),
    'src/resp': {'src/base'},
    'src/lua': set(),
    'src/core': {'src/base', 'src/resp', 'src/lua', 'include'},
    'src/net': {'src/base', 'src/core', 'include'},
    'src/api': {'src/base', 'src/resp', 'src/lua', 'src/core', 'src/net', 'include'},
    'include': set(), 'cli': {'include'}, 'examples': {'include'}, 'bench': {'include'},
}
IMPURE_IN_CORE = re.compile(
    r'(sys/.*|netdb|poll|pthread|time|unistd|openssl/.*|stdio|stdlib|signal|threads|fcntl|netinet/.*|uv)\.h')
BANNED = re.compile(
    r'(?<![\w.>])(printf|fprintf|vprintf|vfprintf|puts|fputs|putchar|perror|sprintf|vsprintf|'
    r'strcpy|strcat|strncpy|strncat|stpcpy|strtok|atoi|atol|atoll|atof|gets|scanf|sscanf|fscanf|'
    r'exit|_exit|_Exit|quick_exit|abort|system|popen|alloca|rand|srand|usleep|sleep)\s*\(')
ENVIRONMENT = re.compile(r'(?<![\w.>])(getenv|secure_getenv|setenv|putenv)\s*\(')
MEMORY = re.compile(r'(?<![\w.>])(malloc|calloc|realloc|free|strdup|strndup|asprintf)\s*\(')


def sources(root, folders):
    for folder in folders:
        for at, _, names in os.walk(os.path.join(root, folder)):
            for name in sorted(names):
                if name.endswith(('.c', '.h')):
                    yield os.path.relpath(os.path.join(at, name), root)


def room_of(path):
    parts = path.split('/')
    return '/'.join(parts[:2]) if parts[0] == 'src' else parts[0]


def code_of(root, path):
    """The file with comments and strings blanked, so that words in them do not count."""
    text = open(os.path.join(root, path), encoding='utf-8').read()
    blank = lambda m: re.sub(r'[^\n]', ' ', m.group(0))
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', blank, text, flags=re.S)


def resolve(root, path, name, quoted):
    """The file of ours that an include means, or None for a system header."""
    places = [os.path.join('include', name)]
    if quoted:
        places = [os.path.join(os.path.dirname(path), name), os.path.join('src', name)] + places
    return next((os.path.normpath(p) for p in places if os.path.isfile(os.path.join(root, p))), None)


def check_includes(root):
    for path in sources(root, ALLOWED):
        room = room_of(path)
        text = open(os.path.join(root, path), encoding='utf-8').read()
        for number, line in enumerate(text.split('\n'), 1):
            found = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
            if not found:
                continue
            name = found.group(2)
            target = resolve(root, path, name, found.group(1) == '"')
            if target and room_of(target) != room and room_of(target) not in ALLOWED[room]:
                yield f'{path}:{number}: {room} must not include {room_of(target)} ({name})'
            if not target and found.group(1) == '"':
                yield f'{path}:{number}: there is no {name}'
            if not target and room == 'src/core' and IMPURE_IN_CORE.fullmatch(name):
                yield f'{path}:{number}: core is pure and must not include <{name}>'
            if not target and name.startswith('hiredis') and room.startswith('src/'):
                yield f'{path}:{number}: the library does without hiredis'


def check_banned(root):
    for path in sources(root, ['src']):
        code = code_of(root, path)
        rules = [(BANNED, 'is banned in src/')]
        if path != 'src/base/memory.c':
            rules.append((MEMORY, 'belongs behind base/memory.h'))
        if path != 'src/net/secret.c':
            rules.append((ENVIRONMENT, 'belongs into net/secret.c'))
        for rule, why in rules:
            for found in rule.finditer(code):
                line = code.count('\n', 0, found.start()) + 1
                yield f'{path}:{line}: {found.group(1)}() {why}'


def check_exports(root, library):
    declared = set()
    for header in sorted(os.listdir(os.path.join(root, 'include'))):
        code = code_of(root, os.path.join('include', header))
        declared |= set(re.findall(r'^HF_API [^;(]*?(\w+)\s*\(', code, re.M))
    listing = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True,
                             check=True).stdout
    exported = {line.split()[-1].split('@')[0] for line in listing.splitlines()
                if line.split()[1] not in 'A'}
    for name in sorted(exported - declared):
        yield f'{library} exports {name}, which no header declares'
    for name in sorted(declared - exported):
        yield f'a header declares {name}, which {library} does not export'
    if not declared:
        yield 'no function found in the headers'
    flags = subprocess.run(['readelf', '-d', library], capture_output=True, text=True, check=True).stdout
    if 'NODELETE' not in flags:
        yield f'{library} can be unloaded while a thread of its own runs (-z nodelete)'


def read_text(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def check_commands(root):
    """permissions.lua must name what the scripts of locks use, but for what they can do without. What
    errands use beside that is named in docs/wire.md."""
    optional, used, named, errands = {'PUBLISH', 'PUBSUB'}, set(), set(), set()
    for path in sorted(os.listdir(os.path.join(root, 'src/lua'))):
        if path.endswith('.lua'):
            text = open(os.path.join(root, 'src/lua', path), encoding='utf-8').read()
            commands = set(re.findall(r"call\('([A-Z]+)'", text))
            if re.match(r'(ids|stock|value|write)', path):
                errands |= commands
            else:
                used |= commands
            if path == 'permissions.lua':
                named = set(re.findall(r"'([A-Z]+)(?: key[^']*)?'", text))
    for command in sorted(used - optional - named):
        yield f'src/lua/permissions.lua does not ask about {command}, which a script uses'
    for command in sorted(errands - used):
        if not re.search(rf'[ `]\+{command.lower()}[ `]', read_text(root, 'docs/wire.md')):
            yield f'docs/wire.md does not name {command}, which a script uses'
    for command in sorted(named - used):
        yield f'src/lua/permissions.lua asks about {command}, which no script uses'


def plant(root, path, text):
    with open(os.path.join(root, path), 'a', encoding='utf-8') as file:
        file.write(text)


def check_self(root):
    """Plants one fault at a time into a copy of the tree and expects its check to see it."""
    faults = [
        (check_commands, 'src/lua/break.lua', "redis.call('APPEND', KEYS[1], 'x')\n"),
        (check_commands, 'src/lua/value.lua', "redis.call('APPEND', KEYS[1], 'x')\n"),
        (check_commands, 'src/lua/permissions.lua', "may('APPEND key v')\n"),
        (check_includes, 'src/base/text.c', '#include "core/core.h"\n'),
        (check_includes, 'src/core/link.c', '#include <sys/socket.h>\n'),
        (check_includes, 'src/net/clock.c', '#include "api/client.h"\n'),
        (check_includes, 'src/core/core.c', '#include <hiredis/read.h>\n'),
        (check_includes, 'cli/run.c', '#include "../src/core/core.h"\n'),
        (check_includes, 'examples/first.c', '#include "../src/core/core.h"\n'),
        (check_banned, 'src/api/client.c', 'void f(void) { printf("x"); }\n'),
        (check_banned, 'src/net/driver.c', 'void f(void) { abort(); }\n'),
        (check_banned, 'src/core/url.c', 'int f(void) { return atoi("1"); }\n'),
        (check_banned, 'src/core/url.c', 'void *f(void) { return malloc(1); }\n'),
        (check_banned, 'src/api/hold.c', 'char *f(void) { return getenv("X"); }\n'),
    ]
    for check, path, text in faults:
        with tempfile.TemporaryDirectory() as copy:
            for folder in (*ALLOWED, 'docs'):
                if os.path.isdir(os.path.join(root, folder)):
                    shutil.copytree(os.path.join(root, folder), os.path.join(copy, folder))
            plant(copy, path, text)
            if not any(path in fault or 'APPEND' in fault for fault in check(copy)):
                yield f'{check.__name__} does not see {text.strip()} in {path}'
    with tempfile.TemporaryDirectory() as copy:
        source = os.path.join(copy, 'x.c')
        plant(copy, 'x.c', 'int hf_stray(void); int hf_stray(void) { return 0; }\n')
        library = os.path.join(copy, 'x.so')
        subprocess.run(['cc', '-shared', '-fPIC', '-o', library, source], check=True)
        if not any('hf_stray' in fault for fault in check_exports(root, library)):
            yield 'check_exports does not see a stray symbol'


def main():
    checks = {'includes': check_includes, 'banned': check_banned, 'exports': check_exports,
              'commands': check_commands,
              'self-test': check_self}
    faults = list(checks[sys.argv[1]](*sys.argv[2:]))
    print('\n'.join(faults) if faults else f'{sys.argv[1]}: nothing to complain of')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
