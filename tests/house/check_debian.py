#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the Debian packaging agrees with the header, which is where versions and functions
are written down:

  - debian/changelog and CHANGELOG.md begin with the version of the header
  - the shared library's package is named after the major version
  - debian/libholdfast0.symbols has exactly the functions of the headers, none newer than it

  check_debian.py check SOURCE_DIR
  check_debian.py self-test SOURCE_DIR             the check sees planted faults
"""
import os
import re
import shutil
import sys
import tempfile

sys.dont_write_bytecode = True  # nothing is written into the source tree
from check_house import code_of  # noqa: E402


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def check_version(root, version):
    for path, pattern in (('debian/changelog', r'^holdfast \(([^)]*)\)'),
                          ('CHANGELOG.md', r'^## (\S+)')):
        found = re.search(pattern, read(root, path), re.M)
        told = found.group(1) if found else 'nothing'
        if told != version:
            yield f'{path}: begins with {told}, include/holdfast.h says {version}'
    package = f'libholdfast{version.split(".")[0]}'
    if f'\nPackage: {package}\n' not in read(root, 'debian/control'):
        yield f'debian/control: there is no package {package}'


def check_symbols(root, version):
    major = version.split('.')[0]
    path = f'debian/libholdfast{major}.symbols'
    tag = f'HOLDFAST_{major}'
    numbers = lambda text: [int(part) for part in text.split('.')]
    wanted = set()
    for header in sorted(os.listdir(os.path.join(root, 'include'))):
        code = code_of(root, os.path.join('include', header))
        wanted |= set(re.findall(r'^HF_API [^;(]*?(\w+)\s*\(', code, re.M))
    listed = dict(re.findall(rf'^ (\w+)@{tag} ([0-9.]+)$', read(root, path), re.M))
    if not wanted:
        yield 'no function found in the headers'
    for name in sorted(wanted - listed.keys()):
        yield f'{path}: add " {name}@{tag} {version}"'
    for name in sorted(listed.keys() - wanted - {tag}):
        yield f'{path}: {name} is in no header'
    for name, since in sorted(listed.items()):
        if numbers(since) > numbers(version):
            yield f'{path}: {name} came with {since}, but this is {version}'


def check(root):
    header = read(root, 'include/holdfast.h')
    version = '.'.join(re.findall(r'^#define HF_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$', header, re.M))
    yield from check_version(root, version)
    yield from check_symbols(root, version)


def check_self(root):
    faults = [  # where, what is replaced, by what, and a word of the complaint
        ('debian/changelog', r'^holdfast \([^)]*\)', 'holdfast (99.0)', '99.0'),
        ('CHANGELOG.md', r'\n## \S+', '\n## 98.0', '98.0'),
        ('debian/control', r'\nPackage: libholdfast\d+\n', '\nPackage: libholdfast\n', 'no package'),
        ('debian/libholdfast0.symbols', r'\n hf_open@\S+ \S+', '', 'add " hf_open@'),
        ('debian/libholdfast0.symbols', r'\n hf_open@', '\n hf_open_x@', 'hf_open_x is in no'),
        ('debian/libholdfast0.symbols', r'(\n hf_open@\S+) \S+', r'\1 99.0.0', 'hf_open came'),
        ('include/holdfast.h', r'_PATCH (\d+)', r'_PATCH 1\1', 'debian/changelog'),
    ]
    for path, pattern, replacement, word in faults:
        with tempfile.TemporaryDirectory() as copy:
            for folder in ('debian', 'include'):
                shutil.copytree(os.path.join(root, folder), os.path.join(copy, folder))
            shutil.copy(os.path.join(root, 'CHANGELOG.md'), copy)
            text = re.sub(pattern, replacement, read(copy, path), count=1)
            with open(os.path.join(copy, path), 'w', encoding='utf-8') as file:
                file.write(text)
            if not any(word in fault for fault in check(copy)):
                yield f'nobody complains when {pattern!r} becomes {replacement!r} in {path}'


def main():
    checks = {'check': check, 'self-test': check_self}
    faults = list(checks[sys.argv[1]](sys.argv[2]))
    print('\n'.join(faults) if faults else f'{sys.argv[1]}: nothing to complain of')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
