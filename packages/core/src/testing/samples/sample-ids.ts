import { eventTraits, type Fact, type RuntimeEvent } from '../../events/event.ts'
import type { UserMessage } from '../../events/content.ts'
import { requireTextId } from '../../ledger/queries.ts'
import { fields, listOf, maybe, numberFrom, requireOptions, valueThat } from '../../values/option.ts'
import { toolCallIdOf, type RunId, type ToolCallId } from '../../values/ids.ts'

const ordinalNumber = numberFrom(0, { whole: true })
const factList = listOf(
  valueThat('a fact, such as everyFact(runId).run_started', (value) =>
    Object.hasOwn(eventTraits, (Object(value) as { readonly type?: PropertyKey }).type ?? ''),
  ),
)
const stampPlace = fields<{ readonly afterSeq?: number | undefined; readonly epoch?: number | undefined }>({
  afterSeq: maybe(ordinalNumber),
  epoch: maybe(ordinalNumber),
})

/** The `ordinal`-th run id of a test: shaped as a UUIDv7, the same at every call, and rising with `ordinal`. */
export function sampleRunId(ordinal: number): RunId {
  requireOptions('sampleRunId', ordinalNumber, ordinal, 'the number')
  return `01932f00-0000-7000-8000-${ordinal.toString(16).padStart(12, '0')}` as RunId
}

/** The `ordinal`-th call, from 1, of the first attempt of a run's first turn. */
export function sampleCallId(runId: RunId, ordinal = 1): ToolCallId {
  requireTextId('sampleCallId', runId)
  return toolCallIdOf(runId, 1, 1, ordinal)
}

/** A user's message of one text. */
export function sampleMessage(text: string): UserMessage {
  return { role: 'user', parts: [{ type: 'text', text }] }
}

/** Facts as events: numbered after `afterSeq`, signed with `epoch`, one millisecond apart. */
export function stamped(
  runId: RunId,
  facts: readonly Fact[],
  where: { readonly afterSeq?: number | undefined; readonly epoch?: number | undefined } = {},
): readonly RuntimeEvent[] {
  requireTextId('stamped', runId)
  requireOptions('stamped', factList, facts, 'the list of facts')
  requireOptions('stamped', stampPlace, where)
  const { afterSeq = 0, epoch = 1 } = where
  return facts.map((fact, index) => {
    const seq = afterSeq + index + 1
    return { runId, seq, epoch, at: 1_760_000_000_000 + seq, v: eventTraits[fact.type].v, ...fact }
  })
}
