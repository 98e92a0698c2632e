import {
  createRuntime,
  defineAgent,
  memoryLedger,
  type Model,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import { manualClock, sampleRunId, scriptedModel } from '@tallystick/core/testing'
import { from, mergeMap, of } from 'rxjs'
import { genesisHash } from '../src/record/chain.ts'
import { linkRows, type LinkedRow } from '../src/record/linked-row.ts'
import { bodyBytes } from '../src/record/stored-row.ts'

/** A run that the real runtime drove, nearly all of it deltas of a word each, as a model streams them. */
export async function recordedEvents(deltas: number): Promise<readonly RuntimeEvent[]> {
  const whole = 'streamed '.repeat(deltas)
  const scripted = scriptedModel([{ text: whole }])
  const model: Model = {
    ...scripted,
    stream: (request, context) =>
      scripted.stream(request, context).pipe(
        mergeMap((signal) => {
          if (signal.type !== 'model_text') return of(signal)
          return from(signal.text.split(/(?<= )/).map((text) => ({ ...signal, text })))
        }),
      ),
  }
  const ledger = memoryLedger()
  const agent = defineAgent({ name: 'writer', instructions: 'Write.', model })
  const runtime = createRuntime({ ledger, agents: [agent], host: { clock: manualClock() } })
  const run = runtime.run(agent, 'Write at length.')
  const { reason } = await run.result
  if (reason !== 'answered') throw new Error(`The recorded run ended as ${reason}.`)
  return Array.fromAsync(ledger.read(run.id))
}

/** The same events as another run. */
export function asRun(events: readonly RuntimeEvent[], ordinal: number): readonly RuntimeEvent[] {
  const runId: RunId = sampleRunId(ordinal)
  return events.map((event) => ({ ...event, runId }))
}

/** The rows of a run, hashed and all: what a raw insert is given for nothing. */
export function rowsOf(events: readonly RuntimeEvent[]): readonly LinkedRow[] {
  return linkRows(
    genesisHash,
    events.map((event) => ({ events: [event], bytes: bodyBytes(event) })),
  )
}

/** Events in groups of a size. */
export function groupsOf<T>(items: readonly T[], size: number): readonly (readonly T[])[] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}
