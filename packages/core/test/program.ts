import { expect } from 'vitest'
import type { RuntimeEvent } from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import { eventTraits, eventTypes, type Outcome } from '@tallystick/core/vocabulary'
import { checkBudgets, checkLaws } from '@tallystick/testkit'
import type { Played } from '../../../scripts/testing/programs/play-program.ts'
export { playProgram as play, type Played } from '../../../scripts/testing/programs/play-program.ts'
export type { Program } from '../../../scripts/testing/programs/program.ts'
export { randomProgram as program } from '../../../scripts/testing/programs/random-program.ts'

/** Types of which no event may be lost. */
const alwaysDurable = new Set<string>(
  eventTypes.filter(
    (type) => eventTraits[type].durability === 'barrier' && !/^tool_(started|result)$/.test(type),
  ),
)

/** Holds every law against a run and its child runs, whose processes may have died and whose machine may have lost power. */
export function requireLaws({ events, others, result, world, lost }: Played): void {
  const runs = [events, ...others]
  for (const run of runs) auditAll(run)
  expect(runs.flatMap(checkLaws)).toEqual([])
  expect(checkBudgets(runs)).toEqual([])
  expect([result.status, ...runs.map((run) => run.at(-1)?.type)]).toEqual([
    'done',
    ...runs.map(() => 'run_finished'),
  ])
  expect(world.early).toEqual([])
  requireNoRepetition(runs.flat(), world)
  requireHarmless(lost, runs.flat())
}

/** Law 10, and that no write was done which is on record as never run. */
function requireNoRepetition(events: readonly RuntimeEvent[], { effects }: Played['world']): void {
  const rerunnable = new Set<string>(
    events.flatMap((event) =>
      event.type === 'tool_started' && event.name.endsWith('rerunnable') ? [event.toolCallId] : [],
    ),
  )
  expect([...effects].filter(([id, times]) => times > 1 && !rerunnable.has(id))).toEqual([])
  const outcomes = outcomesOf(events)
  for (const id of effects.keys())
    expect(['success', 'interrupted', 'timed_out', 'cancelled']).toContain(outcomes.get(id))
}

/** Law 8: what was lost announces no effect, and nothing that was counted, granted or decided, such as an approval. */
function requireHarmless(lost: readonly RuntimeEvent[], events: readonly RuntimeEvent[]): void {
  expect(lost.filter(({ type }) => alwaysDurable.has(type))).toEqual([])
  const approved = new Set(
    events.flatMap((event) =>
      event.type === 'approval_decided' && event.approved ? [event.toolCallId] : [],
    ),
  )
  const harmful = startsIn(lost).filter(
    ({ effect, attempt, child, name, toolCallId }) =>
      effect !== 'read' ||
      attempt > 1 ||
      child !== undefined ||
      name.startsWith('transfer_to') ||
      approved.has(toolCallId),
  )
  expect(harmful).toEqual([])
}

export function startsIn(events: readonly RuntimeEvent[]) {
  return events.filter((event) => event.type === 'tool_started')
}

/** The outcomes in a ledger, by call. */
function outcomesOf(events: readonly RuntimeEvent[]): Map<string, Outcome> {
  return new Map(
    events.flatMap((event) =>
      event.type === 'tool_result' ? [[event.toolCallId, event.outcome] as const] : [],
    ),
  )
}
