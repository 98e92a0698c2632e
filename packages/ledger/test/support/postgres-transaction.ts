import type { RunId } from '@tallystick/core'
import type { Fact } from '@tallystick/core/vocabulary'
import { stampFacts } from '@tallystick/testkit'
import { Client } from 'pg'
import { onTestFinished } from 'vitest'
import { genesisHash } from '../../src/format/chain.ts'
import { encodeEvent } from '../../src/format/body.ts'
import { linkEvents } from '../../src/format/event-row.ts'
import { AppendTexts } from '../../src/postgres/append.ts'
import { connectionString } from './postgres-database.ts'

/** A transaction that stays open for as long as a test wants, and what is done in it. */
export interface OpenTransaction {
  /** Gives it its number, as its first write would. */
  readonly write: () => Promise<void>
  /** Appends the first events of a run, as a ledger does. */
  readonly start: (schema: string, runId: RunId, facts: readonly Fact[]) => Promise<void>
  readonly send: (statement: string) => Promise<unknown>
  readonly commit: () => Promise<void>
  readonly rollback: () => Promise<void>
  readonly pid: number
}

/** Begins a transaction, which does not outlive the test. */
export async function openTransaction(applicationName: string): Promise<OpenTransaction> {
  const client = new Client({ connectionString, application_name: applicationName })
  await client.connect()
  onTestFinished(() => client.end().catch(() => undefined))
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  await client.query('begin')
  const end = async (how: string): Promise<void> => {
    await client.query(how)
    await client.end()
  }
  return {
    write: async () => void (await client.query('select pg_current_xact_id()')),
    async start(schema, runId, facts) {
      const events = stampFacts(runId, facts).map((event) => encodeEvent(event, undefined))
      const request = {
        ...{ runId, expected: { expectedSeq: 0, epoch: 1 }, events },
        ...({ durability: 'barrier', takes: [], isSealed: false } as const),
      }
      const rows = linkEvents(genesisHash, events)
      const item = {
        runId,
        request,
        previousHash: genesisHash,
        rows,
        history: undefined,
        events: 1,
        bytes: 1,
      }
      const { text, values } = new AppendTexts(schema).append([item])
      await client.query(text, [...values])
    },
    send: (statement) => client.query(statement),
    commit: () => end('commit'),
    rollback: () => end('rollback'),
    pid: rows[0]?.pid ?? 0,
  }
}
