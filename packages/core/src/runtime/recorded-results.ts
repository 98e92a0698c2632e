import type { Outcome, ResultPart } from '../events/content.ts'
import type { EventOf, Fact, ParentRef, RuntimeEvent } from '../events/event.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { startOrRefuse } from '../machine/next-calls.ts'
import type { Call, RunState } from '../machine/state.ts'
import { digestOf } from '../values/digest.ts'
import type { ToolCallId } from '../values/ids.ts'
import { type JsonObject, omitUndefined } from '../values/json.ts'
import type { Forked } from './fork.ts'

/** A result on record of the run that a fork shares its first events with. */
export interface RecordedResult {
  readonly toolCallId: ToolCallId
  readonly name: string
  /** Of the input that it ran with. */
  readonly inputDigest: string
  readonly outcome: Outcome
  readonly content: readonly ResultPart[]
  /** The content that the model read. */
  readonly projected?: readonly ResultPart[]
  readonly shown?: readonly ResultPart[]
}

/** A call, as far as a recorded result has to fit it. */
export interface AskedCall {
  readonly toolCallId: ToolCallId
  readonly name: string
  readonly input: JsonObject
}

/**
 * The facts that end the calls of a fork that were about to run or under way where it begins, and of which the other
 * run's record says how they ended: nothing is started again, and nothing is in doubt.
 */
export async function resultsUnderWay(ledger: Ledger, { state, source }: Forked): Promise<readonly Fact[]> {
  if (state.phase !== 'executing' || source.phase !== 'executing') return []
  const { turn, calls } = state
  const inputs = new Map(source.calls.map(({ toolCallId, input }) => [toolCallId, input]))
  const reports = new ToolReports(source.calls.filter(({ status }) => status === 'to_retry'))
  const facts: Fact[] = []
  for await (const event of ledger.read(source.runId, { fromSeq: source.seq + 1 })) {
    // Every call has its result before the turn continues: a fork costs no more where a long run follows.
    if (event.type === 'tool_results_injected') break
    if (event.type === 'approval_decided' && event.input) {
      // Nobody can say any more whether a call with a removed input is the same.
      if (event.removed) inputs.delete(event.toolCallId)
      else inputs.set(event.toolCallId, event.input)
    }
    if (!reports.take(event)) continue
    const place = source.calls.find(({ toolCallId }) => toolCallId === event.toolCallId)
    const call = calls.find(({ part }) => part === place?.part)
    if (call === undefined || !isUnderWay(call, inputs.get(event.toolCallId))) continue
    const { toolCallId, name } = call
    const { outcome, content, projected, shown, toolCallId: reused } = event
    if (isAboutToStart(call)) {
      const start = startOrRefuse(state, call, state.at)
      facts.push(start.type === 'tool_started' ? { ...start, recorded: reused } : start)
      if (start.type === 'tool_result') continue
    }
    const result = { type: 'tool_result' as const, turn, toolCallId, name, outcome, content, durationMs: 0 }
    facts.push({ ...result, ...omitUndefined({ projected, shown }), reused })
  }
  return facts
}

function isAboutToStart({ status }: Pick<Call, 'status'>): boolean {
  return status === 'ready' || status === 'to_retry'
}

/** True for a started call, and for a write that is about to start with the input that the other run's record answers. */
function isUnderWay(
  { status, input, effect, inputRemoved }: Call,
  recordedInput: JsonObject | undefined,
): boolean {
  if (status === 'started' || status === 'deferred') return true
  if (!isAboutToStart({ status }) || effect === 'read' || inputRemoved) return false
  return recordedInput !== undefined && digestOf(recordedInput) === digestOf(input)
}

/** Tells the results that the outside world reported from those that the controller decided, over a run's events. */
class ToolReports {
  readonly #awaitingRetry: Set<ToolCallId>

  constructor(awaitingRetry: readonly Pick<Call, 'toolCallId'>[] = []) {
    this.#awaitingRetry = new Set(awaitingRetry.map(({ toolCallId }) => toolCallId))
  }

  /**
   * Takes the next event of the run. Returns whether it is a result from the call's tool, the only source of a duration, or
   * from the caller that settled the call. A call that ends while it waits for its next attempt has the controller's result,
   * with the outcome of its last attempt.
   */
  take(event: RuntimeEvent): event is EventOf<'tool_result'> {
    if (event.type === 'tool_attempt_failed') this.#awaitingRetry.add(event.toolCallId)
    if (event.type === 'tool_started') this.#awaitingRetry.delete(event.toolCallId)
    if (event.type !== 'tool_result') return false
    const { durationMs, outcome, toolCallId } = event
    if (durationMs !== undefined) return true
    return (outcome === 'success' || outcome === 'failed') && !this.#awaitingRetry.has(toolCallId)
  }
}

/** Finds the recorded results for the calls of a fork, as long as the fork has not gone its own way. */
export class RecordedResults {
  readonly #results: readonly RecordedResult[]
  readonly #served = new Set<string>()

  constructor(results: readonly RecordedResult[]) {
    this.#results = results
  }

  /**
   * The recorded calls whose results answer the calls of a reply, each at its call's place; `undefined` for a call that
   * none answers. No recorded call answers two.
   */
  answering(state: RunState, calls: readonly AskedCall[]): readonly (ToolCallId | undefined)[] {
    const taken = new Set(this.#served)
    return calls.map((call) => {
      const found = this.#find(state, call, taken)
      if (found) taken.add(found.toolCallId)
      return found?.toolCallId
    })
  }

  /** The recorded result for a call that is started; `undefined` if it is to run. */
  serve(state: RunState, call: Call): RecordedResult | undefined {
    const promised = this.#results.find(({ toolCallId }) => toolCallId === call.recorded)
    const found = promised ?? this.#find(state, call, this.#served)
    if (found) this.#served.add(found.toolCallId)
    return found
  }

  #find(
    { fork, turn }: RunState,
    { name, input }: AskedCall,
    taken: ReadonlySet<string>,
  ): RecordedResult | undefined {
    if (fork?.divergedIn !== undefined && fork.divergedIn < turn) return undefined
    // What runs may be what an approver made of what was asked for.
    const inputDigest = digestOf(input)
    if (fork?.own.some((own) => own.name === name && own.inputDigest === inputDigest)) return undefined
    return this.#results.find(
      (result) =>
        result.name === name &&
        result.inputDigest === inputDigest &&
        !taken.has(result.toolCallId) &&
        !fork?.reused.includes(result.toolCallId),
    )
  }
}

/** Reads the results that a fork can be served: those that the tools of the other run gave after the shared events. */
export async function readRecordedResults(
  ledger: Ledger,
  { runId, seq: shared }: ParentRef,
): Promise<RecordedResults> {
  const digests = new Map<ToolCallId, string>()
  const results: RecordedResult[] = []
  const reports = new ToolReports()
  for await (const event of ledger.read(runId)) {
    if (event.type === 'tool_requests_collected') {
      for (const { toolCallId, inputDigest } of event.calls) digests.set(toolCallId, inputDigest)
    }
    if (event.type === 'approval_decided' && event.input) {
      if (event.removed) digests.delete(event.toolCallId)
      else digests.set(event.toolCallId, digestOf(event.input))
    }
    if (!reports.take(event) || event.seq <= shared) continue
    const { toolCallId, name, outcome, content, projected, shown } = event
    const inputDigest = digests.get(toolCallId) ?? ''
    results.push({ toolCallId, name, outcome, content, inputDigest, ...omitUndefined({ projected, shown }) })
  }
  return new RecordedResults(results)
}
