import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  createRuntime,
  defineAgent,
  handoff,
  memoryLedger,
  type Agent,
  type Ledger,
  type RunId,
} from '@tallystick/core'
import { manualClock, scriptedModel, testTool, waitUntilSettled } from '@tallystick/testkit'
import { exportRegression, replayRegression } from '@tallystick/replay'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from './support/temporary-folder.ts'

// Put together here, so that no scanner takes this file for one that leaks.
const key = ['sk-', 'proj-0123456789abcdefghij'].join('')

async function played(agent: Agent<unknown>): Promise<{ readonly ledger: Ledger; readonly runId: RunId }> {
  const [clock, ledger] = [manualClock(), memoryLedger()]
  const run = createRuntime({ ledger, host: { clock } }).run(agent, 'Go.')
  expect(await waitUntilSettled(clock, run.result)).toMatchObject({ status: 'done' })
  return { ledger, runId: run.id }
}

/** Writes a run as a regression test; returns its fixture, and what is in it. */
async function written(ledger: Ledger, runId: RunId): Promise<readonly [fixture: string, lines: string]> {
  const file = join(temporaryFolder(), 'a.spec.ts')
  const { fixture } = await exportRegression(ledger, runId, { file, agents: { from: './agent.ts' } })
  return [fixture, readFileSync(fixture, 'utf8')]
}

const look = testTool({ name: 'look', run: () => 'Nothing.' })
const looks = { toolCalls: [{ name: 'look', input: {} }] }

describe('code of an agent that says a secret', () => {
  /** Says whether the fixture of a run leaks the key and shows a text, and where it differs when it is driven again. */
  const masked = async (agent: Agent<unknown>, shown: string): Promise<object> => {
    const { ledger, runId } = await played(agent)
    const [fixture, lines] = await written(ledger, runId)
    const { divergence } = await replayRegression(fixture, agent)
    return { leaks: lines.includes(key), shows: lines.includes(shown), divergence }
  }
  const sound = { leaks: false, shows: true, divergence: undefined }

  it('is masked as what it said then: for a turn, in a summary', async () => {
    const own = { name: 'a', instructions: `Look with ${key}.`, tools: [look] }
    const model = scriptedModel([looks, looks, looks, { text: 'Done.' }])
    const ofTurn = await masked(
      defineAgent<unknown>({ ...own, model, prepareTurn: () => ({ instructions: `Use ${key} now.` }) }),
      'Use [redacted]',
    )
    expect(ofTurn).toEqual(sound)
    const summing = scriptedModel([looks, looks, looks, { text: 'Done.' }])
    const summarize = (): string => `They looked with ${key}.`
    const ofSummary = await masked(
      defineAgent<unknown>({
        ...{ ...own, model: summing },
        compaction: { maxContextTokens: 30, keepMessages: 1, summarize },
      }),
      'They looked with [redacted]',
    )
    expect(ofSummary).toEqual(sound)
  })

  it('is masked where another agent takes over, and in what that is shown', async () => {
    const next = defineAgent<unknown>({
      ...{ name: 'next', description: 'Ends it.', instructions: `End with ${key}.` },
      model: scriptedModel([{ text: 'Done.' }]),
    })
    const filter = () => [{ role: 'user', parts: [{ type: 'text', text: `In short: ${key}.` }] } as const]
    const agent = (handoffs: readonly (typeof next | ReturnType<typeof handoff>)[]): Agent<unknown> =>
      defineAgent<unknown>({
        ...{ name: 'first', instructions: 'Pass on.', handoffs },
        model: scriptedModel([{ toolCalls: [{ name: 'transfer_to_next', input: {} }] }]),
      })
    expect(await masked(agent([next]), 'End with [redacted]')).toEqual(sound)
    expect(await masked(agent([handoff(next, { filter })]), 'In short: [redacted]')).toEqual(sound)
  })
})

describe('a run of an older release', () => {
  it('gets no digest of an input that a call started with, where none was recorded', async () => {
    const agent = defineAgent<unknown>({
      ...{ name: 'a', instructions: '', tools: [look], model: scriptedModel([looks, { text: 'Done.' }]) },
    })
    const { ledger, runId } = await played(agent)
    const older: Ledger = {
      ...ledger,
      async *read(...asked) {
        for await (const event of ledger.read(...asked)) {
          if (event.type !== 'tool_started') yield event
          else {
            const { inputDigest: _unrecorded, ...rest } = event
            yield rest
          }
        }
      },
    }
    const startOf = (lines: string): unknown =>
      lines
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as { readonly type: string })
        .find(({ type }) => type === 'tool_started')
    expect(startOf((await written(older, runId))[1])).not.toHaveProperty('inputDigest')
    expect(startOf((await written(ledger, runId))[1])).toHaveProperty('inputDigest')
  })
})
