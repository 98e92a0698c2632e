import { Observable, tap } from 'rxjs'
import type { Clock, Model, ModelRequest, RunId, RuntimeEvent, Tool } from '@tallystick/core'
import {
  type Json,
  type JsonObject,
  type ModelSignal,
  type Random,
  toCanonicalJson,
  type ToolSignal,
} from '@tallystick/core/vocabulary'
import { checkTranscript } from '../judges/laws.ts'
import type { Connection, SimulatedStore } from './store.ts'
import type { ReportFault } from './store-model.ts'
import { type Actor, createLane, type World } from './world.ts'

/** One process of a fleet, as it works on one store: agents are made for it, and live as long as it does. */
export interface Site {
  /** The process, and which of its lives this is: `p1.2`. */
  readonly process: string
  readonly ledger: Connection['ledger']
  readonly clock: Clock
  readonly random: Random
  /** The outside world, which all processes share: a place for what tools have done there. */
  readonly outside: Map<string, number>
  /** The recorded owner of a run. */
  ownerOf(runId: RunId): string | undefined
  /** Reports something that must not happen in any world. */
  readonly fault: (what: string) => void
  /** Resolves in so many milliseconds of the simulated time; never, if the process is dead by then. */
  sleep(ms: number): Promise<void>
  /** The tool as it works in the simulated world: it takes its time, and each of its starts is held against the record. */
  tool<Context>(tool: Tool<Context>): Tool<Context>
  /** The model as it works in the simulated world: its signals take their time, and its requests are held against the record. */
  model(model: Model): Model
}

/** What really happened in a world, whatever its ledgers say. */
export class Books {
  readonly outside: Map<string, number> = new Map()
  /** The starts of tools, by call and attempt: which process made each. */
  readonly starts: Map<string, string> = new Map()
  /** The attempts of calls that have reported success themselves. */
  readonly successes: Set<string> = new Set()
  /** The names of the tools whose starts are known. */
  readonly tools: Set<string> = new Set()
  /** The request behind each digest. */
  readonly requests: Map<string, string> = new Map()
}

/** What a site stands on. */
export interface SiteParts {
  readonly world: World
  readonly actor: Actor
  readonly store: SimulatedStore
  readonly connection: Connection
  readonly books: Books
  readonly fault: ReportFault
  readonly aheadMs: () => number
}

/** The most that a signal of a model, or a step of a tool, takes, in milliseconds. */
const [longestSignalMs, longestStepMs] = [150, 1_500]

export function createSite({ world, actor, store, connection, books, fault, aheadMs }: SiteParts): Site {
  /** Passes reports on one by one, each after a while. */
  const paced = <T>(begin: () => Observable<T>, most: number): Observable<T> =>
    new Observable((subscriber) => {
      const lane = createLane()
      const later = (report: () => void): void => {
        const happen = (): void => {
          if (!subscriber.closed) report()
        }
        world.after(world.drawDelay(actor, 0, most), actor, happen, lane)
      }
      let inner: { unsubscribe(): void } | undefined
      later(() => {
        inner = begin().subscribe({
          next: (value) => later(() => subscriber.next(value)),
          error: (error: unknown) => later(() => subscriber.error(error)),
          complete: () => later(() => subscriber.complete()),
        })
      })
      return () => inner?.unsubscribe()
    })

  function checkStart(
    name: string,
    { toolCallId, runId, attempt, input }: StartedCall,
    mayBeLazy: boolean,
  ): void {
    const events = store.model.runs.get(runId)?.events ?? []
    const start = events.find(
      (event) =>
        event.type === 'tool_started' && event.toolCallId === toolCallId && event.attempt === attempt,
    )
    const about = `attempt ${attempt} of ${name} (${toolCallId})`
    if (start === undefined) {
      // The machine of the store may have lost a start that was recorded lazily, and the reply that asked for it.
      if (!mayBeLazy) fault(8, `${about} began, and its start is not on record`)
      return
    }
    if (!mayBeLazy && !store.isSynced(runId, start.seq))
      fault(8, `${about} began before its start was durable`)
    if (!isInputOnRecord(events, toolCallId, input))
      fault(13, `${about} began with an input that nobody has asked for or approved`)
    const key = `${toolCallId} ${attempt}`
    const before = books.starts.get(key)
    if (before !== undefined && !mayBeLazy)
      fault(10, `${about} began in ${actor.name}, and in ${before} before`)
    books.starts.set(key, actor.name)
    books.tools.add(name)
  }

  const vague = new Set<object>()

  /** Law 8: each call was announced, durably. Law 7: two requests of one digest are one request. */
  function checkCall(model: Model, request: ModelRequest): void {
    const announced = connection.calls.filter((call) => call.model.modelId === model.modelId)
    // The end of a call may be on record, and this process not know it yet.
    const open = announced.filter((call) => isUnderWay(call, store.model.runs.get(call.runId)?.events))
    const named = open.findLast(({ runId }) => request.instructions.includes(runId))
    // A fork may send the instructions of the run that it forks.
    const isForked = open.some(({ runId }) => isFork(store.model.runs.get(runId)?.events))
    const call = named ?? open[0] ?? announced[0]
    if (call === undefined)
      return fault(8, `${actor.name} called ${model.modelId}, and no call of it is on record`)
    connection.calls.splice(connection.calls.indexOf(call), 1)
    const about = `the model call at event ${call.seq} of ${call.runId}`
    if (!store.isSynced(call.runId, call.seq)) fault(8, `${about} began before it was durable`)
    for (const what of checkTranscript(request.messages)) fault(3, `${about}: ${what}`)
    // Which of them it was is not known, then or later.
    if (open.length > 1 && (named === undefined || isForked)) for (const each of open) vague.add(each)
    if (call.type !== 'model_call_started' || vague.has(call) || !open.includes(call)) return
    // A fork names the calls that it shares by ids of its own, and the digest does not look at them.
    const text = toCanonicalJson(request as unknown as Json).replaceAll(/\bcall_[0-9a-f]{32}_/g, 'call_')
    const before = books.requests.get(call.requestDigest)
    if (before !== undefined && before !== text)
      fault(7, `${about} sent another request than one before of the same digest`)
    books.requests.set(call.requestDigest, text)
  }

  return {
    process: actor.name,
    ledger: connection.ledger,
    clock: world.clockOf(actor, aheadMs),
    random: actor.random,
    outside: books.outside,
    ownerOf: (runId) => {
      const [first] = store.model.runs.get(runId)?.events ?? []
      return first?.type === 'run_started' ? first.owner : undefined
    },
    fault: (what) => fault(0, what),
    sleep: (ms) => world.sleep(ms, actor),
    tool: (tool) => ({
      ...tool,
      ...(tool.reconcile && {
        reconcile: async (call) => {
          await world.sleep(world.drawDelay(actor, 0, longestStepMs), actor)
          const answer = (await tool.reconcile?.(call)) ?? { state: 'unknown' }
          await world.sleep(world.drawDelay(actor, 0, longestStepMs), actor)
          return answer
        },
      }),
      run: (call) =>
        paced<ToolSignal>(() => {
          checkStart(tool.name, call, tool.effect === 'read')
          return tool.run(call).pipe(
            tap((report) => {
              if (report.type === 'tool_ended' && report.outcome === 'success')
                books.successes.add(`${call.toolCallId} ${call.attempt}`)
            }),
          )
        }, longestStepMs),
    }),
    model: (model) => ({
      ...model,
      stream: (request, context) =>
        paced<ModelSignal>(() => {
          checkCall(model, request)
          return model.stream(request, context)
        }, longestSignalMs),
    }),
  }
}

/** Law 13: the input of a call is the model's, or what a guardrail or an approver has put in its place. */
function isInputOnRecord(
  events: readonly RuntimeEvent[],
  toolCallId: string,
  input: StartedCall['input'],
): boolean {
  const text = toCanonicalJson(input)
  return events.some((event) => {
    const calls = event.type === 'tool_requests_collected' ? event.calls : [event]
    return calls.some(
      (call) =>
        call.toolCallId === toolCallId && 'input' in call && toCanonicalJson(call.input ?? null) === text,
    )
  })
}

function isFork([first]: readonly RuntimeEvent[] = []): boolean {
  return first?.type === 'run_started' && first.parent?.relation === 'fork'
}

/** True as long as nothing is on record that ends a call of a model. */
function isUnderWay({ seq }: { readonly seq: number }, events: readonly RuntimeEvent[] = []): boolean {
  return !events.slice(seq).some(({ type }) => endings.has(type))
}

const endings: ReadonlySet<string> = new Set([
  ...['model_call_started', 'model_stream_failed', 'assistant_message_finished', 'run_finished'],
  ...['compaction_started', 'context_compacted'],
])

interface StartedCall {
  readonly toolCallId: string
  readonly runId: RunId
  readonly attempt: number
  readonly input: JsonObject
}
