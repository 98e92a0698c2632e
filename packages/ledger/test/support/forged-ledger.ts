import type { RunId } from '@tallystick/core'
import type { Database } from 'better-sqlite3'
import { commitTo, genesisHash, computeLinkHash, sealRun, type RunCell } from '../../src/format/chain.ts'
import type { EventRow } from '../../src/format/event-row.ts'
import { tamper } from './raw-database.ts'

/** An event on its way into a forged file. Ids are whatever the forger writes. */
export interface ForgedEvent {
  readonly runId: string
  readonly toolCallId?: string
  readonly type: string
  readonly body: Record<string, unknown>
  /** The text of the body, where it is not JSON. */
  readonly text?: string
}

/**
 * Writes a run anew as an attacker would who may write the file and knows the format: every hash and seal fits what is
 * written, so that the chain alone finds nothing.
 */
export function forgeRun(path: string, runId: RunId, change: (event: ForgedEvent) => ForgedEvent): void {
  tamper(path, (database) => {
    relink(database, runId, (row) => {
      const { run_id, tool_call_id, type } = row
      const call = tool_call_id === null ? {} : { toolCallId: tool_call_id }
      const body = JSON.parse(row.body) as Record<string, unknown>
      const forged = change({ runId: run_id, ...call, type, body })
      const text = forged.text ?? JSON.stringify(forged.body)
      return { ...row, run_id: forged.runId, tool_call_id: forged.toolCallId ?? null, body: text }
    })
  })
}

/** Computes the chain and the seal of a run anew over changed rows. */
export function relink(database: Database, runId: string, change: (row: EventRow) => EventRow): void {
  const rows = database
    .prepare<[string], EventRow>('select * from event where run_id = ? order by seq')
    .all(runId)
  const write = database.prepare(
    `update event set run_id = ?, type = ?, tool_call_id = ?, at = ?, epoch = ?, body = ?, hash = ? where pos = ?`,
  )
  let hash = genesisHash
  let changedId = runId
  for (const row of rows) {
    const changed = change(row)
    const { run_id, type, tool_call_id, at, epoch, body, salt, commitment, pos } = changed
    hash = computeLinkHash(hash, changed, commitment ?? commitTo(salt as string, body))
    write.run(run_id, type, tool_call_id, at, epoch, body, hash, pos)
    changedId = run_id
  }
  const run = database.prepare<[string], RunCell>('select * from run where run_id = ?').get(runId)
  if (run === undefined) throw new Error(`There is no run ${runId} to forge.`)
  const cell = { ...run, run_id: changedId, head_hash: hash }
  database
    .prepare('update run set run_id = ?, head_hash = ?, seal = ? where run_id = ?')
    .run(changedId, hash, sealRun(cell), runId)
}
