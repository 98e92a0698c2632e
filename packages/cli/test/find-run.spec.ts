import { memoryLedger, type RunId } from '@tallystick/core'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { describe, expect, it } from 'vitest'
import { findRun } from '../src/runs/find-run.ts'

const { run_started: started } = sampleFacts(sampleRunId(1))
const { parent: _parent, sessionId: _session, sessionPlace: _place, ...plain } = started
const place = { programName: 'tallystick', ledgerPath: 'runs.db' }
/** As the ids of runs that one millisecond began. */
const named = (end: string): RunId => `01932f00-0000-7000-8000-${end.padStart(12, '0')}` as RunId

/** A ledger of runs, in their order, each with its parent. */
async function ledgerOf(...runs: readonly (readonly [runId: RunId, worksFor?: RunId])[]) {
  const ledger = memoryLedger()
  for (const [runId, from] of runs) {
    const parent = from && { parent: { runId: from, seq: 1, relation: 'child' as const } }
    const events = stampFacts(runId, [{ ...plain, ...parent }])
    await ledger.append(runId, { expectedSeq: 0, epoch: 1 }, events, { durability: 'lazy' })
  }
  return ledger
}

describe('a run that is named on the command line', () => {
  const [top, child, other] = [named('abc1'), named('abc2'), named('f3')]

  it('is found by its id, and by a beginning or an end that no other has', async () => {
    const ledger = await ledgerOf([top], [other])
    expect(await findRun(ledger, top, place)).toBe(top)
    expect(await findRun(ledger, 'abc1', place)).toBe(top)
    expect(await findRun(ledger, '0f3', place)).toBe(other)
    expect(await findRun(await ledgerOf([top]), '01932f00', place)).toBe(top)
  })

  it('is rather one without a parent', async () => {
    const ledger = await ledgerOf([top], [child, top])
    expect(await findRun(ledger, '01932f00', place)).toBe(top)
    expect(await findRun(ledger, 'abc2', place)).toBe(child)
  })

  it('is the last one without a parent, if it is called latest', async () => {
    const ledger = await ledgerOf([other], [top], [child, top])
    const [last] = await Array.fromAsync(ledger.runs())
    const expected = last?.runId === child ? top : last?.runId
    expect(await findRun(ledger, 'latest', place)).toBe(expected)
    await expect(findRun(memoryLedger(), 'latest', place)).rejects.toMatchObject({ code: 'not_found' })
  })

  it('is not found under a name that fits none, or all', async () => {
    const ledger = await ledgerOf([top], [other])
    for (const given of ['nobody', '', named('99'), '32f00']) {
      await expect(findRun(ledger, given, place)).rejects.toMatchObject({
        code: 'not_found',
        message: `This ledger has no run ${given}. See its runs: tallystick list runs.db`,
      })
    }
  })

  it('has to be told from others, of which the first five are named', async () => {
    const ids = ['1', '2', '3', '4', '5', '6'].map(named)
    const five = await ledgerOf(...ids.slice(0, 5).map((runId) => [runId] as const))
    const refusal = (ledger: Awaited<ReturnType<typeof ledgerOf>>): Promise<string> =>
      findRun(ledger, '01932f00', place).catch((error: Error & { code: string }) => {
        return `${error.code}: ${error.message}`
      })
    const inOrder = async (ledger: typeof five): Promise<string> =>
      (await Array.fromAsync(ledger.runs()))
        .slice(0, 5)
        .map(({ runId }) => runId)
        .join(', ')
    const rest = 'Give more of the id. See all: tallystick list runs.db'
    expect(await refusal(five)).toBe(`usage: 01932f00 matches 5 runs (${await inOrder(five)}). ${rest}`)
    const six = await ledgerOf(...ids.map((runId) => [runId] as const))
    expect(await refusal(six)).toBe(`usage: 01932f00 matches 6 runs (${await inOrder(six)}, …). ${rest}`)
  })

  it('has to be distinguished from child runs of other ledgers, too', async () => {
    const [gone, one, two] = [named('9'), named('1'), named('2')]
    const ledger = await ledgerOf([one, gone], [two, gone])
    await expect(findRun(ledger, '01932f00', place)).rejects.toMatchObject({ code: 'usage' })
  })
})
