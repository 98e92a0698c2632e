import type { Refusal } from '../../machine/rules.ts'
import type { Clock } from '../../values/host.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { OutsideCommand } from '../../events/commands.ts'
import type { EventOf } from '../../events/event.ts'
import type { RunId, ToolCallId } from '../../values/ids.ts'

/** The refusals that say only in which state the run is, where the call may have had its decision before. */
const tellsLittle: ReadonlySet<Refusal['code']> = new Set([
  'run_finished',
  'unknown_call',
  'not_awaiting_approval',
])

/** Returns whether the run's record may tell the sender of a refused command more than the refusal does. */
export function mayBeDecidedBefore(command: OutsideCommand, { code }: Refusal): boolean {
  return (command.type === 'approve' || command.type === 'deny') && tellsLittle.has(code)
}

/** How long the sender of a refused decision waits for who decided before, in milliseconds. */
const maxLookMs = 1_000

/** Where it is looked up who decided before. */
interface DecisionRecord {
  readonly ledger: Ledger
  readonly clock: Clock
  readonly runId: RunId
}

/**
 * Returns the refusal of a decision with who decided before and how, where that is on record; else the refusal as it is. A
 * ledger that fails, or does not answer in a second, changes nothing: the decision is refused either way.
 */
export async function namingDecider(
  refusal: Refusal,
  command: OutsideCommand,
  record: DecisionRecord,
): Promise<Refusal> {
  const asItIs = Promise.withResolvers<Refusal>()
  const stopTimer = record.clock.schedule(maxLookMs, () => asItIs.resolve(refusal))
  return await Promise.race([named(refusal, command, record), asItIs.promise]).finally(stopTimer)
}

async function named(
  refusal: Refusal,
  command: OutsideCommand,
  { ledger, runId }: DecisionRecord,
): Promise<Refusal> {
  if (command.type !== 'approve' && command.type !== 'deny') return refusal
  const { toolCallId, attempt = 1 } = command
  try {
    for await (const event of ledger.find({
      runId,
      toolCallId: toolCallId as ToolCallId,
      types: ['approval_decided'],
    })) {
      if (event.type !== 'approval_decided' || event.attempt !== attempt || event.elsewhere) continue
      return { code: 'not_awaiting_approval', message: messageOf(refusal, event) }
    }
  } catch {
    // The sender gets the refusal as it is.
  }
  return refusal
}

/** The longest name of a person that a refusal holds, in characters. */
const maxNameLength = 100

/** Characters that a terminal obeys, hides or reorders text by, and halves of surrogate pairs. */
const unseen = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

/** A name as a line of text can hold it: another process has given it. */
function shownName(name: string): string {
  const short = name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name
  return short.replaceAll(unseen, '\ufffd')
}

function messageOf(
  refusal: Refusal,
  { runId, seq, toolCallId, approved, by }: EventOf<'approval_decided'>,
): string {
  const decided = `Tool call ${toolCallId} was ${approved ? 'approved' : 'denied'} before, by ${shownName(by)} (event ${seq} of run ${runId}); a call is decided once. Show the run to see what followed.`
  // What the machine says about a question names what is asked now.
  return refusal.code === 'not_awaiting_approval' ? `${refusal.message} ${decided}` : decided
}
