import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Ledger } from '@tallystick/core'
import { acknowledging } from './crash-acknowledged.ts'
import type { Cross } from './crash-boundaries.ts'
import {
  holdingsOf,
  outsideOf,
  replaysOf,
  verdictsOn,
  type Evidence,
  type Holdings,
} from './crash-evidence.ts'
import type { ChildTask } from './crash-process.ts'
import { scenarioNamed } from './crash-scenarios.ts'
import { openStore, type Opening, type Store } from './crash-store.ts'
import { userOf, type Scenario } from './crash-user.ts'
import { World } from './crash-world.ts'

/** Where ledgers are made: a file of its own for each point, or one schema for all. */
export type Ground = 'sqlite' | Extract<Store, { readonly kind: 'postgres' }>

/** The ledger, the world and the acknowledgements of one point. */
export interface Site extends Pick<ChildTask, 'store' | 'session' | 'world' | 'acknowledged'> {
  readonly folder: string
  readonly scenario: Scenario
}

/** What a process found that took over, and what it met on the way to the end. */
export interface Taken {
  readonly before: Holdings
  readonly strays: readonly string[]
  readonly faults: readonly string[]
}

/** The longest that a run may take once no process is cut off any more, in milliseconds: only one that hangs does. */
const endsWithinMs = 60_000

/** Makes the files of a point, in a folder of its own. */
export function siteOf(ground: Ground, scenario: string): Site {
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-crash-'))
  return {
    folder,
    scenario: scenarioNamed(scenario),
    session: `session ${randomUUID()}`,
    store: ground === 'sqlite' ? { kind: 'sqlite', path: join(folder, 'runs.db') } : ground,
    world: join(folder, 'world'),
    acknowledged: join(folder, 'acknowledged'),
  }
}

/** Removes what a point has left. */
export function clear({ folder }: Site): void {
  rmSync(folder, { recursive: true })
}

/** Which steps a user of this process sees to, and what she can be cut off at. */
interface Seen {
  readonly fromStep?: number
  readonly toStep?: number
  readonly cross?: Cross
}

/** Lets a user of this process see to steps of the scenario; returns the errors that no caller handled. */
export async function see(
  { scenario, session, world, acknowledged }: Site,
  ledger: Ledger,
  { fromStep = 0, toStep, cross = () => undefined }: Seen = {},
): Promise<readonly string[]> {
  const strays: string[] = []
  const report = (error: unknown): void => void strays.push(String(error))
  const noted = acknowledging(ledger, acknowledged, cross)
  const user = userOf(scenario, { ledger: noted, session, report, cross, world: new World(world) })
  const seeing = async (): Promise<void> => {
    for (const step of scenario.steps.slice(fromStep, toStep)) await step(user)
    await user.runtime.idle()
  }
  await inTime(seeing())
  return strays
}

/** Sees to the steps before one, in a process that is not cut off. */
export async function prepare(site: Site, toStep: number): Promise<void> {
  if (toStep === 0) return
  const ledger = openStore(site.store)
  await see(site, ledger, { toStep })
  await ledger.close()
}

/** Continues with a fresh runtime where others were cut off, to the end. */
export async function takeOver(site: Site, opening: Opening = {}): Promise<Taken> {
  const ledger = openStore(site.store, opening)
  // Where the file is held in the middle of being made, not even this is seen.
  let before: Holdings = { sessions: {}, events: new Map(), inboxes: new Map(), epochs: new Map() }
  try {
    before = await holdingsOf(ledger, site.scenario, site.session)
    return { before, strays: await see(site, ledger), faults: [] }
  } catch (error) {
    return { before, strays: [], faults: [`whoever took over met ${String(error)}`] }
  } finally {
    await ledger.close()
  }
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  const late = AbortSignal.timeout(endsWithinMs)
  const end = new Promise<never>((_resolve, reject) => {
    late.addEventListener('abort', () => reject(new Error(`no end within ${endsWithinMs} ms`)))
  })
  return await Promise.race([work, end])
}

/** All that is known from outside, once everything has ended. */
export async function evidenceOf(site: Site, { before, strays }: Omit<Taken, 'faults'>): Promise<Evidence> {
  const { scenario, session, store, world } = site
  const ledger = openStore(store)
  try {
    const after = await holdingsOf(ledger, scenario, session)
    const verdicts = await verdictsOn(ledger, after, store.kind === 'sqlite')
    const agent = scenario.agent({ world: new World(world), cross: () => undefined })
    const replayed = await replaysOf(ledger, after, agent)
    return { scenario, before, after, verdicts, ...replayed, strays, ...outsideOf(site) }
  } finally {
    await ledger.close()
  }
}
