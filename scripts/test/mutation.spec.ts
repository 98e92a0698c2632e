import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { withoutEquivalents } from '../mutation/equivalent.ts'
import { equivalents } from '../mutation/equivalents/list.ts'
import { diffOf, mutatedText, sampleOf } from '../mutation/mutant.ts'
import { mutantsOf } from '../mutation/mutants-of.ts'
import { functionsIn } from '../mutation/survey.ts'

const root = join(import.meta.dirname, '../..')
const path = 'packages/core/src/machine/some.ts'

/** The texts that the mutants of one kind leave. */
function texts(operator: string, source: string): readonly string[] {
  return mutantsOf(path, source)
    .filter((mutant) => mutant.operator === operator)
    .map((mutant) => mutatedText(source, mutant))
}

describe('operators', () => {
  it.each([
    ['comparison', 'a < b', ['a <= b', 'a >= b']],
    ['comparison', 'a /* > */ >= (b)', ['a /* > */ > (b)', 'a /* > */ < (b)']],
    ['equality', 'a === b', ['a !== b']],
    ['equality', "'x' in b", ["!('x' in b)"]],
    ['logical', 'a && b', ['(a)', '(b)', '((a) || (b))']],
    ['logical', 'a ?? b', ['(a)', '(b)']],
    ['logical', 'a ??= b', ['a = b']],
    ['condition', 'a ? b : c', ['!(a) ? b : c']],
    ['condition', '!a', ['!!a']],
    ['arithmetic', 'a + b', ['a - b']],
    ['arithmetic', "a + 'text'", []],
    ['arithmetic', 'Math.min(a, b)', ['Math.max(a, b)']],
    ['arithmetic', 'a += b', ['a -= b']],
    ['arithmetic', 'a++', ['a--']],
    ['literal', 'f(true, 1, 2n)', ['f(false, 1, 2n)', 'f(true, 2, 2n)', 'f(true, 1, 3n)']],
    ['statement', 'f()', [';']],
    ['statement', 'if (a) throw b', [';']],
    ['element', '[a, b,]', ['[b,]', '[a]']],
    ['element', 'f({ a: 1, b, ...c })', ['f({ b, ...c })', 'f({ a: 1, b })']],
    ['chaining', 'a?.b', ['a.b']],
    ['chaining', 'a?.[b]', ['a[b]']],
    ['chaining', 'a?.(b)', ['a(b)']],
    ['method', 'a.some(b)', ['a.every(b)']],
    ['method', 'a.filter(b)', ['a']],
    ['method', 'a.toString()', []],
  ])('make other code: %s of %s', (operator, source, expected) => {
    expect(texts(operator, source)).toEqual(expected)
  })

  it('leave types and imports as they are', () => {
    const source = "import a from 'a'\ntype B = 1 | true\nexport const c: { d: 2 } = a as { d: 2 }"
    expect(mutantsOf(path, source)).toEqual([])
  })
})

describe('a mutant', () => {
  const source = ['export function first(a: number): boolean {', '  return a > 1', '}'].join('\n')

  it('names its function and its line, and shows it as a diff', () => {
    const [mutant] = mutantsOf(path, source)
    expect(mutant).toMatchObject({ within: 'first', line: 2, original: '>', becomes: '>=' })
    expect(mutant && diffOf(source, mutant)).toBe('- return a > 1\n+ return a >= 1')
  })

  it('stays in a sample when other code comes before it', () => {
    const names = (text: string): readonly string[] =>
      sampleOf(mutantsOf(path, text), 2, 7).map(({ original, becomes }) => `${original} ${becomes}`)
    expect(names(`// A comment.\n\n${source}`)).toEqual(names(source))
  })

  it('is another one under another seed', () => {
    const many = mutantsOf(path, 'f(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)')
    const drawn = (seed: number): readonly string[] => sampleOf(many, 5, seed).map(({ original }) => original)
    expect(drawn(1)).toEqual(drawn(1))
    expect(drawn(1)).not.toEqual(drawn(2))
  })
})

describe('the functions of a file', () => {
  it('are found with their bodies, inner ones after outer ones', () => {
    const source = 'const a = () => { return [1].map((b) => b) }'
    const bodies = functionsIn(path, source).map(({ start, end }) => source.slice(start, end))
    expect(bodies).toEqual(['{ return [1].map((b) => b) }', 'b'])
  })
})

describe('the list of equivalent mutants', () => {
  it('fits the sources, and gives a reason for each', () => {
    const paths = [...new Set(equivalents.map((entry) => entry.path))]
    const mutants = paths.flatMap((each) => mutantsOf(each, readFileSync(join(root, each), 'utf8')))
    const { leftOut, stale } = withoutEquivalents(mutants)
    expect(stale).toEqual([])
    expect(leftOut).toHaveLength(equivalents.length)
    expect(equivalents.filter(({ why }) => why.length < 20)).toEqual([])
  })
})
