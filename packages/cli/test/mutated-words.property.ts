import { existsSync, readdirSync } from 'node:fs'
import * as fc from 'fast-check'
import { expect, it } from 'vitest'
import { tries } from '../../../scripts/testing/effort.ts'
import { findUnclearWords, mutatedText } from '../../../scripts/testing/mutated.ts'
import { callOf, openShop } from './kit/shop.ts'
import { tallystickFrom } from './kit/tallystick.ts'

/** A line of words, of which the ledger is not changed: a verb that writes would make one wherever it names. */
function changeWords(words: readonly string[], ledger: string): fc.Arbitrary<readonly string[]> {
  const word = fc
    .constantFrom(...words.keys())
    .chain((at) =>
      words[at] === ledger
        ? fc.constant(words)
        : mutatedText([words[at] ?? '']).map((changed) => words.with(at, changed)),
    )
  const order = fc.shuffledSubarray([...words], { minLength: 1 })
  const twice = fc.constantFrom(...words).map((each) => [...words, each])
  return fc.oneof({ weight: 6, arbitrary: word }, order, twice)
}

it('words in which something is wrong are refused, in words that say what to write', async () => {
  await using shop = await openShop()
  const { ledgerPath: ledger, folder } = shop
  const waiting = await shop.start()
  const { runId } = waiting
  const call = callOf(waiting)
  const lines = [
    ['list', ledger, '--session', 's', '--limit', '3', '--since', '3d', '--status', 'suspended'],
    ['list', ledger, '--json', '--where', 'score<0.5', '--before', runId, '--outcome', 'success'],
    ['show', ledger, runId, '--at', '4', '--request'],
    ['show', ledger, 'latest', '--json', '--turn', '1', '--whole'],
    ['find', ledger, '--text', 'tea', '--tool', 'look', '--input', 'at=tea', '--until', '2026-06-30'],
    ['explain', ledger, runId, '1', '--json'],
    ['diff', ledger, runId, runId],
    ['stats', ledger, '--days', '7', '--by', 'day'],
    ['verify', ledger, '--run', runId],
    ['export', ledger, '--run', runId, '--format', 'messages'],
    ['approve', ledger, runId, call, '--by', 'ada', '--input', '{"usd":5}', '--role', 'lead'],
    ['approve', ledger, runId, call, '--standing', 'equal_input=8h'],
    ['withdraw', ledger, runId, call, '--by', 'ada', '--reason', 'No more.'],
    ['deny', ledger, runId, call, '--reason', 'No.'],
    ['settle', ledger, runId, call, '--by', 'ada', 'Paid.'],
    ['raise', ledger, runId, 'maxTurns=9'],
    ['cancel', ledger, runId, '--reason', 'Enough.'],
    ['feedback', ledger, runId, '--score', '0.5', '--note', 'Good.'],
    ['retain', ledger, '--deltas', '1d', '--content', '90d', '--dry-run'],
    ['redact', ledger, runId, '--events', '4,7-9', '--reason', 'Asked to.'],
    ['schedules', ledger],
  ]
  const before = readdirSync(folder)
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...lines).chain((words) => changeWords(words, ledger)),
      async (words) => {
        const { code, stderr } = await tallystickFrom(folder, ...words)
        expect([0, 1, 2, 3, 4, 5]).toContain(code)
        expect(/^\s+at .*\.ts:\d+/m.test(stderr) ? stderr : '').toBe('')
        expect(stderr === '' ? undefined : findUnclearWords(stderr)).toBe(undefined)
        expect(code === 0 || stderr !== '' || code === 3 || code === 4).toBe(true)
      },
    ),
    { numRuns: tries(1_000) },
  )
  expect(existsSync(ledger)).toBe(true)
  expect(readdirSync(folder).filter((name) => !before.includes(name) && !name.startsWith('runs.db'))).toEqual(
    [],
  )
})
