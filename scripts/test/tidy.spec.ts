import { describe, expect, it } from 'vitest'
import { arrows } from '../tidy/arrows.ts'
import { docstrings } from '../tidy/docstrings.ts'
import { lineAt, type Rule } from '../tidy/finding.ts'
import { names } from '../tidy/names.ts'
import { sizes } from '../tidy/sizes.ts'
import { tests } from '../tidy/tests.ts'
import { words } from '../tidy/words.ts'

/** What a rule says about a file, as `line level message`. */
function said(rule: Rule, path: string, text: string): readonly string[] {
  return rule({ path, text }).map(({ line, level, message }) => `${line} ${level} ${message}`)
}

const machine = 'packages/core/src/machine/evolve.ts'

describe('arrows', () => {
  it('lets each part of core import what is below it', () => {
    const text = [
      "import { x } from './state.ts'",
      "import type { Fact } from '../vocabulary/event.ts'",
      "export { y } from '../errors.ts'",
      "import { sha256 } from '@noble/hashes/sha2.js'",
    ].join('\n')
    expect(said(arrows, machine, text)).toEqual([])
  })

  it.each([
    ['an import', "import { run } from '../runtime/run-loop.ts'", 'runtime'],
    ['an export', "export * from '../runtime/run-loop.ts'", 'runtime'],
    ['a type import', "type Run = import('../ports/model.ts').Model", 'ports'],
    ['a lazy import', "const later = () => import('../testing/simulate.ts')", 'testing'],
    ['the front door', "import { x } from '../index.ts'", 'index.ts'],
  ])('finds %s against them', (_, line, part) => {
    expect(said(arrows, machine, `const above = 1\n${line}`)).toEqual([
      `2 error machine may not import ${part}; it may import vocabulary, errors.ts.`,
    ])
  })

  it('sees through nested folders', () => {
    const nested = 'packages/core/src/machine/decide/signal.ts'
    expect(said(arrows, nested, "import { x } from '../state.ts'")).toEqual([])
    expect(said(arrows, nested, "import { x } from '../../ports/clock.ts'")).toHaveLength(1)
  })

  it('asks for a place when core grows a folder', () => {
    const text = "import { x } from '../vocabulary/ids.ts'"
    expect(said(arrows, 'packages/core/src/extras/thing.ts', text)).toEqual([
      '1 error core/src/extras has no place among the arrows. Give it one in scripts/tidy/arrows.ts.',
    ])
  })

  it('keeps packages apart, by name and by path', () => {
    const path = 'packages/ledger/src/append.ts'
    expect(said(arrows, path, "import { x } from '@tallystick/core'")).toEqual([])
    expect(said(arrows, path, "import { x } from '@tallystick/tools'")).toEqual([
      '1 error ledger may not import @tallystick/tools; it may import core.',
    ])
    expect(said(arrows, path, "import { x } from '../../core/src/errors.ts'")).toEqual([
      '1 error ../../core/src/errors.ts leaves packages/ledger/src/. Import what the other package exports.',
    ])
  })

  it('lets tests import the sources of their own package only', () => {
    const path = 'packages/ledger/test/append.spec.ts'
    expect(said(arrows, path, "import { x } from '../src/append.ts'")).toEqual([])
    expect(said(arrows, path, "import { x } from '../../core/src/errors.ts'")).toHaveLength(1)
  })
})

describe('sizes', () => {
  const lines = (count: number): string => 'x\n'.repeat(count)

  it('warns of code above 300 lines and refuses it above 400', () => {
    expect(said(sizes, machine, lines(300))).toEqual([])
    expect(said(sizes, machine, lines(301))).toEqual(['301 warning 301 lines; at most 300.'])
    expect(said(sizes, machine, lines(400))).toEqual(['301 warning 400 lines; at most 300.'])
    expect(said(sizes, machine, lines(401))).toEqual(['401 error 401 lines; at most 400.'])
  })

  it('refuses a README above 150 lines', () => {
    expect(said(sizes, 'README.md', lines(150))).toEqual([])
    expect(said(sizes, 'packages/core/README.md', lines(151))).toEqual(['151 error 151 lines; at most 150.'])
  })

  it('lets recordings be as long as they were', () => {
    expect(said(sizes, 'packages/providers/test/fixtures/reply.ts', lines(900))).toEqual([])
  })
})

describe('names', () => {
  it.each(['utils.ts', 'types.ts', 'base.spec.ts', 'helpers/retry.ts', 'test-helpers.ts', 'common/x.md'])(
    'refuses the drawer %s',
    (path) => {
      expect(said(names, `packages/core/src/${path}`, '')).toEqual([
        expect.stringContaining('Name the concept.'),
      ])
    },
  )

  it.each(['runLoop.ts', 'Run-loop.ts', 'run_loop.ts', 'evolve.test.ts'])(
    'refuses the spelling of %s',
    (path) => {
      expect(said(names, `packages/core/src/${path}`, '')).toEqual([expect.stringContaining('kebab-case')])
    },
  )

  it.each([
    'run-loop.ts',
    'evolve.property.ts',
    'ids.test-d.ts',
    'database.ts',
    'tsconfig.base.json',
    '.gitignore',
  ])('accepts %s', (path) => {
    expect(said(names, path, '')).toEqual([])
  })
})

describe('words', () => {
  // Put together here, so that the rule stays silent about its own test.
  const home = ['', 'home', 'someone', 'project'].join('/')
  const registry = ['registry', 'npmjs', 'org'].join('.')
  const later = 'TO' + 'DO'

  it.each([`cd ${home}`, `"${home}"`, `https://${registry}/rxjs`, `// ${later}: later`])(
    'finds %s',
    (line) => {
      expect(said(words, 'README.md', `fine\n${line}`)).toEqual([expect.stringMatching(/^2 error "/)])
    },
  )

  it('leaves addresses and relative paths alone', () => {
    const text = 'https://example.org/home/someone ./home/someone packages/work/x `${base}/tmp/x`'
    expect(said(words, 'README.md', text)).toEqual([])
  })

  it('lets a recording say what it said, but not where it was made', () => {
    const path = 'packages/providers/test/fixtures/reply.sse'
    expect(said(words, path, `data: ${later}`)).toEqual([])
    expect(said(words, path, `data: ${home}`)).toHaveLength(1)
  })
})

describe('tests', () => {
  const path = 'packages/core/test/evolve.spec.ts'
  const only = 'it' + '.only'
  const skip = 'it' + '.skip'

  it('refuses a focused test', () => {
    expect(said(tests, path, `${only}('x', () => {})`)).toEqual([
      '1 error a focused test silences the others.',
    ])
    expect(said(tests, path, `describe.concurrent${only.slice(2)}('x', () => {})`)).toHaveLength(1)
  })

  it('refuses a test that is left out without a reason', () => {
    const silent = `it('a', () => {})\n${skip}('b', () => {})\n${skip}If(windows)('c', () => {})`
    expect(said(tests, path, silent)).toEqual([
      '2 error a test is left out without a comment that says why.',
      '3 error a test is left out without a comment that says why.',
    ])
  })

  it('accepts one with a reason, and does not look outside tests', () => {
    expect(said(tests, path, `// needs a server\n${skip}('b', () => {})`)).toEqual([])
    expect(said(tests, path, `${skip}('b', () => {}) // needs a server`)).toEqual([])
    expect(said(tests, 'packages/core/src/machine/evolve.ts', `${only}('x')`)).toEqual([])
  })
})

describe('docstrings', () => {
  it('names each export without one', () => {
    const text = [
      '/** Known. */',
      'export const known = 1',
      '',
      'export const bare = 1, also = 2',
      '',
      'export interface Shape {}',
      '// no docstring',
      'export function run(): void {}',
      '/** Of nothing. */',
      '',
      'const inside = 1',
      'export { inside }',
    ].join('\n')
    expect(said(docstrings, machine, text)).toEqual([
      '4 error bare is exported without a docstring.',
      '4 error also is exported without a docstring.',
      '6 error Shape is exported without a docstring.',
      '8 error run is exported without a docstring.',
    ])
  })

  it('reads lines without a gap as one paragraph', () => {
    const text = '/** Names. */\nexport const names = [1] as const\nexport type Name = (typeof names)[number]'
    expect(said(docstrings, machine, text)).toEqual([])
    expect(said(docstrings, machine, text.replace('\nexport type', '\n\nexport type'))).toHaveLength(1)
  })

  it('looks past a directive of the linter, and only at sources of packages', () => {
    const text = '/** Known. */\n// oxlint-disable-next-line max-params -- reason\nexport const known = 1'
    expect(said(docstrings, machine, text)).toEqual([])
    expect(said(docstrings, 'packages/core/test/evolve.spec.ts', 'export const bare = 1')).toEqual([])
  })
})

describe('lineAt', () => {
  it('counts lines from 1', () => {
    expect([0, 1, 2, 3, 4].map((position) => lineAt('a\nb\nc', position))).toEqual([1, 1, 2, 2, 3])
  })
})
