import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { repeatedTexts } from '@tallystick/core/testing'
import { stepCounter } from '../patterns/match-steps.ts'
import { effort } from '../testing/effort.ts'
import { patterns, patternsOf } from '../tidy/patterns.ts'

const root = join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(join(tmpdir(), 'patterns-'))
afterAll(() => rmSync(folder, { recursive: true }))

/** What the rule says about a source of a package, by line. */
async function said(text: string): Promise<readonly string[]> {
  const file = { path: 'packages/core/src/machine/fold/evolve.ts', text }
  const findings = await patterns([file], join(folder, 'cache.json'))
  return findings.map(({ line, message }) => `${line} ${message}`)
}

describe('the rule on patterns', () => {
  it('finds those that go back over a text, however often', async () => {
    const exponential = String.raw`const skipped = /^(?:\s|--[^\n]*(?:\n|$)|\/\*[\s\S]*?(?:\*\/|$))*x/`
    expect(await said(`const above = 1\n${exponential}`)).toEqual([
      expect.stringMatching(/^2 .* takes exponential time, as on ".*repeat/),
    ])
    expect(await said(String.raw`const trailing = /\s+$/`)).toEqual([
      expect.stringMatching(/takes 2nd degree polynomial time/),
    ])
    expect(await said(String.raw`const word = /^\w+$/`)).toEqual([])
  })

  it('finds patterns that are made of texts, which cannot be judged', async () => {
    expect(await said('const any = (text: string) => [new RegExp(text), RegExp(text)]')).toEqual([
      expect.stringMatching(/^1 makes a pattern/),
      expect.stringMatching(/^1 makes a pattern/),
    ])
  })
})

const written = execFileSync('git', ['ls-files', '-z', 'packages/*/src/*.ts'], { cwd: root })
  .toString()
  .split('\0')
  .filter((path) => path !== '')
  .flatMap((path) => patternsOf({ path, text: readFileSync(join(root, path), 'utf8') }))

const [short, long] = [repeatedTexts(40), repeatedTexts(160)]

/** The texts for which four times the length takes far more than four times the steps. */
function superlinear(source: string, flags: string): readonly string[] {
  const stepsOn = stepCounter(source, flags)
  return short.flatMap(({ name, text }, index) => {
    const steps = stepsOn(text, 100_000)
    // Where a text is passed over without a second look, a longer one of its kind is, too.
    if (steps <= 2 * text.length) return []
    const allowed = 6 * steps + 500
    return stepsOn(long[index]?.text ?? '', allowed) < allowed ? [] : [name]
  })
}

describe('the patterns of all packages', () => {
  it('take steps in proportion to the length of the text, counted over every repeated text', () => {
    expect(written.length).toBeGreaterThan(100)
    const different = new Map(written.map((pattern) => [`${pattern.source}/${pattern.flags}`, pattern]))
    // All of them in a thorough run; in a quick one, one of fifteen. `tidy` judges all of them in another way.
    const judged = [...different.values()].filter(
      (_pattern, index) => index % effort({ quick: 15, thorough: 1 }) === 0,
    )
    const slow = judged.flatMap(({ path, line, source, flags }) =>
      superlinear(source, flags).map((text) => `${path}:${line} /${source}/${flags} on ${text}`),
    )
    expect(slow).toEqual([])
  })

  it.each([
    [
      'white space and comments before a statement',
      String.raw`^(?:\s|--[^\n]*(?:\n|$)|/\*[\s\S]*?(?:\*/|$))*SELECT`,
    ],
    [
      'the fenced block of an answer',
      String.raw`^[^${'`'}]*${'```'}(?:json)?\s*\n([\s\S]*?)${'```'}[^${'`'}]*$`,
    ],
    ['a JSON web token', String.raw`eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*`],
    ['zeros at the end', '0+$'],
  ])('would be found to take more, as this once did: %s', (_what, source) => {
    expect(superlinear(source, 'g')).not.toEqual([])
  })
})
