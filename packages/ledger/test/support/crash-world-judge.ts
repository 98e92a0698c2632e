import type { RuntimeEvent } from '@tallystick/core'
import type { EventOf, EventType } from '@tallystick/core/vocabulary'
import type { Evidence } from './crash-evidence.ts'
import type { Deed } from './crash-world.ts'

/** Outcomes of a call that may have changed the world; every other says that nothing was run. */
const mayHaveRun: ReadonlySet<string> = new Set([
  'success',
  'interrupted',
  'cancelled',
  'timed_out',
  'failed',
])

/** Holds what really happened against what is on record. */
export function worldFaults(evidence: Evidence): readonly string[] {
  return [
    ...startedTwice(evidence),
    ...notOnRecord(evidence),
    ...neverHappened(evidence),
    ...unannouncedModelCalls(evidence),
    ...confusedKeys(evidence),
  ]
}

/** How often tools that may be started again were: what a resume repeats by right. */
export function repetitions({ deeds }: Evidence): number {
  const begun = deeds.filter(({ what, mayRepeat }) => what === 'begun' && mayRepeat)
  return begun.length - new Set(begun.map(({ toolCallId }) => toolCallId)).size
}

function ofType<T extends EventType>({ after }: Evidence, type: T): readonly EventOf<T>[] {
  return [...after.events.values()]
    .flat()
    .filter((event: RuntimeEvent) => event.type === type) as unknown as readonly EventOf<T>[]
}

/** How often other tools were started again, which no process may do. */
export function doubleStarts({ deeds }: Evidence): number {
  const begun = deeds.filter(({ what, mayRepeat }) => what === 'begun' && !mayRepeat)
  return begun.length - new Set(begun.map(({ toolCallId }) => toolCallId)).size
}

function startedTwice(evidence: Evidence): readonly string[] {
  const times = doubleStarts(evidence)
  return times === 0 ? [] : [`tools that do not say that they may be were started again ${times} times`]
}

/**
 * Nothing began that was not announced; nothing was done that is neither on record nor in doubt. With a server that died the
 * starts of reads may have gone that may run again, and nothing else.
 */
function notOnRecord(evidence: Evidence): readonly string[] {
  const mayBeLost = callsThatMayBeLost(evidence)
  const starts = ofType(evidence, 'tool_started')
  const results = ofType(evidence, 'tool_result')
  return evidence.deeds.flatMap(({ what, name, toolCallId, attempt }) => {
    if (toolCallId === undefined) return []
    const isAnnounced = starts.some(
      (start) => start.toolCallId === toolCallId && (attempt === undefined || start.attempt === attempt),
    )
    if (!isAnnounced && mayBeLost.has(toolCallId)) return []
    if (!isAnnounced)
      return [`${name} ${toolCallId} has ${what} without that its start ${attempt} is on record`]
    const result = results.find((each) => each.toolCallId === toolCallId)
    if (what !== 'done' || (result && mayHaveRun.has(result.outcome))) return []
    return [`${name} ${toolCallId} was done, and is on record as ${result?.outcome ?? 'nothing'}`]
  })
}

function callsThatMayBeLost({ acknowledged, deeds }: Evidence): ReadonlySet<string> {
  if (!acknowledged.some(({ kind }) => kind === 'death')) return new Set()
  return new Set(
    deeds.flatMap(({ isHarmless, toolCallId }) => (isHarmless && toolCallId ? [toolCallId] : [])),
  )
}

/** What is on record as a success has been done. */
function neverHappened(evidence: Evidence): readonly string[] {
  const isDeed = (what: Deed['what'], id: string | undefined): boolean =>
    evidence.deeds.some((deed) => deed.what === what && deed.toolCallId === id)
  return ofType(evidence, 'tool_result').flatMap(({ name, toolCallId, outcome, reused, child }) => {
    const isOfAnotherKind = reused !== undefined || child !== undefined || name.startsWith('transfer_to_')
    if (outcome !== 'success' || isOfAnotherKind || isForked(evidence, toolCallId)) return []
    return isDeed('done', toolCallId)
      ? []
      : [`${name} ${toolCallId} is a success on record, and was never done`]
  })
}

/** Whether a call is in what a fork shares with the run that it was forked from. */
function isForked({ after }: Evidence, toolCallId: string | undefined): boolean {
  return [...after.events.values()].some(([first, ...events]) => {
    if (first?.type !== 'run_started' || first.parent?.relation !== 'fork') return false
    const shared = first.parent.seq
    return events.some((event) => event.toolCallId === toolCallId && event.seq <= shared)
  })
}

/**
 * No model was asked more often than is on record. A process that takes over before a model that sums up has answered asks
 * it again: its start is on record once, and after it each take-over.
 */
function unannouncedModelCalls(evidence: Evidence): readonly string[] {
  const announced = new Map<string, number>()
  const announce = (model: string): void => void announced.set(model, (announced.get(model) ?? 0) + 1)
  for (const events of evidence.after.events.values()) {
    let summarizer: string | undefined
    for (const event of events) {
      if (event.type === 'model_call_started') announce(event.model.modelId)
      if (event.type === 'compaction_started') announce((summarizer = event.model.modelId))
      if (event.type === 'run_resumed' && summarizer !== undefined) announce(summarizer)
      if (event.type === 'context_compacted') summarizer = undefined
    }
  }
  const asked = evidence.deeds.filter(({ what }) => what === 'asked').map(({ name }) => name)
  return [...new Set(asked)].flatMap((name) => {
    const times = asked.filter((each) => each === name).length
    const onRecord = announced.get(name) ?? 0
    return times <= onRecord ? [] : [`${name} was asked ${times} times, and ${onRecord} are on record`]
  })
}

/** Each call has one key, the same at every start, and no other call has it. */
function confusedKeys({ deeds }: Evidence): readonly string[] {
  const keys = new Map<string, string>()
  const calls = new Map<string, string>()
  return deeds.flatMap(({ toolCallId, key }) => {
    if (toolCallId === undefined || key === undefined) return []
    const [known, owner] = [keys.get(toolCallId) ?? key, calls.get(key) ?? toolCallId]
    keys.set(toolCallId, known)
    calls.set(key, owner)
    return known === key && owner === toolCallId
      ? []
      : [`call ${toolCallId} and key ${key} are not each other's`]
  })
}
