import { copyFileSync } from 'node:fs'
import { LedgerDamagedError, type RuntimeEvent } from '@tallystick/core'
import { evolve, type RunState } from '@tallystick/core/machine'
import { everyFact, sampleRunId, stamped } from '@tallystick/core/testing'
import { parseEvent } from '@tallystick/core/vocabulary'
import { redact, verifyLedger } from '@tallystick/ledger'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { commandOf } from '../src/read/inbox-command.ts'
import { upcast } from '../src/versions/upcast.ts'
import { goldenFiles } from './support/golden.ts'
import { temporaryFile } from './support/temporary-folder.ts'

const runId = sampleRunId(1)
const { run_started: start, limit_raised: raised, agent_handed_off: handedOff } = everyFact(runId)
const [started, limitRaised, handoff] = stamped(runId, [start, raised, handedOff]) as [
  RuntimeEvent & { type: 'run_started' },
  RuntimeEvent & { type: 'limit_raised' },
  RuntimeEvent & { type: 'agent_handed_off' },
]

/** The event as version 1 wrote it. */
function asVersion1(event: RuntimeEvent, body: object): RuntimeEvent {
  return { ...event, ...body, v: 1 }
}

describe('an event of version 1, which named limits with max last', () => {
  it('has the limits, waits and budgets of today', () => {
    const { maxWebSearches: _today, ...restOfDefinition } = started.definition
    const old = asVersion1(started, {
      limits: {
        turnsMax: 3,
        tokensMax: 500,
        costMaxUsd: 0.5,
        callsMaxByTool: { turnsMax: 2 },
        onLimit: 'ask',
      },
      retry: { attemptsMax: 2, baseMs: 1, capMs: 2, retryAfterMaxMs: 3, totalMaxMs: 4 },
      definition: {
        ...restOfDefinition,
        webSearchesMax: 5,
        output: { schema: { properties: { turnsMax: {} } }, repairsMax: 2 },
        policy: { limits: { durationMaxMs: 7 }, compaction: { contextTokensMax: 8, keepMessages: 1 } },
      },
    })
    expect(upcast(old)).toMatchObject({
      v: 2,
      limits: {
        maxTurns: 3,
        maxTotalTokens: 500,
        maxCostUsd: 0.5,
        maxCallsByTool: { turnsMax: 2 },
        onLimit: 'ask',
      },
      retry: { maxAttempts: 2, baseMs: 1, capMs: 2, maxRetryAfterMs: 3, maxTotalMs: 4 },
      definition: {
        digest: started.definition.digest,
        maxWebSearches: 5,
        output: { schema: { properties: { turnsMax: {} } }, maxRepairs: 2 },
        policy: { limits: { maxDurationMs: 7 }, compaction: { maxContextTokens: 8, keepMessages: 1 } },
      },
    })
  })

  it('names the limit of today where one was raised', () => {
    const event = upcast(asVersion1(limitRaised, { limit: 'costMaxUsd' }))
    expect(event).toMatchObject({ v: 2, limit: 'maxCostUsd' })
    expect(parseEvent(event)).toEqual(event)
  })

  it('is refused where its fields are of other shapes, and not taken for another', () => {
    for (const wrong of [null, 'turnsMax', ['turnsMax'], 7]) {
      for (const event of [
        asVersion1(started, { limits: wrong }),
        asVersion1(handoff, { definition: wrong }),
      ]) {
        expect(() => parseEvent(upcast(event))).toThrow(LedgerDamagedError)
      }
    }
  })

  it('is redacted, and its run is read and verified afterwards', async () => {
    const path = temporaryFile()
    copyFileSync(goldenFiles(1).ledger, path)
    const ledger = sqliteLedger(path)
    onTestFinished(() => ledger.close())
    const runs = await Array.fromAsync(ledger.runs(), ({ runId: id }) => id)
    for (const id of runs) await redact(ledger, id, 'all', { by: 'ada', reason: 'law' })
    for (const id of runs) {
      let state: RunState | undefined
      for await (const event of ledger.read(id)) state = evolve(state, event)
      expect(state?.limits.maxTurns).toEqual(expect.any(Number))
    }
    const verdicts = await Array.fromAsync(verifyLedger(ledger), ({ ok }) => ok)
    expect(verdicts.every(Boolean)).toBe(true)
  })
})

describe('a command that waits in the inbox since then', () => {
  it('raises the limit of today', () => {
    const body = Buffer.from(JSON.stringify({ type: 'raise_limit', limit: 'turnsMax', max: 5, by: 'ada' }))
    expect(commandOf(runId, 'key', body)).toEqual({
      type: 'raise_limit',
      limit: 'maxTurns',
      max: 5,
      by: 'ada',
    })
  })

  it('keeps its words: only the name of a limit changes', () => {
    const command = { type: 'steer', message: { role: 'user', parts: [{ type: 'text', text: 'turnsMax' }] } }
    expect(commandOf(runId, 'key', Buffer.from(JSON.stringify(command)))).toEqual(command)
  })
})
