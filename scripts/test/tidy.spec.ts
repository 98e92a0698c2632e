import { describe, expect, it } from 'vitest'
import { arrows, circles, crowdedFolders } from '../tidy/arrows.ts'
import { docstrings } from '../tidy/docstrings.ts'
import { lineAt, type Rule } from '../tidy/finding.ts'
import { maxFiles } from '../tidy/layout.ts'
import { links } from '../tidy/links.ts'
import { names } from '../tidy/names.ts'
import { prose } from '../tidy/prose.ts'
import { sizes } from '../tidy/sizes.ts'
import { syntax } from '../tidy/syntax.ts'
import { tests } from '../tidy/tests.ts'
import { words } from '../tidy/words.ts'

/** What a rule says about a file, as `line level message`. */
function said(rule: Rule, path: string, text: string): readonly string[] {
  return rule({ path, text }).map(({ line, level, message }) => `${line} ${level} ${message}`)
}

const machine = 'packages/core/src/machine/fold/evolve.ts'

describe('arrows', () => {
  it('lets a folder import itself and what stands before it', () => {
    const text = [
      "import { x } from './illegal.ts'",
      "import { y } from '../state/state.ts'",
      "import type { Fact } from '../../vocabulary/events/event.ts'",
      "export { z } from '../../vocabulary/errors.ts'",
      "import { sha256 } from '@noble/hashes/sha2.js'",
    ].join('\n')
    expect(said(arrows, machine, text)).toEqual([])
  })

  it.each([
    ['an import', "import { run } from '../../runtime/drive/run-loop.ts'", 'runtime/drive'],
    ['an export', "export * from '../../runtime/drive/run-loop.ts'", 'runtime/drive'],
    ['a type import', "type Run = import('../../ports/model.ts').Model", 'ports'],
    [
      'a lazy import',
      "const later = () => import('../../testing/simulation/simulate.ts')",
      'testing/simulation',
    ],
    ['what stands after', "import { decide } from '../decide/decide.ts'", 'machine/decide'],
  ])('finds %s against them', (_, line, folder) => {
    const [found, ...more] = said(arrows, machine, `const above = 1\n${line}`)
    expect(more).toEqual([])
    expect(found).toMatch(`2 error machine/fold may not import ${folder}; it may import vocabulary/zod,`)
  })

  it.each([
    ['the vocabulary, and not the machine', 'packages/core/src/ports/clock.ts', '../machine/state/state.ts'],
    ['the vocabulary alone', 'packages/core/src/vocabulary/values/json.ts', '../../machine/state/state.ts'],
    ['no port, from the machine', 'packages/core/src/machine/advance.ts', '../ports/clock.ts'],
    ['no other store', 'packages/ledger/src/sqlite/read.ts', '../postgres/read.ts'],
    [
      'no runtime, from what judges it',
      'packages/core/src/testing/judges/checkers.ts',
      '../../runtime/run/run.ts',
    ],
  ])('keeps folders apart: %s', (_, path, specifier) => {
    expect(said(arrows, path, `import { x } from '${specifier}'`)).toHaveLength(1)
  })

  it('lets no folder enter by the front door', () => {
    expect(said(arrows, machine, "import { x } from '../../index.ts'")).toEqual([
      '1 error ../../index.ts stands above all folders of core. Import the file that declares the name.',
    ])
    expect(said(arrows, 'packages/core/src/index.ts', "export { x } from './runtime/run/run.ts'")).toEqual([])
  })

  it('asks for a place when a package grows a folder', () => {
    const text = "import { x } from '../vocabulary/values/ids.ts'"
    expect(said(arrows, 'packages/core/src/extras/thing.ts', text)).toEqual([
      '1 error core/src/extras has no place among the folders. Give it one in scripts/tidy/layout.ts.',
    ])
  })

  it('finds imports that go in a circle, types included', () => {
    const file = (name: string, text: string): { path: string; text: string } => ({
      path: `packages/core/src/machine/fold/${name}.ts`,
      text,
    })
    const around = [
      file('one', "import { two } from './two.ts'"),
      file('two', "import type { Three } from './three.ts'"),
      file('three', "import { one } from './one.ts'"),
      file('four', "import { one } from './one.ts'"),
    ]
    expect(circles(around).map(({ message }) => message)).toEqual([
      'imports go in a circle: one.ts → two.ts → three.ts → one.ts',
    ])
    expect(circles(around.slice(1))).toEqual([])
  })

  it('finds a folder with more files than a reader takes in', () => {
    const files = Array.from({ length: maxFiles + 1 }, (_, index) => ({
      path: `packages/core/src/ports/port-${index}.ts`,
      text: '',
    }))
    expect(crowdedFolders(files)).toMatchObject([{ path: 'packages/core/src/ports' }])
    expect(crowdedFolders(files.slice(1))).toEqual([])
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

  it('refuses a README above 150 lines', () => {
    expect(said(sizes, 'README.md', lines(150))).toEqual([])
    expect(said(sizes, 'packages/core/README.md', lines(151))).toEqual(['151 error 151 lines; at most 150.'])
  })
})

describe('links', () => {
  const page = { path: 'docs/page.md', text: '# Two words\n' }
  const paths = ['docs/page.md', 'docs/picture.png', 'packages/core/README.md']
  const main = 'https://github.com/tallystick/tallystick/blob/main'
  const faults = (path: string, link: string): readonly string[] =>
    links([page, { path, text: `A page.\n[here](${link})\n` }], paths).map(
      ({ line, message }) => `${line} ${message}`,
    )

  it.each([
    ['docs/other.md', 'page.md#two-words'],
    ['docs/other.md', 'picture.png'],
    ['docs/other.md', '../packages/core'],
    ['docs/other.md', '../packages/core/'],
    ['packages/core/README.md', `${main}/docs/page.md#two-words`],
    ['docs/other.md', 'https://example.com/page.md#none'],
    ['docs/other.md', 'mailto:ann@example.com'],
  ])('in %s may lead to %s', (path, link) => {
    expect(faults(path, link)).toEqual([])
  })

  it.each([
    ['docs/other.md', 'none.md', 'leads to docs/none.md, which is not there.'],
    ['packages/core/README.md', '../ledger', 'leads to packages/ledger, which is not there.'],
    ['packages/core/README.md', `${main}/docs/none.md`, 'leads to docs/none.md, which is not there.'],
    ['docs/other.md', 'page.md#words', 'leads to #words, and docs/page.md has no such heading.'],
    ['docs/page.md', '#none', 'leads to #none, and docs/page.md has no such heading.'],
    ['docs/other.md', 'picture.png#none', 'leads to #none, and docs/picture.png has no such heading.'],
  ])('in %s may not lead to %s', (path, link, fault) => {
    expect(faults(path, link)).toEqual([`2 "${link}" ${fault}`])
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

  it('refuses a kind of test that no runner knows', () => {
    expect(said(names, 'packages/core/test/evolve.test.ts', '')).toEqual([
      expect.stringContaining('of no known kind of test'),
    ])
  })

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
  const skip = 'it' + '.skip'

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
    expect(said(tests, 'packages/core/src/machine/fold/evolve.ts', `${skip}('x')`)).toEqual([])
  })
})

describe('syntax', () => {
  it('of what is published is known to Node 22', () => {
    const text =
      '// Close it with using.\nexport async function f(): Promise<void> {\n  await using a = open()\n  using b = a\n}'
    expect(said(syntax, machine, text)).toEqual([
      '3 error Node 22 does not know "await using": use try and finally.',
      '4 error Node 22 does not know "using": use try and finally.',
    ])
    expect(said(syntax, 'packages/core/test/a.spec.ts', text)).toEqual([])
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

describe('prose', () => {
  it('finds words in pages that take a second reading, and not in their code', () => {
    const text =
      'A tool returns a result.\n\nWhoever reads it is told `nobody` by itself.\n\n```ts\n// whoever\n```\n'
    expect(said(prose, 'docs/concepts.md', text).map((each) => each.split(' takes')[0])).toEqual([
      '3 error "Whoever"',
      '3 error "is told"',
      '3 error "by itself"',
    ])
    expect(said(prose, 'packages/core/test/page.md', text)).toEqual([])
  })

  it('finds them in the comments and the texts of sources, also across lines, and not in names', () => {
    const text = [
      '/** A text that nobody reads. */',
      '/* It is',
      ' * told later. */',
      "const nobody = 'nobody'",
      'throw new Error(`${nobody} goes on`)',
    ].join('\n')
    expect(
      said(prose, 'packages/replay/src/replay/words.ts', text).map((each) => each.split(' takes')[0]),
    ).toEqual(['1 error "nobody"', '2 error "is told"', '5 error "goes on"'])
  })

  it('finds them in the comments and the titles of tests, examples and scripts, and not in their other texts', () => {
    const text = [
      '// A text that nobody reads.',
      "describe('a tool', () => {",
      "  it('goes on', () => expect(texts('is told')).toBe(1))",
      '  it.each([1])(`stands at ${place} by itself`, () => {})',
      '})',
    ].join('\n')
    const findings = ['1 error "nobody"', '3 error "goes on"', '4 error "by itself"', '4 error "stands"']
    for (const path of ['packages/replay/test/a.spec.ts', 'examples/demo/src/a.ts', 'scripts/tidy/a.ts']) {
      expect(said(prose, path, text).map((each) => each.split(' takes')[0])).toEqual(findings)
    }
  })

  it('leaves the texts alone that ledgers hold, and the history of schemas', () => {
    const text = "/** What stands. */\nexport const text = 'nobody decided in time'"
    expect(said(prose, 'packages/core/src/machine/next/words.ts', text)).toHaveLength(1)
    expect(said(prose, 'packages/ledger/src/sqlite/migrations/0001-ledger.ts', text)).toEqual([])
  })

  it('finds names that say nothing of a value, in the sources of packages alone', () => {
    const text =
      'const said = 1\nclass Wire {\n  #heard = said\n  lastSaid(): void {}\n}\nconst aftertold = "said"'
    const found = said(prose, 'packages/core/src/machine/next/words.ts', text)
    expect(found.map((each) => each.split(' takes')[0])).toEqual([
      '1 error "said"',
      '3 error "heard"',
      '3 error "said"',
      '4 error "lastSaid"',
    ])
    expect(said(prose, 'packages/core/test/words.spec.ts', text)).toEqual([])
  })
})
