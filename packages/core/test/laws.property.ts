import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  auditAll,
  evolve,
  memoryLedger,
  messagesOf,
  transcript,
  type RunState,
  type RuntimeEvent,
} from '@tallystick/core'
import { checkLaws, checkTranscript, copyPrefix } from '@tallystick/core/testing'
import { outcomesOf, play, program } from './program.ts'

/** Property runs: more with TALLYSTICK_RUNS in the environment. */
const numRuns = Number(process.env['TALLYSTICK_RUNS'] ?? 300)

describe('the laws, over random programs with failing models, misbehaving tools, cancels, denials and crashes', () => {
  it('laws 1 to 5, 9, 12, 13: an independent judge finds nothing, and every run ends', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events, result } = await play(random)
        expect(checkLaws(events)).toEqual([])
        expect(result.status).toBe('done')
        expect(events.at(-1)?.type).toBe('run_finished')
      }),
      { numRuns },
    )
  })

  it('law 3: every prefix projects to messages that a provider accepts', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events } = await play(random)
        let state: RunState | undefined
        for (const event of events) {
          state = evolve(state, event)
          expect(checkTranscript(transcript(state))).toEqual([])
        }
      }),
      { numRuns },
    )
  })

  it('law 6: every state that a live run had is the fold of the events up to there', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events, lastStates, result } = await play(random)
        // The result comes from the writer's own state; the states were seen live, and must not have moved since.
        const end = events.reduce<RunState | undefined>(evolve, undefined)
        const { turns, toolCalls, usage } = end!.totals
        expect(result).toMatchObject({ turns, toolCalls, usage, seq: events.length })
        expect(lastStates.length).toBeGreaterThan(0)
        for (const state of lastStates) {
          const folded = events.slice(0, state.seq).reduce<RunState | undefined>(evolve, undefined)
          expect(plain(state)).toEqual(plain(folded))
        }
      }),
      { numRuns: Math.ceil(numRuns / 3) },
    )
  })

  it('law 7: the request of each model call is rebuilt from the ledger to the same digest', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events } = await play(random)
        // `audit` rebuilds each request from the events before it; a changed history must show.
        auditAll(events)
        const call = events.findLast(({ type }) => type === 'model_call_started')
        const altered = events.map((event) =>
          event.type === 'input_received' ? { ...event, message: { ...event.message, parts: [] } } : event,
        )
        if (call) expect(() => auditAll(altered)).toThrow('Law 7')
      }),
      { numRuns: Math.ceil(numRuns / 3) },
    )
  })

  it('law 8: nothing begins before what announces it is durable', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { world } = await play(random)
        expect(world.early).toEqual([])
      }),
      { numRuns: Math.ceil(numRuns / 3) },
    )
  })

  it('law 10: after crashes no effect that was not declared repeatable takes place twice', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events, world } = await play(random)
        const toolOf = new Map(
          events.flatMap((event) =>
            event.type === 'tool_started' ? [[event.toolCallId as string, event.name]] : [],
          ),
        )
        for (const [call, times] of world.effects) {
          if (toolOf.get(call) !== 'rerunnable') expect({ call, times }).toEqual({ call, times: 1 })
        }
      }),
      { numRuns },
    )
  })

  it('finished work is kept: a write that took effect is a success, or in doubt, and never reported as not run', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const { events, world } = await play(random)
        const outcomes = outcomesOf(events)
        for (const call of world.effects.keys()) {
          expect(['success', 'interrupted', 'timed_out', 'cancelled']).toContain(outcomes.get(call))
        }
      }),
      { numRuns: Math.ceil(numRuns / 3) },
    )
  })
})

describe('the prefix sweep', () => {
  it('resuming from every prefix of a ledger ends, with every law kept and the prefix untouched', async () => {
    await fc.assert(
      fc.asyncProperty(program, async (random) => {
        const calm = { ...random, crashes: [], cancelAtSeq: undefined }
        const { events, world } = await play(random)
        // A run is made with its first input in one append: the shortest ledger has two events.
        for (let length = 2; length < events.length; length++) {
          await resumeFrom(events.slice(0, length), calm, world.keys)
        }
      }),
      { numRuns: Math.ceil(numRuns / 20) },
    )
  })
})

/** A state without the store that its history shares with others. */
function plain(state: RunState | undefined): unknown {
  if (state === undefined) return undefined
  const { history, ...rest } = state
  return { ...rest, messages: messagesOf(history) }
}

async function resumeFrom(
  prefix: readonly RuntimeEvent[],
  calm: Parameters<typeof play>[0],
  keys: Set<string>,
): Promise<void> {
  const ledger = memoryLedger()
  await copyPrefix(prefix, ledger)
  const world = { effects: new Map<string, number>(), keys: new Set(keys), early: [] }
  const { events, result } = await play(calm, { ledger, resume: prefix[0]!.runId, world })
  expect(checkLaws(events)).toEqual([])
  expect(result.status).toBe('done')
  expect(events.slice(0, prefix.length)).toEqual(prefix)
  // What was in doubt is not started again, unless the tool declared it safe.
  const before = new Set(prefix.flatMap((event) => (event.type === 'tool_started' ? [event.toolCallId] : [])))
  for (const event of events.slice(prefix.length)) {
    if (event.type !== 'tool_started' || !before.has(event.toolCallId)) continue
    expect(['read', 'rerunnable', 'reconciled']).toContain(event.name)
  }
}
