import { expect } from 'vitest'
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Agent,
  type AgentOptions,
  type Ledger,
  type Run,
  type RunResult,
  type Runtime,
  type RuntimeEvent,
} from '@tallystick/core'
import { auditAll } from '@tallystick/core/machine'
import {
  checkLaws,
  manualClock,
  scriptedModel,
  waitUntilSettled,
  type ManualClock,
  type ScriptedModel,
  type ScriptedStep,
} from '@tallystick/testkit'

/** What differs from the usual: a model that says `Done.`, no tools, an empty ledger. */
export interface StageOptions extends Partial<AgentOptions> {
  readonly steps?: readonly ScriptedStep[]
  readonly ledger?: Ledger
  readonly clock?: ManualClock
  readonly random?: () => number
}

/** One process with one agent: what a test of the runtime plays on. */
export interface Stage {
  readonly clock: ManualClock
  readonly ledger: Ledger
  readonly model: ScriptedModel
  readonly agent: Agent
  readonly runtime: Runtime
  /** Errors that no caller on the stack handles. */
  readonly reported: readonly unknown[]
  /** Starts a run. */
  readonly start: (input?: string) => Run
  /** Starts a run and waits until it rests. */
  readonly play: (input?: string) => Promise<RunResult>
  /** Waits under the stage's clock. */
  readonly waitUntilSettled: <T>(promise: Promise<T>) => Promise<T>
  /** What is on record of a run. */
  readonly eventsOf: (run: { readonly id: string } | string) => Promise<readonly RuntimeEvent[]>
}

/** Sets a stage. */
export function stage(options: StageOptions = {}): Stage {
  const { steps = [{ text: 'Done.' }], clock = manualClock(), random = () => 0 } = options
  const { steps: _steps, ledger = memoryLedger({ clock }), clock: _clock, random: _random, ...rest } = options
  const model = scriptedModel(steps)
  const agent = defineAgent({ name: 'agent', instructions: 'Act.', model, ...rest })
  const reported: unknown[] = []
  const host = { clock, random, report: (error: unknown) => reported.push(error) }
  const runtime = createRuntime({ ledger, agents: [agent], host })
  return {
    ...{ clock, ledger, model, agent, runtime, reported },
    start: (input = 'Go.') => runtime.run(agent, input),
    play: (input = 'Go.') => waitUntilSettled(clock, runtime.run(agent, input).result),
    waitUntilSettled: (promise) => waitUntilSettled(clock, promise),
    eventsOf: (run) => recorded(ledger, typeof run === 'string' ? run : run.id),
  }
}

/** Everything that a ledger holds of a run. */
export async function recorded(ledger: Ledger, runId: string): Promise<readonly RuntimeEvent[]> {
  const events: RuntimeEvent[] = []
  for await (const event of ledger.read(runId as Run['id'])) events.push(event)
  return events
}

/** The same events, once the laws have been held against them. */
export function checkedRun(events: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
  auditAll(events)
  expect(checkLaws(events)).toEqual([])
  return events
}

/** The events of one type, as that type. */
export function ofType<T extends RuntimeEvent['type']>(
  events: readonly RuntimeEvent[],
  type: T,
): readonly Extract<RuntimeEvent, { readonly type: T }>[] {
  return events.filter((event): event is Extract<RuntimeEvent, { readonly type: T }> => event.type === type)
}

/** The types of events, without deltas. */
export function typesOf(events: readonly RuntimeEvent[]): readonly string[] {
  return events.map(({ type }) => type).filter((type) => !type.endsWith('_delta'))
}
