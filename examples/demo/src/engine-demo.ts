import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { fileURLToPath } from 'node:url'
import { type CommandContext, type ExitCode, exitCodes } from '@tallystick/cli'
import { createRuntime, type Ledger, type RunId, type RuntimeEvent } from '@tallystick/core'
import { toResult } from '@tallystick/core/internal'
import { caughtUp, followChanges } from '@tallystick/core/store-kit'
import type { EventOf } from '@tallystick/core/vocabulary'
import { createClient } from '@tallystick/engines'
import { pgBossEngine } from '@tallystick/engines/pg-boss'
import { foldTo } from '@tallystick/ledger'
import { postgresLedger } from '@tallystick/ledger/postgres'
import Database from 'better-sqlite3'
import { startPostgres } from '../../../packages/ledger/test/support/postgres-process.ts'
import { playedBy } from './choose-model.ts'
import { demoFiles } from './demo-files.ts'
import { openBoss } from './open-boss.ts'
import { openDemo } from './open-demo.ts'
import type { Options } from './options.ts'
import { question } from './task.ts'

/**
 * Runs the demo's task by two worker processes on pg-boss, kills the one that drives it with `kill -9`, and lets the other one
 * continue. Everything is in a folder and a Postgres server of its own, which go away with it.
 */
export async function runOnEngine(
  context: CommandContext,
  options: Pick<Options, 'yes' | 'deny'> & { readonly modelId: string },
): Promise<ExitCode> {
  const { view } = context
  const tell = (line: string): void => view.write(`${line}\n`)
  const { modelId, yes, deny } = options
  if (yes !== true && deny === undefined && !process.stdin.isTTY)
    throw new Error('Nobody is there to decide about the order. Give --yes, or --deny with a reason.')
  tell(playedBy(modelId))
  const folder = mkdtempSync(join(tmpdir(), 'tallystick-demo-'))
  const ledgerPath = join(folder, 'demo')
  const workers: ChildProcess[] = []
  tell('Starts a Postgres server for this demo, which holds the ledger and the jobs of pg-boss.')
  const postgres = await startPostgres([])
  try {
    if ('unavailable' in postgres.server)
      throw new Error(`This demo needs Postgres: ${postgres.server.unavailable}`)
    const { connectionString } = postgres.server
    await using ledger = postgresLedger({ connectionString })
    const boss = await openBoss(connectionString)
    const demo = await openDemo({ ledgerPath, modelId })
    try {
      const runtime = createRuntime({ ledger, agents: [demo.agent] })
      const client = createClient({
        runtime,
        engine: pgBossEngine({ boss, queueOptions: { heartbeatSeconds: 10 } }),
      })
      const runId = await client.enqueue(demo.agent, question)
      tell(`\nThis process drives nothing. It has put run ${runId} on record and woken it.`)
      for (let count = 0; count < 2; count++)
        workers.push(await startWorkerProcess([connectionString, ledgerPath, modelId]))
      tell(`Two workers are there: processes ${workers.map(({ pid }) => pid).join(' and ')}.\n`)
      const seen = new Followed(ledger, runId)
      await seen.until('tool_result', tell)
      await killDriver(ledger, runId, workers, tell)
      const { toolCallId } = await seen.until('approval_requested', tell)
      const call = context.paint('bold', await seen.inputOf(toolCallId))
      tell(`\nThe run waits for a person, and no worker is busy with it: ${call}`)
      const isApproved = await ask(options)
      await client.post(
        runId,
        isApproved
          ? { type: 'approve', toolCallId, by: 'you' }
          : { type: 'deny', toolCallId, by: 'you', reason: options.deny ?? 'not now' },
        { key: 'the decision' },
      )
      tell(
        `This process has put the ${isApproved ? 'approval' : 'denial'} into the run's inbox and woken it.\n`,
      )
      await seen.until('run_finished', tell)
      const { text } = await runtime.resume(runId).result
      tell(`\n${text}\n`)
      tell(`Orders placed: ${countOrders(ledgerPath)}. Nothing is lost, and nothing has happened twice.`)
      return exitCodes.ok
    } finally {
      await Promise.all(workers.map(stopProcess))
      await boss.stop()
      await demo.close()
    }
  } finally {
    await postgres.end()
    rmSync(folder, { recursive: true, force: true })
  }
}

async function startWorkerProcess(words: readonly string[]): Promise<ChildProcess> {
  const child = fork(fileURLToPath(new URL('engine-worker.ts', import.meta.url)), words)
  await once(child, 'message')
  return child
}

async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = once(child, 'exit')
  child.kill('SIGTERM')
  await ended
}

/** Kills the worker that holds the lease of a run, as a crash does. */
async function killDriver(
  ledger: Ledger,
  runId: RunId,
  workers: readonly ChildProcess[],
  tell: (line: string) => void,
): Promise<void> {
  const { holder = '' } = (await ledger.lease(runId)) ?? {}
  const driver = workers.find(({ pid }) => holder.startsWith(`process ${pid} `))
  if (driver === undefined) throw new Error('No worker drives the run now.')
  const ended = once(driver, 'exit')
  driver.kill('SIGKILL')
  await ended
  tell(`\nkill -9 ${driver.pid}: the worker is dead in the middle of a turn.`)
  tell(
    'The other one gets the run once pg-boss misses the heartbeats of the dead one: within some 15 seconds.\n',
  )
}

/** The events of a run as they come onto the record, read by this process. */
class Followed {
  readonly #ledger: Ledger
  readonly #runId: RunId
  readonly #changes: ReturnType<typeof followChanges>

  constructor(ledger: Ledger, runId: RunId) {
    this.#ledger = ledger
    this.#runId = runId
    this.#changes = followChanges(ledger, runId, { after: 0 })
  }

  /** Tells what happens up to the next event of a type, and returns that. */
  async until<Type extends RuntimeEvent['type']>(
    type: Type,
    tell: (line: string) => void,
  ): Promise<EventOf<Type>> {
    for (;;) {
      const { value, done } = await this.#changes.next()
      if (done || value === undefined) throw new Error('The record ended.')
      if (value === caughtUp) continue
      const line = await this.#describe(value)
      if (line !== undefined) tell(line)
      if (value.type === type) return value as EventOf<Type>
    }
  }

  /** What a person wants to know of an event. */
  async #describe(event: RuntimeEvent): Promise<string | undefined> {
    if (event.type === 'run_resumed') {
      const { holder = '' } = (await this.#ledger.lease(this.#runId)) ?? {}
      return `  ${/^process \d+/.exec(holder)?.[0] ?? 'a worker'} takes the run`
    }
    if (event.type === 'tool_started') return `  turn ${event.turn}: ${event.name} begins`
    if (event.type === 'tool_result') return `  turn ${event.turn}: ${event.name} is done: ${event.outcome}`
    return event.type === 'run_finished' ? `  the run has ended: ${event.reason}` : undefined
  }

  /** A call and its input, in words. */
  async inputOf(toolCallId: string): Promise<string> {
    const { pendingApprovals } = toResult(await foldTo(this.#ledger, this.#runId))
    const call = pendingApprovals.find((each) => each.toolCallId === toolCallId)
    return `${call?.name} ${JSON.stringify(call?.input)}`
  }
}

async function ask({ yes, deny }: Pick<Options, 'yes' | 'deny'>): Promise<boolean> {
  if (yes === true || deny !== undefined) return yes === true
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  try {
    return /^y/i.test(await terminal.question('Approve it? [y/N] '))
  } finally {
    terminal.close()
  }
}

function countOrders(ledgerPath: string): number {
  const orders = new Database(demoFiles(ledgerPath).ordersPath, { readonly: true })
  try {
    return orders.prepare<[], { count: number }>('SELECT count(*) AS count FROM orders').get()?.count ?? 0
  } finally {
    orders.close()
  }
}
