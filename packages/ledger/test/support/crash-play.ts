import { LedgerConflictError } from '@tallystick/core'
import type { Fate } from './crash-boundaries.ts'
import { underLock } from './crash-commits.ts'
import { eventsIn } from './crash-evidence.ts'
import { judge } from './crash-judge.ts'
import type { Point } from './crash-point.ts'
import { startProcess, type CrashProcess, type Ended } from './crash-process.ts'
import {
  clear,
  evidenceOf,
  prepare,
  siteOf,
  takeOver,
  type Ground,
  type Site,
  type Taken,
} from './crash-site.ts'
import { untilGone } from './crash-store.ts'
import { doubleStarts, repetitions } from './crash-world-judge.ts'

/** How it went at one point. */
export interface Played {
  readonly point: Point
  /** Processes that were killed. */
  readonly kills: number
  /** Where a process stood still that was stopped, and what it met when it continued. */
  readonly stoppedAt?: string
  readonly thawed?: string
  readonly events: number
  /** Runs that were replayed. */
  readonly replays: number
  /** Starts of calls in doubt, of tools that say that they may be started again. */
  readonly repetitions: number
  /** Second starts of calls of all other tools. */
  readonly doubleStarts: number
  readonly violations: readonly string[]
  /** What is left of a point that went wrong: the ledger file, the world, the acknowledgements. */
  readonly folder?: string
}

/** How the processes of a point ended, and what the process that took over found. */
interface Ending {
  readonly ends: readonly Ended[]
  readonly taken: Taken
  readonly stoppedAt?: string
}

function processOf(site: Site, fromStep: number, fate: Fate): CrashProcess {
  const { store, session, world, acknowledged, scenario } = site
  return startProcess({ store, session, world, acknowledged, scenario: scenario.name, fromStep, fate })
}

/** Plays one point: cuts off, takes over, drives to the end, and judges. */
export async function play(point: Point, ground: Ground): Promise<Played> {
  const site = siteOf(ground, point.scenario)
  await prepare(site, point.fromStep)
  const { ends, taken, stoppedAt } = await (point.kind === 'kill' ? playKill : playStop)(site, point)
  const evidence = await evidenceOf(site, taken)
  const violations = [...ends.flatMap(brokenProcess), ...taken.faults, ...judge(evidence)]
  if (violations.length === 0) clear(site)
  return {
    point,
    violations,
    events: eventsIn(evidence.after),
    replays: evidence.replays,
    repetitions: repetitions(evidence),
    doubleStarts: doubleStarts(evidence),
    kills: ends.filter(({ kind }) => kind === 'killed').length,
    ...(stoppedAt !== undefined && { stoppedAt, thawed: metBy(ends.at(-1)) ?? 'nothing' }),
    ...(violations.length > 0 && { folder: site.folder }),
  }
}

async function playKill(site: Site, { fromStep, at, thenAt }: Point): Promise<Ending> {
  const killed = async (step: number, boundary: number): Promise<Ended> => {
    const ended = await processOf(site, step, { kind: 'kill', at: boundary }).ended
    await untilGone(site.store, site.session)
    return ended
  }
  const ends = [await killed(fromStep, at)]
  if (thenAt !== undefined) ends.push(await killed(0, thenAt))
  return { ends, taken: await takeOver(site) }
}

async function playStop(site: Site, { fromStep, at }: Point): Promise<Ending> {
  const process = processOf(site, fromStep, { kind: 'stop', at })
  const stoppedAt = await process.stopped
  if (typeof stoppedAt !== 'string') return { ends: [stoppedAt], taken: await takeOver(site) }
  if (site.store.kind === 'sqlite' && underLock.includes(stoppedAt)) {
    // A process that stops there holds the lock of the file: it cannot be overtaken, and the others get the reason.
    const refused = await takeOver(site, { overtake: true, impatient: true })
    process.thaw()
    const ends = [await process.ended]
    const taken = await takeOver(site)
    const faults = [...(refused.faults.some(isBusy) ? [] : ['nobody was told of the lock']), ...taken.faults]
    return { ends, taken: { ...taken, faults }, stoppedAt }
  }
  const taken = await takeOver(site, { overtake: true })
  process.thaw()
  return { ends: [await process.ended], taken, stoppedAt }
}

function isBusy(fault: string): boolean {
  return /LedgerUnavailableError.*SQLITE_BUSY.*Another process has held it/.test(fault)
}

/** The conflict that a process received, or that no caller in it handled. */
function metBy(ended: Ended | undefined): string | undefined {
  if (ended?.kind !== 'ended') return undefined
  const { failure, strays } = ended.said
  return [failure, ...strays].find((error) => error !== undefined && isConflict(error))
}

function isConflict(error: string): boolean {
  return error.startsWith(LedgerConflictError.name)
}

/** A process that is neither killed nor at its end has met something that it should not. */
function brokenProcess(ended: Ended): readonly string[] {
  if (ended.kind === 'broken') return [`a process broke: ${ended.why}`]
  if (ended.kind === 'killed') return []
  const { failure, strays } = ended.said
  const met = failure === undefined ? strays : [failure, ...strays]
  return met.filter((error) => !isConflict(error)).map((error) => `a process met ${error}`)
}
