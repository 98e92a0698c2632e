// A process of its own for tests of crashes and of many processes on one Postgres ledger. It says on stdout, a JSON line
// each, what was acknowledged. Usage: postgres-child.ts <task> <connection string> <schema> [argument]
import { createInterface } from 'node:readline'
import { LedgerConflictError, type RunId } from '@tallystick/core'
import { type Fact, type Head } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleRunId, stampFacts } from '@tallystick/testkit'
import { watchLedger } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'

const [task = '', connectionString = '', schema = '', argument = ''] = process.argv.slice(2)
const ledger = postgresLedger({ connectionString, schema })
const run = sampleRunId(1)

function say(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

function delta(text: string): Fact {
  return { ...sampleFacts(run).assistant_text_delta, text }
}

async function append(
  runId: RunId,
  head: Head,
  facts: readonly Fact[],
  durability: 'lazy' | 'barrier',
): Promise<Head> {
  const events = stampFacts(runId, facts, { afterSeq: head.seq, epoch: head.epoch })
  return await ledger.append(runId, { expectedSeq: head.seq, epoch: head.epoch }, events, { durability })
}

async function takeOver(): Promise<Head> {
  if (await ledger.head(run)) return await ledger.acquire(run)
  return await append(run, { seq: 0, epoch: 1 }, [sampleFacts(run).run_started], 'barrier')
}

/** Appends events of its own to shared runs, each time after the head that it last saw. */
async function contend(): Promise<void> {
  const [name, runs, appends] = JSON.parse(argument) as [string, number, number]
  const heads = new Map<RunId, Head>()
  let conflicts = 0
  for (let done = 0; done < appends;) {
    const runId = sampleRunId(1 + ((done + conflicts) % runs))
    const head = heads.get(runId) ?? (await ledger.head(runId)) ?? { seq: 0, epoch: 1 }
    const texts = [`${name} ${done} a`, `${name} ${done} b`]
    try {
      heads.set(runId, await append(runId, head, texts.map(delta), done % 3 === 0 ? 'lazy' : 'barrier'))
      say({ runId, seq: head.seq + 1, texts })
      done++
    } catch (error) {
      if (!(error instanceof LedgerConflictError)) throw error
      heads.delete(runId)
      conflicts++
    }
  }
  say({ conflicts })
}

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  contend,
  /** Takes the run over or makes it, then appends three lazy deltas and a barrier for ever. */
  async append() {
    let head = await takeOver()
    for (;;) {
      for (const text of ['a', 'b', 'c']) head = await append(run, head, [delta(text)], 'lazy')
      head = await append(run, head, [delta('d'), delta('e')], 'barrier')
      say(head)
    }
  },
  /** The same, and takes the run back when it was taken away and the parent says to. */
  async defend() {
    const orders = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
    let head = await takeOver()
    for (;;) {
      try {
        head = await append(run, head, [delta(`of epoch ${head.epoch}`)], 'barrier')
        say(head)
      } catch (error) {
        if (!(error instanceof LedgerConflictError)) throw error
        say({ conflict: error.kind })
        if ((await orders.next()).done) return
        head = await takeOver()
      }
    }
  },
  /** Says what it sees of all runs after a cursor, for ever. */
  async follow() {
    // Waiting for others does not keep a process alive; an open stdin does.
    process.stdin.resume()
    const seen = watchLedger(ledger, argument === '' ? undefined : argument)
    await seen.forEach(({ cursor, event: { runId, seq } }) => say({ cursor, runId, seq }))
  },
  /** Appends, listens, and goes without closing. */
  async leave() {
    const received = new Promise<void>((resolve) => {
      ledger.changes(run).subscribe(() => resolve())
    })
    say(await takeOver())
    await received
  },
  /** Makes the ledger, with others that do the same, and a run in it. */
  async make() {
    const own = sampleRunId(Number(argument))
    say(await append(own, { seq: 0, epoch: 1 }, [sampleFacts(own).run_started], 'barrier'))
  },
}

await tasks[task]?.()
if (task !== 'leave') await ledger.close()
