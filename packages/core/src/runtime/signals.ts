import type { ResultPart } from '../events/content.ts'
import type { EventOf } from '../events/event.ts'
import { toEventReceipt } from '../machine/calls.ts'
import { ConfigurationError } from '../values/errors.ts'
import type { RunId, ToolCallId } from '../values/ids.ts'
import { type Json, isJson, omitUndefined, toCanonicalJson } from '../values/json.ts'
import { requireOptions } from '../values/option.ts'
import { postCommand } from './drive.ts'
import type { RunRegistry } from './run-registry.ts'
import { loadState } from './run-result.ts'
import { eventName, signalOptions, type SignalOptions } from './runtime-options.ts'

/** A call that waits for an event, and the end of it, if it has one. */
interface Wait {
  readonly deferred: EventOf<'tool_deferred'>
  readonly result: EventOf<'tool_result'> | undefined
}

/**
 * Settles each call that waits for an event of this name with its payload, and returns the runs to drive. A wait that began after the
 * event first came under its key is not settled by it: an event that nobody waits for is gone.
 */
export async function signalRuns(
  runs: RunRegistry,
  name: string,
  payload: Json | undefined,
  options: SignalOptions,
): Promise<readonly RunId[]> {
  requireOptions('signal', eventName, name, 'the name of the event')
  requireOptions('signal', signalOptions, options)
  runs.requireOpen()
  if (payload !== undefined && !isJson(payload)) {
    throw new ConfigurationError(
      `signal: JSON cannot carry the payload of the event ${name}. Give a value of JSON, or none.`,
    )
  }
  const { parts } = runs
  const { key = parts.newId(), by, drive = true, mayWake } = options
  const text = typeof payload === 'string' ? payload : toCanonicalJson(payload ?? null)
  const content: readonly ResultPart[] = [
    { type: 'text', text: payload === undefined ? `The event ${name} came.` : text },
  ]
  const toKey = (toolCallId: ToolCallId): string => `event ${toCanonicalJson([name, key])} ${toolCallId}`
  const woken = new Set<RunId>()
  const waits = await readWaits(parts.ledger, name)
  const settled = waits.flatMap(({ deferred, result }) =>
    result?.inboxKey === toKey(deferred.toolCallId) ? [result] : [],
  )
  for (const { deferred, result } of waits) {
    const { runId, toolCallId, seq, at } = deferred
    if (result) continue
    // Runs of several processes have no order but that of their clocks. In doubt a call that waits is settled, not left to wait.
    const cameBefore = settled.some((other) => (other.runId === runId ? other.seq < seq : other.at < at))
    if (cameBefore || (mayWake && !(await mayWake(runId)))) continue
    const settle = {
      type: 'settle',
      toolCallId,
      outcome: 'success',
      content,
      ...omitUndefined({ by }),
    } as const
    const { accepted, wake } = await postCommand(parts, runId, settle, { key: toKey(toolCallId) })
    if (accepted) woken.add(wake)
  }
  if (drive)
    for (const runId of woken)
      if (await canDrive(runId, runs)) runs.driverFor(runId, {}).drive({ withChildren: true })
  return [...woken]
}

/** A process that drives the run hears of its inbox by itself. */
async function canDrive(runId: RunId, { parts }: RunRegistry): Promise<boolean> {
  const state = await loadState(parts.ledger, runId)
  if (state === undefined || state.phase === 'done' || parts.agents.find(state.agent) === undefined)
    return false
  return (await parts.leases.elsewhereMs(runId)) === 0
}

/** The calls of all runs that have waited for an event, in the order in which they began to. */
async function readWaits(ledger: RunRegistry['parts']['ledger'], name: string): Promise<readonly Wait[]> {
  const receipt = toEventReceipt(name)
  const waits: Wait[] = []
  for await (const deferred of ledger.find({ types: ['tool_deferred'] })) {
    if (deferred.type !== 'tool_deferred' || deferred.receipt !== receipt) continue
    const { runId, toolCallId } = deferred
    let result: EventOf<'tool_result'> | undefined
    for await (const event of ledger.find({ runId, toolCallId, types: ['tool_result'] }))
      if (event.type === 'tool_result') result = event
    waits.push({ deferred, result })
  }
  return waits
}
