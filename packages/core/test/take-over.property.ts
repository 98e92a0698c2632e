import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  LedgerConflictError,
  memoryLedger,
  type Run,
  type RunResult,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, testTool, type ScriptedStep, type TestTool } from '@tallystick/testkit'
import { tries } from '../../../scripts/testing/effort.ts'
import { checkedRun, ofType, recorded, stage, type Stage } from './stage.ts'

/** A process takes the run over when another sees the event of this number. */
interface TakeOver {
  readonly atSeq: number
  readonly process: number
}

const processes = 3
const takeOvers: fc.Arbitrary<readonly TakeOver[]> = fc.array(
  fc.record({ atSeq: fc.integer({ min: 1, max: 40 }), process: fc.nat(processes - 1) }),
  { maxLength: 6 },
)
const turns: fc.Arbitrary<readonly (readonly string[])[]> = fc.array(
  fc.array(fc.constantFrom('read', 'write', 'rerun'), { minLength: 1, maxLength: 3 }),
  { maxLength: 3 },
)

/** What really happened to the world, by call, in whichever process. */
type Effects = Map<string, number>

function toolsOf(effects: Effects): readonly TestTool[] {
  const run = async ({ toolCallId }: { readonly toolCallId: string }): Promise<string> => {
    for (let turn = 0; turn < 5; turn++) await Promise.resolve()
    effects.set(toolCallId, (effects.get(toolCallId) ?? 0) + 1)
    return 'done'
  }
  return [
    testTool({ name: 'read', run }),
    testTool({ name: 'write', effect: 'write', run }),
    testTool({ name: 'rerun', effect: 'write', recovery: 'rerun', run }),
  ]
}

/** The script of a model that any process can continue with: the history says how far it is. */
function stepsOf(script: readonly (readonly string[])[]): readonly ScriptedStep[] {
  const step: ScriptedStep = ({ messages }) => {
    const calls = script[messages.filter(({ role }) => role === 'assistant').length]
    return calls ? { toolCalls: calls.map((name) => ({ name, input: {} })) } : { text: 'Done.' }
  }
  return Array.from({ length: 60 }, () => step)
}

async function play(
  script: readonly (readonly string[])[],
  plan: readonly TakeOver[],
): Promise<{
  events: readonly RuntimeEvent[]
  effects: Effects
  ends: readonly PromiseSettledResult<RunResult>[]
}> {
  const [ledger, clock] = [memoryLedger(), manualClock()]
  const effects: Effects = new Map()
  const sets = Array.from({ length: processes }, (): Stage => {
    return stage({
      ledger,
      clock,
      steps: stepsOf(script),
      tools: toolsOf(effects),
      limits: { maxRepeats: 99 },
    })
  })
  const results: Promise<RunResult>[] = []
  const done = new Set<TakeOver>()
  const watch = (run: Run): void => {
    results.push(run.result)
    run.events$.subscribe({
      next: ({ seq }) => {
        for (const next of plan) {
          if (next.atSeq !== seq || done.has(next)) continue
          done.add(next)
          watch(sets[next.process]!.runtime.resume(run.id))
        }
      },
      error: () => {},
    })
  }
  const first = sets[0]!.start()
  watch(first)
  for (let seen = 0; seen < results.length; seen++) {
    await sets[0]!.waitUntilSettled(Promise.allSettled(results.slice(0, seen + 1)))
  }
  // The last process finds the run done, or brings it to its end.
  const last = sets[1]!.runtime.resume(first.id)
  expect(await sets[1]!.waitUntilSettled(last.result)).toMatchObject({ status: 'done', reason: 'answered' })
  const ends = await sets[0]!.waitUntilSettled(Promise.allSettled(results))
  return { events: await recorded(ledger, first.id), effects, ends }
}

describe('processes that take a run from each other at any time', () => {
  it('keep every law; no write takes place twice; the process that loses the run gets a conflict, and nothing else', async () => {
    await fc.assert(
      fc.asyncProperty(turns, takeOvers, async (script, plan) => {
        const { events, effects, ends } = await play(script, plan)
        checkedRun(events)
        const names = new Map<string, string>(
          ofType(events, 'tool_started').map(({ toolCallId, name }) => [toolCallId, name]),
        )
        const twice = [...effects].filter(([id, times]) => times > 1 && names.get(id) === 'write')
        expect(twice).toEqual([])
        // Nothing happens that is not on record.
        expect([...effects.keys()].filter((id) => !names.has(id))).toEqual([])
        const faults = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []))
        expect(faults.filter((fault) => !(fault instanceof LedgerConflictError))).toEqual([])
        expect(events.at(-1)?.type).toBe('run_finished')
      }),
      { numRuns: tries(150) },
    )
  })
})
