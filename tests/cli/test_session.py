#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Where settings come from: the command line, then the environment, then the configuration file; and
what is refused."""
import socket
import threading
import unittest

import lib
from lib_verbs import Server

URL = 'redis://host.invalid'  # opening a session sends nothing


class Listener:
    """A server that says nothing and remembers what it was told."""

    def __enter__(self):
        self.heard = b''
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()
        return self

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            threading.Thread(target=self.hear, args=[peer], daemon=True).start()

    def hear(self, peer):
        with peer:
            while more := peer.recv(65536):
                self.heard += more

    def __exit__(self, *_):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join()


class Session(lib.World):
    def setUp(self):
        super().setUp()
        self.config()  # an empty one, so that nobody reads the machine's

    def settings(self, *words, **more):
        return self.json_of(*words, program=lib.PROBE, **more)

    def refusal(self, *words, code=64, **more):
        return self.refuses(*words, code=code, program=lib.PROBE, **more)

    def config(self, *lines, name='.config/holdfast/config'):
        return self.write(name, ''.join(line + '\n' for line in lines))


class Sources(Session):
    def test_nothing_is_said(self):
        found = self.settings('--url', URL)
        self.assertEqual(found, {
            'url': URL, 'local': False, 'prefix': None, 'side_prefix': None, 'password_file': None,
            'password_env': None, 'tls_ca': None, 'tls_cert': None, 'tls_key': None,
            'tls_name': None, 'tls_insecure': False, 'timeout_ms': 0, 'strict': False,
            'max_lease_ms': 0, 'durable': False,
            'quiet': False, 'verbose': False})

    def test_each_key_of_a_file(self):
        secret = self.write('secret', 'x')
        self.config('# all of them', '', 'url = rediss://host.invalid', '\tprefix=shop: ',
                    'side-prefix = locks:', f'password-file = {secret}', 'tls-insecure = yes',
                    'tls-name = other name', 'timeout = 250ms', 'strict', 'quiet = true',
                    'max-lease = 2m', 'durable',
                    'verbose = no', '  # the end')
        found = self.settings()
        self.assertEqual({name: value for name, value in found.items() if value}, {
            'url': 'rediss://host.invalid', 'prefix': 'shop:', 'side_prefix': 'locks:',
            'password_file': secret, 'tls_insecure': True, 'tls_name': 'other name',
            'timeout_ms': 250, 'strict': True, 'quiet': True,
            'max_lease_ms': 120000, 'durable': True})

    def test_the_files_of_a_certificate(self):
        self.run_it('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256',
                    '-nodes', '-subj', '/CN=x', '-keyout', f'{self.folder}/key', '-out',
                    f'{self.folder}/cert', program='openssl')
        cert, key = f'{self.folder}/cert', f'{self.folder}/key'
        self.config('url = rediss://host.invalid', f'tls-ca = {cert}', f'tls-cert = {cert}',
                    f'tls-key = {key}')
        found = self.settings()
        self.assertEqual((found['tls_ca'], found['tls_cert'], found['tls_key']), (cert, cert, key))
        self.run_it('-c', f'cat {key} {cert} >{self.folder}/both', program='/bin/sh')
        found = self.settings('--tls-cert', f'{self.folder}/both')
        self.assertIsNone(found['tls_key'], 'certificate and key are a pair')

    def test_the_command_line_then_the_environment_then_the_file(self):
        self.config('url = redis://file.invalid', 'prefix = file', 'timeout = 3')
        env = {'HOLDFAST_URL': 'redis://environment.invalid', 'HOLDFAST_PREFIX': 'environment'}
        given = ('-u', 'redis://line.invalid', '--prefix=line', '--timeout', '1')
        for words, env, where, timeout in (((), {}, 'file', 3000), ((), env, 'environment', 3000),
                                           (given, env, 'line', 1000)):
            found = self.settings(*words, env=env)
            self.assertEqual((found['url'], found['prefix'], found['timeout_ms']),
                             (f'redis://{where}.invalid', where, timeout))

    def test_empty_variables_say_nothing(self):
        self.config(f'url = {URL}', 'prefix = file')
        found = self.settings(env={'HOLDFAST_URL': '', 'HOLDFAST_PREFIX': '', 'HOLDFAST_CONFIG': '',
                                   'XDG_CONFIG_HOME': ''})
        self.assertEqual((found['url'], found['prefix']), (URL, 'file'))
        self.assertEqual(self.settings('--prefix', '')['prefix'], '')

    def test_a_word_about_the_server_covers_those_below(self):
        self.config('local')
        self.assertFalse(self.settings('--url', URL)['local'])
        self.assertFalse(self.settings(env={'HOLDFAST_URL': URL})['local'])
        self.config(f'url = {URL}')
        self.assertTrue(self.settings('--local', env={'HOLDFAST_URL': URL})['local'])
        self.assertTrue(self.settings(env={'HOLDFAST_URL': 'local:'})['local'])

    def test_quiet_and_verbose_cover_each_other(self):
        self.config(f'url = {URL}', 'quiet')
        found = self.settings('--verbose')
        self.assertEqual((found['quiet'], found['verbose']), (False, True))
        self.config(f'url = {URL}', 'verbose')
        self.assertTrue(self.settings()['verbose'])
        self.assertFalse(self.settings('-q')['verbose'])


class Passwords(Session):
    def passwords(self, *words, **more):
        found = self.settings(*words, **more)
        return found['password_file'], found['password_env']

    def test_one_goes_to_servers_of_its_own_source(self):
        secret = self.write('secret', 'x')
        given = ['-u', URL, '--password-file', secret]
        self.assertEqual(self.passwords(*given), (secret, None))
        env = {'HOLDFAST_URL': URL, 'HOLDFAST_PASSWORD_FILE': secret}
        self.assertEqual(self.passwords(env=env), (secret, None))
        env = {'HOLDFAST_URL': URL, 'HOLDFAST_PASSWORD': 'x'}
        self.assertEqual(self.passwords(env=env), (None, 'HOLDFAST_PASSWORD'))
        self.config(f'url = {URL}', f'password-file = {secret}')
        self.assertEqual(self.passwords(), (secret, None))

    def test_one_does_not_go_to_servers_of_a_source_that_counts_more(self):
        secret = self.write('secret', 'x')
        for lines in ((f'url = {URL}', f'password-file = {secret}'),
                      (f'password-file = {secret}',), ('password-env = HOME', f'url = {URL}')):
            self.config(*lines)
            for words in (['-u', URL], ['-u', 'redis://me:x@h'], ['-u', 'redis://a,b,c'],
                          ['-u', 'redis://:own@h'], ['--local'],
                          ['-u', 'redis://a', '-u', 'redis://b', '-u', 'redis://:own@c']):
                self.assertEqual(self.passwords(*words), (None, None), words)
            self.assertEqual(self.passwords(env={'HOLDFAST_URL': URL}), (None, None))
            said = self.refusal('-u', 'redis://me@h')
            self.assertIn('names a user without a password; the configured password is not', said)
            self.assertEqual(self.passwords(env={'HOLDFAST_URL': 'local:'}), (None, None))
        self.config()
        for more in ({'HOLDFAST_PASSWORD': 'x'}, {'HOLDFAST_PASSWORD_FILE': secret}):
            self.assertEqual(self.passwords('-u', URL, env={'HOLDFAST_URL': URL, **more}),
                             (None, None))

    def test_one_that_counts_more_goes_to_any_server(self):
        """Whoever types a password means the server that is configured."""
        secret, other = self.write('secret', 'x'), self.write('other', 'y')
        self.config(f'url = {URL}', f'password-file = {other}')
        for words, env in ((['--password-file', secret], {}),
                           (['--password-file', secret], {'HOLDFAST_URL': URL}),
                           (['--password-file', secret], {'HOLDFAST_PASSWORD': 'z'}),
                           ([], {'HOLDFAST_PASSWORD_FILE': secret})):
            self.assertEqual(self.passwords(*words, env=env), (secret, None))
        self.assertEqual(self.passwords('-u', URL, '--password-env', 'HOME'), (None, 'HOME'))
        self.assertEqual(self.passwords('--password-env', 'HOME'), (None, 'HOME'))

    def test_one_that_is_withheld_is_never_sent(self):
        secret = self.write('secret', 's3cret')
        self.config('url = redis://host.invalid', f'password-file = {secret}')
        with Listener() as listener:
            url = f'redis://127.0.0.1:{listener.port}'
            self.run_it('ls', '--timeout', '0.5', '-u', url, code=69)
            self.run_it('ls', '--timeout', '0.5', env={'HOLDFAST_URL': url}, code=69)
            self.assertTrue(listener.heard)
            self.assertNotIn(b's3cret', listener.heard)
            self.run_it('ls', '--timeout', '0.5', '-u', url, '--password-file', secret, code=69)
            self.assertIn(b's3cret', listener.heard)

    def test_one_that_is_withheld_is_told_if_the_server_wants_one(self):
        server = Server(password='s3cret')
        self.addCleanup(server.end)
        secret = self.write('secret', 's3cret')
        self.config('url = redis://host.invalid', f'password-file = {secret}')
        for words, env in ((['-u', server.url], {}), ([], {'HOLDFAST_URL': server.url})):
            said = self.refuses('ls', *words, env=env, code=77)
            self.assertIn('the configured password is not sent', said)
            self.assertIn('--password-file', said)
            self.run_it('ls', *words, '--password-file', secret, env=env, code=1)
        self.config(f'url = {server.url}', f'password-file = {secret}')
        self.run_it('ls', code=1)
        self.config(f'url = {server.url}')
        self.assertNotIn('not sent', self.refuses('ls', code=77))

    def test_two_at_once_are_refused(self):
        secret = self.write('secret', 'x')
        for words in (['-u', 'redis://:own@h', '--password-file', secret],
                      ['-u', 'redis://a,b', '-u', 'redis://:own@h', '--password-file', secret],
                      ['-u', 'redis://:own@a', '-u', 'redis://me@b'],
                      ['-u', URL, '--password-file', secret, '--password-env', 'HOME'],
                      ['-u', URL, '--password-env', 'NOT_THERE']):
            self.refusal(*words)

    def test_they_are_never_shown(self):
        for url, shown in (('redis://:s3cret@h', 'redis://h'), ('redis://me:s3cret@h/2', 'redis://h/2'),
                           ('redis://me:s3@cret@h:1', 'redis://h:1'),
                           ('rediss://:s3cret@[::1]:1', 'rediss://[::1]:1'),
                           ('unix://:s3cret@/run/a@b', 'unix:///run/a@b'),
                           ('unix:///run/a@b?db=1', 'unix:///run/a@b?db=1'),
                           ('redis://me:s3cret@a,b:1,c/2', 'redis://a,b:1,c/2'),
                           ('redis://:s3cret@a,redis://me:s3@cret@b/1 unix://x:s3cret@/c',
                            'redis://a redis://b/1 unix:///c')):
            done = self.run_it('-u', url, '-v', program=lib.PROBE)
            self.assertIn(f'"url":"{shown}"', done.stdout)
            self.assertNotIn('cret', done.stdout + done.stderr)

    def test_nor_in_what_is_refused(self):
        url = 'redis://:s3cret@h'
        for words in (['-u', url + ':bad'], ['-u', url + '/x'], ['-u', 'http://:s3cret@h'],
                      ['-u', url, '-u', url], ['--local', '-u', url], ['--timeout', url],
                      ['--' + url], [f'--tls-ca={url}', '-u', url], ['-u', url] * 17,
                      ['-u', url, '--password-env', 'HOME'], ['-u', url + ',h'],
                      ['-u', 'redis://:s3cret,x@h'], ['-u', 'redis://a', '-u', url + ':bad'],
                      ['-u', 'redis://:s3cret@h,i:x'], ['-u', 'redis://h,' + url]):
            self.assertNotIn('s3cret', self.refusal(*words))
        self.assertNotIn('s3cret', self.refuses(url))
        self.assertNotIn('s3cret', self.refusal(env={'HOLDFAST_URL': 'redis//:s3cret@h'}))
        for line in (url, f'url {url}', f'uri = {url}', f'timeout = {url}', f'url: {url}',
                     'redis s3cret'):
            self.config(line)
            self.assertNotIn('s3cret', self.refusal())


class Files(Session):
    def test_they_are_looked_for_in_this_order(self):
        self.config('url = redis://home.invalid')
        self.config('url = redis://xdg.invalid', name='xdg/holdfast/config')
        named = self.config('url = redis://named.invalid', name='named')
        given = self.config('url = redis://given.invalid', name='given')
        env = {}
        self.assertEqual(self.settings()['url'], 'redis://home.invalid')
        env['XDG_CONFIG_HOME'] = 'not/absolute'
        self.assertEqual(self.settings(env=env)['url'], 'redis://home.invalid')
        env['XDG_CONFIG_HOME'] = f'{self.folder}/xdg'
        self.assertEqual(self.settings(env=env)['url'], 'redis://xdg.invalid')
        env['HOLDFAST_CONFIG'] = named
        self.assertEqual(self.settings(env=env)['url'], 'redis://named.invalid')
        self.assertEqual(self.settings('--config', given, env=env)['url'], 'redis://given.invalid')

    def test_no_home_is_fine(self):
        del self.environment['HOME']
        self.assertEqual(self.settings('-u', URL)['url'], URL)
        self.assertEqual(self.settings('-u', URL, env={'HOME': '/' + 'x' * 5000})['url'], URL)

    def test_one_that_is_asked_for_must_be_there(self):
        for path in (f'{self.folder}/none', '/dev/null/none', ''):
            self.assertIn('there is no configuration', self.refusal('-u', URL, '--config', path))
        self.assertIn('no configuration /x/y', self.refusal(env={'HOLDFAST_CONFIG': '/x/y'}))
        self.assertIn('cannot read', self.refusal('-u', URL, '--config', self.folder))
        self.assertEqual(self.settings('-u', URL, '--config', '/dev/null')['url'], URL)

    def test_bad_lines_are_refused_with_their_place(self):
        for line, text in (('color = red', 'no option "color"'), ('timeout = soon', '"soon"'),
                           ('timeout = 0', 'time'), ('timeout', 'needs TIME'), ('url =', 'needs URL'),
                           ('strict = maybe', 'yes or no'), ('json', 'command line'),
                           ('config = x', 'command line'), ('= x', 'name = value'),
                           ('URL = x', 'name = value'), ('[section]', 'name = value'),
                           ('prefix = ' + 'x' * 9000, 'too long'), ('prefix = a\0b\nstrict', 'no text')):
            path = self.config('# first', line)
            said = self.refusal('-u', URL)
            self.assertIn(f'{path}:2: ', said)
            self.assertIn(text, said)

    def test_too_much_text_is_refused(self):
        self.config(*['prefix = ' + 'x' * 5000] * 4)
        self.assertIn('too much text', self.refusal('-u', URL))

    def test_the_last_line_needs_no_end(self):
        self.write('.config/holdfast/config', f'prefix = a\r\nurl = {URL}')
        found = self.settings()
        self.assertEqual((found['url'], found['prefix']), (URL, 'a'))


class Servers(Session):
    def test_none_is_refused_with_both_ways(self):
        said = self.refusal()
        for word in ('--url redis://HOST', 'HOLDFAST_URL', '--local', 'this machine only'):
            self.assertIn(word, said)

    def test_several_are_a_quorum(self):
        three = 'redis://a.invalid rediss://b.invalid unix:///c'
        for words in (['-u', 'redis://a.invalid', '-u', 'rediss://b.invalid', '-u', 'unix:///c'],
                      ['-u', 'redis://a.invalid,rediss://b.invalid', '--url=unix:///c'],
                      ['-u', 'redis://a.invalid, \n rediss://b.invalid\tunix:///c']):
            self.assertEqual(self.settings(*words)['url'], three)
        self.assertEqual(self.settings(env={'HOLDFAST_URL': three})['url'], three)
        self.config('url = redis://a.invalid', 'url = rediss://b.invalid,unix:///c')
        self.assertEqual(self.settings()['url'], three)
        self.assertEqual(self.settings('-u', URL)['url'], URL, 'the line covers all of the file')
        self.assertEqual(self.settings('-u', 'redis://a,b:1,c/2')['url'], 'redis://a,b:1,c/2')

    def test_nine_are_the_most(self):
        nine = [word for number in range(9) for word in ('-u', f'redis://host{number}.invalid')]
        self.assertEqual(len(self.settings(*nine)['url'].split()), 9)
        self.assertIn('more than 9', self.refusal(*nine, '-u', URL))
        self.assertIn('more than 9', self.refusal('-u', 'redis://0,1,2,3,4,5,6,7,8,9'))

    def test_two_are_warned_of(self):
        for count, warned in ((1, False), (2, True), (3, False)):
            done = self.run_it('-u', 'redis://' + ','.join(['a', 'b', 'c'][:count]), program=lib.PROBE)
            self.assertEqual('both are needed' in done.stderr, warned)

    def test_several_that_are_no_quorum(self):
        self.assertIn('twice', self.refusal('-u', URL, '-u', URL))
        self.assertIn('twice', self.refusal('-u', URL, '-u', f'{URL}/1'))
        self.assertIn('bad URL', self.refusal('-u', URL, '-u', 'local:'))
        self.assertIn('bad URL', self.refusal('-u', URL, '-u', ''))
        self.assertIn('%2C', self.refusal('-u', 'unix:///a,/b'))
        self.config(f'url = {URL}', f'url = {URL}')
        self.assertIn('twice', self.refusal())

    def test_local_and_a_url_exclude_each_other(self):
        for words in (['--local', '--url', URL], ['--url', URL, '--local']):
            self.assertIn('exclude each other', self.refusal(*words))
        self.assertTrue(self.settings('--local', '--url', 'local:')['local'])
        self.config(f'url = {URL}', 'local')
        self.assertIn('exclude each other', self.refusal())

    def test_what_protects_needs_a_protected_connection(self):
        for words in (['-u', URL], ['-u', 'unix:///x'], ['--local']):
            self.assertIn('rediss://', self.refusal(*words, '--tls-name', 'x'))
        self.assertIn('rediss://', self.refusal('-u', URL, '-u', 'unix:///x', '--tls-name', 'x'))
        mixed = ['-u', URL, '-u', 'unix:///x rediss://b.invalid', '--tls-name', 'x']
        self.assertEqual(self.settings(*mixed)['tls_name'], 'x')
        self.assertIn('rediss://', self.refusal('--tls-ca', 'x', env={'HOLDFAST_URL': URL}))
        self.config(f'url = {URL}', 'tls-name = x')
        self.assertIn('rediss://', self.refusal())
        self.config('url = rediss://host.invalid', 'tls-name = x')
        self.assertEqual(self.settings('-u', URL)['url'], URL, 'it was meant for another')

    def test_bad_urls_are_refused(self):
        for url in ('', 'host', 'redis://', 'local', 'local:x', 'unix://relative'):
            self.assertIn('bad URL', self.refusal('-u', url))


class Options(Session):
    def test_times(self):
        for text, ms in (('1', 1000), ('1.5', 1500), ('.5', 500), ('250ms', 250), ('2s', 2000),
                         ('2m', 120000), ('1h', 3600000), ('7d', 604800000), ('0.0001', 1),
                         ('1e1', 10000)):
            self.assertEqual(self.settings('-u', URL, '--timeout', text)['timeout_ms'], ms, text)
        for text in ('', '0', '-1', '+1', ' 1', '1 s', '1x', '8d', 'ms', '.', 'nan', 'inf', '0x10',
                     '1e99', '1e999', '1,5', '1s1'):
            self.assertIn('is expected', self.refusal('-u', URL, '--timeout', text))

    def test_forms(self):
        for words in (['-u', URL], [f'-u{URL}'], ['--url', URL], [f'--url={URL}'], ['-qu', URL],
                      ['-u', URL, '--', '--nothing']):
            self.assertEqual(self.settings(*words)['url'], URL)

    def test_what_does_not_exist_or_lacks_its_word(self):
        for words in (['--nothing'], ['--ur', URL], ['-x'], ['-qx'], ['--url'], ['-u'], ['--quiet=yes'],
                      ['--=x']):
            self.refusal(*words)

    def test_at_most_16_of_a_list(self):
        self.assertIn('no more than 16', self.refusal(*['-u', URL] * 17))


if __name__ == '__main__':
    unittest.main()
