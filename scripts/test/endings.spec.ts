import { readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { failureClasses, finishReasons, limitNames, outcomes, stopReasons } from '@tallystick/core/vocabulary'
import { endingsPage } from '../endings/page.ts'
import { afterChild, afterFind } from '../endings/probes-around.ts'
import { afterFailure, afterReply, atLimit } from '../endings/probes.ts'
import { table, words } from '../endings/table.ts'

describe('docs/endings.md', () => {
  it('is what the code says: after a change of the vocabulary or of the loop, run `pnpm docs:endings`', async () => {
    const page = await readFile(new URL('../../docs/endings.md', import.meta.url), 'utf8')
    expect(page).toBe(await endingsPage())
  })

  it('has a row for every finish reason, outcome, failure class, stop reason and limit', async () => {
    const page = await endingsPage()
    for (const word of [...finishReasons, ...outcomes, ...failureClasses, ...stopReasons, ...limitNames]) {
      expect(page).toMatch(new RegExp(`^\\| \`${word}\` +\\| \\S`, 'm'))
    }
  })

  it('is linked from the README', async () => {
    expect(await readFile(new URL('../../README.md', import.meta.url), 'utf8')).toContain('(docs/endings.md)')
  })
})

describe('probes', () => {
  it('tell a find that ends the run from one that turns a call away, and from one that is noted', async () => {
    expect(await afterFind('output', 'block')).toBe('`guardrail`')
    expect(await afterFind('tool_input', 'block')).toBe('`denied`, the run continues')
    expect(await afterFind('input', 'record')).toBe('the run continues')
  })

  it('tell a child run that has something to say from one that has not', async () => {
    const outcomes = (await afterChild()).map(({ reason, outcome }) => `${reason}: ${outcome}`)
    expect(outcomes).toEqual(
      expect.arrayContaining(['turn_limit: success', 'turn_limit: failed', 'output_invalid: failed']),
    )
  })

  it('tell a reply that ends the run from one that does not', async () => {
    expect(await afterReply('max_tokens')).toEqual({
      alone: '`output_truncated`',
      withCall: '`skipped`, `output_truncated`',
    })
    expect(await afterReply('tool_use')).toEqual({
      alone: '`answered`',
      withCall: 'they run, the run continues',
    })
  })

  it('tell failures that another model is asked about from those that end the run', async () => {
    expect(await afterFailure('overloaded')).toEqual({
      triedAgain: true,
      fallbackAsked: true,
      end: '`model_failed`',
    })
    expect(await afterFailure('content_filtered')).toEqual({
      triedAgain: false,
      fallbackAsked: false,
      end: '`refused`',
    })
  })

  it('tell the policies of a limit apart, and a limit that only turns calls away', async () => {
    expect(await atLimit('maxTurns', 'finalize')).toBe('`turn_limit`, with an answer')
    expect(await atLimit('maxTurns', 'stop')).toBe('`turn_limit`')
    expect(await atLimit('maxTurns', 'ask')).toBe('suspended')
    expect(await atLimit('maxToolCallsPerTurn', 'stop')).toBe('the run continues')
  })
})

describe('words', () => {
  it('refuses a word without a line', () => {
    expect(() => words(['known', 'unknown'], { known: 'It is.' })).toThrow('unknown has no line of meaning')
  })
})

describe('table', () => {
  it('pads its cells as the formatter does', () => {
    expect(table(['a', 'meaning'], [['`long`', 'x']])).toBe(
      '| a      | meaning |\n| ------ | ------- |\n| `long` | x       |',
    )
  })
})
