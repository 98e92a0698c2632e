import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { RunId, RuntimeEvent } from '@tallystick/core'
import type { TailCursor } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { postgresLedger } from '@tallystick/ledger/postgres'
import type { MortalServer } from './crash-server.ts'
import { chainFaults } from './postgres-chain.ts'

/** An append that was acknowledged. */
export interface Acknowledged {
  readonly kind: 'acknowledged'
  readonly runId: RunId
  readonly seq: number
  readonly texts: readonly string[]
  readonly durability: 'barrier' | 'lazy'
  /** How often an append failed before without saying whether it was written. */
  readonly failures: number
  /** How often the server had died, as far as the process had heard, when the append began and when it ended. */
  readonly begun: number
  readonly ended: number
}

/** What a process says that writes. */
export type Written =
  | Acknowledged
  | { readonly kind: 'conflict' }
  | { readonly kind: 'death'; readonly deaths: number }

/** What a process says that follows. */
export interface Followed {
  readonly kind: 'seen'
  readonly cursor: TailCursor
  readonly runId: RunId
  readonly seq: number
  readonly text: string
}

/** How much chaos there is to be. */
export interface ChaosOptions {
  readonly writers: number
  readonly runs: number
  readonly random: () => number
  /** Whether the server is to be killed once more. */
  readonly goesOn: (kills: number) => boolean
}

/** What came of it. All of `lost`, `missed`, `repeated` and `faults` is to be nothing. */
export interface ChaosReport {
  readonly kills: number
  /** Processes that were killed too, writers and followers. */
  readonly deaths: number
  readonly acknowledged: number
  readonly barriers: number
  /** Appends that were asked for again, since a death left them in doubt. */
  readonly inDoubt: number
  readonly conflicts: number
  readonly events: number
  readonly seen: number
  /** Acknowledged lazily after the last barrier, and gone with the server. */
  readonly lostLazily: number
  /** Acknowledged at a barrier, or before one, and not there. */
  readonly lost: readonly string[]
  readonly missed: number
  readonly repeated: number
  readonly faults: readonly unknown[]
}

const schema = 'chaos'
/** Begins when all else is written. */
const marker = sampleRunId(99)

/**
 * Several processes append to shared runs, one follows all of them, and the server is killed again and again, and now and
 * then one of the processes too. No process opens a ledger anew: each that is alive continues after the server is back.
 */
export async function runChaos(server: MortalServer, options: ChaosOptions): Promise<ChaosReport> {
  const { writers, runs, random, goesOn } = options
  const made = postgresLedger({ connectionString: server.connectionString, schema })
  await made.head('' as RunId)
  await made.close()
  const processes = new Set<Worker>()
  const histories: Written[][] = []
  const seen: Followed[] = []
  let [kills, deaths] = [0, 0]
  const startWriter = (): Worker => {
    const history: Written[] = []
    const name = `writer ${histories.push(history)}`
    return new Worker(
      ['write', server.connectionString, schema, JSON.stringify([name, runs, kills])],
      history,
    )
  }
  const startFollower = (): Worker =>
    new Worker(['follow', server.connectionString, schema, seen.at(-1)?.cursor ?? ''], seen)
  let follower = startFollower()
  try {
    for (let count = 0; count < writers; count++) processes.add(startWriter())
    while (goesOn(kills)) {
      const [busy = startWriter()] = processes
      await busy.hears(1 + Math.floor(random() * 60))
      server.kill()
      kills++
      follower.tell('died')
      await Promise.all([...processes].map((each) => each.hearsOfDeath(kills)))
      if (random() < 0.3) {
        await busy.kill()
        processes.delete(busy)
        processes.add(startWriter())
        deaths++
      }
      if (random() < 0.3) {
        await follower.kill()
        follower = startFollower()
        deaths++
      }
      await server.revive()
      for (const each of [...processes, follower]) each.tell('back')
    }
    await Promise.all([...processes].map((each) => each.end()))
    return { kills, deaths, ...(await judge(server, histories, { seen, follower })) }
  } finally {
    for (const each of [...processes, follower]) await each.kill()
  }
}

async function judge(
  { connectionString }: MortalServer,
  histories: readonly (readonly Written[])[],
  { seen, follower }: { readonly seen: readonly Followed[]; readonly follower: Worker },
): Promise<Omit<ChaosReport, 'kills' | 'deaths'>> {
  const ledger = postgresLedger({ connectionString, schema })
  try {
    const last = stampFacts(marker, [sampleFacts(marker).cancel_requested])
    await ledger.append(marker, { expectedSeq: 0, epoch: 1 }, last, { durability: 'barrier' })
    while (seen.at(-1)?.runId !== marker) await follower.hears(1)
    const status = await Array.fromAsync(ledger.tail(), ({ event }) => event)
    const faults: unknown[] = []
    for await (const { runId } of ledger.runs()) faults.push(...(await chainFaults(ledger, runId)))
    const texts = new Map(status.map((event) => [placeOf(event), textOf(event)]))
    const lines = histories.flat()
    const acknowledged = lines.filter((line) => line.kind === 'acknowledged')
    const conflicts = lines.filter(({ kind }) => kind === 'conflict').length
    return {
      acknowledged: acknowledged.length,
      conflicts,
      barriers: acknowledged.filter(({ durability }) => durability === 'barrier').length,
      inDoubt: acknowledged.filter(({ failures }) => failures > 0).length,
      events: status.length,
      seen: seen.length,
      faults,
      ...lossesOf(histories, texts),
      ...differenceOf(status, seen),
    }
  } finally {
    await ledger.close()
  }
}

const placeOf = ({ runId, seq }: Pick<RuntimeEvent, 'runId' | 'seq'>): string => `${runId} ${seq}`
const textOf = (event: RuntimeEvent): string => (event.type === 'assistant_text_delta' ? event.text : '')

/** What was acknowledged and is not there. */
function lossesOf(
  histories: readonly (readonly Written[])[],
  texts: ReadonlyMap<string, string>,
): Pick<ChaosReport, 'lost' | 'lostLazily'> {
  const lost: string[] = []
  let lostLazily = 0
  for (const history of histories) {
    for (const [index, line] of history.entries()) {
      if (line.kind !== 'acknowledged') continue
      for (const [offset, text] of line.texts.entries()) {
        const place = placeOf({ runId: line.runId, seq: line.seq + offset })
        if (texts.get(place) === text) continue
        if (isDurable(line, history.slice(index))) lost.push(`${place} said ${text}, not ${texts.get(place)}`)
        else lostLazily++
      }
    }
  }
  return { lost, lostLazily }
}

/** Whether it is a barrier, or one of its process followed before the server died. */
function isDurable(append: Acknowledged, later: readonly Written[]): boolean {
  const { begun, ended, durability } = append
  const isBehind = (line: Written): boolean =>
    line.kind === 'acknowledged' &&
    line.durability === 'barrier' &&
    line.begun === begun &&
    line.ended === begun
  return durability === 'barrier' || (begun === ended && later.some(isBehind))
}

/** A follower sees the recorded events, in their order, once. */
function differenceOf(
  status: readonly RuntimeEvent[],
  seen: readonly Followed[],
): Pick<ChaosReport, 'missed' | 'repeated'> {
  const places = new Set(seen.map((each) => `${placeOf(each)} ${each.text}`))
  const missed = status.filter((event) => !places.has(`${placeOf(event)} ${textOf(event)}`)).length
  return { missed, repeated: seen.length - status.length + missed }
}

/** A process of its own, and what it says. */
class Worker {
  readonly #child: ChildProcess
  readonly #exit: Promise<unknown>
  readonly #lines: readonly (Written | Followed)[]
  #heard = 0
  #wake: () => void = () => undefined

  constructor(args: readonly string[], lines: (Written | Followed)[]) {
    this.#lines = lines
    const script = fileURLToPath(new URL('chaos-child.ts', import.meta.url))
    const child = spawn(process.execPath, [script, ...args], { stdio: ['pipe', 'pipe', 'inherit'] })
    this.#child = child
    // Only then has all been heard that it said.
    this.#exit = once(child, 'close').then(() => this.#wake())
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(JSON.parse(line) as Written & Followed)
      this.#heard++
      this.#wake()
    })
  }

  /** Resolves once it has said so much more. Rejects where it has ended. */
  hears(count: number): Promise<void> {
    const until = this.#heard + count
    return this.#until(() => this.#heard >= until)
  }

  tell(word: 'died' | 'back'): void {
    this.#child.stdin?.write(`${word}\n`)
  }

  /** Tells it that the server has died, and waits until it knows. */
  async hearsOfDeath(deaths: number): Promise<void> {
    this.tell('died')
    await this.#until(() => this.#lines.some((line) => line.kind === 'death' && line.deaths === deaths))
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) {
      if (this.#child.exitCode !== null || this.#child.signalCode !== null)
        throw new Error('A process has ended early.')
      await new Promise<void>((resolve) => (this.#wake = resolve))
    }
  }

  /** Lets it finish what it is at. */
  async end(): Promise<void> {
    this.#child.stdin?.end()
    await this.#exit
    if (this.#child.exitCode !== 0) throw new Error(`A process ended with ${this.#child.exitCode}.`)
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exit
  }
}
