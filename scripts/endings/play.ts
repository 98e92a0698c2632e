// What the runtime does, found out by letting it: each probe plays one run on a scripted model and a manual clock.
import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type AgentOptions,
  type RunId,
  type RunResult,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  manualClock,
  scriptedModel,
  untilSettled,
  testTool,
  type ScriptedStep,
} from '@tallystick/core/testing'

/** A run that was played. */
export interface Probe {
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
  /** The events of another run that it caused. */
  readonly eventsOf: (runId: RunId) => Promise<readonly RuntimeEvent[]>
}

/** Plays a run of an agent that is as usual but for what is given. */
export async function play(steps: readonly ScriptedStep[], more: Partial<AgentOptions> = {}): Promise<Probe> {
  const clock = manualClock()
  const ledger = memoryLedger()
  const agent = defineAgent({
    name: 'probe',
    instructions: '',
    model: scriptedModel(steps),
    retry: { maxAttempts: 2 },
    tools: [testTool({ name: 'look', run: () => 'seen' })],
    ...more,
  })
  const prices = { 'scripted-1': { inputUsd: 1, outputUsd: 10 } }
  const runtime = createRuntime({ ledger, agents: [agent], prices, host: { clock, random: () => 0 } })
  const run = runtime.run(agent, 'Go.')
  const result = await untilSettled(clock, run.result)
  const eventsOf = (runId: RunId): Promise<readonly RuntimeEvent[]> => Array.fromAsync(ledger.read(runId))
  return { result, events: await eventsOf(run.id), eventsOf }
}
