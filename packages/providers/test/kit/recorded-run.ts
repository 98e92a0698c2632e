import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Model,
  type Run,
  type RunResult,
  type RuntimeEvent,
} from '@tallystick/core'
import { testTool } from '@tallystick/testkit'
import { serve, type Answer, type Loopback } from './loopback.ts'
import { ManualClock } from './manual-clock.ts'

/** A run that came to its rest, with what is on record of it, and the server that its model spoke to. */
export interface RecordedRun {
  readonly server: Loopback
  readonly result: RunResult
  readonly events: readonly RuntimeEvent[]
}

/** Sees each event as it is recorded. */
export type Watch = (event: RuntimeEvent, run: Run) => void

/** A run of the real runtime by a model whose server gives these answers. Failed calls are tried again at once. */
export async function recordedRun(
  modelAt: (url: string) => Model,
  answers: readonly Answer[],
  watch: Watch = () => {},
): Promise<RecordedRun> {
  const server = await serve(...answers)
  const clock = new ManualClock()
  const tools = ['get_weather', 'get_time'].map((name) => testTool({ name }))
  const model = modelAt(server.url)
  const agent = defineAgent({ name: 'assistant', instructions: 'Be brief.', model, tools })
  const ledger = memoryLedger()
  const host = { clock, random: () => 0.5, report: () => {} }
  const run = createRuntime({ ledger, agents: [agent], host }).run(agent, 'Weather?')
  run.events$.subscribe((event) => {
    watch(event, run)
    if (event.type === 'model_stream_failed' && event.retryAt !== undefined) {
      // The timer is set when the event has been heard.
      const waitMs = event.retryAt - clock.now()
      setImmediate(() => clock.advance(waitMs))
    }
  })
  const result = await run.result
  return { server, result, events: await Array.fromAsync(ledger.read(run.id)) }
}
