import type { Ledger, RunId } from '@tallystick/core'
import { TallystickError } from '@tallystick/core'
import { parseRunId } from '@tallystick/core/vocabulary'
import { eventsToFold } from '@tallystick/ledger'
import { commandLine } from '../command/command-context.ts'
import type { Place } from '../view/text/next-commands.ts'
import { CommandError } from '../command/exit-code.ts'
import { withLedger } from '../ledger/open-ledger.ts'
import { withWritable } from '../ledger/with-summaries.ts'
import { parentOf } from './parent-of.ts'

const maxNamed = 5

/** A fold of more events than this leaves a snapshot for the next one, where the ledger can be written. */
const maxEventsFolded = 5_000

/** A run that is looked at. */
export interface LookedAt {
  readonly ledger: string
  readonly run: string
  /** The `seq` that it is folded to; the last one unless given. */
  readonly at?: number
  /** One event, for which nothing is folded. */
  readonly event?: number
}

/** Opens the ledger to read a run; to write, where a long fold of the run can leave a snapshot for the next look. */
export async function withRun<Result extends number>(
  { ledger: ledgerPath, run, at, event }: LookedAt,
  programName: string,
  use: (ledger: Ledger, runId: RunId) => Promise<Result>,
): Promise<Result> {
  const find = (ledger: Ledger): Promise<RunId> => findRun(ledger, run, { programName, ledgerPath })
  const opened = await withLedger(ledgerPath, 'read', async (ledger) => {
    const runId = await find(ledger)
    const isFar = event === undefined && (await isFarFold(ledger, runId, at))
    return isFar ? undefined : await use(ledger, runId)
  })
  if (opened !== undefined) return opened
  return await withWritable(ledgerPath, async (ledger) => await use(ledger, await find(ledger)))
}

async function isFarFold(ledger: Ledger, runId: RunId, at: number | undefined): Promise<boolean> {
  const { seq: maxSeq = 0 } = (await ledger.head(runId)) ?? {}
  const events = await eventsToFold(ledger, runId, Math.min(at ?? maxSeq, maxSeq))
  return events !== undefined && events > maxEventsFolded
}

/**
 * Finds a run by its id, by an unambiguous beginning or end of it, or by `latest`, which is the last run without a
 * parent. A run is preferred to its child runs, whose ids begin as its own does. Throws a
 * `CommandError`: `not_found` when no run fits, `usage` when several do.
 */
export async function findRun(ledger: Ledger, given: string, options: Place): Promise<RunId> {
  const whole = parseRunId(given)
  if (whole !== undefined && (await ledger.head(whole)) !== undefined) return whole
  const fitting: RunId[] = []
  for await (const { runId } of ledger.runs()) {
    if (given === 'latest' && (await isAtTop(ledger, runId))) return runId
    if (given !== '' && (runId.startsWith(given) || runId.endsWith(given))) fitting.push(runId)
  }
  const [runId, ...others] = fitting.length > 1 ? await thoseAtTop(ledger, fitting) : fitting
  if (runId === undefined || others.length > 0) throw notOneRun(given, fitting, options)
  return runId
}

function notOneRun(
  given: string,
  fitting: readonly RunId[],
  { programName, ledgerPath }: Place,
): CommandError {
  const list = commandLine(programName, 'list', ledgerPath)
  if (fitting.length === 0) {
    return new CommandError('not_found', `This ledger has no run ${given}. See its runs: ${list}`)
  }
  const named = fitting.slice(0, maxNamed).join(', ') + (fitting.length > maxNamed ? ', …' : '')
  return new CommandError(
    'usage',
    `${given} fits ${fitting.length} runs (${named}). Give more of the id. See all: ${list}`,
  )
}

async function thoseAtTop(ledger: Ledger, runIds: readonly RunId[]): Promise<readonly RunId[]> {
  const found: RunId[] = []
  for (const runId of runIds) if (await isAtTop(ledger, runId)) found.push(runId)
  return found.length === 0 ? runIds : found
}

/** Returns true for a run without a parent, and for one whose first event cannot be read. */
async function isAtTop(ledger: Ledger, runId: RunId): Promise<boolean> {
  try {
    return (await parentOf(ledger, runId))?.relation !== 'child'
  } catch (error) {
    if (error instanceof TallystickError) return true
    throw error
  }
}
