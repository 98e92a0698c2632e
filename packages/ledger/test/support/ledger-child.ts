// A process of its own for tests of crashes and of many processes. It says on stdout, a JSON line each, what was
// acknowledged. Usage: ledger-child.ts <task> <path> [argument], with LEDGER_CHILD_USER as that user.
import { readdirSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Ledger } from '@tallystick/core'
import type { Fact } from '@tallystick/core/vocabulary'
import { sampleFacts, sampleMessage, sampleRunId, stampFacts } from '@tallystick/testkit'
import { sqliteLedger } from '@tallystick/ledger/sqlite'
import BetterSqlite3 from 'better-sqlite3'

const run = sampleRunId(1)
const facts = sampleFacts(run)
const [task = '', path = '', argument = ''] = process.argv.slice(2)

function say(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

const delta = (text: string): Fact => ({ ...facts.assistant_text_delta, text })

/** Takes the run over or makes it, then appends three lazy deltas and a barrier for ever. */
async function appendForEver(ledger: Ledger): Promise<void> {
  let head = (await ledger.head(run)) ? await ledger.acquire(run) : { seq: 0, epoch: 1 }
  const append = async (events: readonly Fact[], durability: 'lazy' | 'barrier'): Promise<void> => {
    const batch = stampFacts(run, events, { afterSeq: head.seq, epoch: head.epoch })
    head = await ledger.append(run, { expectedSeq: head.seq, epoch: head.epoch }, batch, { durability })
  }
  if (head.seq === 0) await append([facts.run_started, facts.input_received], 'barrier')
  for (;;) {
    for (const text of ['a', 'b', 'c']) await append([delta(text)], 'lazy')
    await append([facts.usage_updated, facts.guardrail_tripped], 'barrier')
    say(head)
  }
}

const tasks: Readonly<Record<string, () => Promise<void>>> = {
  async append() {
    say('opening')
    await appendForEver(sqliteLedger(path))
  },
  async cycle() {
    for (let ordinal = Number(argument); ; ordinal++) {
      const ledger = sqliteLedger(path)
      const own = sampleRunId(ordinal)
      await ledger.append(
        own,
        { expectedSeq: 0, epoch: 1 },
        stampFacts(own, [sampleFacts(own).run_started]),
        {
          durability: 'lazy',
        },
      )
      say(ordinal)
      await ledger.close()
      say('closed')
    }
  },
  async make() {
    // They write one after the other, however busy the machine is.
    const ledger = sqliteLedger(path, { busyTimeoutMs: 60_000 })
    const own = sampleRunId(Number(argument))
    say(
      await ledger.append(
        own,
        { expectedSeq: 0, epoch: 1 },
        stampFacts(own, [sampleFacts(own).run_started]),
        {
          durability: 'barrier',
        },
      ),
    )
    await ledger.close()
  },
  async put() {
    const ledger = sqliteLedger(path)
    const command = { type: 'steer', message: sampleMessage(argument), receipt: argument } as const
    say(await ledger.put(run, { key: argument, command, at: 1_760_000_000_000 }))
    await ledger.close()
  },
  /** Appends to eight runs at once until the disk takes no more, and says what it was told of each event. */
  async fill() {
    const ledger = sqliteLedger(path)
    const runs = Array.from({ length: 8 }, (_, index) => sampleRunId(index + 1))
    for (let seq = 1, isFull = false; !isFull; seq++) {
      const endings = await Promise.allSettled(
        runs.map((runId) => {
          const { run_started, cancel_requested } = sampleFacts(runId)
          const fact = seq === 1 ? run_started : { ...cancel_requested, reason: 'x'.repeat(2_000) }
          const events = stampFacts(runId, [fact], { afterSeq: seq - 1 })
          return ledger.append(runId, { expectedSeq: seq - 1, epoch: 1 }, events, { durability: 'barrier' })
        }),
      )
      for (const [index, ending] of endings.entries()) {
        isFull ||= ending.status === 'rejected'
        say(ending.status === 'fulfilled' ? { run: index + 1, ...ending.value } : String(ending.reason))
      }
    }
    say({ read: (await Array.fromAsync(ledger.find())).length })
    await ledger.close()
  },
  async read() {
    const ledger = sqliteLedger(path, { readOnly: true })
    say(await Array.fromAsync(ledger.read(run)))
    await ledger.close()
    say(readdirSync(dirname(path)))
  },
  async write() {
    try {
      sqliteLedger(path)
      say('opened')
    } catch (error) {
      say(String(error))
    }
  },
}

/** Another user may not be able to read the program itself, so all of it is loaded before. */
function becomeUser(user: number): void {
  new BetterSqlite3(':memory:').close()
  process.setgroups?.([])
  process.setgid?.(user)
  process.setuid?.(user)
}

const { LEDGER_CHILD_USER: user } = process.env
if (user !== undefined) becomeUser(Number(user))
await tasks[task]?.()
