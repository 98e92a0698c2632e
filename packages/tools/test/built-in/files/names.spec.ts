// Which paths and names the tools over files take and show.
import { ConfigurationError } from '@tallystick/core'
import { describe, expect, it } from 'vitest'
import {
  parseGlob,
  isUsableName,
  splitPath,
  joinPath,
  quotePath,
  createNameRules,
} from '../../../src/built-in/files/names.ts'

describe('a path', () => {
  it.each([
    ['', []],
    ['.', []],
    ['a//b/./c/', ['a', 'b', 'c']],
    ['../a', ['..', 'a']],
    ['con', ['con']],
    ['x'.repeat(4_000), ['x'.repeat(4_000)]],
  ])('%j is of names', (path, parts) => {
    expect(splitPath(path, 'linux')).toEqual(parts)
    expect(joinPath(parts)).toBe(parts.length === 0 ? '.' : parts.join('/'))
  })

  it.each([
    ['a\nb', 'holds a control character'],
    ['a\u007f', 'holds a control character'],
    ['x'.repeat(4_001), 'is too long'],
    ['/a', 'is absolute'],
    ['\\a', 'is absolute'],
    ['C:a', 'is absolute'],
    ['a\\b', 'holds a backslash'],
  ])('%j is refused', (path, why) => {
    expect(() => splitPath(path, 'linux')).toThrow(
      `The path ${quotePath(path)} ${why}. Give it relative to the root folder, with / between names, as in src/index.ts.`,
    )
  })

  it.each([
    'a.',
    'a ',
    'a:b',
    'a*',
    'a?',
    'a"',
    'a<',
    'a>',
    'a|',
    'con',
    'NUL.txt',
    'com1 .x',
    'lpt9',
    'aux',
    'prn',
    'conin$',
    'CONOUT$',
    'a~1',
  ])('with the name %j is refused where Windows reads it', (name) => {
    expect(() => splitPath(`a/${name}/b`, 'win32')).toThrow(
      `holds the name ${JSON.stringify(name)}, which Windows reads differently`,
    )
    expect(splitPath(`a/${name}/b`, 'linux')).toEqual(['a', name, 'b'])
  })

  it('names the first of its names that Windows reads differently', () => {
    expect(() => splitPath('a/b:c/d.', 'win32')).toThrow('holds the name "b:c", which')
  })

  it.each(['..', 'a', 'console', 'com', 'a.con', 'a~', '.a'])(
    'with the name %j is taken on Windows',
    (name) => {
      expect(splitPath(name, 'win32')).toEqual([name])
    },
  )

  it.each([
    ['a"b', '"a\\"b"'],
    ['a\u202eb', '"a\ufffdb"'],
    ['a\ud800', '"a\ufffd"'],
    ['x'.repeat(200), `"${'x'.repeat(200)}"`],
    ['x'.repeat(201), `"${'x'.repeat(200)}…"`],
  ])('%j is quoted so that it is seen', (path, shown) => {
    expect(quotePath(path)).toBe(shown)
  })

  it('is of names that a line can hold', () => {
    for (const name of ['a', 'é', '😀', 'a b']) expect(isUsableName(name)).toBe(true)
    for (const name of ['a\nb', 'a\\b', 'a\ufffd', 'a\u0080', 'a\u2066', 'a\u{e0041}'])
      expect(isUsableName(name)).toBe(false)
  })
})

describe('what is shown of a folder', () => {
  const shown = createNameRules('t', ['node_modules/', '*.log', '/dist/a', 'b/c'], false)
  it.each<[string, boolean, string | undefined]>([
    ['a', false, undefined],
    ['.a', false, 'hidden'],
    ['node_modules', true, 'ignored'],
    ['a/Node_Modules', true, 'ignored'],
    ['node_modules', false, undefined],
    ['a/x.LOG', false, 'ignored'],
    ['dist/a', false, 'ignored'],
    ['x/dist/a', false, undefined],
    ['b/c', true, 'ignored'],
    ['x/b/c', true, undefined],
    ['.Tallystick-1.TMP', false, 'hidden'],
  ])('%s (a folder: %s) is %s', (path, isFolder, why) => {
    expect(shown.unshown(path.split('/'), isFolder)).toBe(why)
  })

  it('may be what is hidden, but for files that are being written', () => {
    const all = createNameRules('t', [], true)
    expect([all.unshown(['.a'], false), all.unshown(['.tallystick-1.tmp'], false)]).toEqual([
      undefined,
      'hidden',
    ])
    expect(all.unshown(['.TALLYSTICK-1.TMP'], false)).toBe('hidden')
    expect([all.unshown(['.tallystick-1'], false), all.unshown(['a.tmp'], false)]).toEqual([
      undefined,
      undefined,
    ])
  })

  it.each([
    ['!a', 'begins with !. Leave out the glob that ignores too much instead'],
    ['/', 'names nothing'],
    ['', 'names nothing'],
  ])('is not told by the glob %j', (glob, why) => {
    const made = () => createNameRules('t', [glob], false)
    expect(made).toThrow(ConfigurationError)
    expect(made).toThrow(`t: the glob ${JSON.stringify(glob)} in ignore ${why}.`)
  })
})

describe('a glob', () => {
  it.each<[string, readonly string[], readonly string[]]>([
    ['*.ts', ['a.ts', '.ts'], ['a/b.ts', 'a.tsx']],
    ['a?c', ['abc', 'a😀c'], ['ac', 'a/c', 'abbc']],
    ['**', ['a', 'a/b'], []],
    ['**/b', ['b', 'a/b', 'a/c/b'], ['ab', 'a/bc', 'a/xb']],
    ['a/**', ['a/b', 'a/b/c'], ['b/a', 'ab/c']],
    ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b'], ['a/xb', 'ab', 'a/x/yb']],
    ['a**b', ['ab', 'axb'], ['a/b']],
    ['src/**', ['src/a', 'src/a/b'], ['src', 'srcs/a', 'a/src/b']],
    ['**b', ['b', 'ab'], ['a/b']],
    ['a**', ['a', 'ab'], ['a/b']],
    ['a/**b', ['a/b', 'a/xb'], ['a/x/b']],
    ['[a-c]', ['a', 'b', 'c'], ['d', '-', '/']],
    ['[!a-c]', ['d', '!'], ['a', 'c', '/']],
    ['[^a]', ['b', '^'], ['a', '/']],
    ['[]a]', [']', 'a'], ['b', '[]a]']],
    ['[a-]', ['a', '-'], ['b']],
    ['[-a]', ['-', 'a'], ['b']],
    ['[a-cx]', ['b', 'x'], ['-', 'd']],
    ['[\\]]', [']'], ['\\', '\\]']],
    ['{a,b/c}', ['a', 'b/c'], ['b', 'c', 'a,b/c']],
    ['{a,{b,c}d}', ['a', 'bd', 'cd'], ['b', 'd', 'ad']],
    ['x{,y}', ['x', 'xy'], ['y', 'x,y']],
    ['a,b', ['a,b'], ['a', 'b']],
    ['a}', ['a}'], ['a']],
    ['\\*', ['*'], ['a', '\\*']],
    ['e\u0301', ['\u00e9', 'e\u0301'], ['e']],
    ['\u00e9', ['\u00e9', 'e\u0301'], ['e']],
  ])('%j fits what it says, and no other path', (pattern, fitting, others) => {
    for (const options of [{}, { ignoreCase: true }]) {
      const glob = parseGlob(pattern, options)
      expect(fitting.filter((path) => !glob(path))).toEqual([])
      expect(others.filter((path) => glob(path))).toEqual([])
    }
  })

  it('is of 200 characters at most, and of either case where that is asked for', () => {
    expect(parseGlob('a'.repeat(200))('a'.repeat(200))).toBe(true)
    expect(() => parseGlob('a'.repeat(201))).toThrow('is longer than 200 characters')
    expect([parseGlob('A*')('ab'), parseGlob('A*', { ignoreCase: true })('ab')]).toEqual([false, true])
    expect(parseGlob('ΤΕΛΟΣ*', { ignoreCase: true })('τελοσΑ')).toBe(true)
  })
})
