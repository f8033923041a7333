# SPDX-License-Identifier: MIT
"""holdfast(1) and the help say the same: every option with its letter and its argument, every exit
code, every environment variable that is read. The help is made from the tables that the command
parses with, so the manual cannot differ from what it does."""
import glob
import os
import re
import subprocess
import sys
import unittest

HOLDFAST = os.environ['HOLDFAST']
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..')
COMMON = 'Server and output'


def help_of(*words):
    return subprocess.run([HOLDFAST, *words, '--help'], capture_output=True, text=True,
                          check=True).stdout


def verbs_of(text):
    return re.findall(r'^  (\w+) +\S', text.split('Verbs:\n')[1].split('\n\n')[0], re.M)


def options_in_help(text):
    found = re.findall(r'^  (?:-(\w), |    )--([a-z-]+)(?: ([A-Z]+|[a-z]+(?:\|[a-z]+)+)(?= ))?', text, re.M)
    return set(found)


def options_in_manual(text):
    found = set()
    for line in re.findall(r'^\.It (Fl .*)$', text, re.M):
        match = re.fullmatch(r'(?:Fl (\w) , )?Fl -([a-z-]+)(?: (?:Ar|Cm) (.*))?', line)
        if match is None:
            raise AssertionError(f'what is this? .It {line}')
        letter, name, argument = (part or '' for part in match.groups())
        found.add((letter, name, argument.replace(' ', '')))
    return found


def codes_in(text):
    """1 is a number like others, so it counts only where it is called a code."""
    codes = set(re.findall(r'\b(64|66|69|75|77|78|122|123|125|126|127)\b', text))
    return codes | set(re.findall(r'(?:[Ee]xit code|exits\s+with\s+0\s.*?\s+and\s+with|exits\s+with) (1)\b',
                                  text, re.S))


class Manual:
    """What differs between a manual and the command, in sentences."""

    def __init__(self, text):
        self.text = text
        parts = re.split(r'^\.S([sh]) (.*)$', text, flags=re.M)
        self.parts = {}
        for kind, name, body in zip(parts[1::3], parts[2::3], parts[3::3]):
            self.parts.setdefault(name.strip('"'), body)

    def faults(self):
        top = help_of()
        verbs = verbs_of(top)
        common = set()
        for verb in verbs:
            text = help_of(verb)
            own, _, rest = text.partition(f'{COMMON}:\n')
            shared, _, details = rest.partition('\n\n')
            common |= options_in_help(shared)
            if verb not in self.parts:
                yield f'there is no section about {verb}'
                continue
            yield from self.differ(verb, options_in_help(own), options_in_manual(self.parts[verb]))
            yield from self.differ(verb, codes_in(own + details), codes_in(self.parts[verb]))
        yield from self.differ(COMMON, common, options_in_manual(self.parts[COMMON]))
        yield from self.differ('EXIT STATUS', set(re.findall(r'^ +(\d+)  \S', top, re.M)),
                               set(re.findall(r'^\.It (\d+)$', self.parts['EXIT STATUS'], re.M)))
        yield from self.differ('ENVIRONMENT', variables(), variables_in(self.parts['ENVIRONMENT']))

    @staticmethod
    def differ(where, told, written):
        for what in sorted(told - written):
            yield f'{where}: {what} is not in the manual'
        for what in sorted(written - told):
            yield f'{where}: {what} is in the manual only'


def variables():
    names = set()
    for path in glob.glob(os.path.join(SOURCE, 'cli/*.c')):
        with open(path, encoding='utf-8') as file:
            names |= set(re.findall(r'(?:getenv|config_environment)\("(\w+)"\)', file.read()))
    return names


def variables_in(text):
    return {name for line in re.findall(r'^\.It Ev (.*)$', text, re.M) for name in line.split(' , ')}


def read():
    with open(os.path.join(SOURCE, 'docs/man/holdfast.1'), encoding='utf-8') as file:
        return file.read()


class TheManual(unittest.TestCase):
    def test_says_what_the_help_says(self):
        self.assertEqual(list(Manual(read()).faults()), [])

    def test_is_found_wrong_if_it_is(self):
        for fragment, other, word in (
                ('.It Fl n , Fl -nonblock\nDo not wait if it is held.\n', '', 'nonblock'),
                ('.It Fl w , Fl -wait', '.It Fl W , Fl -wait', 'wait'),
                ('.It Fl -skip-ok\n', '.It Fl -skip-okay\n', 'skip-okay'),
                ('.It Fl -kill-after Ar TIME', '.It Fl -kill-after Ar CODE', 'kill-after'),
                ('.It Fl -tls-insecure\n', '', 'tls-insecure'),
                ('.It 78\n', '', '78'),
                ('Exit code 122: it had ended', 'It had ended', 'release'),
                ('Exit code 1: there are none', 'There are none', 'ls'),
                ('.Ss doctor\n', '.Ss docter\n', 'doctor'),
                ('.It Ev SHELL\n', '', 'SHELL'),
                ('.It Ev NO_COLOR ,', '.It Ev NO_COLOUR ,', 'NO_COLOUR')):
            text = read()
            self.assertIn(fragment, text)
            faults = list(Manual(text.replace(fragment, other, 1)).faults())
            self.assertTrue(any(word in fault for fault in faults), (fragment, faults))

    def test_is_good_for_man(self):
        try:
            done = subprocess.run(['man', '--warnings', '-E', 'UTF-8', '-l', '-'], input=read(),
                                  capture_output=True, text=True, check=True,
                                  env={**os.environ, 'LC_ALL': 'C.UTF-8', 'MANROFFSEQ': '', 'PAGER': 'cat'})
        except FileNotFoundError:
            self.skipTest('there is no man')
        self.assertEqual(done.stderr, '')
        self.assertIn('FAILURE MODES', done.stdout)


if __name__ == '__main__':
    sys.exit(unittest.main())
