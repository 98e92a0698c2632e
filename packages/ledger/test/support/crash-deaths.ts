import { LedgerConflictError, LedgerUnavailableError, type Ledger } from '@tallystick/core'
import { noteAcknowledged } from './crash-acknowledged.ts'
import type { Cross } from './crash-boundaries.ts'
import { watching } from './crash-course.ts'
import { eventsIn, holdingsOf, type Holdings } from './crash-evidence.ts'
import { judge, lostWithTheServer } from './crash-judge.ts'
import type { MortalServer } from './crash-server.ts'
import { clear, evidenceOf, see, siteOf, type Site } from './crash-site.ts'
import { openStore } from './crash-store.ts'

/** One death of the server: in which scenario, and at which boundary (from 1) of the process that drives it. */
export interface Death {
  readonly scenario: string
  readonly at: number
}

/** How it went around one death. */
export interface Survived {
  readonly death: Death
  readonly events: number
  /** Runs that were replayed. */
  readonly replays: number
  /** What the runtime that lost its server reported to its callers; absent where it had nothing more to write. */
  readonly reported?: string
  /** Events that had been acknowledged as lazy, and went with the server, as they may. */
  readonly lost: number
  readonly violations: readonly string[]
  /** What is left of one that went wrong: the world, the acknowledgements. */
  readonly folder?: string
}

/** More lives than one death can cost. */
const maxLives = 4

/** Lets the server die at a boundary, starts it again, and has the run taken further by a fresh runtime. */
export async function surviveDeath(server: MortalServer, death: Death): Promise<Survived> {
  let crossed = 0
  const dying: Cross = () => {
    if (++crossed === death.at) server.kill()
  }
  return await watching(dying, (cross) => live(server, death, cross))
}

async function live(server: MortalServer, death: Death, cross: Cross): Promise<Survived> {
  const { connectionString } = server
  const site = siteOf({ kind: 'postgres', connectionString, schema: 'deaths' }, death.scenario)
  const ledger = openStore(site.store)
  const { before, reported, strays, faults } = await lives({ server, site, ledger, cross })
  const evidence = await evidenceOf(site, { before, strays })
  await ledger.close()
  const violations = [...faults, ...judge(evidence)]
  if (violations.length === 0) clear(site)
  return {
    death,
    violations,
    events: eventsIn(evidence.after),
    replays: evidence.replays,
    lost: lostWithTheServer(evidence),
    ...(reported[0] !== undefined && { reported: reported[0].slice(0, reported[0].indexOf(':')) }),
    ...(violations.length > 0 && { folder: site.folder }),
  }
}

interface Lives {
  readonly before: Holdings
  readonly reported: readonly string[]
  readonly strays: readonly string[]
  readonly faults: readonly string[]
}

/** The same ledger continues, over new connections; each time a fresh runtime takes up what there is. */
async function lives({
  server,
  site,
  ledger,
  cross,
}: {
  readonly server: MortalServer
  readonly site: Site
  readonly ledger: Ledger
  readonly cross: Cross
}): Promise<Lives> {
  let before: Holdings = { sessions: {}, events: new Map(), inboxes: new Map(), epochs: new Map() }
  const reported: string[] = []
  const faults: string[] = []
  for (let life = 1; life <= maxLives; life++) {
    try {
      const strays = await see(site, ledger, { cross })
      await reviveIfDead(server, site)
      // Every caller that waited for the run got what that meant for it.
      return { before, reported, faults, strays: strays.filter((stray) => !isOfTheStore(stray)) }
    } catch (error) {
      reported.push(String(error))
      if (!isOfTheStore(String(error))) faults.push(`the runtime met ${String(error)}`)
    }
    await reviveIfDead(server, site)
    before = await holdingsOf(ledger, site.scenario, site.session)
  }
  return {
    before,
    reported,
    strays: [],
    faults: [...faults, `it did not end in ${maxLives} lives: ${reported.join('; ')}`],
  }
}

async function reviveIfDead(server: MortalServer, { acknowledged }: Site): Promise<void> {
  if (server.isAlive()) return
  noteAcknowledged(acknowledged, { kind: 'death' })
  await server.revive()
}

/** A store that cannot be reached; or one that lost lazy events, so that what the writer has next does not follow. */
function isOfTheStore(error: string): boolean {
  return error.startsWith(LedgerUnavailableError.name) || error.startsWith(LedgerConflictError.name)
}
