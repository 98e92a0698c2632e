import type { Agent, Ledger, RunId, RuntimeEvent } from '@tallystick/core'
import { listReachableAgents } from '@tallystick/core/internal'
import { deriveChildRunId, type InboxEntry } from '@tallystick/core/vocabulary'
import { verifyLedger, verifyRun, type RunVerdict, type StoreVerdict } from '@tallystick/ledger'
import { replayRun } from '@tallystick/replay'
import { acknowledgedIn, type Acknowledged } from './crash-acknowledged.ts'
import type { Scenario } from './crash-user.ts'
import { World, type Deed } from './crash-world.ts'

/** What a ledger holds of the runs of a user. */
export interface Holdings {
  /** The runs of each session, the first first; sessions are named as the scenario's ends are. */
  readonly sessions: Readonly<Record<string, readonly RunId[]>>
  /** The events of these runs and of their child runs. */
  readonly events: ReadonlyMap<RunId, readonly RuntimeEvent[]>
  readonly inboxes: ReadonlyMap<RunId, readonly InboxEntry[]>
  readonly epochs: ReadonlyMap<RunId, number>
}

/** All that is known from outside of how a user's runs went. */
export interface Evidence {
  readonly scenario: Scenario
  /** When the last process took over, and when it was at the end. */
  readonly before: Holdings
  readonly after: Holdings
  readonly verdicts: readonly (RunVerdict | StoreVerdict)[]
  readonly deeds: readonly Deed[]
  readonly acknowledged: readonly Acknowledged[]
  /** How many runs were replayed: every one of them, child runs included. */
  readonly replays: number
  /** Runs that do not replay to themselves, each with the first event that comes out otherwise. */
  readonly divergences: readonly string[]
  /** Errors that no caller handled. */
  readonly strays: readonly string[]
}

/** Reads what a ledger holds of a user. */
export async function holdingsOf(ledger: Ledger, scenario: Scenario, session: string): Promise<Holdings> {
  const sessions: Record<string, readonly RunId[]> = {}
  const events = new Map<RunId, readonly RuntimeEvent[]>()
  for (const suffix of Object.keys(scenario.ends)) {
    const records = await Array.fromAsync(ledger.runs({ sessionId: session + suffix }))
    sessions[suffix] = records.map(({ runId }) => runId).reverse()
    for (const { runId } of records) await readRun(ledger, runId, events)
  }
  const inboxes = new Map<RunId, readonly InboxEntry[]>()
  const epochs = new Map<RunId, number>()
  for (const runId of events.keys()) {
    inboxes.set(runId, await ledger.inbox(runId))
    epochs.set(runId, (await ledger.head(runId))?.epoch ?? 0)
  }
  return { sessions, events, inboxes, epochs }
}

/** A run, and after it its child runs. */
async function readRun(
  ledger: Ledger,
  runId: RunId,
  found: Map<RunId, readonly RuntimeEvent[]>,
): Promise<void> {
  const events = await Array.fromAsync(ledger.read(runId))
  found.set(runId, events)
  for (const event of events) {
    if (event.type !== 'tool_started' || event.child === undefined || event.toolCallId === undefined) continue
    const childId = deriveChildRunId(runId, event.toolCallId)
    if (!found.has(childId) && (await ledger.head(childId))) await readRun(ledger, childId, found)
  }
}

/** What verifying finds: of the whole ledger where it is all theirs, else of their runs alone. */
export async function verdictsOn(
  ledger: Ledger,
  { events }: Holdings,
  isTheirs: boolean,
): Promise<readonly (RunVerdict | StoreVerdict)[]> {
  if (isTheirs) return await Array.fromAsync(verifyLedger(ledger))
  const verdicts: RunVerdict[] = []
  for (const runId of events.keys()) verdicts.push(await verifyRun(ledger, runId))
  return verdicts
}

/** Law 14: drives each run again, wherever its processes were cut off, and names those that come out otherwise. */
export async function replaysOf(
  ledger: Ledger,
  { events }: Holdings,
  agent: Agent<unknown>,
): Promise<Pick<Evidence, 'replays' | 'divergences'>> {
  const agents = new Map(listReachableAgents(agent).map((each) => [each.name, each]))
  const agentNamed = (name: string): Agent<unknown> => agents.get(name) ?? agent
  const found: string[] = []
  let replays = 0
  for (const runId of events.keys()) {
    const { divergence } = await replayRun(ledger, runId, agentNamed)
    replays++
    if (divergence) {
      const { seq, recorded, happened } = divergence
      found.push(`run ${runId} replays to ${happened?.type} where ${recorded?.type} is on record (${seq})`)
    }
  }
  return { replays, divergences: found }
}

/** The world and the acknowledgements, as the files say that outlive every process. */
export function outsideOf(files: {
  readonly world: string
  readonly acknowledged: string
}): Pick<Evidence, 'deeds' | 'acknowledged'> {
  return { deeds: new World(files.world).deeds(), acknowledged: acknowledgedIn(files.acknowledged) }
}

/** How many events a user's runs have. */
export function eventsIn({ events }: Holdings): number {
  return [...events.values()].reduce((sum, run) => sum + run.length, 0)
}
