import type { RuntimeEvent } from '../../events/event.ts'
import type { RunId } from '../../values/ids.ts'
import { everyFact } from '../samples/sample-facts.ts'
import { stamped } from '../samples/sample-ids.ts'
import type { LedgerContractCase } from '../contract/contract-case.ts'
import { require, requireEqual, requireRefusal } from '../contract/requirement.ts'
import { barrier, collect, otherRun, requireRecord, run, saying } from '../contract/scenario.ts'

/** Names that databases cut off, refuse or change, and what an unchecked database makes of them. */
const oddNames: readonly (readonly [string, string])[] = [
  ['before\0after', 'before'],
  ['\0', ''],
  ['half \ud800', 'half \ufffd'],
  ['\udc00 half', '\ufffd half'],
]

/** Appends that name something by such a name: a run, a session, a tool call, a type. */
function appendsOf(name: string): readonly (readonly [RunId, RuntimeEvent])[] {
  const started = stamped(otherRun, [everyFact(otherRun).run_started])
  const second = stamped(run, [saying('a')], { afterSeq: 1 })
  const changed = (events: readonly RuntimeEvent[], change: object): RuntimeEvent => {
    return { ...(events[0] as RuntimeEvent), ...change }
  }
  return [
    [name as RunId, changed(started, { runId: name })],
    [otherRun, changed(started, { sessionId: name, sessionPlace: 1 })],
    [run, changed(second, { toolCallId: name })],
    [run, changed(second, { type: name })],
  ]
}

/** What has no name that every store can hold is refused, and nothing is found under such a name. */
export const nameCases: readonly LedgerContractCase[] = oddNames.map(([name, mended]) => ({
  promise: `an id or a type with a NUL or half a surrogate pair is refused, and names nothing: ${JSON.stringify(name)}`,
  async run(open) {
    const ledger = await open()
    const session = { sessionId: mended, sessionPlace: 1 }
    const like = stamped(run, [{ ...everyFact(run).run_started, ...session }])
    await ledger.append(run, { expectedSeq: 0, epoch: 1 }, like, barrier)
    for (const [runId, event] of appendsOf(name)) {
      const expected = { expectedSeq: event.seq - 1, epoch: 1 }
      await requireRefusal(ledger.append(runId, expected, [event], barrier), 'configuration')
    }
    await requireRecord(ledger, like)
    require((await ledger.head(name as RunId)) === undefined, 'the run should not be there')
    requireEqual(await collect(ledger.read(name as RunId)), [], 'the events of the run')
    requireEqual(await collect(ledger.find({ runId: name as RunId })), [], 'what is found of the run')
    requireEqual(await collect(ledger.runs({ sessionId: name })), [], 'the runs of the session')
    requireEqual(await collect(ledger.find({ sessionId: name })), [], 'what is found of the session')
  },
}))
