import { symlinkSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import type { JsonObject } from '@tallystick/core/vocabulary'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { tries } from '../../../../../scripts/testing/effort.ts'
import { parseGlob } from '../../../src/built-in/files/names.ts'
import { numberLines, findLines, findAllPlaces } from '../../../src/built-in/files/text.ts'
import { caller, openFiles, pictureOf, sandbox, secret, toolsOver, ways } from './sandbox.ts'
import { anyText } from '../../../../../scripts/testing/any-text.ts'

const names = fc.constantFrom(
  ...[
    '..',
    '.',
    '',
    'a',
    'b',
    'own.txt',
    'secret.txt',
    'inner',
    'outside',
    'root',
    'in',
    'out',
    'far',
    'loop',
    'up',
  ],
  ...[
    'A',
    'a.',
    'a ',
    '~',
    '.env',
    'C:',
    '\\',
    '..\\',
    '%2e%2e',
    '…',
    '\u2024\u2024',
    'NUL',
    'x'.repeat(300),
  ],
)
const path = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.array(names, { minLength: 1, maxLength: 7 }).map((parts) => parts.join('/') || '.'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      'OUTSIDE',
      'OUTSIDE/secret.txt',
      'ROOT/own.txt',
      '/proc/self/root',
      '/proc/self/cwd',
    ),
  },
  { weight: 1, arbitrary: anyText({ minLength: 1, maxLength: 20 }) },
)
const call = fc.oneof(
  path.map((at) => ['list_files', { path: at }] as const),
  fc
    .tuple(path, path)
    .map(([at, glob]) => ['find_files', { path: at, glob: glob.slice(0, 200) || '*' }] as const),
  path.map((at) => ['search_files', { text: 'outside', path: at }] as const),
  path.map((at) => ['read_file', { path: at }] as const),
  path.map((at) => ['write_file', { path: at, content: 'written' }] as const),
  path.map((at) => ['edit_file', { path: at, oldText: 'o', newText: 'e', replaceAll: true }] as const),
  fc.tuple(path, path).map(([from, to]) => ['move_file', { from, to }] as const),
)

describe('whatever paths a model sends', () => {
  it.each(ways)(
    'nothing outside the root is read, changed or named, and no file stays open (%s)',
    async (way) => {
      const holds = fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 8 }), async (calls) => {
        const box = sandbox()
        try {
          box.put({ 'own.txt': 'own', 'a/b/own.txt': 'own', '.env': secret })
          const links = { in: 'a/b', out: box.outside, far: '../outside/inner', loop: 'loop', 'a/up': '..' }
          for (const [name, target] of Object.entries(links)) symlinkSync(target, join(box.root, name))
          const outside = pictureOf(box.outside)
          const files = openFiles()
          const use = caller(toolsOver(box, way))
          for (const [name, input] of calls) {
            const real = JSON.stringify(input).replaceAll('OUTSIDE', box.outside).replaceAll('ROOT', box.root)
            const { text } = await use(name, JSON.parse(real) as JsonObject)
            expect(text).not.toContain(secret)
            // Only what the model itself said may name a place of this machine.
            expect(text.includes(box.folder) && !real.includes(box.folder)).toBe(false)
          }
          expect(pictureOf(box.outside)).toEqual(outside)
          expect(pictureOf(box.folder).filter((line) => line.startsWith('root/.env '))).toHaveLength(1)
          expect(openFiles()).toBeLessThanOrEqual(files)
        } finally {
          box.remove()
        }
      })
      await fc.assert(holds, { numRuns: tries(600) })
    },
  )

  it('the files of a folder are those that are written, and found, and read', async () => {
    const name = fc.stringMatching(/^[a-c]{1,2}(\.txt)?$/)
    const content = fc
      .string({ unit: 'grapheme' })
      .filter((text) => text.isWellFormed() && !text.includes('\0'))
    const files = fc.array(fc.tuple(fc.array(name, { minLength: 1, maxLength: 3 }), content), {
      maxLength: 6,
    })
    const holds = fc.asyncProperty(files, async (list) => {
      const box = sandbox()
      try {
        const use = caller(toolsOver(box))
        const written = new Map<string, string>()
        for (const [parts, text] of list) {
          const { outcome } = await use('write_file', { path: parts.join('/'), content: text })
          if (outcome === 'success') written.set(parts.join('/'), text)
        }
        const found = (await use('find_files', { glob: '**' })).text.split('\n').slice(1)
        expect(found.toSorted()).toEqual([...written.keys()].toSorted())
        for (const [at, text] of written) expect(box.read(at)).toBe(text)
      } finally {
        box.remove()
      }
    })
    await fc.assert(holds, { numRuns: tries(200) })
  })
})

describe('a glob', () => {
  const piece = fc.constantFrom(
    '*',
    '**',
    '?',
    'a',
    'b',
    '/',
    '.',
    '[ab]',
    '[!a]',
    '{a,b}',
    '{a,}',
    '**/',
    '/**',
  )
  const glob = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join(''))
  const subject = fc.stringMatching(/^[ab]{1,2}(\/[ab]{1,2}){0,3}$/)

  it('matches what the globs of Node match', () => {
    // Node reads these differently, or not as gitignore does.
    const isOwn = (pattern: string): boolean =>
      /\/\/|^\/|\/$|\*\*[^/]|[^/]\*\*|\.|\{a,\}|\*\*$|,\}/.test(pattern)
    const holds = fc.property(glob, subject, (pattern, text) => {
      fc.pre(!isOwn(pattern))
      expect([pattern, text, parseGlob(pattern)(text)]).toEqual([pattern, text, matchesGlob(text, pattern)])
    })
    fc.assert(holds, { numRuns: tries(4_000) })
  })
})

describe('places of a text', () => {
  const letters = fc.string({ unit: fc.constantFrom('a', 'b', '\n'), maxLength: 60 })
  const short = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 6 })

  it('are those that a plain look finds', () => {
    const holds = fc.property(letters, short, (text, sought) => {
      const places: number[] = []
      for (let at = text.indexOf(sought); at !== -1; at = text.indexOf(sought, at + sought.length))
        places.push(at)
      expect(findAllPlaces(sought, text)).toEqual(places)
      const lines = text.split('\n')
      const numbers = lines.flatMap((line, index) => (line.includes(sought) ? [index + 1] : []))
      expect(findLines(sought, text, Infinity)).toEqual(numbers)
      expect(findLines(sought, text, 2)).toEqual(numbers.slice(0, 2))
      expect(numberLines(text, places)).toEqual(places.map((at) => text.slice(0, at).split('\n').length))
    })
    fc.assert(holds, { numRuns: tries(2_000) })
    expect([findAllPlaces('', 'abc'), numberLines('a', [0])]).toEqual([[], [1]])
  })
})
