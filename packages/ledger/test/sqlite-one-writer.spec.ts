import { existsSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import {
  createRuntime,
  defineAgent,
  LedgerConflictError,
  LedgerUnavailableError,
  type Ledger,
  type RunId,
  type RuntimeEvent,
} from '@tallystick/core'
import {
  everyFact,
  sampleMessage,
  sampleRunId,
  scriptedModel,
  stamped,
  testTool,
} from '@tallystick/core/testing'
import { exportEvents, importEvents, verifyLedger } from '@tallystick/ledger'
import { hasWriter, sqliteLedger, type SqliteLedgerOptions } from '@tallystick/ledger/sqlite'
import { filter, firstValueFrom } from 'rxjs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { payingAgent } from './support/paying-agent.ts'
import { temporaryFile, temporaryFolder } from './support/temporary-folder.ts'
import { writerProcess } from './support/writer-process.ts'

const barrier = { durability: 'barrier' } as const
const [mine, theirs] = [sampleRunId(1), sampleRunId(2)]
const atStart = { expectedSeq: 0, epoch: 1 }

function started(runId: RunId): readonly RuntimeEvent[] {
  return stamped(runId, [everyFact(runId).run_started])
}

/** Refuses at once where another process writes, unless an option says to wait. */
function ledgerIn(path: string, options: SqliteLedgerOptions = { busyTimeoutMs: 0 }): Ledger {
  const ledger = sqliteLedger(path, options)
  onTestFinished(() => ledger.close())
  return ledger
}

describe('a second process that drives runs of a file', () => {
  it('is refused with the name of the first and the ways out, and has written nothing', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    const ledger = ledgerIn(path)
    const refused = await ledger
      .append(mine, atStart, started(mine), barrier)
      .catch((error: unknown) => error)
    expect(refused).toBeInstanceOf(LedgerUnavailableError)
    const { message } = refused as LedgerUnavailableError
    expect(message).toMatch(
      new RegExp(`process ${writer.pid} on ${hostname()}, since 20\\d\\d-[\\d-]+T[\\d:.]+Z\\.`),
    )
    expect(message).toMatch(
      /Let the other one end.*approve, deny, cancel, steer.*runtime\.send\(\).*ledger\.put\(\).*oneWriter: false.*postgresLedger/,
    )
    await expect(ledger.acquire(theirs)).rejects.toThrow(`process ${writer.pid} `)
    expect((await Array.fromAsync(ledger.find())).map(({ runId, epoch }) => [runId, epoch])).toEqual([
      [theirs, 1],
    ])
    expect(await ledger.head(theirs)).toEqual({ seq: 1, epoch: 1 })
  })

  it('still reads, and puts commands into inboxes', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    const ledger = ledgerIn(path)
    const command = { type: 'steer', message: sampleMessage('x'), receipt: 'r' } as const
    expect(await ledger.put(theirs, { key: 'k', command, at: 1 })).toBe(true)
    expect(await writer.ask('inbox', theirs)).toEqual([{ key: 'k', command, at: 1 }])
    expect(await Array.fromAsync(ledger.read(theirs))).toEqual(started(theirs))
  })

  it('may, when the runs of the first rest', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    for (const runId of [theirs, sampleRunId(3)]) {
      await writer.ask('append', runId, atStart, started(runId), barrier)
    }
    const ledger = ledgerIn(path)
    await writer.ask('release', theirs)
    await expect(ledger.append(mine, atStart, started(mine), barrier)).rejects.toThrow(/is being written/)
    await writer.ask('release', sampleRunId(3))
    expect(await ledger.append(mine, atStart, started(mine), barrier)).toEqual({ seq: 1, epoch: 1 })
    // Now it is the other way round.
    expect(await writer.ask('acquire', theirs)).toMatchObject({ code: 'ledger_unavailable' })
    void ledger.release?.(mine)
    expect(await writer.ask('acquire', theirs)).toEqual({ seq: 1, epoch: 2 })
  })

  it('may, when the run of the first has ended, or its ledger is closed', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    const ledger = ledgerIn(path)
    const whole = stamped(theirs, [everyFact(theirs).run_started, everyFact(theirs).run_finished])
    await writer.ask('append', theirs, atStart, whole, barrier)
    await ledger.append(mine, atStart, started(mine), barrier)
    void ledger.release?.(mine)
    const [third] = [sampleRunId(3)]
    await writer.ask('append', third, atStart, started(third), barrier)
    await expect(ledger.acquire(mine)).rejects.toThrow(/is being written/)
    await writer.ask('close')
    expect(await ledger.acquire(mine)).toEqual({ seq: 1, epoch: 2 })
  })

  it('may, when the first was killed', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    const ledger = ledgerIn(path)
    await expect(ledger.acquire(theirs)).rejects.toThrow(/is being written/)
    await writer.kill()
    expect(await ledger.acquire(theirs)).toEqual({ seq: 1, epoch: 2 })
  })

  it('waits for a moment, so that processes which write briefly follow each other', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    const ledger = ledgerIn(path, {})
    const append = ledger.append(mine, atStart, started(mine), barrier)
    await writer.ask('release', theirs)
    expect(await append).toEqual({ seq: 1, epoch: 1 })
  })

  it('is refused under every name of the file', async () => {
    const path = temporaryFile()
    const link = join(temporaryFolder(), 'link.db')
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    symlinkSync(path, link)
    await expect(ledgerIn(link).acquire(theirs)).rejects.toThrow(`process ${writer.pid} `)
  })
})

describe('a process that is stopped while it writes', () => {
  // Windows has no such signals.
  it.skipIf(process.platform === 'win32')(
    'keeps the role; with oneWriter: false it is overtaken, and what it appends when it continues is refused',
    async () => {
      const path = temporaryFile()
      const writer = await writerProcess(path)
      await writer.ask('append', theirs, atStart, started(theirs), barrier)
      writer.signal('SIGSTOP')
      await expect(ledgerIn(path).acquire(theirs)).rejects.toThrow(`process ${writer.pid} `)
      const free = ledgerIn(path, { oneWriter: false })
      expect(await free.acquire(theirs)).toEqual({ seq: 1, epoch: 2 })
      writer.signal('SIGCONT')
      const late = stamped(theirs, [everyFact(theirs).tool_started], { afterSeq: 1 })
      const answer = await writer.ask('append', theirs, { expectedSeq: 1, epoch: 1 }, late, barrier)
      expect(answer).toMatchObject({ code: 'ledger_conflict' })
      expect(await Array.fromAsync(free.read(theirs))).toEqual(started(theirs))
    },
  )
})

describe('with oneWriter: false', () => {
  it('any number of processes write, each at its own runs', async () => {
    const path = temporaryFile()
    const free = { oneWriter: false }
    const writers = await Promise.all([writerProcess(path, free), writerProcess(path, free)])
    const heads = await Promise.all(
      writers.map((writer, index) => {
        const runId = sampleRunId(index + 1)
        return writer.ask('append', runId, atStart, started(runId), barrier)
      }),
    )
    expect(heads).toEqual([1, 1].map((seq) => ({ seq, epoch: 1 })))
    expect(readdirSync(dirname(path))).not.toContain('runs.db-writer')
  })
})

describe('the ledgers of one process', () => {
  it('share the role, until the last run of them rests', async () => {
    const path = temporaryFile()
    // Makes the tables first: none of them waits for another that makes them.
    const other = await writerProcess(path, { busyTimeoutMs: 0 })
    const [one, two] = [ledgerIn(path), ledgerIn(path)]
    await one.append(mine, atStart, started(mine), barrier)
    await two.append(theirs, atStart, started(theirs), barrier)
    // The same run in both: each has to let go of it.
    await two.acquire(mine)
    const acquire = (): Promise<unknown> => other.ask('acquire', theirs)
    const refused = { code: 'ledger_unavailable' }
    expect(await acquire()).toMatchObject(refused)
    void one.release?.(mine)
    void two.release?.(mine)
    expect(await acquire()).toMatchObject(refused)
    await two.close()
    expect(await acquire()).toEqual({ seq: 1, epoch: 2 })
  })
})

describe('the file beside a ledger', () => {
  it('is there while a process writes, and goes with the last ledger that is closed', async () => {
    const path = temporaryFile()
    const ledger = sqliteLedger(path)
    expect(existsSync(`${path}-writer`)).toBe(false)
    await ledger.append(mine, atStart, started(mine), barrier)
    expect(existsSync(`${path}-writer`)).toBe(true)
    await ledger.close()
    expect(readdirSync(dirname(path))).toEqual(['runs.db'])
  })

  it('stays behind a process that was killed, and goes with the next', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    await writer.kill()
    expect(existsSync(`${path}-writer`)).toBe(true)
    expect(hasWriter(path)).toBe(false)
    await sqliteLedger(path).close()
    expect(readdirSync(dirname(path))).toEqual(['runs.db'])
  })

  it('is not taken from the one who writes by others that close', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    await sqliteLedger(path).close()
    expect(hasWriter(path)).toBe(true)
    await expect(ledgerIn(path).acquire(theirs)).rejects.toThrow(/is being written/)
  })

  it('keeps others out also where it was made anew since', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    await writer.ask('release', theirs)
    // Takes the file away that the resting process still has open.
    const brief = sqliteLedger(path)
    await brief.append(mine, atStart, started(mine), barrier)
    await brief.close()
    expect(existsSync(`${path}-writer`)).toBe(false)
    await writer.ask('acquire', theirs)
    expect(existsSync(`${path}-writer`)).toBe(true)
    await expect(ledgerIn(path).acquire(mine)).rejects.toThrow(`process ${writer.pid} `)
  })

  it('is said to be damaged where it is no database, and to hold nothing', async () => {
    const path = temporaryFile()
    const ledger = ledgerIn(path)
    writeFileSync(`${path}-writer`, 'x'.repeat(5_000))
    const append = ledger.append(mine, atStart, started(mine), barrier)
    await expect(append).rejects.toThrow(
      /runs\.db-writer.*damaged.*holds nothing of the ledger.*remove that file/,
    )
  })

  it('says whether a process writes', async () => {
    const path = temporaryFile()
    const writer = await writerProcess(path)
    expect(hasWriter(path)).toBeUndefined()
    await writer.ask('append', theirs, atStart, started(theirs), barrier)
    expect(hasWriter(path)).toBe(true)
    await writer.ask('release', theirs)
    expect(hasWriter(path)).toBe(false)
  })
})

describe('a runtime', () => {
  it('gives the role back when its runs are suspended or done, and other processes drive on', async () => {
    const path = temporaryFile()
    const other = await writerProcess(path, { busyTimeoutMs: 0 })
    const ledger = ledgerIn(path)
    const agent = payingAgent(() => {})
    const runtime = createRuntime({ ledger, agents: [agent], host: { report: () => {} } })
    const lets = async (runId: RunId): Promise<unknown> => {
      const answer = await other.ask('acquire', runId)
      await other.ask('release', runId)
      return answer
    }
    const suspended = await runtime.run(agent, 'Pay.').result
    expect(suspended.status).toBe('suspended')
    expect(await lets(suspended.runId)).toMatchObject({ epoch: 2 })
    const run = runtime.resume(suspended.runId)
    await run.result
    const { toolCallId } = suspended.pendingApprovals[0]!
    await run.approve(toolCallId, { by: 'ada' })
    expect(await run.result).toMatchObject({ status: 'done' })
    expect(await lets(suspended.runId)).toMatchObject({ seq: (await ledger.head(suspended.runId))?.seq })
    expect((await Array.fromAsync(verifyLedger(ledger))).at(-1)).toMatchObject({ ok: true })
  })

  it('gives the role back when it is relieved of a run, and when it is drained', async () => {
    const path = temporaryFile()
    const other = await writerProcess(path, { busyTimeoutMs: 0 })
    const ledger = ledgerIn(path)
    const overtaker = ledgerIn(path, { oneWriter: false })
    const look = testTool({
      name: 'look',
      run: async ({ runId }) => {
        await overtaker.acquire(runId)
        return 'too late'
      },
    })
    const looking = Array.from({ length: 2 }, () => ({ toolCalls: [{ name: 'look', input: {} }] }))
    const agent = defineAgent({ name: 'a', instructions: '', model: scriptedModel(looking), tools: [look] })
    const runtime = createRuntime({ ledger, agents: [agent], host: { report: () => {} } })
    const run = runtime.run(agent, 'Look.')
    await expect(run.result).rejects.toThrow(LedgerConflictError)
    expect(await other.ask('acquire', run.id)).toMatchObject({ epoch: 3 })
    await other.ask('release', run.id)
    const drained = createRuntime({ ledger, agents: [agent] })
    const going = drained.run(agent, 'Look.')
    await firstValueFrom(going.events$.pipe(filter(({ type }) => type === 'model_call_started')))
    await drained.drain(0)
    expect(await other.ask('acquire', going.id)).toMatchObject({ epoch: 2 })
  })
})

describe('an import', () => {
  it('gives the role back when it is through, whatever state its runs are in', async () => {
    const [path, from] = [temporaryFile(), ledgerIn(temporaryFile())]
    for (const runId of [mine, theirs]) {
      await from.append(runId, atStart, started(runId), barrier)
      const { epoch } = await from.acquire(runId)
      const next = stamped(runId, [{ ...everyFact(runId).run_resumed, turn: 0 }], { afterSeq: 1, epoch })
      await from.append(runId, { expectedSeq: 1, epoch }, next, barrier)
    }
    const ledger = ledgerIn(path)
    await importEvents(ledger, exportEvents(from))
    expect(await ledger.head(theirs)).toEqual({ seq: 2, epoch: 2 })
    expect(hasWriter(path)).toBe(false)
  })
})
