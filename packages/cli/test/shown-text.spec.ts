import { formatContent } from '@tallystick/ledger'
import { memoryLedger, type RunId } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import type { Difference } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'
import { findCheckedCalls } from '../src/verbs/policy.ts'
import { toOneLine, formatTable, wrapLines } from '../src/command/text.ts'
import { formatDifferences } from '../src/view/difference-text.ts'

describe('what an input is broken into for the screen', () => {
  it('given a long line, when it is broken, then no row takes more columns than there are', () => {
    expect(wrapLines('0123456789', 8)).toEqual(['01234567', '89'])
    expect(wrapLines('01234567', 8)).toEqual(['01234567'])
    expect(wrapLines('ab\n\ncd', 8)).toEqual(['ab', '', 'cd'])
    expect(wrapLines('', 8)).toEqual([''])
  })

  it('given letters outside ASCII and tabs, when they are broken, then they count as two columns and as eight', () => {
    expect(wrapLines('äöüßé', 8)).toEqual(['äöüß', 'é'])
    expect(wrapLines('a\tb', 8)).toEqual(['a', '\t', 'b'])
    expect(wrapLines('a\tb', 10)).toEqual(['a\tb'])
    expect(wrapLines('a\u007f', 8)).toEqual(['a\\u007f'])
    // Narrower than a tab no screen is.
    expect(wrapLines('0123456789', 2)).toEqual(['01234567', '89'])
  })
})

describe('a table', () => {
  it('given cells of many lines, when it is printed, then each row is one line, its columns two spaces apart', () => {
    expect(formatTable([])).toBe('')
    expect(formatTable([['a', 'one\n\ttwo', 'x'], ['long', 'b', 'y\nz'], ['only']])).toBe(
      'a     one two  x\nlong  b        y z\nonly\n',
    )
    expect(formatTable([['\u001b[2J', 'b']])).toBe('\\u001b[2J  b\n')
  })
})

describe('the parts of a message as text', () => {
  it('given things that are no text, when they are shown, then by their type, name, place and keeper', () => {
    expect(
      formatContent([
        { type: 'text', text: 'See:' },
        { type: 'image', mediaType: 'image/png', url: 'https://a.example/b.png' },
        { type: 'file', mediaType: 'application/pdf', name: 'a.pdf', data: 'aGVs' },
        { type: 'file', mediaType: 'text/plain', providerFile: { provider: 'anthropic', id: 'f1' } },
      ]),
    ).toBe(
      'See:\n[image/png, https://a.example/b.png]\n[application/pdf, a.pdf]\n[text/plain, kept by anthropic as f1]',
    )
  })

  it('given a text of megabytes that fits where it is looked at, when it is shown, then a sign says that more follows', () => {
    expect(toOneLine('a  b\n c', 10)).toBe('a b c')
    expect(toOneLine('0123456789', 10)).toBe('0123456789')
    expect(toOneLine('0123456789x', 10)).toBe('012345678…')
    expect(toOneLine(`abc${' '.repeat(200)}d`, 10)).toBe('abc …')
    expect(toOneLine(`abc${' '.repeat(100)}d`, 10)).toBe('abc d')
    expect(toOneLine(`abc${' '.repeat(136)}d`, 10)).toBe('abc d')
    expect(toOneLine(`abc${' '.repeat(137)}d`, 10)).toBe('abc …')
  })
})

describe('the differences of two events', () => {
  const sides = ['then', 'now'] as const
  const of = (path: string, recorded: unknown, happened: unknown): Difference => ({
    path,
    recorded,
    happened,
  })

  it('given values, when they are compared, then both are shown; nothing for one that is missing', () => {
    expect(formatDifferences([of('a', 1, undefined), of('b', undefined, { c: 'd' })], sides)).toBe(
      '  a\n    then 1\n    now nothing\n  b\n    then nothing\n    now {"c":"d"}\n',
    )
    expect(formatDifferences([], sides)).toBe('')
  })

  it('given more than twenty, when they are shown, then the rest is counted', () => {
    const many = (count: number): string =>
      formatDifferences(
        Array.from({ length: count }, (_, index) => of(`p${index}`, 1, 2)),
        sides,
      )
    expect(many(20)).not.toContain('more')
    expect(many(20).split('\n')).toHaveLength(61)
    expect(many(21)).toMatch(/ {2}p19\n {4}then 1\n {4}now 2\n {2}and 1 more\n$/)
  })

  it('given long values that begin alike, when they are shown, then from 40 characters before the first that differs', () => {
    const same = (length: number): string => 'x'.repeat(length)
    // The quote before the text is a character, too.
    expect(formatDifferences([of('a', `${same(39)}1`, `${same(39)}2`)], sides)).toBe(
      `  a\n    then "${same(39)}1"\n    now "${same(39)}2"\n`,
    )
    expect(formatDifferences([of('a', `${same(40)}1`, `${same(40)}2`)], sides)).toBe(
      `  a\n    then …${same(40)}1"\n    now …${same(40)}2"\n`,
    )
    expect(formatDifferences([of('a', same(50), `${same(50)}2`)], sides)).toBe(
      `  a\n    then …${same(40)}"\n    now …${same(40)}2"\n`,
    )
    const [, , shown = ''] = formatDifferences([of('a', 'y'.repeat(300), 'z')], sides).split('\n    ')
    expect(shown).toBe('now "z"\n')
    expect(formatDifferences([of('a', 'y'.repeat(300), 'z')], sides)).toContain(`then "${'y'.repeat(198)}…\n`)
  })

  it('given texts of many lines, when they are shown, then the changed lines, twelve at most', () => {
    const lines = (count: number): string =>
      Array.from({ length: count }, (_, index) => `line ${index}`).join('\n')
    expect(formatDifferences([of('text', 'a\nb\nc', 'a\nB\nC\nc')], sides)).toBe(
      '  text, from line 2\n    then b\n    now B\n        C\n',
    )
    expect(formatDifferences([of('text', 'a\nb', 'b')], sides)).toBe(
      '  text, from line 1\n    then a\n    now nothing\n',
    )
    const twelve = formatDifferences([of('text', 'a', `a\n${lines(12)}`)], sides)
    expect(twelve).toContain('        line 11\n')
    expect(twelve).not.toContain('more lines')
    const more = formatDifferences([of('text', 'a', `a\n${lines(14)}`)], sides)
    expect(more).toContain('        line 11\n        … 2 more lines\n')
    expect(more).not.toContain('line 12')
  })
})

describe('the calls that rules are tried on', () => {
  const runId = sampleRunId(1)
  const { run_started, agent_handed_off, tool_request_ready: asked, ...fact } = sampleFacts(runId)
  const { sessionId: _session, sessionPlace: _place, parent: _parent, ...start } = run_started
  const [call] = fact.tool_requests_collected.calls
  const collected = (changes: object) => ({
    ...fact.tool_requests_collected,
    calls: [{ toolCallId: asked.toolCallId, name: 'pay', plan: 'run', effect: 'write', ...changes }],
  })
  const calls = async (runs: readonly (readonly object[])[]) => {
    const ledger = memoryLedger()
    for (const [index, facts] of runs.entries()) {
      const id: RunId = sampleRunId(index + 1)
      const events = stampFacts(id, [start, ...facts] as Parameters<typeof stampFacts>[1])
      await ledger.append(id, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
    }
    return await Array.fromAsync(findCheckedCalls(ledger))
  }

  it('given a call, when it is read, then with the agent that asked and the input that was checked', async () => {
    expect(call).toBeDefined()
    const { toolCallId, input } = asked
    const known = { runId, toolCallId, agent: 'assistant', tool: 'pay', effect: 'write', plan: 'run' }
    expect(await calls([[asked, collected({})]])).toEqual([{ ...known, input }])
    expect(await calls([[asked, collected({ input: { usd: 4 } })]])).toEqual([
      { ...known, input: { usd: 4 } },
    ])
    expect(await calls([[agent_handed_off, asked, collected({ plan: 'ask' })]])).toEqual([
      { ...known, input, agent: 'booking', plan: 'ask' },
    ])
  })

  it('given calls that no rule was asked about, when they are read, then they are left out', async () => {
    const refusal = (outcome: string): object => ({ plan: 'settle', refusal: { outcome, text: 'No.' } })
    expect(await calls([[asked, collected({ effect: undefined })]])).toEqual([])
    expect(await calls([[asked, collected(refusal('invalid_input'))]])).toEqual([])
    expect(await calls([[asked, collected(refusal('denied'))]])).toMatchObject([{ plan: 'settle' }])
    expect(await calls([[collected({})]])).toEqual([])
    const removed = { kind: 'redacted', at: 1, by: 'ada' }
    expect(await calls([[{ ...asked, removed }, collected({})]])).toEqual([])
  })
})
