#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that README.zh-CN.md keeps up with README.md, as far as a program can see it: the same
headings by level, the same code, tables of the same size, the same links, the same words in `code`;
and that whoever changed the English text has looked at the Chinese one, which says so by the hash
of the former. Also that the picture of both is a picture, docs/demo.svg, and that the tests exist
that docs/safety.md calls as witnesses.

  check_readme.py check SOURCE_DIR
  check_readme.py self-test SOURCE_DIR             the check sees planted faults
"""
import fnmatch
import hashlib
import os
import re
import shutil
import sys
import tempfile
import xml.etree.ElementTree

ENGLISH, CHINESE, PICTURE = 'README.md', 'README.zh-CN.md', 'docs/demo.svg'
SAFETY = 'docs/safety.md'
PICTURE_MAX = 100 * 1000
MARK = re.compile(r'<!-- sha256 of README\.md: (\w+) -->')


def read(root, path):
    with open(os.path.join(root, path), encoding='utf-8') as file:
        return file.read()


def code_blocks(text):
    fenced = re.findall(r'^```.*?^```$', text, re.M | re.S)
    indented = re.findall(r'(?:\A|\n\n)((?: {4}[^\n]*\n)+)', text)
    return fenced + indented


def prose(text):
    return re.sub(r'^```.*?^```$', '', text, flags=re.M | re.S)


def parts_of(text):
    """What must be the same in both, each with a name."""
    text = MARK.sub('', text)
    rest = prose(text)
    yield 'headings', [len(marks) for marks in re.findall(r'^(#+) ', rest, re.M)]
    yield 'code blocks', code_blocks(text)
    yield 'table rows', [line.count('|') for line in rest.splitlines() if line.startswith('|')]
    links = re.findall(r'\]\(([^)]*)\)', rest)
    yield 'links', ['the other language' if link in (ENGLISH, CHINESE) else link for link in links]
    yield 'items', len(re.findall(r'^- ', rest, re.M))
    yield 'words in `code`', sorted(re.findall(r'`([^`\n]+)`', rest))


def check_languages(root):
    english, chinese = read(root, ENGLISH), read(root, CHINESE)
    for (name, wanted), (_, found) in zip(parts_of(english), parts_of(chinese)):
        if wanted != found:
            yield f'{CHINESE}: other {name} than in {ENGLISH}: {found} instead of {wanted}'
    now = hashlib.sha256(english.encode()).hexdigest()[:16]
    mark = MARK.search(chinese)
    if mark is None or mark.group(1) != now:
        yield (f'{ENGLISH} has changed. Say the same in {CHINESE}, then write into its first line:\n'
               f'<!-- sha256 of README.md: {now} -->')


def check_links(root):
    for link in re.findall(r'\]\(([^)#:]*)\)', prose(read(root, ENGLISH))):
        if not os.path.exists(os.path.join(root, link)):
            yield f'{ENGLISH}: there is no {link}'


def check_picture(root):
    text = read(root, PICTURE)
    try:
        tree = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as error:
        yield f'{PICTURE}: {error}'
        return
    tags = {element.tag.rpartition('}')[2] for element in tree.iter()}
    if not {'style', 'text'} <= tags or '@keyframes' not in text:
        yield f'{PICTURE}: shows nothing that moves'
    if tags & {'script', 'image', 'foreignObject', 'a'} or re.search(r'url\(|@import|@font-face', text):
        yield f'{PICTURE}: needs something from elsewhere'
    if len(text.encode()) > PICTURE_MAX:
        yield f'{PICTURE}: has {len(text.encode())} bytes, at most {PICTURE_MAX} are fine'
    for place in re.findall(r'/(?:tmp|home|root|work|build)\b[^<]*', text):
        yield f'{PICTURE}: names a place of the machine that it was made on, {place}'


def check_witnesses(root):
    """Files by their names, functions of the command's tests by theirs."""
    files, functions = set(), set()
    for folder, _, names in os.walk(os.path.join(root, 'tests')):
        files |= set(names)
        for name in names:
            if name.endswith('.py'):
                functions |= set(re.findall(r'def (test_\w+)', read(folder, name)))
    for name, extension in re.findall(r'\b(test_\w+)(\*?\.(?:py|c))?', read(root, SAFETY)):
        wanted = fnmatch.filter(files, name + extension) if extension else {name} & functions
        if not wanted:
            yield f'{SAFETY}: there is no {name}{extension}'


def check(root):
    yield from check_languages(root)
    yield from check_witnesses(root)
    yield from check_links(root)
    yield from check_picture(root)


def check_self(root):
    faults = [  # where, what is replaced, by what, and a word of the complaint
        (ENGLISH, r'0\.7', '0.8', 'has changed'),
        (CHINESE, r'\n## ', '\n### ', 'headings'),
        (CHINESE, r'backup\n', 'backup --all\n', 'code blocks'),
        (CHINESE, r'return 1;', 'return 2;', 'code blocks'),
        (CHINESE, r'\n\| `make tsan`[^\n]*', '', 'table rows'),
        (CHINESE, r'\]\(docs/wire\.md\)', '](docs/design.md)', 'links'),
        (CHINESE, r'\n- [^\n]*C\+\+17', '\nC++17', 'items'),
        (CHINESE, r'`HF_EDENIED`', '`HF_EUNSAFE`', 'words'),
        (CHINESE, r'sha256 of README\.md: \w+', 'sha256 of README.md: 1', 'has changed'),
        (ENGLISH, r'\(docs/wire\.md\)', '(docs/wires.md)', 'docs/wires.md'),
        (SAFETY, r'test_crash\.c', 'test_crush.c', 'test_crush.c'),
        (SAFETY, r'test_a_hold_outlives_the_server', 'test_a_hold_outlives_us', 'outlives_us'),
        (PICTURE, r'</svg>', '', PICTURE),
        (PICTURE, r'</svg>', ' ' * PICTURE_MAX + '</svg>', 'bytes'),
        (PICTURE, r'<text ', '<text x="1">/tmp/x</text><text ', '/tmp/x'),
        (PICTURE, r'<rect ', '<script/><rect ', 'elsewhere'),
    ]
    for path, pattern, replacement, word in faults:
        with tempfile.TemporaryDirectory() as copy:
            for name in os.listdir(root):
                if os.path.isfile(os.path.join(root, name)):
                    shutil.copy(os.path.join(root, name), copy)
            for folder in ('docs', 'examples', 'include', 'tests'):
                shutil.copytree(os.path.join(root, folder), os.path.join(copy, folder))
            text = read(copy, path)
            changed = re.sub(pattern, lambda _: replacement, text, count=1)
            if changed == text:
                yield f'{pattern} is not in {path}'
            with open(os.path.join(copy, path), 'w', encoding='utf-8') as file:
                file.write(changed)
            if not any(word in fault for fault in check(copy)):
                yield f'not seen: {replacement[:40]} instead of {pattern} in {path}'


def main():
    faults = list({'check': check, 'self-test': check_self}[sys.argv[1]](sys.argv[2]))
    print('\n'.join(faults) if faults else f'{sys.argv[1]}: nothing to complain of')
    return 1 if faults else 0


if __name__ == '__main__':
    sys.exit(main())
